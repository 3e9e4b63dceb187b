"""`table` and `reproduce`, from the command line to the files, and back to the same value."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import orjson
import pytest

from runner.__main__ import main
from runner.config.objects import ConfigError
from runner.results.reproduction import load_cell
from runner.tracking.settings import Tracking
from tests.results.test_re_evaluation import old_documents, old_queries, write_data


@pytest.fixture
def paper(
    tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Path:
    """Return the folder of a table of two systems on two datasets, in the working directory."""
    monkeypatch.chdir(tmp_path)
    queries = dict(list(old_queries().items())[:12])
    write_data(tmp_path / "reef", old_documents(), queries)
    write_data(tmp_path / "delta", old_documents(), dict(list(queries.items())[2:]))
    words = (
        "-m",
        "retriever.k1=0.4,2",
        "dataset=beir",
        "dataset.path=reef,delta",
        "statistics.permutations=100",
        "--json",
    )
    assert main([*words]) == 0
    run = orjson.loads(capsys.readouterr().out)["run"]
    assert main(["table", f"sweeps={run}", "output=other", "baseline=k1=0.4"]) == 0  # a label as it is shown
    names = r"+names={k1\=0.4: low}"
    assert main(["table", f"sweeps={run}", "output=paper", "baseline=low", names, "measures=[nDCG@10,R@10]"]) == 0
    return tmp_path / "paper"


def test_a_sweep_becomes_a_table_whose_cells_can_be_reproduced(
    paper: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shown = capsys.readouterr().out
    assert "significantly better and worse than low" in shown
    content = orjson.loads((paper / "cells.json").read_bytes())
    assert content["systems"] == ["low", "k1=2"]
    assert content["datasets"] == ["reef", "delta"]
    assert [cell["id"] for cell in content["cells"]] == ["A1", "B1", "C1", "D1", "A2", "B2", "C2", "D2"]
    for name in ("table.tex", "table.md", "table.csv", "document.tex"):
        assert (paper / name).stat().st_size
    cell = content["cells"][4]
    assert main([*cell["command"].split()[3:], "--json"]) == 0
    document = orjson.loads(capsys.readouterr().out)
    assert document["reproduced"]
    assert document["value"] == pytest.approx(cell["mean"], abs=1e-12)
    assert document["differences"] == []
    assert (document["queries"], document["changed"]) == (12, 0)

    shutil.move(tmp_path / "reef", tmp_path / "moved")
    assert main(["reproduce", "paper@A2"]) == 2
    assert "+dataset.path=FOLDER" in capsys.readouterr().err
    assert main(["reproduce", "paper@A2", "+dataset.path=moved"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Reproduced: nDCG@10 is the same" in shown
    assert "dataset.path was reef, now moved" in shown

    corpus = tmp_path / "moved/corpus.jsonl"
    documents = [json.loads(line) for line in corpus.read_text().splitlines()]
    changed = [{**document, "text": "words"} if document["_id"] == "d1" else document for document in documents]
    corpus.write_text("\n".join(map(json.dumps, changed)))
    assert main(["reproduce", "paper@a2", "+dataset.path=moved", "--json"]) == 1
    document = orjson.loads(capsys.readouterr().out)
    assert not document["reproduced"]
    assert document["changed"] >= 1
    assert any("their documents differ" in sentence for sentence in document["differences"])


def test_the_table_is_one_float_and_its_caption_counts_queries(paper: Path) -> None:
    table, across = (paper / "table.tex").read_text(), (paper / "across.tex").read_text()
    assert (table.count(r"\begin{table*}"), across.count(r"\begin{table*}")) == (1, 2)
    assert "Mean nDCG@10 and R@10 by dataset, over queries (reef: 12, delta: 10)." in escape_back(table)
    assert r"\input{table}" + "\n" + r"\input{across}" in (paper / "document.tex").read_text()
    assert main(["table", "sweeps=paper/records", "output=single", "datasets=[delta]"]) == 0
    assert "over 10 queries." in Path("single/table.tex").read_text()
    assert not Path("single/across.tex").exists()
    assert r"\input{across}" not in Path("single/document.tex").read_text()


def escape_back(text: str) -> str:
    """Return the text of LaTeX in which characters were escaped."""
    return text.replace("{-}", "-").replace("{", "").replace("}", "")


def test_versions_and_code_of_the_record_are_compared(paper: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = paper / "records" / orjson.loads((paper / "cells.json").read_bytes())["cells"][0]["record"] / "result.json"
    content = orjson.loads(record.read_bytes())
    content["environment"]["packages"]["numpy"] = "1.0"
    content["environment"]["code"]["retrievers"] = "other"
    record.write_bytes(orjson.dumps(content))
    assert main(["reproduce", "paper@A1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "These differences have no effect on this value" in shown
    assert "numpy 1.0 then" in shown
    assert "Code: retrievers changed" in shown


def test_records_of_a_table_and_the_latest_sweep_make_the_same_table(paper: Path) -> None:
    names = r"+names={k1\=0.4: low}"
    words = ("baseline=low", names, "measures=[nDCG@10,R@10]")
    for sweeps in ("paper/records", "latest", "[paper/records,latest]"):
        assert main(["table", f"sweeps={sweeps}", "output=again", "datasets=[reef,delta]", *words]) == 0
        assert (paper.parent / "again/table.csv").read_bytes() == (paper / "table.csv").read_bytes()


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("paper", "expected FOLDER@CELL"),
        ("gone@A1", "cannot be read"),
        ("odd@A1", "does not contain the cells of a table"),
        ("good@Z9", "no such cell"),
        ("good@A1", "the cell in .*cells.json is incomplete"),
    ],
)
def test_a_cell_that_is_not_there_is_named(tmp_path: Path, word: str, message: str) -> None:
    for name, text in {"odd": "[]", "good": '{"cells": [{"id": "A1"}]}'}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "cells.json").write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_cell(word if word == "paper" else f"{tmp_path}/{word}")


@pytest.mark.parametrize("record", ["../../elsewhere", "/elsewhere", "records/1_1_bm25"])
def test_a_cell_names_only_records_beside_it(tmp_path: Path, record: str) -> None:
    cells = [{"id": "A1", "measure": "nDCG@10", "mean": 0.5, "record": record}]
    (tmp_path / "cells.json").write_bytes(orjson.dumps({"cells": cells}))
    with pytest.raises(ConfigError, match=r"names the record '.*', which is not a folder of records/$"):
        load_cell(f"{tmp_path}@A1")


def test_a_mistake_is_explained_in_one_line(paper: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in {
        (): "sweeps: is required",
        ("sweeps=gone",): "gone: no such file",
        ("sweeps=paper/records", "baseline=high"): "baseline=high: no such system; choose from k1=",
        ("sweeps=paper/records", "measures=[nonsense]"): "measures: ",
    }.items():
        capsys.readouterr()
        assert main(["table", *words, "output=x"]) == 2
        assert message in capsys.readouterr().err
