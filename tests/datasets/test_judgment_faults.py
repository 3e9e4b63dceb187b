"""A file of judgments with one fault is refused or reported with its line; figures are those of the rows written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import ir_measures
import pytest
from ir_measures import AP, RR, R, nDCG

from runner.__main__ import main
from runner.datasets.base import DatasetError
from runner.datasets.judged import JudgedFiles

ROWS = [(f"q{n // 5}", f"dé{n * 7 % 31}", (n * 5 % 4 + (n % 5 == 0)) % 4) for n in range(40)]
"""Judgments of eight queries, each of which has a relevant document."""

Lines = Sequence[str]


def columns(gap: str, *extra: str) -> Lines:
    return [gap.join((q, *extra, d, str(g))) for q, d, g in ROWS]


def table(header: str, gap: str = ",") -> Lines:
    return [header.replace(",", gap), *columns(gap)]


FORMS: Mapping[str, Lines] = {
    "trec.txt": columns(" ", "0"),
    "beir.tsv": table("query-id,corpus-id,score", "\t"),
    "bars.txt": columns("|"),
    "colons.txt": columns(":", "Q0"),
    "order.txt": [f"{q} {d} 0 {g}" for q, d, g in ROWS],
    "binary.tsv": [f"{q}\t{d}" for q, d, g in ROWS],
    "ratings.csv": table("query,docid,rating"),
    "semicolons.csv": table("query,docid,rating", ";"),
    "book.csv": ["query,docid,Ann,Ben", *(f"{q},{d},{g},{g}" for q, d, g in ROWS)],
    "table.csv": table("qid,docno,label"),
    "table.jsonl": [json.dumps({"query_id": q, "document_id": d, "grade": g}, ensure_ascii=False) for q, d, g in ROWS],
}


def has_header(lines: Lines) -> bool:
    return "q0" not in lines[0]


def replace_row(row: int, change: Callable[[str], str]) -> Callable[[Lines], Lines]:
    return lambda lines: [change(line) if n == row else line for n, line in enumerate(lines)]


def repeat_header(lines: Lines) -> Lines:
    """Return lines with a header in the middle, as of two files in one."""
    header = lines[0] if has_header(lines) else re.sub("q0", "qid", re.sub(r"dé\d+", "docno", lines[0]))
    return [*lines[:20], re.sub(r"\d$", "label", header), *lines[20:]] if lines[0][0] != "{" else []


def repeat_column(lines: Lines) -> Lines:
    names = re.findall(r"[\w-]+", lines[0])
    return [lines[0].replace(names[1], names[0]), *lines[1:]] if has_header(lines) else []


def add_total(lines: Lines) -> Lines:
    return [*lines, re.sub(r"dé\d+", "40", lines[-1].replace("q7", "Total"))]


FAULTS: Mapping[str, Callable[[Lines], Lines]] = {
    "the last line is cut": lambda lines: [*lines[:-1], lines[-1][: len(lines[-1]) // 3]],
    "a line is cut": replace_row(17, lambda line: line[: len(line) // 3]),
    "another separator": replace_row(17, lambda line: re.sub(r"[,;|:\t ]", "~", line)),
    "one column more": replace_row(17, lambda line: re.sub(r"(?<=q3)(\W+)", r"\1x\1", line, count=1)),
    "a grade is text": replace_row(17, lambda line: re.sub(r"\d(}?)$", r"high\1", line)),
    "an id is empty": replace_row(17, lambda line: re.sub(r"dé\d+", "", line)),
    "the query is empty": replace_row(17, lambda line: line.replace("q3", "")),
    "another encoding": replace_row(17, lambda line: line.replace("é", "\udce9")),
    "two grades": lambda lines: [*lines, re.sub(r"\d(}?)$", r"7\1", lines[-1])],
    "the header is repeated": repeat_header,
    "a column is repeated": repeat_column,
    "a total at the end": add_total,
    "a list of ids": replace_row(17, lambda line: re.sub(r"dé\d+", "['a'+'b']", line)),
}

HARMLESS = {
    ("binary.tsv", "a grade is text"), ("binary.tsv", "two grades"), ("binary.tsv", "another separator"),
    ("table.jsonl", "one column more"),
}  # fmt: skip
"""Files that are right after all: binary judgments have no grades, and a text in JSON may contain any character."""

CASES = [
    (name, fault)
    for name, lines in FORMS.items()
    for fault, change in FAULTS.items()
    if (name, fault) not in HARMLESS and change(lines) not in ([], lines)
]


@pytest.mark.parametrize(("name", "fault"), CASES)
def test_a_file_with_one_fault_is_refused_or_reported_with_its_line(
    tmp_path: Path, name: str, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    lines = FAULTS[fault](FORMS[name])
    path = tmp_path / name
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
    try:
        judgments = JudgedFiles(qrels=str(path)).load().judgments
    except DatasetError as error:
        assert re.search(rf"{re.escape(name)}(:|, row )\d+", str(error)), error
    else:
        reported = [message for message in caplog.messages if re.search(rf"{re.escape(name)}:\d+: ", message)]
        assert reported
        assert len(judgments) == len(ROWS)


MEANS = {
    "means.txt": [f"{q} 0 {d} {g + 0.25}" for q, d, g in ROWS],
    "means.csv": ["query_id,document_id,grade", *(f"{q},{d},{g + 0.25}" for q, d, g in ROWS)],
    "judges.csv": ["query,docid,Ann,Ben", *(f"{q},{d},{g},{g + 0.5}" for q, d, g in ROWS)],
}
"""Means of grades, of which the whole numbers are the grades."""


@pytest.mark.parametrize("name", [*FORMS, *MEANS])
def test_counts_and_figures_are_those_of_an_independent_reading(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("".join(f"{line}\n" for line in {**FORMS, **MEANS}[name]), encoding="utf-8")
    hits = [
        (q, f"dé{(n * 11 + int(q[1])) % 31}", 31 - n) for q in dict.fromkeys(q for q, _, _ in ROWS) for n in range(20)
    ]
    Path("run.trec").write_text("".join(f"{q} Q0 {d} 1 {score} x\n" for q, d, score in hits), encoding="utf-8")
    words = [f"dataset.qrels={name}", "retriever.path=run.trec", "metrics.k_values=[10,100]", "tracking=none"]
    words += ["dataset.grade_thresholds=[1,2,3]"] if name in MEANS else []
    assert main(["dataset=judged", "retriever=run", *words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert (result["dataset"]["queries"], result["dataset"]["judgments"]) == (8, len(ROWS))
    qrels = [ir_measures.Qrel(q, d, 1 if name == "binary.tsv" else grade) for q, d, grade in ROWS]
    run = [ir_measures.ScoredDoc(q, d, float(score)) for q, d, score in hits]
    expected = ir_measures.calc_aggregate([nDCG @ 10, R @ 10, AP @ 100, RR @ 10], qrels, run)
    for measure, value in expected.items():
        assert 0 < value < 1
        assert result["means"][str(measure)] == pytest.approx(value, abs=1e-9)
