"""Read the formats of TREC: documents and topics in SGML (or TSV, or JSONL as in BEIR), judgments in columns."""

from __future__ import annotations

import html
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.runs.run_formats import strip_compression
from runner.datasets import beir, files
from runner.datasets.base import DatasetError, Queries, Raw, corpus_of
from runner.datasets.columns import NAMES, normalize_name
from runner.datasets.files import Place, PlaceTable
from runner.datasets.filtering import DocumentFields
from runner.datasets.qrels import iter_qrel_places, read_qrels
from runner.datasets.source import SHARED_PATHS, DatasetSource

logger = logging.getLogger("runner.datasets")

Format = Literal["trec", "tsv", "jsonl"]
TITLE_TAGS = ("title", "headline", "hl")
TEXT_TAGS = ("text", "leadpara", "lp", "body")


def _elements(tags: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of elements: the tag, its attributes, and the content."""
    names = "|".join(map(re.escape, tags)) or "(?!)"
    inside = r"(?:[^<]++|<(?!/\1\s*>))*+"  # the same as .*? but several times faster
    return re.compile(rf"<({names})(\s[^>]*)?>({inside})</\1\s*>", re.IGNORECASE)


_MARKUP = re.compile(r"<!--.*?-->|<[/!?]?[a-z][^<>]*>", re.IGNORECASE | re.DOTALL)
_DOC_START = re.compile(r"<doc(?:\s[^>]*)?>", re.IGNORECASE)
_DOC = _elements(["doc"])
_DOCNO = _elements(["docno"])
_TOPIC_TAGS = ("top", "topic", "query", "question")
_TOPIC_NUMBER = re.compile(r"(?<![\w-])(?:number|num|id|qid)\s*=\s*[\"']?([^\"'\s]+)", re.IGNORECASE)
_NUMBERS = ("num", "number", "id", "qid", "query_id", "topic_id")
"""The elements with the id of a topic."""
_INLINE = re.compile(r"</?(?:b|br|em|font|i|p|span|strong|sub|sup|u)(?:\s[^>]*)?/?>", re.IGNORECASE)
"""Markup within the text of a topic, where elements may lack an end."""
_QUOTED = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_COLON_LINE = re.compile(rb"[\w.-]+:\s*[^\s:].*", re.DOTALL)
_TOPIC_FIELD = re.compile(r"<(/?[a-z][a-z0-9_-]*)(?:\s[^>]*)?>", re.IGNORECASE)
_TOPIC_LABELS = {"num": "Number:", "title": "Topic:", "desc": "Description:", "narr": "Narrative:"}


@settings(frozen=True, config={"extra": "forbid"})
class Trec(DatasetSource):
    """Documents, topics and judgments in TREC files.

    `documents` is a file, a folder or a glob: SGML (`<DOC><DOCNO>`), TSV (id, text or id, title, text) or JSONL; None
    for a retriever with its own index. `topics` is a file of `<top>` or `<topic>`, TSV (id, text) or JSONL. By default,
    the format follows from the file's extension: .tsv, .jsonl, and SGML for any other. In SGML, the title and text of a
    document are the content of the tags `title_tags` and `text_tags` (if empty, all that remains), and a query is that
    of the `topic_fields`.
    """

    access: ClassVar[Access] = Access(paths=(*SHARED_PATHS, "topics", "qrels", "documents"))

    topics: str
    qrels: str
    documents: str | None = None
    documents_format: Format | None = None
    topics_format: Format | None = None
    title_tags: tuple[str, ...] = TITLE_TAGS
    text_tags: tuple[str, ...] = TEXT_TAGS
    topic_fields: tuple[str, ...] = ("title",)
    encoding: str = "utf-8"

    @property
    def origin(self) -> str:
        """Return the file or folder of documents, or that of topics."""
        return self.documents or self.topics

    def read(self) -> Raw:
        """Read the files."""
        judgments = files.resolve_path(self.qrels, "qrels")
        topics = files.resolve_path(self.topics, "topics")
        queries = self.read_queries(topics)
        fields = DocumentFields(queries.filters, str(topics), self.search_fields)
        return Raw(
            corpus=corpus_of(self.iter_documents(fields)),
            queries=queries,
            qrels=read_qrels(judgments),
            qrels_name=str(judgments),
            document_fields=fields.names,
        )

    def iter_documents(
        self, fields: DocumentFields
    ) -> Iterator[tuple[str, str, str] | tuple[str, str, str, Mapping[str, Any]]]:
        """Yield the id, title and text of each document and, from JSONL, the metadata that filters need."""
        for path in files.matching(self.documents, "documents") if self.documents else ():
            kind = self.documents_format or _format(path)
            if kind == "jsonl":
                yield from beir.iter_documents(files.json_lines(path), fields)
            elif kind == "tsv":
                yield from _tsv_documents(path, self.encoding)
            else:
                yield from self._sgml_documents(path)

    def iter_places(self, table: PlaceTable) -> Iterator[Place]:
        """Yield the line of each document or judgment, and the line or number of each query."""
        if table == "judgment":
            yield from iter_qrel_places(files.resolve_path(self.qrels, "qrels"))
        elif table == "query":
            topics = files.resolve_path(self.topics, "topics")
            kind = self.topics_format or _recognise_topics(topics)
            if kind == "trec":
                yield from ((topic.location, (topic.identifier("num"),)) for topic in self._sgml_topics(topics))
            else:
                yield from self._iter_line_places(topics, kind)
        elif self.documents:
            for path in files.matching(self.documents, "documents"):
                kind = self.documents_format or _format(path)
                if kind == "trec":
                    yield from _iter_sgml_places(path, _content(path, self.encoding))
                else:
                    yield from self._iter_line_places(path, kind)

    def _iter_line_places(self, path: Path, kind: Format) -> Iterator[Place]:
        if kind == "jsonl":
            yield from ((record.location, (record.identifier(*beir.IDS),)) for record in files.json_lines(path))
        else:
            for number, line in files.text_lines(path, self.encoding):
                yield f"{path}:{number}", (line.partition("\t")[0],)

    def _sgml_documents(self, path: Path) -> Iterator[tuple[str, str, str]]:
        content = _content(path, self.encoding)
        title, text = _elements(self.title_tags), _elements(self.text_tags)
        loose = re.compile(
            rf"</?({'|'.join(map(re.escape, (*self.title_tags, *self.text_tags)))})\b[^>]*>", re.IGNORECASE
        )
        documents = with_text = 0
        for documents, document in enumerate(_DOC.finditer(content), start=1):  # noqa: B007 (counts)
            body, at = document[3], document.start()
            number = _DOCNO.search(body)
            if _DOC_START.search(body):
                raise DatasetError(f"{_locate(path, content, at)}: this <DOC> has no </DOC> before the next one starts")
            if number is None or not _plain(number[3]):
                raise DatasetError(f"{_locate(path, content, at)}: this <DOC> has no <DOCNO>")
            rest = title.sub(" ", _DOCNO.sub(" ", body))
            if self.text_tags and (tag := loose.search(text.sub(" ", rest))):
                raise DatasetError(
                    f"{_locate(path, content, at)}: in this <DOC>, {tag[0]} has no counterpart, so that text would be "
                    "lost; close each tag, or set dataset.text_tags=[] to read all text"
                )
            parts = [part[3] for part in text.finditer(rest)] if self.text_tags else [rest]
            with_text += bool(parts)
            yield _plain(number[3]), _join(part[3] for part in title.finditer(body)), _join(parts)
        self._check_sgml(path, content, documents, with_text)

    def _check_sgml(self, path: Path, content: str, documents: int, with_text: int) -> None:
        starts = len(_DOC_START.findall(content))
        if not starts:
            raise DatasetError(f"{path}: the file contains no <DOC>; for TSV or JSONL, set dataset.documents_format")
        if starts != documents:
            *_, last = _DOC_START.finditer(content)
            raise DatasetError(
                f"{_locate(path, content, last.start())}: only {documents} of {starts} <DOC> end with </DOC>; the file "
                "may be truncated"
            )
        if not with_text:
            tags = dict.fromkeys(tag[1].lower() for tag in _TOPIC_FIELD.finditer(content) if tag[1][0] != "/")
            raise DatasetError(
                f"{path}: no document has any of dataset.text_tags ({', '.join(self.text_tags)}); choose from "
                f"{', '.join(tags)}, or set dataset.text_tags=[] to read all text"
            )

    def read_queries(self, path: Path) -> Queries:
        """Read a file of topics."""
        kind = self.topics_format or _recognise_topics(path)
        if kind == "jsonl":
            records = list(files.json_lines(path))
            return beir.build_queries(records, str(path), None, self.query_fields, self.filter_field)
        if kind == "tsv":
            topics = list(_tsv_topics(path, self.encoding))
        else:
            records = list(self._sgml_topics(path))
            names = self._find_topic_fields(records)
            topics = [
                (record.identifier("num"), " ".join(filter(None, (_topic_text(record, name) for name in names))))
                for record in records
            ]
        return Queries([topic for topic, _ in topics], [text for _, text in topics], [""] * len(topics))

    def _find_topic_fields(self, topics: Sequence[files.SourceRecord]) -> Sequence[str]:
        """Return the fields with the query: those of the setting or, where no topic has a title, the only other one."""
        if self.topic_fields != ("title",) or any("title" in topic.fields for topic in topics):
            return self.topic_fields
        names = _list_texts(*topics)
        names = [name for name in names if name.endswith(("-title", "_title"))] or names
        if len(names) != 1:
            return self.topic_fields
        logger.warning("%s: no topic has a <title>, so the queries are those in <%s>", self.topics, names[0])
        return names

    def _sgml_topics(self, path: Path) -> Iterator[files.SourceRecord]:
        content, place = _QUOTED.sub(lambda text: html.escape(text[1]), _content(path, self.encoding)), 0
        there = {tag: [*re.finditer(rf"<{tag}(?:\s[^>]*)?>", content, re.IGNORECASE)] for tag in _TOPIC_TAGS}
        tag, starts = next(((tag, starts) for tag, starts in there.items() if starts), ("top", []))
        if not starts:
            raise DatasetError(
                f"{path}: the file contains no <top>; expected TREC topics, lines of id, tab and text, or JSONL; for "
                "tables with named columns, set dataset=csv, dataset.documents, dataset.queries and dataset.qrels"
            )
        for place, topic in enumerate(_topics(content, tag).finditer(content), start=1):
            at = f"{_locate(path, content, topic.start())}: this <{tag}> has"
            if any(topic.start() < start.start() < topic.end() for start in starts):
                raise DatasetError(f"{at} no end before the next one starts; add </{tag}>")
            fields, counts = _topic_fields(tag, topic[3])
            for name in ("num", *self.topic_fields):
                if counts[name] > 1:
                    raise DatasetError(f"{at} <{name}> twice; each topic needs its own <{tag}>")
            if number := _TOPIC_NUMBER.search(topic[2] or ""):
                fields["num"] = number[1]
            yield files.SourceRecord(f"{path}, topic ", place, fields)
        if len(starts) > place:
            raise DatasetError(
                f"{_locate(path, content, starts[-1].start())}: only {place} of {len(starts)} topics end; the file may "
                "be truncated"
            )


def _topics(content: str, tag: str) -> re.Pattern[str]:
    """Return a pattern of topics, as of elements; if none has an end, each ends where the next one starts."""
    if re.search(rf"</{tag}\s*>", content, re.IGNORECASE):
        return _elements([tag])
    return re.compile(rf"<({tag})(\s[^>]*)?>((?:[^<]++|<(?!{tag}[\s>]))*+)", re.IGNORECASE)


def _format(path: Path) -> Format:
    ending = Path(strip_compression(path.name)).suffix.lower()
    return "tsv" if ending == ".tsv" else "jsonl" if ending in (".jsonl", ".ndjson", ".json") else "trec"


def _recognise_topics(path: Path) -> Format:
    """Return the format of a file of topics, by its extension or its first line."""
    kind = _format(path)
    if kind != "trec":
        return kind
    with files.open_file(path) as file:
        first = next(filter(None, map(bytes.strip, file)), b"")
    is_line = (b"\t" in first and not first.startswith(b"<")) or _COLON_LINE.fullmatch(first)
    return "jsonl" if first.startswith(b"{") else "tsv" if is_line else "trec"


def _content(path: Path, encoding: str) -> str:
    with files.open_file(path) as file:
        content = file.read()
    return files.decode_content(content, path, encoding)


def _iter_sgml_places(path: Path, content: str) -> Iterator[Place]:
    line, read = 1, 0
    for document in _DOC.finditer(content):
        line, read = line + content.count("\n", read, document.start()), document.start()
        if number := _DOCNO.search(document[3]):
            yield f"{path}:{line}", (_plain(number[3]),)


def _locate(path: Path, content: str, at: int) -> str:
    return f"{path}:{content.count(chr(10), 0, at) + 1}"


def _join(parts: Iterable[str]) -> str:
    return "\n".join(filter(None, map(_plain, parts)))


def _plain(markup: str) -> str:
    return html.unescape(_MARKUP.sub(" ", markup)).strip()


def _topic_text(topic: files.SourceRecord, name: str) -> str:
    if name not in topic.fields:
        raise topic.fault(
            f"<{name}> is missing; set dataset.topic_fields=[NAME] to one of {', '.join(_list_texts(topic)) or 'none'}"
        )
    return topic.text(name)


def _list_texts(*topics: files.SourceRecord) -> list[str]:
    return list(dict.fromkeys(name for topic in topics for name in topic.fields if name not in _NUMBERS))


def _topic_fields(tag: str, body: str) -> tuple[dict[str, str], Counter[str]]:
    """Return the content of each element, up to its end or without one to the next element, and how many there are.

    A topic without elements has its content under its own tag. The first of `_NUMBERS` is named num.
    """
    body = _INLINE.sub(" ", body)
    elements = [*_TOPIC_FIELD.finditer(body)]
    fields: dict[str, str] = {} if elements else {tag: " ".join(_plain(body).split())}
    counts = Counter(element[1].lower() for element in elements)
    for element, after in zip(elements, [*elements[1:], None], strict=False):
        name = element[1].lower()
        if not name.startswith("/"):
            end = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(body, element.end())
            stop = end.start() if end else after.start() if after else len(body)
            plain = " ".join(_plain(body[element.end() : stop]).split())
            fields.setdefault(name, plain.removeprefix(_TOPIC_LABELS.get(name, "")).strip())
    number = next((name for name in _NUMBERS if name in fields), "num")
    if number in fields:
        fields["num"], counts["num"] = fields.pop(number), counts[number]
    return fields, counts


def _tsv_documents(path: Path, encoding: str) -> Iterator[tuple[str, str, str]]:
    for number, line in files.text_lines(path, encoding):
        columns = line.split("\t")
        if len(columns) not in (2, 3) or not columns[0]:
            raise DatasetError(
                f"{path}:{number}: expected 2 columns (id, text) or 3 (id, title, text), found {len(columns)}"
            )
        yield columns[0], columns[1] if len(columns) == 3 else "", columns[-1]


def _tsv_topics(path: Path, encoding: str) -> Iterator[tuple[str, str]]:
    """Yield the id and text of each line: between them is a tab or, without any in the first line, a colon."""
    gap = ""
    for number, line in files.text_lines(path, encoding):
        is_first, gap = not gap, gap or ("\t" if "\t" in line or not _COLON_LINE.fullmatch(line.encode()) else ":")
        topic, between, text = (part.strip() if gap == ":" else part for part in line.partition(gap))
        if not between or not topic:
            raise DatasetError(f"{path}:{number}: expected an id, a tab and a text")
        names = normalize_name(topic), normalize_name(text)
        if not (is_first and names[0] in NAMES["query_id"] and names[1] in NAMES["query_text"]):
            yield topic, text
