"""Recognise the columns of questions and documents by the names that people use.

A setting always wins over what is recognised here. Nothing here depends on a file format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, islice

from runner.config.arguments import arguments
from runner.datasets.base import DatasetError
from runner.datasets.files import SourceRecord
from runner.datasets.shapes import map_keys, select

NAMES: Mapping[str, Sequence[str]] = map_keys("column")
"""The names of columns by the setting that names them, in lower case with underscores."""

GOLD, QUALIFIERS, THINGS = (shape.signs for shape in select("gold column"))
"""A column of gold is named by one of `GOLD`, by a qualifier and things, or, less surely, by a thing alone."""

_PARTS = "(?:_(?:id|name|path|title|text|content))?s?"
_GOLD = re.compile(f"{'|'.join(GOLD)}|(?:{'|'.join(QUALIFIERS)})s?(?:_(?:{'|'.join(THINGS)})s?)+{_PARTS}")
_QUALIFIED = re.compile(f"(?:{'|'.join(QUALIFIERS)})s?_(?!.*(?:answer|output|keyword|term|token|phrase|fact|string)).+")
"""A qualifier and another noun, as in expected_places; such a column is gold if all that it names is a document."""
_NO_GOLD = re.compile(
    "(?:^|_)(?:not|no|non|never|irrelevant|insufficient|distractors?|negatives?|wrong|forbidden|avoid)(?:_|$)"
    "|retrieved|retrieval_context|predicted"
)
"""Parts of names of columns with what is no gold, or with what a system returned."""
_THING = re.compile(f"(?:{'|'.join(thing for thing in THINGS if thing != 'id')})s?{_PARTS}")
_INNER = re.compile("page|section|span|quote|text|content|context|snippet|passage|evidence")
"""Parts of names of a place in a document, or of its text."""
_VAGUE = ("expected", "expect")
"""Names of columns with documents or with answers."""
_SHORTEST_PROSE = 3
"""The mean number of words in a column of texts, as opposed to names and categories."""
_SAMPLE = 100
"""The number of rows that show whether a column has texts."""

Place = Callable[[Collection[str]], object]
"""Returns the place of columns, for messages."""

_QUESTION_MARK = re.compile(r"[?？؟]\s*$")


def normalize_name(name: str) -> str:
    """Return the last part of the name of a column in lower case, its words joined by underscores."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.rpartition(".")[2])
    return re.sub(r"\W+", "_", words).strip("_").lower()


def find_column(setting: str, columns: Iterable[str], place: Place) -> str | None:
    """Return the column that a name shows to be that of a setting; None without one.

    The default name, the first in the table, wins over others, except for the text of a question. Raises `DatasetError`
    for two.
    """
    known = NAMES[setting]
    candidates = [name for name in columns if normalize_name(name) in known]
    candidates = [name for name in candidates if "." not in name] or candidates
    usual = [name for name in candidates if normalize_name(name) == known[0]]
    if usual and setting != "query_text":
        return usual[0]
    return select_only(setting, candidates, place)


def find_first(names: Iterable[str], columns: Iterable[str]) -> str | None:
    """Return the column with the first of these names; None without one."""
    by_name = {normalize_name(name): name for name in reversed([*columns])}
    return next((by_name[name] for name in names if name in by_name), None)


def select_only(setting: str, candidates: Sequence[str], place: Place) -> str | None:
    """Return the only candidate, None without one; raises `DatasetError` for several, with the settings to paste."""
    if len(candidates) < 2:
        return next(iter(candidates), None)
    ways_out = [arguments({f"dataset.{setting}": name}) for name in candidates]
    raise DatasetError(
        f"{place(candidates)}: several columns may be the {_MEANINGS[setting]}: {', '.join(map(repr, candidates))}; "
        f"set {' or '.join(ways_out)}"
    )


_MEANINGS = {shape.key: shape.name for shape in select("column")} | {"query_golds": "gold of a question"}


def find_text_column(records: Sequence[SourceRecord], columns: Sequence[str], place: Place) -> str | None:
    """Return the column of the questions: by its name, the only one of texts that end as questions, or of any texts."""
    if (name := find_column("query_text", columns, place)) is not None:
        return name
    asking = [name for name in columns if 2 * sum(is_question(r.fields.get(name)) for r in records) > len(records)]
    return select_only("query_text", asking, place) or find_prose(records, filter(_may_be_question, columns))


def _may_be_question(name: str) -> bool:
    """Return whether a column of texts may have questions: none that has answers by its name."""
    normal = normalize_name(name)
    return normal not in NAMES["query_answer"] and not re.match(f"(?:{'|'.join(QUALIFIERS)})s?(?:_|$)", normal)


def find_prose(records: Iterable[SourceRecord], columns: Iterable[str]) -> str | None:
    """Return the only column of texts of several words, None if there are none or more."""
    sample = list(islice(records, _SAMPLE))
    prose = [name for name in columns if _is_prose([record.fields.get(name) for record in sample])]
    return prose[0] if len(prose) == 1 else None


def _is_prose(values: Sequence[object]) -> bool:
    texts = [value for value in values if isinstance(value, str) and value.strip()]
    words = sum(len(text.split()) if text.isascii() else max(len(text.split()), len(text) // 4) for text in texts)
    return bool(texts) and words >= _SHORTEST_PROSE * len(texts)  # some scripts have no blanks between words


def is_question(value: object) -> bool:
    """Return whether a value is a text that ends with a question mark."""
    return isinstance(value, str) and bool(_QUESTION_MARK.search(value))


def rank_gold_columns(columns: Iterable[str], others: Collection[str | None]) -> list[list[str]]:
    """Return the columns that may be gold by their names, the surest group first; `others` have another meaning."""
    names = {name: normalize_name(name) for name in columns if name not in others}
    names = {name: normal for name, normal in names.items() if not _NO_GOLD.search(normal)}
    if {"answer", "ground_truth"} <= {normalize_name(name) for name in columns}:  # as ragas scores them
        names = {name: normal for name, normal in names.items() if normal != "contexts"}
    sure = [name for name, normal in names.items() if _GOLD.fullmatch(normal)]
    usual = [name for name in sure if names[name] == GOLD[0]]
    things = [name for name, normal in names.items() if name not in sure and _THING.fullmatch(normal)]
    last = [name for name, normal in names.items() if normal in _VAGUE]
    return [group for group in (usual, sure, things, last) if group]


def list_less_sure(columns: Iterable[str], others: Collection[str | None]) -> list[str]:
    """Return the columns that are gold only if they name documents and nothing else."""
    names = {name: normalize_name(name) for name in columns if name not in others}
    vague = (*_VAGUE, "ground_truth", "ground_truths")
    names = {name: normal for name, normal in names.items() if not _NO_GOLD.search(normal)}
    return [name for name, normal in names.items() if normal in vague or _QUALIFIED.fullmatch(normal)]


def is_vague(name: str) -> bool:
    """Return whether a column may have documents as well as answers, by its name."""
    return normalize_name(name) in _VAGUE


def is_no_gold(name: str) -> bool:
    """Return whether a column has what a system returned, or what is no gold, by its name."""
    return bool(_NO_GOLD.search(normalize_name(name)))


def is_gold_name(name: str) -> bool:
    """Return whether a name is that of gold, such as source_doc; places in a document are not."""
    normal = normalize_name(name)
    return bool(_GOLD.fullmatch(normal) or _THING.fullmatch(normal)) and not _INNER.search(normal)


def flatten(record: SourceRecord) -> SourceRecord:
    """Return a record with the fields of its objects too, as inputs.question."""
    if dict not in map(type, record.fields.values()):
        return record
    objects = ((name, value) for name, value in record.fields.items() if isinstance(value, dict))
    nested = {f"{name}.{key}": inner for name, value in objects for key, inner in value.items()}
    return record._replace(fields={**nested, **record.fields})


def list_columns(records: Iterable[SourceRecord]) -> list[str]:
    """Return the names of the columns of all rows, in order."""
    return list(dict.fromkeys(chain.from_iterable(record.fields for record in records)))


def find_place(records: Sequence[SourceRecord], path: object) -> Place:
    """Return what names the first row that has others of some columns than the first row has, or else the file."""

    def locate(names: Collection[str]) -> object:
        usual = next((record.fields.keys() & names for record in records), None)
        return next((record.location for record in records if record.fields.keys() & names != usual), path)

    return locate
