"""TREC's formats."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

from runner.datasets.base import DatasetError
from runner.datasets.dataset import Dataset
from runner.datasets.trec import Trec

DOCUMENTS = """<DOC>
<DOCNO> FT911-3 </DOCNO>
<DATE>910514</DATE>
<HEADLINE>
FT  14 MAY 91 / Profits &amp; losses
</HEADLINE>
<TEXT>
<P>Profits fell, p < 0.05.</P><!-- page 3 -->
Losses rose.
</TEXT>
<TEXT>More.</TEXT>
</DOC>
<doc>
<docno>FT911-4</docno>
<text></text>
</doc>
"""
TOPICS = """<top>
<num> Number: 301
<title> International
Organized Crime &amp; Topic: trade

<desc> Description:
Identify organizations.

<narr> Narrative:
A document must name one.
</top>

<top><num>302</num><title></title><desc>Polio</desc></top>
"""
PROFITS = ["Profits", "fell,", "p", "<", "0.05.", "Losses", "rose.", "More."]
QRELS = "301 0 FT911-3 1\n302 0 FT911-4 0\n302 0 FT911-3 2\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/ft911_1").write_text(DOCUMENTS, encoding="utf-8")
    (tmp_path / "topics.301-302").write_text(TOPICS, encoding="utf-8")
    (tmp_path / "qrels.txt").write_text(QRELS, encoding="utf-8")
    return tmp_path


def load(folder: Path, documents: str = "docs", topics: str = "topics.301-302", **others: Any) -> Dataset:
    return Trec(
        documents=str(folder / documents), topics=str(folder / topics), qrels=str(folder / "qrels.txt"), **others
    ).load()


def test_sgml_documents_classic_topics_and_judgments_load(folder: Path) -> None:
    dataset = load(folder)
    assert dataset.name == "docs"
    assert list(dataset.corpus.ids) == ["FT911-3", "FT911-4"]
    assert list(dataset.corpus.titles) == ["FT  14 MAY 91 / Profits & losses", ""]
    assert [text.split() for text in dataset.corpus.texts] == [PROFITS, []]
    assert list(dataset.queries.ids) == ["301", "302"]
    assert list(dataset.queries.texts) == ["International Organized Crime & Topic: trade", ""]
    assert dataset.judgments.grades.tolist() == [1, 2, 0]


def test_other_tags_and_topic_fields_may_be_named(folder: Path) -> None:
    dataset = load(folder, title_tags=[], text_tags=["DATE"], topic_fields=["title", "desc"])
    assert list(dataset.corpus.texts) == ["910514", ""]
    assert not dataset.corpus.titles
    assert list(dataset.queries.texts) == [
        "International Organized Crime & Topic: trade Identify organizations.",
        "Polio",
    ]


def test_no_text_tags_means_all_but_the_id_and_the_title(folder: Path) -> None:
    text = load(folder, text_tags=[]).corpus.texts[0].split()
    assert text == ["910514", *PROFITS]


def test_topics_may_carry_their_number_as_an_attribute(folder: Path) -> None:
    topics = (
        '<topics><topic number="301" type="x"><query>crime</query></topic><topic number=302><query>a</query></topic>'
    )
    (folder / "topics.xml").write_text(topics + "</topics>", encoding="utf-8")
    assert list(load(folder, topics="topics.xml", topic_fields=["query"]).queries.texts) == ["crime", "a"]


def test_documents_and_topics_may_be_tsv_or_jsonl_gzipped_or_not(folder: Path) -> None:
    (folder / "d.tsv").write_text("FT911-3\ta title\ta text\nFT911-4\tonly text\n", encoding="utf-8")
    (folder / "t.tsv.gz").write_bytes(gzip.compress(b"301\tcrime\tand more\n302\t\n"))
    tsv = load(folder, "d.tsv", "t.tsv.gz")
    assert list(tsv.corpus.contents()) == ["a title a text", "only text"]
    assert list(tsv.queries.texts) == ["crime\tand more", ""]
    (folder / "d.jsonl").write_text(
        '{"id": "FT911-3", "title": "a title", "text": "a text"}\n{"id": "FT911-4", "text": "only text"}\n',
        encoding="utf-8",
    )
    (folder / "t.jsonl").write_text(
        '{"id": 301, "text": "crime\\tand more"}\n{"id": 302, "text": ""}', encoding="utf-8"
    )
    assert load(folder, "d.jsonl", "t.jsonl").fingerprint == tsv.fingerprint


def test_a_format_may_be_set_against_the_ending(folder: Path) -> None:
    (folder / "d.txt").write_text("FT911-3\ta text\nFT911-4\tanother\n", encoding="utf-8")
    (folder / "t.txt").write_text("301\tcrime\n302\tpolio\n", encoding="utf-8")
    dataset = load(folder, "d.txt", "t.txt", documents_format="tsv", topics_format="tsv")
    assert list(dataset.queries.texts) == ["crime", "polio"]
    with pytest.raises(DatasetError, match=r"the file contains no <DOC>; for TSV or JSONL.*dataset.documents_format"):
        load(folder, "d.txt")
    (folder / "t.txt").write_text("crime\npolio\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"the file contains no <top>; expected TREC topics, lines of id, tab and"):
        load(folder, topics="t.txt")


def test_a_folder_is_read_in_order_of_its_paths(folder: Path) -> None:
    more = DOCUMENTS.replace("FT911", "FT910").encode()
    (folder / "docs/a").mkdir()
    (folder / "docs/a/ft910.gz").write_bytes(gzip.compress(more))
    assert list(load(folder).corpus.ids) == ["FT910-3", "FT910-4", "FT911-3", "FT911-4"]
    assert list(load(folder, "docs/ft911*").corpus.ids) == ["FT911-3", "FT911-4"]


def test_an_old_encoding_may_be_named(folder: Path) -> None:
    (folder / "docs/ft911_1").write_bytes(DOCUMENTS.replace("Losses", "Verluste über").encode("latin-1"))
    assert "über" in load(folder, encoding="latin-1").corpus.texts[0]
    with pytest.raises(DatasetError, match="ft911_1:9: not utf-8 text"):
        load(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("docs/ft911_1", DOCUMENTS + "<DOC>\n<TEXT>x</TEXT></DOC>", "ft911_1:17: this <DOC> has no <DOCNO>"),
        (
            "docs/ft911_1",
            DOCUMENTS + "<DOC><DOCNO>9</DOCNO>",
            "ft911_1:17: only 2 of 3 <DOC> end with </DOC>; the file may be truncated",
        ),
        (
            "docs/ft911_1",
            f"<DOC><DOCNO>8</DOCNO>\n{DOCUMENTS}",
            "ft911_1:1: this <DOC> has no </DOC> before the next one starts",
        ),
        (
            "docs/ft911_1",
            f"{DOCUMENTS}<DOC><DOCNO>9</DOCNO><TEXT>kept\n</DOC>",
            "ft911_1:17: in this <DOC>, <TEXT> has no counterpart, so that text would be lost",
        ),
        (
            "docs/ft911_1",
            f"{DOCUMENTS}<DOC><DOCNO>9</DOCNO><TITLE>x <TEXT>kept</TEXT></DOC>",
            "ft911_1:17: in this <DOC>, <TITLE> has no counterpart, so that text would be lost",
        ),
        (
            "docs/ft911_1",
            DOCUMENTS.replace("text>", "t>").replace("TEXT>", "T>"),
            "no document has any of dataset.text_tags",
        ),
        ("docs/ft911_1", DOCUMENTS * 2, "docs/ft911_1:17: the document id 'FT911-3' is already used at "),
        (
            "topics.301-302",
            TOPICS.replace("<num>302</num>", ""),
            "topic 2: 'num' is missing; the fields are title, desc",
        ),
        (
            "topics.301-302",
            TOPICS.replace("<title></title>", ""),
            "topic 2: <title> is missing; set dataset.topic_fields=[NAME] to one of desc",
        ),
        ("qrels.txt", "301 0 FT911-3 1\n301 FT911-3\n", "qrels.txt:2: expected 4 columns"),
        ("qrels.txt", "301 0 FT911-9 1\n", "not among the 2 documents of the corpus, for example 'FT911-9'"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(folder: Path, name: str, content: str, message: str) -> None:
    (folder / name).write_text(content, encoding="utf-8")
    with pytest.raises(DatasetError, match=re.escape(message)):
        load(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.tsv", "FT911-3\ta\tb\tc\n", "d.tsv:1: expected 2 columns (id, text) or 3"),
        ("d.tsv", "FT911-3\n", "d.tsv:1: expected 2 columns"),
        ("d.tsv", "\ttext\n", "d.tsv:1: "),
        ("t.tsv", "301\n", "t.tsv:1: expected an id, a tab and a text"),
    ],
)
def test_a_broken_line_of_tsv_is_named(folder: Path, name: str, content: str, message: str) -> None:
    (folder / "d.tsv").write_text("FT911-3\ta\nFT911-4\tb\n", encoding="utf-8")
    (folder / "t.tsv").write_text("301\ta\n302\tb\n", encoding="utf-8")
    (folder / name).write_text(content, encoding="utf-8")
    with pytest.raises(DatasetError, match=re.escape(message)):
        load(folder, "d.tsv", "t.tsv")


@pytest.mark.parametrize("setting", ["documents", "topics", "qrels"])
def test_a_missing_file_names_its_setting(folder: Path, setting: str) -> None:
    paths = {"documents": "docs", "topics": "topics.301-302", "qrels": "qrels.txt"} | {setting: "nowhere"}
    chosen: dict[str, Any] = {name: str(folder / path) for name, path in paths.items()}
    with pytest.raises(DatasetError, match=rf"^dataset\.{setting}=.*nowhere: no such file or folder$"):
        Trec(**chosen).load()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<top><num>1<title>ships\n<top><num>2<title>ferries</top>", r"t\.txt:1: this <top> has no end before"),
        ("<top><num>1<title>ships</top>\n<top><num>2<title>ferries", r"t\.txt:2: only 1 of 2 topics end"),
        ("<top><num>1<title>ships\n<num>2<title>ferries</top>", r"t\.txt:1: this <top> has <num> twice; each topic"),
        ("<top>\n<num>1<title>ships<title>ferries</top>", r"t\.txt:1: this <top> has <title> twice; each topic needs"),
        ("<top><num>1<desc>a<narr>b</top>", r"topic 1: <title> is missing; set .*=\[NAME\] to one of desc, narr"),
        ("<top><title>ships</top>", "topic 1: 'num' is missing; the fields are title"),
    ],
)
def test_a_topic_without_an_end_does_not_take_the_next_one(folder: Path, content: str, message: str) -> None:
    (folder / "t.txt").write_text(content)
    with pytest.raises(DatasetError, match=message):
        load(folder, topics="t.txt")


@pytest.mark.parametrize(
    "content",
    [
        "<top><num> Number: 301 <title> Topic: ships &amp; <b>ferries</b> <desc> x\n<top>\n<num>302 <title>polio\n",
        "<topics><topic number='301'><title>ships &amp; <b>ferries</b></title><note>x</note></topic>"
        "<topic number='302'><title>polio</title></topic></topics>",
        "<TOPICS><TOPIC><ID>301</ID><TITLE>ships &amp;\nferries</TITLE><A>x</A></TOPIC>"
        "<TOPIC><ID>302</ID><TITLE>polio</TITLE></TOPIC></TOPICS>",
        '<queries><query id="301">ships &amp; ferries</query><query id="302">polio</query></queries>',
        "<parameters><query><number>301</number><text>ships &amp; ferries</text></query>"
        "<query><number>302</number><text>polio</text></query></parameters>",
        '<topics ct_no="1"><topic ct_no="9" id="301"><query><![CDATA[ships & ferries]]></query></topic>'
        '<topic ct_no="10" id="302"><query>polio</query></topic></topics>',
        "<top lang='en'><num>301</num><EN-title>ships &amp; ferries</EN-title><EN-desc>x</EN-desc></top>"
        "<top lang='en'><num>302</num><EN-title>polio</EN-title><EN-desc>x</EN-desc></top>",
        "301:ships & ferries\n302:polio\n",
        "qid\tquery\n301\tships & ferries\n302\tpolio\n",
    ],
)
def test_topics_are_read_without_ends_or_titles_and_with_other_elements(folder: Path, content: str) -> None:
    (folder / "t.txt").write_text(content)
    queries = load(folder, topics="t.txt").queries
    assert (list(queries.ids), list(queries.texts)) == (["301", "302"], ["ships & ferries", "polio"])


JSON_TOPICS = '{"_id": "301", "text": "ships at night"}\n{"_id": "302", "text": "ferries"}'


@pytest.mark.parametrize("content", ["301\tships at night\n302\tferries\n", JSON_TOPICS])
def test_topics_in_a_text_file_are_recognised_by_their_first_line(folder: Path, content: str) -> None:
    (folder / "topics.txt").write_text(content)
    assert load(folder, topics="topics.txt", unjudged_queries="keep").queries.texts[0] == "ships at night"


@pytest.mark.parametrize("gap", ["\t", " "])
def test_miracl_mr_tydi_and_ms_marco_are_read_from_their_files(tmp_path: Path, gap: str) -> None:
    (tmp_path / "docs.jsonl").write_text(
        '{"docid": "26569#0", "title": "Sea", "text": "ships"}\n{"id": "7#1", "contents": "ferries"}\n'
    )
    (tmp_path / "topics.tsv").write_text("1\twhere are ships?\n2\twhere are ferries?\n")
    (tmp_path / "qrels.tsv").write_text(
        "".join(f"{gap.join(row)}\n" for row in (("1", "Q0", "26569#0", "1"), ("2", "0", "7#1", "1")))
    )
    paths = {"topics": "topics.tsv", "qrels": "qrels.tsv", "documents": "docs.jsonl"}
    dataset = Trec(**{name: str(tmp_path / file) for name, file in paths.items()}).load()
    assert list(dataset.corpus.contents()) == ["Sea ships", "ferries"]
    assert dataset.judgments.list_rows() == [(0, 0, 1), (1, 1, 1)]
