"""Runs from elsewhere on several collections, from the command line to one table with a row per label."""

from __future__ import annotations

import shlex
from pathlib import Path

import orjson
import pytest

from runner.__main__ import main
from runner.tracking.settings import Tracking

RANKS = {"reef": (1, 2), "delta": (2, 1), "bay": (1, 4)}
"""Where the runs `lucene` and `splade` have the only gold document, by collection."""

OF_EACH = ("retriever=run", "retriever.path=runs/${dataset.name}.${retriever.label}.trec")
COLLECTIONS = ("dataset=beir", "dataset.path=reef,delta,bay", "statistics.permutations=100", "--json")


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, with three collections and two runs for each."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    queries = [f"q{i}" for i in range(6)]
    documents = [f"d{i}" for i in range(5)]
    for name, ranks in RANKS.items():
        folder = tmp_path / name
        (folder / "qrels").mkdir(parents=True)
        rows = [{"_id": identifier, "text": f"{name} {identifier}"} for identifier in documents]
        (folder / "corpus.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
        (folder / "queries.jsonl").write_bytes(b"\n".join(orjson.dumps({"_id": q, "text": name}) for q in queries))
        (folder / "qrels/test.tsv").write_text("".join(f"{q}\td0\t1\n" for q in queries))
        for system, rank in zip(("lucene", "splade"), ranks, strict=True):
            ranking = [*documents[1:rank], "d0", *documents[rank:]]
            lines = [f"{q} Q0 {d} {i} {9 - i} x" for q in queries for i, d in enumerate(ranking, start=1)]
            (tmp_path / f"runs/{name}.{system}.trec").write_text("\n".join(lines))
    return tmp_path


def tabulate(
    capsys: pytest.CaptureFixture[str], sweeps: str, *words: str, datasets: str = "reef,delta,bay"
) -> tuple[dict[str, list[object]], str]:
    """Return the values of RR in each row of a table, and what the table prints."""
    capsys.readouterr()
    shown = (f"sweeps={sweeps}", f"datasets=[{datasets}]", "measures=[RR]")
    assert main(["table", "output=paper", *shown, *words]) == 0
    content = orjson.loads(Path("paper/cells.json").read_bytes())
    places = {cell["id"]: cell["mean"] for cell in content["cells"]}
    rows = {
        system: [places.get(f"{column}{row}") for column in "ABC"[: len(content["datasets"])]]
        for row, system in enumerate(content["systems"], start=1)
    }
    return rows, " ".join(capsys.readouterr().out.split())


def test_one_command_evaluates_the_runs_of_all_collections_and_labels_them(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-m", *OF_EACH, "retriever.label=lucene,splade", *COLLECTIONS]) == 0
    boards = orjson.loads(capsys.readouterr().out)["leaderboards"]
    best = {board["dataset"]["name"]: [(row["label"], row["retriever"]) for row in board["rows"]] for board in boards}
    assert {name: rows[0] for name, rows in best.items()} == {
        "reef": ("lucene", "lucene"),
        "delta": ("splade", "splade"),
        "bay": ("lucene", "lucene"),
    }
    rows, _ = tabulate(capsys, "latest")
    assert rows == {"lucene": [1, 0.5, 1], "splade": [0.5, 1, 0.25]}
    assert " lucene & " in " " + Path("paper/table.tex").read_text().replace("\n", " ")


def test_sweeps_join_by_label_whatever_the_files_are_called(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "runs/bay.splade.trec").rename(here / "elsewhere.trec")
    runs = []
    for words in (
        ("-m", *OF_EACH, "retriever.label=lucene", *COLLECTIONS),
        ("-m", *OF_EACH, "retriever.label=splade", *COLLECTIONS[:1], "dataset.path=reef,delta", *COLLECTIONS[2:]),
        ("retriever=run", "retriever.label=splade", "retriever.path=elsewhere.trec", "dataset=beir", "dataset.path=bay",
         "--json"),
    ):  # fmt: skip
        capsys.readouterr()
        assert main([*words]) == 0
        runs.append(orjson.loads(capsys.readouterr().out)["run"])
    rows, shown = tabulate(capsys, f"[{','.join(runs)}]", "baseline=splade")
    assert rows == {"lucene": [1, 0.5, 1], "splade": [0.5, 1, 0.25]}
    assert "no result" not in shown


def test_a_system_that_a_collection_lacks_is_a_row_with_a_dash_and_a_line(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "runs/delta.splade.trec").unlink()
    assert main(["-m", *OF_EACH, "retriever.label=lucene,splade", *COLLECTIONS]) == 1
    run = orjson.loads(capsys.readouterr().out)["run"]
    rows, shown = tabulate(capsys, run)
    assert rows == {"lucene": [1, 0.5, 1], "splade": [0.5, None, 0.25]}
    assert "A dash: no result (splade on delta)." in shown
    assert "No comparison across datasets, which needs two systems with results on all of them." in shown
    assert "splade & 0.500$^{\\mathrm{b}}$ & -- &" in Path("paper/table.tex").read_text()
    rows, _ = tabulate(capsys, run, datasets="delta")
    assert rows == {"lucene": [0.5], "splade": [None]}


def test_the_name_of_a_dataset_that_the_environment_gives_must_be_set(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTION", "reef")
    words = ["retriever=run", "retriever.path=runs/${dataset.name}.lucene.trec", "dataset=beir"]
    assert main([*words, "dataset.path=${oc.env:COLLECTION}"]) == 2
    assert "dataset.name: has no value, but a setting refers to it; set dataset.name=NAME" in capsys.readouterr().err
    assert main([*words, "dataset.path=${oc.env:COLLECTION}", "dataset.name=reef", "--json"]) == 0
    assert orjson.loads(capsys.readouterr().out)["result"]["means"]["RR"] == 1


def test_a_table_of_runs_from_files_names_the_command_that_makes_it_again(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-m", *OF_EACH, "retriever.label=lucene,splade", *COLLECTIONS]) == 0
    rows, _ = tabulate(capsys, "latest", "baseline=SPLADE", "order=score", "+names={splade: SPLADE}")
    comment = (here / "paper/table.tex").read_text().splitlines()[0]
    command = comment.rpartition(" records: `")[2].removesuffix("`.")
    assert command == (
        "python -m runner table sweeps=paper/records output=again 'datasets=[reef,delta,bay]' 'measures=[RR]' "
        "baseline=SPLADE order=score '+names={splade: SPLADE}'"
    )
    cells = orjson.loads((here / "paper/cells.json").read_bytes())["cells"]
    assert {cell["command"] for cell in cells} == {command}
    assert main(shlex.split(command)[3:]) == 0
    for name in ("table.csv", "across.tex"):
        assert (here / "again" / name).read_bytes() == (here / "paper" / name).read_bytes()
    assert rows == {"lucene": [1, 0.5, 1], "SPLADE": [0.5, 1, 0.25]}
    assert main(["reproduce", "paper@A1"]) == 2
    assert "were read from a file" in capsys.readouterr().err


def test_rows_are_in_the_order_that_is_set(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", *OF_EACH, "retriever.label=lucene,splade", *COLLECTIONS]) == 0
    for order, names, dataset, expected in (
        ("given", "{lucene: m, splade: k}", "delta", {"m": [0.5], "k": [1]}),
        ("label", "{lucene: m, splade: k}", "reef", {"k": [0.5], "m": [1]}),
        ("score", "{lucene: k, splade: m}", "delta", {"m": [1], "k": [0.5]}),
    ):
        rows, _ = tabulate(capsys, "latest", f"order={order}", f"+names={names}", datasets=dataset)
        assert [*rows.items()] == [*expected.items()]


def test_a_run_of_other_documents_is_left_out_and_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = here / "runs/delta.lucene.trec"
    file.write_text(file.read_text().replace(" d", " other"))
    assert main(["-m", *OF_EACH, "retriever.label=lucene,splade", *COLLECTIONS]) == 0
    rows, shown = tabulate(capsys, "latest")
    assert rows == {"lucene": [1, None, 1], "splade": [0.5, 1, 0.25]}
    assert "Scores were left out where no hit has an id of the dataset (lucene on delta)." in shown
    rows, shown = tabulate(capsys, "latest", "order=score", datasets="delta")
    assert [*rows.items()] == [("splade", [1]), ("lucene", [None])]
    assert "(lucene on delta)" in shown
