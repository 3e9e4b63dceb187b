"""Chunks are pieces of their documents, all of them, and no longer than is said."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.base import Corpus
from runner.config.objects import ConfigError, build
from runner.datasets.base import Judgments, Queries
from runner.datasets.chunking import DOCUMENT, END, HEADING, START, Chunking, Headings, Sentences, Tokens, Whole
from runner.datasets.dataset import Dataset
from runner.datasets.folder import corpus_of_folder
from runner.datasets.sections import sections, title_of
from tests.strategies.chunking import CHUNK_SIZES, MARKDOWN_TEXTS

WORD = re.compile(r"[぀-ヿ一-鿿]|[a-zA-Z0-9]+(?:'[a-z]+)*")

MARKDOWN = """---
title: Ships & co  # no heading
---
Before all.

# Ships

Ships float.

## Sails {#sails}
### Cloth ##
Of linen.

```sh
# not a heading
```

Masts
-----
Of wood.

a paragraph of two lines
above a rule
---
- item
---
#hashtag

## Last
"""


def words(text: str) -> int:
    """Count words by another expression: of these texts, where Han and Hiragana count by character."""
    return len(WORD.findall(text))


def chunks(chunking: Chunking, text: str, title: str = "") -> Corpus:
    return chunking.split(Corpus(["d"], [text], [title] if title else ()))


def places(corpus: Corpus) -> list[tuple[int, int]]:
    return [(chunk[START], chunk[END]) for chunk in corpus.metadata]


@given(MARKDOWN_TEXTS, CHUNK_SIZES, st.sampled_from([Tokens, Sentences, Headings]))
def test_a_chunk_is_a_piece_of_its_document_and_no_longer_than_its_size(
    text: str, sizes: tuple[int, int], kind: type[Tokens | Sentences | Headings]
) -> None:
    size, overlap = sizes
    cut = chunks(kind(size, overlap), text)
    assert list(cut.texts) == [text[start:end] for start, end in places(cut)]
    assert max(map(words, cut.texts)) <= size
    assert list(cut.ids) == [f"d#{number}" for number in range(len(cut))]
    assert all(before < after for before, after in pairwise(places(cut)))
    assert all(one[1] < other[1] for one, other in pairwise(places(cut)))  # none is within the one before


@given(MARKDOWN_TEXTS, CHUNK_SIZES, st.sampled_from([Tokens, Sentences]))
def test_no_character_is_lost_and_no_more_words_repeated_than_the_overlap(
    text: str, sizes: tuple[int, int], kind: type[Tokens | Sentences]
) -> None:
    size, overlap = sizes
    found = places(chunks(kind(size, overlap), text))
    covered = {position for start, end in found for position in range(start, end)}
    assert all(text[position].isspace() for position in set(range(len(text))) - covered)
    shared = [words(text[after[0] : before[1]]) for before, after in pairwise(found) if after[0] < before[1]]
    assert max(shared, default=0) <= overlap


@given(MARKDOWN_TEXTS, CHUNK_SIZES)
def test_chunks_of_tokens_are_full_and_overlap_by_just_so_many(text: str, sizes: tuple[int, int]) -> None:
    size, overlap = sizes
    found = places(chunks(Tokens(size, overlap), text))
    assert [words(text[start:end]) for start, end in found[:-1]] == [size] * (len(found) - 1)
    assert [words(text[b:e]) for (_, e), (b, _) in pairwise(found)] == [overlap] * (len(found) - 1)


@given(MARKDOWN_TEXTS, st.integers(1, 9))
def test_every_word_is_in_the_text_or_the_title_of_a_chunk_under_headings(text: str, size: int) -> None:
    cut = chunks(Headings(size), text)
    searched = " ".join(cut.contents())
    assert set(WORD.findall(text)) <= set(WORD.findall(searched))


def test_the_title_of_a_chunk_is_that_of_its_document_and_its_headings() -> None:
    cut = chunks(Headings(), MARKDOWN, title="Ships")
    assert list(zip(cut.titles, cut.texts, strict=True)) == [
        ("Ships", "---\ntitle: Ships & co  # no heading\n---\nBefore all."),
        ("Ships", "Ships float."),
        ("Ships > Sails > Cloth", "Of linen.\n\n```sh\n# not a heading\n```"),
        (
            "Ships > Masts",
            "Of wood.\n\na paragraph of two lines\nabove a rule\n---\n- item\n---\n#hashtag",
        ),
        ("Ships > Last", "## Last"),
    ]
    assert [chunk[HEADING] for chunk in cut.metadata] == [
        "", "Ships", "Ships > Sails > Cloth", "Ships > Masts", "Ships > Last",
    ]  # fmt: skip
    assert {chunk[DOCUMENT] for chunk in cut.metadata} == {"d"}


def test_a_long_section_is_cut_and_keeps_its_heading() -> None:
    cut = chunks(Headings(size=3, overlap=1), "# A\none two three four five\n# B\nsix")
    assert list(zip(cut.titles, cut.texts, strict=True)) == [
        ("A", "one two three"), ("A", "three four five"), ("B", "six"),
    ]  # fmt: skip


def test_a_document_without_headings_is_cut_by_words() -> None:
    text = "one two, (three) four"
    assert (
        list(chunks(Headings(size=2), text).texts)
        == list(chunks(Tokens(size=2), text).texts)
        == ["one two,", "(three) four"]
    )


@pytest.mark.parametrize("text", [MARKDOWN, "# Top\ntext\n## Part\nmore", "Top\n===\ntext", "```\n# code\n```\n# Top"])
def test_a_byte_order_mark_is_not_part_of_the_first_line(text: str) -> None:
    plain, marked = sections(text), sections(f"\ufeff{text}")
    assert [(each.path, each.body, each.end) for each in marked[1:]] == [
        (each.path, each.body + 1, each.end + 1) for each in plain[1:]
    ]
    assert not marked[0].end or plain[0].end  # the mark is in the section that the text begins with


def test_sections_make_up_all_of_a_text() -> None:
    found = sections(MARKDOWN)
    assert found[0].start == 0
    assert found[-1].end == len(MARKDOWN)
    assert all(one.end == other.start for one, other in pairwise(found))


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('---\nlayout: x\ntitle: "A: b"\n---\n# C', "A: b"),
        ("+++\ntitle = 'T'\n+++\n", "T"),
        ("---\nlayout: x\n---\n## No\n# Yes {#y}", "Yes"),
        ("Over\n====\ntext", "Over"),
        ("```\n# code\n```\n~~~\n```\n# code\n~~~~\ntext", ""),
        ("    # indented\n", ""),
        ("<!--\n# Was\n-->\n# Is", "Is"),
        ("<!-- was -->\n# Is", "Is"),
        ("```\n<!--\n```\n# Is", "Is"),
        ("<!--\n# Was", ""),
        ("<pre>\n# a comment of a shell\n</pre>\n# Is", "Is"),
        ("<SCRIPT src=x></script>\n# Is", "Is"),
        ("<style>\n# no --> end\n</style>\n# Is", "Is"),
        ("<prelude>\n# Is", "Is"),
        ("---\n\n# A slide\n\n---\nmore", "A slide"),
        ("---\n\ntitle: T\n---\n# No", "T"),
        ("# Old\r\r## Mac\rtext", "Old"),
        ("Over\r====\rtext", "Over"),
    ],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "marked"])
def test_the_title_is_what_front_matter_says_or_the_first_heading(text: str, title: str, mark: str) -> None:
    assert title_of(mark + text) == title


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("It is up. It is down! Is it so? It is.", 3, ["It is up.", "It is down!", "Is it so?", "It is."]),
        ("See Dr. Smith, e.g. on v1.2 of it. Then go.", 10, ["See Dr. Smith, e.g. on v1.2 of it.", "Then go."]),
        ('"Go on!" he said. "Why now?" She went on.', 4, ['"Go on!" he said.', '"Why now?"', "She went on."]),
        ("灯台は光る。「行く。」船が出る！", 5, ["灯台は光る。", "「行く。」", "船が出る！"]),
        ("यह घर है। वह नाव है।", 3, ["यह घर है।", "वह नाव है।"]),
        ("هل هذا بيت؟ نعم.", 3, ["هل هذا بيت؟", "نعم."]),
        ("A list\n- first of it\n- then\n\nand no capital", 3, ["A list", "- first of it", "- then", "and no capital"]),
        ("one two three four five. Six.", 3, ["one two three", "four five. Six."]),
    ],
)
def test_sentences_end_where_people_end_them(text: str, size: int, expected: list[str]) -> None:
    assert list(chunks(Sentences(size), text).texts) == expected


@pytest.mark.parametrize("sign", ["*", '"', ".", "。", "」", "_ ", "- a\n", "# {#"])
def test_a_long_row_of_signs_is_cut_without_trying_every_way(sign: str) -> None:
    text = sign * 20_000
    for kind in (Tokens(8), Sentences(8), Headings(8)):
        cut = chunks(kind, text)
        assert list(cut.texts) == [text[start:end] for start, end in places(cut)]


def test_whole_sentences_are_repeated_as_far_as_the_overlap_allows() -> None:
    text = "One two. Three. Four five. Six seven eight."
    assert list(chunks(Sentences(5, 3), text).texts) == ["One two. Three. Four five.", "Four five. Six seven eight."]


def test_a_document_with_nothing_in_it_is_a_chunk() -> None:
    for kind in (Tokens(), Sentences(), Headings()):
        cut = kind.split(Corpus(["a", "a#0"], ["", " \n"], ["Title", ""]))
        assert (list(cut.ids), list(cut.texts), list(cut.titles)) == (["a#0", "a#0#0"], ["", " \n"], ["Title", ""])


def test_what_is_known_of_a_document_is_known_of_its_chunks() -> None:
    cut = Tokens(1).split(Corpus(["a"], ["one two"], metadata=[{"category": "x"}]))
    assert [chunk["category"] for chunk in cut.metadata] == ["x", "x"]


@pytest.mark.parametrize("kind", ["Tokens", "Sentences", "Headings"])
def test_an_overlap_must_be_smaller_than_the_size(kind: str) -> None:
    with pytest.raises(ConfigError, match="overlap=8: should be less than size=8"):
        build({"_target_": f"runner.datasets.chunking.{kind}", "size": 8, "overlap": 8}, "chunking")


def dataset() -> Dataset:
    columns = (np.array(column, dtype=np.int32) for column in ([0, 0], [0, 1], [1, 0]))
    return Dataset(
        "d", "test", Corpus(["a", "b"], ["one two three", "four"]), Queries(["q"], ["two"], [""]), Judgments(*columns)
    )


def test_a_chunked_dataset_is_the_same_questions_on_the_same_documents() -> None:
    whole = dataset()
    cut = whole.split_documents(Tokens(2))
    assert cut.fingerprint == whole.fingerprint
    assert cut.corpus.fingerprint != whole.corpus.fingerprint
    assert cut.documents is whole.corpus
    assert list(cut.parents) == ["a", "a", "b"]
    assert cut.document_of is not None
    assert cut.document_of.tolist() == [0, 0, 1]
    assert cut.split_documents(Whole()).corpus is whole.corpus


def test_without_chunking_a_dataset_has_documents_alone() -> None:
    whole = dataset().split_documents(Whole())
    assert whole.whole is None
    assert whole.document_of is None
    assert whole.documents is whole.corpus


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_folder_is_its_markdown_and_text_files_by_their_paths(tmp_path: Path) -> None:
    files = {"b/v1.2.md": "# Two\n", "a.txt": "# one", "c.png": "no", ".hidden.md": "no", ".git/d.md": "no"}
    corpus = corpus_of_folder(write(tmp_path, files))
    assert list(corpus.ids) == ["a", "b/v1.2"]
    assert list(corpus.texts) == ["# one", "# Two\n"]
    assert list(corpus.titles) == ["", "Two"]
    assert [each["path"] for each in corpus.metadata] == ["a.txt", "b/v1.2.md"]


def test_files_that_differ_only_in_their_extension_keep_it(tmp_path: Path) -> None:
    corpus = corpus_of_folder(write(tmp_path, {"a.md": "one", "a.txt": "two", "b/a.md": "three"}))
    assert dict(zip(corpus.ids, corpus.texts, strict=True)) == {"a.md": "one", "a.txt": "two", "b/a": "three"}


def test_a_folder_that_is_none_of_documents_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ends with \.md"):
        corpus_of_folder(write(tmp_path, {"a.png": ""}))


def test_kubernetes_pages_are_cut_by_their_headings(needle: Path) -> None:
    corpus = corpus_of_folder(needle / "corpus_kubernetes")
    assert len(corpus) == 1569
    at = list(corpus.ids).index("tasks_administer-cluster_topology-manager")
    cut = Headings(10_000).split(Corpus(["k"], [corpus.texts[at]], [corpus.titles[at]]))
    assert corpus.titles[at] == "Control Topology Management Policies on a node"
    assert f"{corpus.titles[at]} > How topology manager works" in cut.titles
    assert all(text in corpus.texts[at] for text in cut.texts)
