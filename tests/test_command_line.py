from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import orjson
import pytest
from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from runner.__main__ import main
from runner.tracking.settings import Tracking
from tests.config.files import list_names
from tests.warm import run_command

CORPUS = [
    {"_id": "d1", "title": "Lighthouse", "text": "The lighthouse shines for ships at night."},
    {"_id": "d2", "title": "Ferry", "text": "Ferries leave for the islands every hour."},
    {"_id": "d/3 ü", "title": "", "text": "A museum of ships and ferries."},
    {"_id": "d4", "title": "", "text": "the of and"},
]
QUERIES = [{"_id": "q1", "text": "ships"}, {"_id": "q 2", "text": "islands ferry"}, {"_id": "q3", "text": ""}]
QRELS = [("q1", "d1", 2), ("q1", "d/3 ü", 1), ("q 2", "d2", 1), ("q3", "d4", 1)]


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: it has a store of runs, and a small dataset in `data`."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_bytes(b"".join(orjson.dumps(d) + b"\n" for d in CORPUS))
    (folder / "queries.jsonl").write_bytes(b"".join(orjson.dumps(q) + b"\n" for q in QUERIES))
    rows = [f"{query}\t{document}\t{grade}\n" for query, document, grade in QRELS]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
    return tmp_path


@pytest.fixture
def runs(here: Path) -> Callable[[], list[Run]]:
    """Return a function that lists the runs logged so far, the first one first."""

    def listed() -> list[Run]:
        client = MlflowClient(f"sqlite:///{here}/mlruns/mlflow.db")
        experiment = client.get_experiment_by_name("retrieval")
        assert experiment is not None
        return list(client.search_runs([experiment.experiment_id], order_by=["attributes.start_time"]))

    return listed


DATA = ("dataset=beir", "dataset.path=data", "tracking.background=false")


def test_a_script_without_a_guard_runs_once(here: Path, runs: Callable[[], list[Run]]) -> None:
    script = here / "script.py"
    call = f"main(['-m', 'dataset=beir', 'dataset.path={here / 'data'}', 'retriever.k1=0.6,0.9'])"
    lines = ["import sys", "from runner.__main__ import main", "print('begins', flush=True)", f"sys.exit({call})"]
    script.write_text("\n".join(lines))
    done = subprocess.run([sys.executable, str(script)], cwd=here, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count("begins")) == (0, 1), done.stderr
    assert sorted(run.info.run_name for run in runs()) == ["k1=0.6", "k1=0.9", "sweep over k1"]


def test_one_run_is_evaluated_logged_and_shown(
    runs: Callable[[], list[Run]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retriever=bm25", "retriever.k1=1.2", *DATA]) == 0
    (run,) = runs()
    assert run.data.params["retriever.k1"] == "1.2"
    assert run.data.params["dataset.path"] == "data"
    assert run.data.metrics["mrr"] == pytest.approx(2 / 3)
    out = capsys.readouterr().out
    assert "nDCG@10" in out
    assert "report.html" in out


def test_a_sweep_is_one_parent_and_its_combinations(
    runs: Callable[[], list[Run]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-m", "retriever=bm25", "retriever.k1=0.6,0.9", "retriever.b=range(0.0,1.0,0.5)", *DATA]) == 0
    parent, *children = sorted(runs(), key=lambda run: "mlflow.parentRunId" in run.data.tags)
    assert [run.info.run_name for run in children] == [
        "k1=0.6, b=0.0",
        "k1=0.6, b=0.5",
        "k1=0.9, b=0.0",
        "k1=0.9, b=0.5",
    ]
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {parent.info.run_id}
    axes = {key: value for key, value in parent.data.tags.items() if key.startswith("Axis/")}
    assert axes == {"Axis/retriever.k1": "0.6, 0.9", "Axis/retriever.b": "0.0, 0.5"}
    assert len({run.data.tags["config_hash"] for run in children}) == 4
    out = capsys.readouterr().out
    assert "4 combinations" in out
    assert f"run: {parent.info.run_id}" in out


def test_a_preset_is_a_sweep_without_a_flag(runs: Callable[[], list[Run]]) -> None:
    preset = "sweep.union=[{retriever:bm25,retriever.k1:[1,2]},{retriever:rank_bm25}]"
    assert main(["hydra.mode=MULTIRUN", preset, *DATA]) == 0
    assert {run.info.run_name for run in runs()} >= {
        "retriever=bm25, k1=1",
        "retriever=bm25, k1=2",
        "retriever=rank_bm25",
    }


@pytest.fixture
def broken(here: Path) -> list[str]:
    """Return the arguments that choose a retriever from outside this program, which fails as `retriever.when` says."""
    (here / "conf" / "retriever").mkdir(parents=True)
    (here / "conf" / "retriever" / "broken.yaml").write_text("_target_: tests.broken.Broken\nwhen: never\n")
    return ["--config-dir=conf", "plugins=[tests]", "retriever=broken", *DATA]


def test_a_combination_that_raises_costs_itself_only(
    broken: list[str], runs: Callable[[], list[Run]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-m", "retriever.when=index,never,search", *broken]) == 1
    status = {run.info.run_name: run.info.status for run in runs()}
    assert status["when=index"] == status["when=search"] == "FAILED"
    assert status["when=never"] == "FINISHED"
    out = capsys.readouterr().out
    assert "RuntimeError: the index is broken" in out
    assert "RuntimeError: the search is broken" in out


def test_fail_fast_stops_at_the_first_failure(broken: list[str], runs: Callable[[], list[Run]]) -> None:
    assert main(["-m", "retriever.when=never,index,search", "sweep.fail_fast=true", *broken]) == 1
    assert "when=search" not in {run.info.run_name for run in runs()}


def test_an_interrupted_sweep_keeps_what_was_finished(
    broken: list[str], runs: Callable[[], list[Run]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-m", "retriever.when=never,interrupt,search", *broken]) == 130
    assert "stopped after 1 of 3; run the same command to resume" in capsys.readouterr().out
    assert sorted(run.info.status for run in runs()) == ["FINISHED", "KILLED"]


def test_ctrl_c_while_hydra_is_loaded_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "runner.config.launch", Interrupted("launch"))
    assert main(["retriever=bm25"]) == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_a_single_run_that_raises_is_logged_as_failed(
    broken: list[str], runs: Callable[[], list[Run]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retriever.when=index", *broken]) == 1
    (run,) = runs()
    assert run.info.status == "FAILED"
    assert "the index is broken" in capsys.readouterr().err


def test_a_query_that_fails_is_counted_and_the_exit_code_is_1(
    broken: list[str], runs: Callable[[], list[Run]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retriever.when=never", *broken]) == 1
    (run,) = runs()
    assert run.data.metrics["queries/failed"] == 1
    assert "the first query is broken" in capsys.readouterr().out


def test_a_sweep_in_which_a_query_fails_ends_with_exit_code_1(broken: list[str], runs: Callable[[], list[Run]]) -> None:
    assert main(["-m", "retriever.when=never,none", *broken]) == 1
    assert [run.info.status for run in runs()] == ["FINISHED"] * 3


def test_a_sweep_accepts_a_setting_that_one_combination_uses(runs: Callable[[], list[Run]]) -> None:
    assert main(["-m", "retriever=bm25,dense", "encoder=lsa", "encoder.dimensions=3", *DATA]) == 0
    dimensions = {str(run.data.params.get("encoder.dimensions")) for run in runs()}
    assert "3" in dimensions


def test_hydras_own_sweeper_works_when_chosen(runs: Callable[[], list[Run]]) -> None:
    assert main(["-m", "hydra/sweeper=basic", "retriever.k1=0.6,0.9", *DATA]) == 0
    assert [run.data.params["retriever.k1"] for run in runs()] == ["0.6", "0.9"]
    names = [str(run.info.run_name).lower().split(", ") for run in runs()]
    assert [sorted(name) for name in names] == [
        sorted(["retriever.k1=0.6", *DATA]),
        sorted(["retriever.k1=0.9", *DATA]),
    ]


def test_a_sweep_over_datasets_has_a_leaderboard_for_each(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["-m", "retriever.k1=0.5,1", "dataset.max_queries=1,2", "dataset=beir", "dataset.path=data"]
    assert main([*arguments, "sweep.output=out"]) == 0
    assert capsys.readouterr().out.count("2 combinations") == 2
    assert len(list((here / "out").glob("*.html"))) == 2


def test_a_resumed_sweep_on_a_golden_dataset_has_one_report_of_all_types(
    here: Path,
) -> None:
    words = ["-m", "retriever=bm25,sqlite_fts", "dataset=golden", "sweep.output=out"]
    for _ in range(2):
        assert main(words) == 0
        (file,) = (here / "out").glob("eval_*_report.json")
        report = orjson.loads(file.read_bytes())
        assert set(report["results_by_search_type"]) == {"bm25", "sqlite_fts"}
        assert all(q["retrieved_items"] for q in report["results_by_search_type"]["bm25"]["query_results"][:5])
        assert file.with_suffix(".md").is_file()
        shutil.rmtree(here / "out")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["retriever=bm52"], "retriever=bm52: no such choice; did you mean retriever=bm25?"),
        (["retriever.k2=1"], "retriever.k2: no such setting; did you mean retriever.k1?"),
        (["retriver.k1=1"], "retriver.k1: no such setting"),
        (["retriever.k1=-1"], "retriever.k1=-1: should be greater than or equal to 0"),
        (["retriever.k1=fast"], "retriever.k1=fast: should be a valid number"),
        (["-m", "retriever.k1=1,-1"], "retriever.k1=-1: should be greater than or equal to 0"),
        (["-m", "retriever.b=interval(0,1)"], "interval"),
        (["retriever.k1=[1"], "retriever.k1=[1: cannot be parsed; put the value in quotes of its own"),
        (["metrics.measures=[nDGC]"], "did you mean nDCG"),
        (["metrics.k_values=[0]"], "metrics.k_values.0=0: should be greater than or equal to 1"),
        (["metrics.depth=5"], "depth"),
        (
            ["retriever=bm25", "encoder=lsa"],
            "encoder=lsa: has no effect, as nothing here uses the encoder; remove it, or",
        ),
        (["encoder.dimensions=3"], "encoder.dimensions=3: has no effect, as nothing here uses the encoder"),
        (
            ["-m", "retriever=bm25", "retriever.k1=1,2", "encoder=lsa"],
            "encoder=lsa: has no effect, as nothing here uses the encoder",
        ),
        (
            ["-m", "retriever=bm25", "encoder.dimensions=2,3"],
            "encoder.dimensions=2,3: has no effect, as nothing here uses the encoder",
        ),
        (
            ["-m", "hydra/sweeper=optuna", "retriever.k1=interval(1,2)", "encoder.dimensions=3"],
            "encoder.dimensions=3: has no effect, as nothing here uses the encoder",
        ),
        (["evalute"], "evalute: no such command; did you mean evaluate?"),
        (["dataset=beir"], "dataset.path: is required"),
        (["dataset.path=elsewhere"], "elsewhere"),
        (["dataset.split=dev"], "test"),
        (["plugins=[]", "retriever._target_=os.system"], "a config can only create classes of this program"),
        (["-m", "metrics.primary=AP,RR"], "a sweep needs one primary measure, but its experiments have AP@100 and RR"),
        (["sweep.union=[{retriever:bm25}]"], "sweep.union: needs a sweep; add -m"),
        (["-m", "sweep.output=/proc/nowhere", "retriever.k1=1,2"], "sweep.output=/proc/nowhere: cannot be created"),
        (["sweep.fail_fst=true"], "sweep.fail_fst: no such setting; did you mean sweep.fail_fast?"),
        (["tracking.experiment="], "tracking.experiment=: should not be empty"),
        (["-m", "retriever.k1=-1"], "retriever.k1=-1: should be greater than or equal to 0\n"),
        (["tracking.uri=ftp://nowhere"], "tracking.uri=ftp://nowhere: not the address of a store"),
    ],
)
@pytest.mark.usefixtures("here")
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = {argument.partition("=")[0] for argument in arguments}
    data = () if arguments == ["dataset=beir"] else tuple(d for d in DATA if d.partition("=")[0] not in keys)
    assert main([*arguments, *data]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("corpus.jsonl", '{"_id": "d1", "text": "x"}\n{"_id": \n', "corpus.jsonl:2"),
        ("corpus.jsonl", "", "the dataset has no documents"),
        ("queries.jsonl", '{"_id": "q1"}\n', "text"),
        ("qrels/test.tsv", "q1\tnowhere\t1\n", "dataset.unknown_judged=keep"),
        ("qrels/test.tsv", "q1\td1\tmany\n", "test.tsv:1"),
    ],
)
def test_bad_files_are_one_line_and_exit_code_2(
    here: Path, file: str, content: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "data" / file).write_text(content)
    assert main([*DATA]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.usefixtures("here")
def test_the_depth_may_exceed_the_number_of_documents(runs: Callable[[], list[Run]]) -> None:
    assert main(["metrics.depth=1000", "metrics.k_values=[1,1000]", *DATA]) == 0
    assert "recall_at_1000" in runs()[0].data.metrics


def test_a_report_that_fails_leaves_the_sweep_closed(
    runs: Callable[[], list[Run]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> str:
        raise RuntimeError("no page today")

    monkeypatch.setattr("runner.sweep.report.files.sweep_page", fail)
    with pytest.raises(RuntimeError, match="no page today"):
        main(["-m", "retriever.k1=1,2", *DATA])
    assert [run.info.status for run in runs()] == ["FINISHED"] * 3


def test_the_same_input_gives_the_same_record_but_for_times(here: Path, runs: Callable[[], list[Run]]) -> None:
    for _ in range(2):
        assert main([*DATA]) == 0
    folders = [here / "mlruns" / "artifacts" / run.info.run_id / "artifacts" for run in runs()]
    heads = [orjson.loads((folder / "result.json").read_bytes()) for folder in folders]
    for head in heads:
        del head["timings"], head["environment"]
    assert heads[0] == heads[1]
    for name in ("per_query.parquet", "rankings.parquet", "rankings.trec.gz", "config.yaml"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()


def test_a_bm25_run_never_imports_torch(here: Path) -> None:
    code = """if True:
        import sys
        from runner import __main__ as program
        run = program.main

        def main(arguments):
            code = run(arguments)
            print(code, [name for name in ("torch", "sentence_transformers") if name in sys.modules])
            return code

        program.main = main
    """
    assert run_command(DATA, here, code).stdout.splitlines()[-1] == "0 []"


def test_an_evaluation_whose_rankings_are_stored_loads_neither_compiler_nor_mlflow(here: Path) -> None:
    keep = "from runner.store import disk; disk.WORTH_KEEPING_S = 0.0"  # in a warm process, nothing takes long
    assert run_command(DATA, here, keep).returncode == 0
    code = (
        f"import sys; from runner.__main__ import main; code = main({DATA!r}); "
        "print(code, sorted({'alembic', 'llvmlite', 'mlflow', 'numba', 'sqlalchemy', 'torch'} & set(sys.modules)))"
    )
    again = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=True)
    assert again.stdout.splitlines()[-1] == "0 []"


def test_the_help_is_printed_before_modules_that_take_long_are_loaded(tmp_path: Path) -> None:
    slow = {"dataclasses", "importlib.metadata", "inspect", "numpy", "platform", "pydantic", "tomllib", "traceback"}
    code = f"import sys; from runner.__main__ import main; main(['--help']); print(sorted({slow} & set(sys.modules)))"
    help = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert help.stdout.splitlines()[-1] == "[]"


def test_the_version_is_of_this_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    pyproject = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    hydra, mlflow = map(version, ("hydra-core", "mlflow"))
    told = f"retrieval-runner {pyproject['project']['version']} (Hydra {hydra}, MLflow {mlflow})\n"
    assert capsys.readouterr().out == told


def test_help_explains_the_groups_with_examples(here: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "runner", "--help"], capture_output=True, text=True, check=True, cwd=here
    )
    retrievers = ", ".join(list_names("retriever")[:4])
    for word in ("Commands", f"retriever   {retrievers}", "Examples", "experiment=tour"):
        assert word in done.stdout


def test_hydras_own_sweeper_and_a_launcher_log_a_run_for_each_job(here: Path, runs: Callable[[], list[Run]]) -> None:
    """In a process of its own: the launcher leaves threads behind."""
    pytest.importorskip("submitit", reason="submitit is not installed: pip install '.[slurm]'")
    launcher = ["hydra/sweeper=basic", "hydra/launcher=submitit_local", "hydra.launcher.timeout_min=5"]
    command = [sys.executable, "-m", "runner", "-m", *launcher, "retriever=bm25", "retriever.k1=0.6,0.9", *DATA]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, cwd=here, env=environment, check=True, capture_output=True, text=True, timeout=300)
    assert "each job printed its result to a file *_log.out in mlruns/hydra/.submitit; compare" in done.stderr
    printed = [file.read_text(encoding="utf-8") for file in (here / "mlruns/hydra/.submitit").rglob("*_log.out")]
    assert all(sum(run.info.run_id in text for text in printed) == 1 for run in runs())
    found = {run.info.run_name: run.info.status for run in runs()}
    assert len(found) == 2
    assert set(found.values()) == {"FINISHED"}
    assert all("retriever.k1" in str(name) for name in found)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_that_arrives_where_python_drops_exceptions_stops_the_command(name: str) -> None:
    code = f"""
import os, signal, sys, time, weakref
from runner.__main__ import _handle_signals
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup may have started these tests
_handle_signals()
class Thing: pass
thing = Thing()
reference = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.{name}))
try:
    del thing
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(130)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")
