"""What is recognised in the files of a dataset: one table, of which readers, messages and docs/datasets.md are made.

A row says what people have, by which signs it is recognised (extensions, names of columns, keys) and what is read.
Nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

Group = Literal["table", "document", "column", "gold column", "gold", "golden set", "judgments"]

TITLES: Mapping[Group, tuple[str, Sequence[str]]] = {
    "table": ("Tables", ("rows in", "extensions", "what is read")),
    "document": ("Documents in a folder", ("document", "extensions", "title and text")),
    "column": ("Columns", ("setting", "names")),
    "gold column": ("Columns of gold", ("part of the name", "words")),
    "gold": ("Gold", ("gold", "example", "documents that are gold")),
    "golden set": ("Golden sets of other programs", ("written by or for", "keys or columns", "example")),
    "judgments": ("Judgments", ("judgments", "keys or columns", "read by")),
}
"""The heading of each group in the documentation, and the titles of its columns."""


class Shape(NamedTuple):
    """A form that is recognised. `signs` show it; `key` is its name in settings and code; `about` is in Markdown."""

    group: Group
    name: str
    signs: Sequence[str] = ()
    key: str = ""
    about: str = ""


SHAPES: Sequence[Shape] = (
    Shape("table", "JSON lines", (".jsonl", ".ndjson"), "jsonl",
          "an object in each line; lines that begin with `//` or `#` are comments"),
    Shape("table", "JSON", (".json",), "json",
          "a list of objects, objects or texts by id, an object of columns, or one of these under a key, at any depth"),
    Shape("table", "YAML", (".yaml", ".yml"), "yaml", "the same"),
    Shape("table", "CSV", (".csv",), "csv",
          "rows with a header; the file shows its delimiter (comma, tab, semicolon or `\\|`), quotation marks and "
          "encoding: UTF-8, UTF-16 or Windows-1252"),
    Shape("table", "TSV", (".tsv",), "tsv", "the same; without a header if the first row has an id as the second has"),
    Shape("table", "Parquet", (".parquet", ".pq"), "parquet", "rows"),
    Shape("table", "Excel", (".xlsx", ".xlsm"), "xlsx",
          "with the extra `documents`: the visible sheet with questions, below its first row with values; a formula "
          "without a stored result is refused"),

    Shape("document", "Markdown", (".md", ".markdown", ".mdx"), "markdown",
          "the title of the front matter, or else the first heading of level 1; the whole file"),
    Shape("document", "plain text, reStructuredText", (".txt", ".text", ".rst"), "plain", "the whole file"),
    Shape("document", "HTML", (".html", ".htm", ".xhtml"), "html",
          "the title, or else the first heading; the visible text"),
    Shape("document", "AsciiDoc", (".adoc", ".asciidoc"), "asciidoc", "the first heading of level 1; the whole file"),
    Shape("document", "Jupyter notebooks", (".ipynb",), "notebook",
          "the first heading of level 1; the source of the cells"),
    Shape("document", "PDF", (".pdf",), "pdf",
          "with `'dataset.extensions=[pdf]'` and the extra `documents`: the text of the pages; a file without text is "
          "refused"),
    Shape("document", "DOCX", (".docx",), "docx",
          "with `'dataset.extensions=[docx]'` and the extra `documents`: the title, or else the first heading of level "
          "1; the text and the tables without headers, footers and pictures"),

    Shape("column", "id of a question",
          ("id", "query_id", "question_id", "qid", "q_id", "uid", "uuid", "test_id", "case_id", "sample_id",
           "example_id"), "query_id"),
    Shape("column", "text of a question",
          ("text", "question", "query", "user_input", "input", "prompt", "q", "query_text", "question_text",
           "user_query", "user_question", "search_query", "original_query", "original_question", "utterance"),
          "query_text",
          "or the only column whose values end with a question mark, or the only one of texts"),
    Shape("column", "expected answer",
          ("expected_answer", "reference_answer", "ground_truth_answer", "answer", "reference", "expected_output"),
          "query_answer"),
    Shape("column", "grades of the gold",
          ("grade", "grades", "relevance", "relevances", "relevance_grade", "relevance_grades", "is_relevant"),
          "query_grades"),
    Shape("column", "id of a document",
          ("id", "doc_id", "docid", "document_id", "chunk_id", "node_id", "passage_id", "pid", "page_id", "item_id",
           "article_id"), "document_id"),
    Shape("column", "text of a document",
          ("text", "contents", "content", "page_content", "body", "passage", "chunk", "document", "article",
           "abstract", "chunk_text", "page_text", "passage_text", "document_text", "doc_text", "full_text"),
          "document_text"),

    Shape("gold column", "a name",
          ("gold", "golds", "golden", "relevant", "retrieval_gt", "positive", "positives", "pos", "must_retrieve"),
          "names"),
    Shape("gold column", "a qualifier",
          ("gold", "golden", "expected", "relevant", "correct", "target", "source", "reference", "ground_truth", "gt",
           "supporting", "positive", "required", "answer", "expect", "must_include", "must_cite"), "qualifiers"),
    Shape("gold column", "a thing",
          ("doc", "document", "file", "filename", "path", "page", "url", "uri", "link", "source", "id", "chunk", "node",
           "passage", "context", "section", "article", "item", "citation", "evidence", "quote", "span", "snippet"),
          "things"),

    Shape("gold", "an id", ("d17",), "ids", "the document"),
    Shape("gold", "a file, a path or a name without suffix", ("tower.md", "docs/guide/tower.md", "tower"), "files",
          "the file"),
    Shape("gold", "a heading, page, line or time of a file",
          ("tower.md#opening-hours", "tower.pdf, p. 3", "tower.md:12", "tower [05:20]"), "places", "the file"),
    Shape("gold", "a folder, with a slash", ("docs/guide/",), "folders", "every document in it"),
    Shape("gold", "a title", ("The lighthouse",), "titles", "the document"),
    Shape("gold", "a text of at least three words", ("shines for ships",), "texts", "every document that contains it"),
    Shape("gold", "several of these",
          ('["d17", "tower.md"]', "['d17', 'tower.md']", '{"d17": 2, "tower.md": 1}', "d17; tower.md"), "several",
          "all of them, with grades if the gold is an object"),
    Shape("gold", "nothing", ("none", "n/a", "not_found"), "nothing", "none: the documents have no answer"),

    Shape("golden set", "Ragas", ("user_input", "reference_contexts", "reference"), "ragas",
          '{"user_input": "When?", "reference_contexts": ["The lighthouse shines for ships."]}'),
    Shape("golden set", "DeepEval", ("input", "expected_output", "source_file"), "deepeval",
          '{"input": "When?", "expected_output": "At night.", "source_file": "tower.md"}'),
    Shape("golden set", "LangSmith", ("inputs.question", "outputs"), "langsmith",
          '[{"inputs": {"question": "When?"}, "outputs": {"documents": ["tower.md"]}}]'),
    Shape("golden set", "promptfoo", ("tests", "vars"), "promptfoo",
          '{"tests": [{"vars": {"question": "When?", "source": "tower.md"}}]}'),
    Shape("golden set", "AutoRAG", ("qid", "query", "retrieval_gt"), "autorag",
          '{"qid": "q1", "query": "When?", "retrieval_gt": [["tower"]]}'),
    Shape("golden set", "the Zoomcamp of LLMs", ("question", "document"), "zoomcamp",
          '{"question": "When?", "document": "tower"}'),
    Shape("golden set", "LlamaIndex, with its documents in the same file", ("queries", "corpus", "relevant_docs"),
          "llamaindex",
          '{"queries": {"q1": "When?"}, "corpus": {"tower": "It shines."}, "relevant_docs": {"q1": ["tower"]}}'),

    Shape("judgments", "a query, a document and a grade (BEIR)", ("query-id", "corpus-id", "score"), "beir",
          "every format with qrels"),
    Shape("judgments", "a query, 0, a document and a grade (TREC)", (), "trec", "every format with qrels"),
    Shape("judgments", "a query and a relevant document", (), "pairs", "every format with qrels"),
    Shape("judgments", "a table with names of columns", ("query_id", "document_id", "grade"), "table",
          "`judged`, and tables"),
    Shape("judgments", "a list of ratings, of one judge or several", ("query", "docid", "rating"), "ratings",
          "[`judged`](judgments.md)"),
    Shape("judgments", "Quepid", ("query_doc_pairs", "ratings"), "quepid", "[`judged`](judgments.md)"),
    Shape("judgments", "Elasticsearch's ranking evaluation", ("requests",), "rank_eval", "[`judged`](judgments.md)"),
    Shape("judgments", "OpenSearch", ("judgmentRatings",), "opensearch", "[`judged`](judgments.md)"),
    Shape("judgments", "clicks of OpenSearch's User Behavior Insights", ("action_name", "query_response_hit_ids"),
          "ubi", "[`judged`](judgments.md#clicks)"),
)  # fmt: skip
"""Everything that is recognised, in the order of the documentation."""


def select(group: Group) -> list[Shape]:
    """Return the rows of a group."""
    return [shape for shape in SHAPES if shape.group == group]


def map_keys(group: Group) -> dict[str, Sequence[str]]:
    """Return the signs of a group by key."""
    return {shape.key: shape.signs for shape in select(group)}


def map_signs(group: Group) -> dict[str, str]:
    """Return the key by each sign of a group."""
    return {sign: shape.key for shape in select(group) for sign in shape.signs}


def describe(group: Group) -> str:
    """Return the names of a group with their signs, for a message."""
    return ", ".join(f"{shape.name} ({' '.join(shape.signs)})" for shape in select(group))
