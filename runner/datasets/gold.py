"""Read what people write as gold, and find the documents that it names.

Gold is an id, a file, a path, a name without its suffix, a heading or page of a file, a title, or a text that a
document contains; one or several, as a list, a list in text, or text with separators, with or without grades.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import NamedTuple

from retrievers.base import Corpus
from retrievers.strict_values import parse_id, parse_json, show_value
from runner.datasets.base import Qrel
from runner.datasets.columns import is_gold_name
from runner.datasets.files import SourceRecord, grade_of

SEPARATORS = ("|", ";", ",", "+", "\n", " ")
"""Characters that often separate gold documents, the least ambiguous first."""

IDS, TEXTS, PLACES = "ids", "texts", "places in files"
"""The kinds of a match by id, by a text that documents contain, and by a file with a heading, page or lines."""

_LIST = re.compile(r"\[.*\]|\(.*\)|\{.*\}", re.DOTALL)
"""A list as written by JSON, Python or NumPy."""
_NUMPY = re.compile(r"""(?<=['"])\s+(?=['"])""")
_NAMED = ("id", "_id", "doc_id", "document_id", "docid", "chunk_id", "file", "filename", "path", "source", "doc",
          "document", "title", "url")  # fmt: skip
_QUOTED = ("quote", "text", "context", "content", "page_content", "passage", "snippet")
"""Keys of an object that names a document, before and after the names of columns of gold."""
_NOTHING = {"none", "null", "nan", "n/a", "na", "-", "not_found", "not found", "no_answer", "unanswerable"}
"""What people write where no document is right, in lower case."""
_GRADES = ("grade", "relevance", "score", "rel", "rating")
_SUFFIX = re.compile(
    r"(?<=.)\.(?:mdx?|markdown|txt|text|rst|html?|adoc|asciidoc|ipynb|pdf|docx?|pptx?|xlsx?|odt|rtf|epub|csv|tsv|jsonl?|xml|ya?ml)$",
    re.IGNORECASE,
)
"""The suffix of a file of documents; other endings, as in v1.2, belong to a name."""
_PLACE = re.compile(
    r"(?:#.*|::.*|:(?:p(?:age)?\.?\s*|L)?\d+(?:-L?\d+)?|[,;]?\s+\(?p(?:age)?s?\.?\s*\d+(?:-\d+)?\)?"
    r"|\s*\[\d+(?::\d\d){1,2}\])$"
)
"""What names a heading, a page, lines or a time after the name of a file."""
_HOST = re.compile(r"^[a-z][a-z0-9+.-]*://[^/]*/*", re.IGNORECASE)
_FEWEST_WORDS = 3
"""The words, between blanks, of a text that is looked for in documents; shorter ones are names or occur by chance."""
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Letters of scripts without blanks between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""
_FEWEST_LETTERS = 6
"""The letters of such a text."""
WORD = re.compile(r"\w+")


class Reference(NamedTuple):
    """What a question names as gold, with its grade, None without one, and the text that is quoted of it, if any."""

    name: str
    grade: int | None = None
    quote: str = ""


def parse_references(
    record: SourceRecord, column: str, separator: str | None, known: Callable[[str], bool] = lambda name: False
) -> list[Reference]:
    """Return what a column of a question names as gold; empty if nothing is right.

    Text that is not `known` as a whole is a list in text, or split at `separator` unless it is None. Raises
    `DatasetError` for anything else.
    """
    value = record.fields.get(column)
    if isinstance(value, str) and value and not known(value):
        listed = parse_list(value)
        value = split(value, separator) if listed is None else listed
    if isinstance(value, list) and {*map(type, value)} == {str} and "" not in value:  # the usual case, fast
        return [*map(Reference, dict.fromkeys(value))]
    return list(dict.fromkeys(_iter_references(record, column, value)))


def _iter_references(record: SourceRecord, column: str, value: object) -> Iterator[Reference]:
    if value is None or value == "" or value != value:  # NaN, for a missing value
        return
    if isinstance(value, list | tuple):
        for item in value if any(item != "" for item in value) else ():
            if item == "":
                raise record.fault(f"{column!r} is {item!r}; an id must be text or a whole number")
            yield from _iter_references(record, column, item)
    elif isinstance(value, Mapping):
        yield from _iter_named(record, column, value)
    else:
        yield Reference(record.parse_id(column, value))


def _iter_named(record: SourceRecord, column: str, value: Mapping[str, object]) -> Iterator[Reference]:
    """Yield the reference of an object with a name and perhaps a grade, or those of an object of grades by name."""
    value = {key: part for key, part in value.items() if part is not None}  # Parquet adds the keys of other rows
    keys = (*_NAMED, *filter(is_gold_name, value), *_QUOTED)
    name = next((value[key] for key in keys if value.get(key) not in (None, "")), None)
    try:
        if name is None and value and all(isinstance(grade, int | float | str) for grade in value.values()):
            yield from (Reference(parse_id(key), grade_of(grade)) for key, grade in value.items())
            return
        grade = next((value[key] for key in _GRADES if key in value), None)
        quote = next((text for key in _QUOTED if isinstance(text := value.get(key), str) and text.strip()), "")
        yield Reference(parse_id(name), None if grade is None else grade_of(grade), quote if quote != name else "")
    except ValueError as error:
        raise record.fault(f"{column!r} is {show_value(value)}, which names no document ({error})") from None


def parse_list(text: str) -> object | None:
    """Return the list or object that a text is in JSON, Python or NumPy; None if it is none."""
    text = text.strip()
    if not _LIST.fullmatch(text):
        return None
    value: object
    try:
        value = parse_json(text.encode())
    except ValueError:
        try:
            value = ast.literal_eval(_NUMPY.sub(", ", text))  # literals only: nothing is run
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return None
    if isinstance(value, set):
        return sorted(value, key=str)
    return value if isinstance(value, list | tuple | dict) else None


def split(text: str, separator: str | None) -> list[str]:
    """Return the parts of a text without blanks around them; None: the whole text."""
    return [text] if separator is None else [part.strip() for part in text.split(separator)]


def strip_place(name: str) -> str:
    """Return the name of a file without the heading, page, lines or time after it."""
    return _PLACE.sub("", name)


def is_nothing(name: str) -> bool:
    """Return whether a name says that no document is right, as in `none`."""
    return name.strip().casefold() in _NOTHING


class Match(NamedTuple):
    """The documents that a reference names, and how: `kind` is in the plural, for messages. Without any, the cause."""

    documents: Sequence[str] = ()
    kind: str = ""
    cause: str = ""


class Locator:
    """Finds the documents of a corpus that references name. Every lookup is exact but for the case of file names."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.ids = corpus.positions.keys()
        self.find: Callable[[str], Match] = cache(self._find)
        """Returns the documents that a reference names: by id, by file, by title, or by a text that they contain."""

    def _find(self, name: str) -> Match:
        if name in self.corpus.positions:
            return Match([name], IDS)
        if (match := self.find_file(name)).documents:
            return match
        base = strip_place(name)
        if base != name and base:
            inner = Match([base], IDS) if base in self.corpus.positions else self.find_file(base)
            if inner.documents:
                return Match(inner.documents, PLACES)
        if inside := self._find_folder(name):
            return Match(inside, "folders")
        if titled := self._titles.get(name.strip().casefold(), []):
            return (
                Match(titled, "titles")
                if len(titled) == 1
                else Match(cause=self._describe_several("have the title", titled))
            )
        if whole := self._wholes.get(name.strip(), []):
            return Match(whole, TEXTS)
        if (unspaced := is_unspaced(name)) or len(name.split()) >= _FEWEST_WORDS:
            containing = self._find_containing(spell(name), unspaced)
            return Match(containing, TEXTS) if containing else Match(cause="no document contains this text")
        return match if match.cause else Match(cause=f"ids look like {self.corpus.ids[0]!r}")

    def _find_containing(self, words: str, unspaced: bool) -> list[str]:
        """Return the documents that contain words in a row; in scripts without blanks, these may be parts of words."""
        parts = words.replace(" ", "") if unspaced else f" {words} "
        texts = (text.replace(" ", "") if unspaced else text for text in self._spelt)
        return [document for document, text in zip(self.corpus.ids, texts, strict=True) if parts in text]

    def find_file(self, name: str) -> Match:
        """Return the document that a file name or the end of a path names."""
        parts = _split_path(name)
        if not parts:
            return Match()
        candidates = [
            (document, own) for document, own in self._files.get(_strip_suffix(parts[-1]), ()) if _agree(own, parts)
        ]
        exact = [document for document, own in candidates if own[-1] == parts[-1]] or [d for d, _ in candidates]
        distinct = list(dict.fromkeys(exact))
        if len(distinct) > 1:
            whole = [document for document, own in candidates if len(own) == len(parts)]
            distinct = whole if len(whole) == 1 else distinct
        if len(distinct) > 1:
            return Match(cause=self._describe_several("are named like this", distinct))
        if not distinct:
            return Match()
        without = not _SUFFIX.search(parts[-1]) or all(
            own[-1] != parts[-1] for d, own in candidates if d == distinct[0]
        )
        kind = "paths" if len(parts) > 1 else "file names"
        return Match(distinct, f"{kind}, matched without suffix" if without else kind)

    def _find_folder(self, name: str) -> list[str]:
        """Return the documents in a folder whose name ends with a slash."""
        parts = _split_path(name) if name.rstrip("*").endswith("/") else []
        parts = [part for part in parts if part not in ("*", "**")]
        own = ((document, place) for places in self._files.values() for document, place in places)
        return list(dict.fromkeys(document for document, place in own if parts and place[: len(parts)] == parts))

    def _get_path(self, document: str) -> str:
        """Return the path of a document's file, or else its id."""
        about = self.corpus.metadata[self.corpus.positions[document]] if self.corpus.metadata else {}
        return str(about.get("path") or document)

    def _describe_several(self, what: str, documents: Sequence[str]) -> str:
        paths = " or ".join(map(self._get_path, documents[:2]))
        return f"{len(documents):,} documents {what}; write the path of one, such as {paths}"

    @cached_property
    def _files(self) -> Mapping[str, Sequence[tuple[str, Sequence[str]]]]:
        """The documents by the last part of their path without its suffix, each with all parts."""
        files: dict[str, list[tuple[str, Sequence[str]]]] = defaultdict(list)
        for document in self.corpus.ids:
            for path in dict.fromkeys((self._get_path(document), document)):
                if parts := _split_path(path):
                    files[_strip_suffix(parts[-1])].append((document, parts))
        return files

    @cached_property
    def _titles(self) -> Mapping[str, list[str]]:
        titles: dict[str, list[str]] = defaultdict(list)
        for document, title in zip(self.corpus.ids, self.corpus.titles, strict=False):
            if title.strip():
                titles[title.strip().casefold()].append(document)
        return titles

    @cached_property
    def _wholes(self) -> Mapping[str, list[str]]:
        """The documents by their whole text."""
        wholes: dict[str, list[str]] = defaultdict(list)
        for document, text in zip(self.corpus.ids, self.corpus.texts, strict=True):
            wholes[text.strip()].append(document)
        return wholes

    @cached_property
    def _spelt(self) -> Sequence[str]:
        return [f" {spell(text)} " for text in self.corpus.texts]


def find_documents(qrels: Iterable[Qrel], corpus: Corpus) -> list[Qrel]:
    """Return judgments with the ids of the documents that they name by a file, as in folder/tower.md."""
    listed = list(qrels)
    names = {document for _, document, _ in listed if document not in corpus.positions} if len(corpus) else set()
    locator = Locator(corpus)
    ids = {name: own[0] for name in names if len(own := locator.find_file(name).documents) == 1}
    return [(query, ids.get(document, document), grade) for query, document, grade in listed] if ids else listed


def _split_path(name: str) -> list[str]:
    plain = _HOST.sub("", name.strip()).replace("\\", "/").casefold()
    return [part for part in plain.split("/") if part not in ("", ".", "..")] if "\n" not in plain else []


def _strip_suffix(name: str) -> str:
    return _SUFFIX.sub("", name)


def _agree(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether one path is the end of the other, up to the suffix of the file."""
    pairs = zip(reversed(one[:-1]), reversed(other[:-1]), strict=False)
    return all(a == b for a, b in pairs)


def is_unspaced(text: str) -> bool:
    """Return whether a text is in a script without blanks between words."""
    return len(_UNSPACED.findall(text)) >= _FEWEST_LETTERS


def spell(text: str) -> str:
    """Return the words of a text in lower case, with single blanks between them."""
    return " ".join(WORD.findall(text.casefold()))


def find_separator(records: Sequence[SourceRecord], column: str, locator: Locator | None) -> str | None:
    """Return the character that separates the gold of a column: that whose parts are documents most often.

    None: each text is one document. Without documents, only a vertical bar or a line break separates.
    """
    texts = [
        text for record in records if isinstance(text := record.fields.get(column), str) and parse_list(text) is None
    ]
    if locator is None:
        return next((mark for mark in ("|", "\n") if any(mark in text for text in texts)), None)
    shares: dict[str | None, tuple[float, int]] = {}
    for mark in (None, *SEPARATORS):
        parts = [[text] if is_whole(text, mark, locator) else split(text, mark) for text in texts]
        known = [sum(bool(locator.find(part).documents) for part in own) for own in parts]
        if mark == " ":  # blanks are part of many names
            known = [count if count == len(own) else 0 for own, count in zip(parts, known, strict=True)]
        shares[mark] = sum(count / len(own) for own, count in zip(parts, known, strict=True)), sum(known)
    return max(shares, key=lambda mark: shares[mark])  # of equals, the one with most documents


def is_whole(text: str, separator: str | None, locator: Locator) -> bool:
    """Return whether a text with separators names one document: by its id, or between blanks by a title or a text."""
    match = locator.find(text)
    return match.kind == IDS or (separator == " " and match.kind in ("titles", TEXTS))
