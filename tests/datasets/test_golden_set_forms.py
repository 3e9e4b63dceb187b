"""A golden set reads back to the same dataset from every form of file, gold and id, or is refused with its place."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from runner.datasets.base import DatasetError
from runner.datasets.tabular import Tabular
from tests.strategies.golden_sets import PLAIN_IDS, QUESTIONS, GoldenSet, golden_sets
from tests.strategies.ids import STRIPPED_IDS
from tests.strategies.settings import at_most

Row = dict[str, Any]

SEPARATORS = ("|", ",", "; ", "\n")

GOLD: dict[str, Callable[[list[str]], Any]] = {
    "list": list,
    "one id or a list": lambda gold: gold[0] if len(gold) == 1 else gold,
    "nested lists": lambda gold: [[name] for name in gold],
    "grades": lambda gold: dict.fromkeys(gold, 1),
    "objects": lambda gold: [{"source": name, "page": 3} for name in gold],
    "literal of Python": repr,
    "literal of JSON": json.dumps,
    **{f"between {mark!r}": mark.join for mark in SEPARATORS},
    "files": lambda gold: [f"{name}.md" for name in gold],
    "files of a folder": lambda gold: [f"docs/{name}.md" for name in gold],
    "headings": lambda gold: [f"{name}.md#part" for name in gold],
}
IDS: dict[str, Callable[[Row, str], Row]] = {
    "none": lambda row, name: row,
    "id": lambda row, name: {"id": name, **row},
    "question_id behind": lambda row, name: {**row, "question_id": name},
}


def write_table(
    delimiter: str, quoting: Any = csv.QUOTE_MINIMAL, encoding: str = "utf-8"
) -> Callable[[list[Row]], bytes]:
    def write(rows: list[Row]) -> bytes:
        file = io.StringIO(newline="")
        table = csv.DictWriter(file, [*rows[0]], delimiter=delimiter, quoting=quoting)
        table.writeheader()
        for row in rows:
            table.writerow({k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in row.items()})
        return file.getvalue().encode(encoding)

    return write


def by_id(rows: list[Row]) -> bytes:
    ids = [row.get("id") or row.get("question_id", f"q{number:04d}") for number, row in enumerate(rows, start=1)]
    return json.dumps(
        {i: {k: v for k, v in row.items() if k != "id"} for i, row in zip(ids, rows, strict=True)}
    ).encode()


def write_parquet(rows: list[Row]) -> bytes:
    """Write rows; gold of several types becomes lists, because a column has one type."""
    if len({type(row["gold"]) for row in rows}) > 1:
        rows = [{**row, "gold": row["gold"] if isinstance(row["gold"], list) else [row["gold"]]} for row in rows]
    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    return file.getvalue()


FORMS: dict[str, tuple[str, Callable[[list[Row]], bytes]]] = {
    "CSV": ("q.csv", write_table(",")),
    "CSV with semicolons": ("q.csv", write_table(";")),
    "CSV, all quoted": ("q.csv", write_table(",", csv.QUOTE_ALL, "utf-8-sig")),
    "CSV in UTF-16": ("q.csv", write_table(",", csv.QUOTE_ALL, "utf-16")),
    "TSV": ("q.tsv", write_table("\t")),
    "TSV called CSV": ("q.csv", write_table("\t")),
    "JSON": ("q.json", lambda rows: json.dumps(rows, indent=1).encode()),
    "JSON by id": ("q.json", by_id),
    "JSON under a key": ("q.json", lambda rows: json.dumps({"version": 2, "data": {"items": rows}}).encode()),
    "JSON lines": ("q.jsonl", lambda rows: b"".join(json.dumps(row).encode() + b"\n" for row in rows)),
    "JSON lines called JSON": ("q.json", lambda rows: b"".join(json.dumps(row).encode() + b"\r\n" for row in rows)),
    "YAML": ("q.yaml", lambda rows: yaml.safe_dump(rows).encode()),
    "YAML under a key": ("q.yml", lambda rows: yaml.safe_dump({"questions": rows}, sort_keys=False).encode()),
    "Parquet": ("q.parquet", write_parquet),
}


def read(folder: Path, documents: Sequence[str], file: str, content: bytes, **settings: Any) -> str:
    corpus = [{"id": name, "text": f"The text of document {number}."} for number, name in enumerate(documents)]
    (folder / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    (folder / file).write_bytes(content)
    return (
        Tabular(documents=str(folder / "documents.jsonl"), queries=str(folder / file), exclude_self="false", **settings)
        .load()
        .fingerprint
    )


def check(golden: GoldenSet, form: str, gold: str, identifier: str, may_refuse: bool) -> None:
    """Assert that a golden set has the fingerprint of the same one with ids, in JSON lines and with settings."""
    if gold.startswith("between"):  # a list of ids that contain the separator is ambiguous
        assume(not any(mark.strip(" ") in name for mark in SEPARATORS for name in golden.documents))
    file, write = FORMS[form]
    rows = [IDS[identifier]({"question": text, "gold": GOLD[gold](own)}, name) for name, text, own in golden.questions]
    plain = [
        {"name": f"q{number:04d}" if identifier == "none" else name, "words": text, "right": own}
        for number, (name, text, own) in enumerate(golden.questions, start=1)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in plain).encode()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        place = Path(folder)
        expected = read(
            place, golden.documents, "plain.jsonl", lines, query_id="name", query_text="words", query_golds="right"
        )
        try:
            assert read(place, golden.documents, file, write(rows)) == expected
        except DatasetError as error:
            assert may_refuse, error
            assert folder in str(error)
            assert "\n" not in str(error)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=at_most(40))
@given(golden=golden_sets(PLAIN_IDS, QUESTIONS), gold=st.sampled_from([*GOLD]), identifier=st.sampled_from([*IDS]))
def test_every_form_of_file_gold_and_id_is_the_same_dataset(
    form: str, golden: GoldenSet, gold: str, identifier: str
) -> None:
    check(golden, form, gold, identifier, may_refuse=False)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=at_most(20))
@given(
    golden=golden_sets(
        STRIPPED_IDS, st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9).filter(str.strip)
    ),
    gold=st.sampled_from([*GOLD]),
    identifier=st.sampled_from([*IDS]),
)
def test_odd_ids_and_texts_are_the_same_dataset_or_refused(
    form: str, golden: GoldenSet, gold: str, identifier: str
) -> None:
    check(golden, form, gold, identifier, may_refuse=True)
