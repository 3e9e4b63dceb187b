"""What all tests share: where the real collections are, and small corpora made here."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import sqlite3
import tempfile
import threading
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from importlib.machinery import PathFinder
from importlib.metadata import distributions
from pathlib import Path

import hypothesis
import pytest

from retrievers.base import Corpus
from runner.config.environment import forget_references
from runner.pages import progress
from runner.system import processes
from runner.tracking import process
from runner.tracking.settings import Tracking
from runner.tracking.tracker import Tracker
from tests.warm import WARM, belong_to

os.environ.setdefault("HF_HUB_OFFLINE", "1")
# All servers of tests are on this machine, without TLS: each client would take 60 ms to read 140 certificates.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "certificate.pem")
# A shell that starts the tests in the background has them, and all that they start, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
for variable in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
    os.environ.pop(variable, None)  # where runs go is for each test to say
for variable in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
    os.environ.pop(variable, None)  # the tests of this program may run in a workflow
os.environ.pop("COLUMNS", None)  # how wide the terminal is that tests are run from changes what is shown
progress.FIRST_S = threading.TIMEOUT_MAX  # what is said now and then would be said on a busy machine alone
hypothesis.settings.register_profile(
    "shared machine", max_examples=10, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("shared machine")

MEMORY, ROOM = Path("/dev/shm"), 6 << 30
"""A file system in memory, and the bytes that must be free there for the temporary files of tests."""


def has_room(place: Path) -> bool:
    """Return whether a file system has room for temporary files and runs programs, as those of some tests do."""
    if not place.is_dir():
        return False
    state = os.statvfs(place)
    return state.f_bavail * state.f_frsize >= ROOM and not state.f_flag & os.ST_NOEXEC


if "TMPDIR" not in os.environ and has_room(MEMORY):  # on a disk, a new database waits for it many times
    os.environ["TMPDIR"], tempfile.tempdir = str(MEMORY), None

DATA = Path(os.environ.get("RETRIEVAL_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(autouse=True)
def no_variables_of_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start and end each test without the variables that MLflow sets when a store is chosen."""
    for variable in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.setenv(variable, "")  # so that whatever the test sets is removed at its end
        monkeypatch.delenv(variable)


@pytest.fixture(autouse=True)
def no_secrets_of_other_tests() -> Iterator[None]:
    """Forget the secrets in the settings of a test, which the messages of later tests would hide."""
    yield
    forget_references()


@pytest.fixture(autouse=True)
def warm_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the process that logs from one that has loaded MLflow, which takes seconds."""
    monkeypatch.setattr(process, "CONTEXT", WARM)


@pytest.fixture
def warm_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start workers from a process that has loaded the program, which takes each of them seconds."""
    monkeypatch.setattr(processes, "CONTEXT", WARM)
    monkeypatch.setattr(processes, "belong_to", belong_to)


@pytest.fixture(scope="session")
def collections() -> Path:
    """Return the folder of real collections in BEIR's layout, or skip."""
    return _real("collections")


@pytest.fixture(scope="session")
def real_golden() -> Path:
    """Return the folder with a real golden dataset and its reports, or skip."""
    return _real("golden")


@pytest.fixture(scope="session")
def needle() -> Path:
    """Return the folder of real pages and question sets about them, or skip."""
    return _real("needle")


@pytest.fixture(scope="session")
def exported_traces() -> Path:
    """Return the folder of traces that other programs exported, or skip."""
    return _real("telemetry")


def _real(name: str) -> Path:
    if not (DATA / name).is_dir():
        pytest.skip(f"no real data at {DATA / name}: set RETRIEVAL_DATA to a folder that has {name}/")
    return DATA / name


@pytest.fixture
def harbour() -> Corpus:
    """Return a corpus of six short documents about a harbour."""
    return Corpus(
        ids=["d1", "d2", "d3", "d4", "d5", "d6"],
        titles=["Lighthouse", "Ferry", "", "Market", "Lighthouse café", "Nothing"],
        texts=[
            "The old lighthouse stands on the northern pier and shines for ships.",
            "Ferries leave the harbour for the islands every hour.",
            "A small museum shows models of ships and ferries.",
            "Fish, bread and flowers are sold on the market square on Saturdays.",
            "Coffee and cake with a view of the lighthouse.",
            "",
        ],
    )


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an MLflow database that has its tables, which takes seconds to make."""
    folder = tmp_path_factory.mktemp("mlflow")
    Tracker(Tracking(uri=f"sqlite:///{folder}/mlflow.db", artifacts=str(folder / "artifacts"), experiment="unused"))
    with closing(sqlite3.connect(folder / "mlflow.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # a copy of the file alone is then whole
    return folder / "mlflow.db"


@pytest.fixture(scope="session")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a store that tests share, those of all workers: each text is embedded once."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    (folder / "shared store").mkdir(exist_ok=True)
    return folder / "shared store"


@pytest.fixture
def tracking(migrated: Path, tmp_path: Path) -> Tracking:
    """Return the settings of a fresh MLflow store."""
    (tmp_path / "mlruns").mkdir()
    shutil.copy(migrated, tmp_path / "mlruns" / "mlflow.db")
    return Tracking(uri=f"sqlite:///{tmp_path}/mlruns/mlflow.db", artifacts=str(tmp_path / "mlruns" / "artifacts"))


def find_missing(error: BaseException | None) -> str:
    """Return which package an error, or one that it followed from, misses and is not installed; "" if none."""
    while error is not None:
        needed = re.search(r"needs ([\w-]+), which is not installed", str(error))
        if needed is not None and not any(distributions(name=needed[1])):
            return needed[0]
        if (
            isinstance(error, ModuleNotFoundError)
            and error.name
            and PathFinder.find_spec(error.name.split(".")[0]) is None
        ):
            return f"{error.name} is not installed"
        error = error.__cause__ or error.__context__
    return ""


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip a module that needs a package which is not installed when it is imported."""
    report = yield
    excinfo = getattr(getattr(report, "call", None), "excinfo", None)
    if report.failed and excinfo is not None and (missing := find_missing(excinfo.value)):
        report.outcome, report.longrepr = "skipped", (report.nodeid, 1, f"Skipped: {missing}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    """Skip a test whose fixtures need a package that is not installed."""
    with skip_without_package():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Skip a test that needs a package that is not installed."""
    with skip_without_package():
        yield


@contextmanager
def skip_without_package() -> Iterator[None]:
    """Skip if the block raises an error that a package is not installed, and it is not."""
    try:
        yield
    except Exception as error:
        if missing := find_missing(error):
            pytest.skip(missing)
        raise


def pytest_collection_finish() -> None:
    """Have garbage collections pass over the tests and modules, which stay to the end."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the scores that tests recorded with `record_property("score", ...)`, of all workers."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    for score in sorted(text for report in reports for name, text in report.user_properties if name == "score"):
        terminalreporter.write_line(score)
