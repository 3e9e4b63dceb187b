"""A golden set with one fault is refused or reported with its place, or read whole; nothing is lost without a word."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.datasets.base import DatasetError
from runner.datasets.dataset import Dataset
from runner.datasets.tabular import Tabular

DOCUMENTS = {"tower": "The tower, at night.", "ferry": "Ferries leave.", "museum": "Old ships.", "pier": "Closed."}
ROWS = [
    ("When is the tower open?", "tower"),
    ("How often do ferries leave, and when?", "ferry"),
    ("Where are the “old” ships?", "museum"),
    ("Is the pier closed – and why?", "pier"),
    ("What shines at night?", "tower"),
]
COLUMNS = ("question", "expected_doc")
SPREAD = {"csv": ",", "tsv": "\t", "csv;": ";", "csv|": "|"}
"""The delimiter of each form of table."""
SILENT = {"blank line", "blank cells", "CR before LF", "spaces around the gold", "byte order mark"}
"""Faults that change nothing."""
WHOLE = {"a title above the header", "a column twice", "no header", "a column of another name", "cut"}
"""Faults for which the line is that of the header, or the file."""


def quote(cell: str, delimiter: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if delimiter in cell or '"' in cell else cell


def list_lines(delimiter: str) -> list[str]:
    return [delimiter.join(quote(cell, delimiter) for cell in row) for row in [COLUMNS, *ROWS]]


Edit = Callable[[list[str], int, str], None]
"""Changes a line, given its number from 1 and the delimiter."""


def replace_line(change: Callable[[str, str], str]) -> Edit:
    def edit(lines: list[str], number: int, delimiter: str) -> None:
        lines[number] = change(lines[number], delimiter)

    return edit


def insert(line: Callable[[str], str]) -> Edit:
    return lambda lines, number, delimiter: lines.insert(number, line(delimiter))


def gold_of(line: str, delimiter: str) -> str:
    return line.rpartition(delimiter)[2]


def question_of(line: str, delimiter: str) -> str:
    return line.rpartition(delimiter)[0]


TABLE_FAULTS: dict[str, Edit] = {
    "a cell less": replace_line(question_of),
    "a cell more": replace_line(lambda line, mark: f"{line}{mark}note"),
    "another delimiter": replace_line(lambda line, mark: f"{question_of(line, mark)}/{gold_of(line, mark)}"),
    "an open quote": replace_line(
        lambda line, mark: f'"{question_of(line, mark).strip(chr(34))}{mark}{gold_of(line, mark)}'
    ),
    "a stray quote": replace_line(lambda line, mark: f'"{gold_of(line, mark)}"s{mark}{gold_of(line, mark)}'),
    "a merged question": replace_line(lambda line, mark: f"{mark}{gold_of(line, mark)}"),
    "merged gold": replace_line(lambda line, mark: f"{question_of(line, mark)}{mark}"),
    "unknown gold": replace_line(lambda line, mark: f"{question_of(line, mark)}{mark}towr"),
    "a number as gold": replace_line(lambda line, mark: f"{question_of(line, mark)}{mark}3.5"),
    "two names, one unknown": replace_line(lambda line, mark: f"{question_of(line, mark)}{mark}pier towr"),
    "the header again": insert(lambda mark: mark.join(COLUMNS)),
    "totals": insert(lambda mark: f"Total{mark}5"),
    "totals without gold": insert(lambda mark: f"Total 5 questions{mark}"),
    "a comment": insert(lambda mark: "# reviewed"),
    "blank line": insert(lambda mark: ""),
    "blank cells": insert(lambda mark: mark),
    "spaces around the gold": replace_line(lambda line, mark: f"{question_of(line, mark)}{mark}{gold_of(line, mark)} "),
}
FILE_FAULTS: dict[str, Callable[[str, str], str]] = {
    "a title above the header": lambda text, mark: f"Golden set\n{text}",
    "a column twice": lambda text, mark: text.replace("expected_doc", f"expected_doc{mark}expected_doc", 1),
    "no header": lambda text, mark: text.partition("\n")[2],
    "a column of another name": lambda text, mark: text.replace("expected_doc", "remarks", 1),
    "cut": lambda text, mark: text[: text.rindex(mark)],
    "CR before LF": lambda text, mark: text.replace("\n", "\r\n"),
    "byte order mark": lambda text, mark: f"\ufeff{text}",
}
JSON_FAULTS: dict[str, Callable[[str], str]] = {
    "half a line": lambda line: line[: len(line) // 2],
    "a comma behind": lambda line: f"{line},",
    "two objects": lambda line: f"{line} {line}",
    "single quotes": lambda line: line.replace('"', "'"),
    "a text": lambda line: json.dumps("question"),
    "a list": lambda line: f"[{line}]",
    "no question": lambda line: line.replace('"question"', '"remark"'),
    "a capital": lambda line: line.replace('"question"', '"Question"'),
    "no gold": lambda line: line.replace('"expected_doc"', '"remark"'),
    "a plural": lambda line: line.replace('"expected_doc"', '"expected_docs"'),
    "a question that is a number": lambda line: re.sub(r'"question": "[^"]*"', '"question": 7', line),
    "a question that is a list": lambda line: re.sub(r'"question": ("[^"]*")', r'"question": [\1]', line),
    "gold that is a number": lambda line: re.sub(r'"expected_doc": "[^"]*"', '"expected_doc": 1.5', line),
    "gold that is true": lambda line: re.sub(r'"expected_doc": "[^"]*"', '"expected_doc": true', line),
    "gold without a name": lambda line: re.sub(r'"expected_doc": "[^"]*"', '"expected_doc": {"page": [3]}', line),
    "an empty name in a list": lambda line: re.sub(r'"expected_doc": ("[^"]*")', r'"expected_doc": [\1, ""]', line),
    "a key twice": lambda line: line.replace("}", ', "question": "Again?"}'),
    "an empty question": lambda line: re.sub(r'"question": "[^"]*"', '"question": " "', line),
    "null gold": lambda line: re.sub(r'"expected_doc": "[^"]*"', '"expected_doc": null', line),
}
YAML_FAULTS: dict[str, Callable[[str], str]] = {
    "a tab": lambda item: item.replace("  expected_doc", "\texpected_doc"),
    "an open quote": lambda item: item.replace("question: ", 'question: "'),
    "a key twice": lambda item: f"{item}  expected_doc: pier\n",
    "less indentation": lambda item: item.replace("  expected_doc", " expected_doc"),
    "no colon": lambda item: item.replace("expected_doc: ", "expected_doc "),
    "no gold": lambda item: item.partition("  expected_doc")[0],
    "no question": lambda item: f"- {item.partition(chr(10))[2].strip()}\n",
    "a second document": lambda item: f"---\n{item}",
    "gold that is a mapping": lambda item: item.replace("expected_doc: ", "expected_doc:\n    remark: "),
}


def read(folder: Path, name: str, content: bytes) -> Dataset:
    documents, path = folder / "documents.json", folder / name
    documents.write_text(json.dumps(DOCUMENTS))
    path.write_bytes(content)
    return Tabular(queries=str(path), documents=str(documents)).load()


def list_pairs(dataset: Dataset) -> list[tuple[str, str]]:
    """Return each question with its gold document, "" without one."""
    gold = {query: dataset.corpus.ids[document] for query, document, _ in dataset.judgments.list_rows()}
    return [(text, gold.get(query, "")) for query, text in enumerate(dataset.queries.texts)]


def make_json(fault: str, number: int, as_lines: bool) -> str:
    rows = [json.dumps(dict(zip(COLUMNS, row, strict=True)), ensure_ascii=False) for row in ROWS]
    rows[number] = JSON_FAULTS[fault](rows[number])
    return "\n".join(rows) + "\n" if as_lines else "[\n" + ",\n".join(rows) + "\n]\n"


def iter_cases() -> Iterator[tuple[str, str, str, bytes]]:
    """Yield the name of a case, that of its file, the fault and the content of the file."""
    for form, mark in SPREAD.items():
        for fault, edit in TABLE_FAULTS.items():
            for number in (1, 3, 5):
                lines = list_lines(mark)
                edit(lines, number, mark)
                yield f"{form}, {fault}, {number}", f"q.{form[:3]}", fault, "".join(f"{x}\n" for x in lines).encode()
        for fault, change in FILE_FAULTS.items():
            text = change("".join(f"{line}\n" for line in list_lines(mark)), mark)
            yield f"{form}, {fault}", f"q.{form[:3]}", fault, text.encode()
        lines = [line.encode("utf-8" if number != 4 else "cp1252") for number, line in enumerate(list_lines(mark))]
        yield f"{form}, two encodings", f"q.{form[:3]}", "two encodings", b"\n".join(lines)
    for fault in JSON_FAULTS:
        for number in (0, 2, 4):
            yield f"JSON lines, {fault}, {number}", "q.jsonl", fault, make_json(fault, number, as_lines=True).encode()
            yield f"JSON, {fault}, {number}", "q.json", fault, make_json(fault, number, as_lines=False).encode()
    for fault, change_item in YAML_FAULTS.items():
        for number in (0, 2, 4):
            items = [f"- question: {question}\n  expected_doc: {gold}\n" for question, gold in ROWS]
            items[number] = change_item(items[number])
            yield f"YAML, {fault}, {number}", "q.yaml", fault, "".join(items).encode()


CASES = {name: case for name, *case in iter_cases()}


def test_there_are_hundreds_of_faults() -> None:
    assert len(CASES) >= 200


@pytest.mark.parametrize("case", CASES)
def test_a_fault_is_refused_or_reported_with_its_place_or_changes_nothing(
    tmp_path: Path, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    name, fault, content = CASES[case]
    place = re.compile(rf"{re.escape(str(tmp_path / name))}(:|, row |.* line )\d+")
    try:
        dataset = read(tmp_path, name, content)
    except DatasetError as error:
        assert fault not in SILENT
        assert "\n" not in str(error)
        assert place.search(str(error)) or (fault in WHOLE and str(tmp_path / name) in str(error)), error
        return
    if list_pairs(dataset) != list(ROWS):
        assert fault not in SILENT
        assert place.search(f"{dataset.reading} {caplog.text}"), (dataset.reading, list_pairs(dataset))
