"""Kill a sweep of 60 combinations at random moments, and look for results that are lost, doubled or left behind.

    python -m benchmarks.kills --kills 30 --backend sequential [--store s3]

After each kill, the combinations that the console reported as done must be in MLflow or wait on disk. Kills come in
chains; at the end of each chain the same command runs to its end. Then each combination must have one finished run, no
results may wait on disk, and runs and artifacts must match. With `--store s3`, the store is on an S3 server on this
machine, every array is kept, and at the end each entry of the store must be complete. Exits with 1 otherwise.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import psutil

from benchmarks.stand_in.object_stores import SERVERS
from runner.store.opening import open_store
from runner.store.settings import StoreSettings
from runner.tracking.settings import Tracking
from runner.tracking.tracker import Tracker
from runner.tracking.unlogged import waiting_in

COMBINATIONS, CHAIN = 60, 6
LONGEST_S = 300.0
"""The longest time of a start, in seconds, before it counts as hung."""

AXES = ("retriever.k1=range(0.1,1.3,0.1)", "retriever.b=range(0.1,0.6,0.1)")
START = """
import sys
from runner.__main__ import main
from runner.pages import progress
from runner.store import disk
if "://" in " ".join(sys.argv):
    disk.WORTH_KEEPING_S = 0.0  # here and in workers, which import this script
if __name__ == "__main__":
    progress.FIRST_S = progress.EVERY_S = progress.SILENT_S = 0.0  # report each combination as it is done
    sys.exit(main(sys.argv[1:]))
"""
COUNTED = re.compile(r"(\d+) of (\d+)(?:, \d+ failed)?, ")


class Start:
    """One start of the sweep; `reported` is how many of the 60 combinations it has reported as done."""

    def __init__(self, folder: Path, backend: str, store: Sequence[str]) -> None:
        workers = () if backend == "sequential" else ("sweep.workers=2", "sweep.retries=99")
        script = folder / "start.py"
        script.write_text(START)
        words = ["-m", "retriever=bm25", *AXES, "sweep.name=kills", f"sweep.backend={backend}", *workers, *store]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
        self.process = subprocess.Popen(
            [sys.executable, str(script), *words], cwd=folder, env=environment, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.reported, self.said = 0, ""
        self.changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, count: int) -> None:
        """Wait until this many combinations are reported as done, or the process has ended."""
        with self.changed:
            self.changed.wait_for(lambda: self.reported >= count or not self._reader.is_alive(), LONGEST_S)

    def family(self) -> list[psutil.Process]:
        """Return the process and its descendants, itself first."""
        try:
            own = psutil.Process(self.process.pid)
            return [own, *own.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def end(self) -> int:
        """Wait for the process and all of its output; return its exit code."""
        code = self.process.wait(LONGEST_S)
        self._reader.join(LONGEST_S)
        return code

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            counted = COUNTED.match(line)
            with self.changed:
                self.said += line
                if counted:
                    self.reported = COMBINATIONS - int(counted[2]) + int(counted[1])
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()


def finished(folder: Path) -> Counter[str]:
    """Return how many finished runs each combination has in the database."""
    query = "select value from tags join runs using (run_uuid) where key = 'combination' and status = 'FINISHED'"
    with closing(sqlite3.connect(folder / "mlruns" / "mlflow.db", timeout=60)) as database:
        return Counter(value for (value,) in database.execute(query))


def stored_combinations(folder: Path) -> set[str]:
    """Return the combinations that are in the database or wait, complete, on disk."""
    places = (folder / "mlruns" / "unlogged").glob("*")
    waiting = {each.combination for place in places for each in waiting_in(place) if each.read() is not None}
    return waiting | set(finished(folder))


def leftovers(folder: Path) -> list[str]:
    """Return a description of each fault of a sweep that ran to its end."""
    runs, wrong = finished(folder), []
    if len(runs) != COMBINATIONS:
        wrong.append(f"{len(runs)} combinations are finished")
    if doubled := sum(count > 1 for count in runs.values()):
        wrong.append(f"{doubled} combinations have several finished runs")
    with closing(sqlite3.connect(folder / "mlruns" / "mlflow.db", timeout=60)) as database:
        ids = {run for (run,) in database.execute("select run_uuid from runs")}
        statuses = Counter(status for (status,) in database.execute("select status from runs"))
    folders = {path.name for path in (folder / "mlruns" / "artifacts").iterdir() if not path.name.startswith(".")}
    if orphans := folders - ids:
        wrong.append(f"{len(orphans)} folders of artifacts have no run")
    if missing := ids - folders:
        wrong.append(f"{len(missing)} runs have no artifacts")
    if statuses["RUNNING"]:
        wrong.append(f"{statuses['RUNNING']} runs are open")
    left = [path for path in (folder / "mlruns" / "unlogged").rglob("*") if path.is_file()]
    left += (folder / "mlruns" / "artifacts" / ".unlogged").glob("*")
    return [*wrong, *(f"{path.name} is left behind" for path in left)]


def damaged_entries(folder: Path, address: str) -> list[str]:
    """Return a description of each damaged entry of a store in an object store."""
    store = open_store(StoreSettings(address, str(folder / "read again")))
    present = store.list_entries()
    if len({entry.digest for entry in present}) != len(present) or len(present) < COMBINATIONS:
        return [f"the store has {len(present)} entries"]
    return [f"{entry.place}: {wrong}" for entry in present if (wrong := store.find_damage(entry))]


def kill_one(start: Start, chance: random.Random) -> bool:
    """Kill the process of the sweep, or sometimes one of its descendants; return whether a process was killed."""
    family = start.family()
    if not family or start.process.poll() is not None:
        return False
    victim = family[0] if chance.random() < 0.7 else chance.choice(family)
    try:
        victim.send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return False
    if victim.pid == start.process.pid:
        psutil.wait_procs(family[1:], 60)  # the others notice that the parent has ended
        start.end()
    return True


@contextmanager
def fresh(template: Path) -> Iterator[Path]:
    """Yield a folder with an empty store of runs."""
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        (Path(name) / "mlruns").mkdir()
        shutil.copy(template, Path(name) / "mlruns" / "mlflow.db")
        yield Path(name)


def chain(
    folder: Path, kills: int, backend: str, chance: random.Random, address: str | None = None
) -> tuple[list[str], Counter[str]]:
    """Kill a sweep several times, then let it finish; return the faults and how many results each kill left."""
    store = [f"store.path={address}", f"store.copies={folder / 'copies'}"] if address else []
    wrong: list[str] = []
    seen: Counter[str] = Counter()
    most = 0
    while seen["kills"] < kills:
        start = Start(folder, backend, store)
        while start.process.poll() is None and seen["kills"] < kills:
            start.wait_for(chance.randint(min(most, COMBINATIONS - 1), COMBINATIONS))
            time.sleep(chance.choice([0.0, 0.02, 0.1, 0.5, 2.0]))
            seen["kills"] += kill_one(start, chance)
            # A process of the sweep may still be running, as its lock is not taken here. Both numbers only grow, so
            # the reported one is read first.
            reported = start.reported
            there = len(stored_combinations(folder))
            seen["reported"], seen["kept"] = seen["reported"] + reported, seen["kept"] + there
            if there < reported:
                wrong.append(f"{reported} were reported as done, {there} are kept")
            most = max(most, reported)
        ended = start.process.poll()
        if ended not in (None, 0, -signal.SIGKILL):
            wrong.append(f"exit code {ended}: {start.said[-500:]}")
        if ended == 0 and seen["kills"] < kills:
            wrong += leftovers(folder)
            shutil.rmtree(folder / "mlruns" / "unlogged", ignore_errors=True)
            break
        if start.process.poll() is None:
            start.end()
    last = Start(folder, backend, store)
    code = last.end()
    if code != 0:
        wrong.append(f"exit code {code} of the last start: {last.said[-500:]}")
    damaged = damaged_entries(folder, address) if address else []
    return [*wrong, *leftovers(folder), *damaged], seen


def main() -> int:
    """Print the results that were lost, doubled or left behind; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--backend", choices=["sequential", "loky"], default="sequential")
    parser.add_argument("--store", choices=["folder", *SERVERS], default="folder")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    wrong: list[str] = []
    total: Counter[str] = Counter()
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as made,
        SERVERS[options.store]() if options.store in SERVERS else nullcontext("") as bucket,
    ):
        template = Path(made) / "mlflow.db"
        Tracker(Tracking(uri=f"sqlite:///{template}", artifacts=f"{made}/artifacts", experiment="unused"))
        with closing(sqlite3.connect(template)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        while total["kills"] < options.kills:
            with fresh(template) as folder:
                address = f"{bucket}/{folder.name}" if bucket else None
                kills = min(CHAIN, options.kills - total["kills"])
                found, seen = chain(folder, kills, options.backend, chance, address)
            wrong += found
            total += seen
            total["chains"] += 1
            print(f"{total['kills']} kills, {len(wrong)} faults, {time.monotonic() - began:.0f} s", flush=True)
    counted = f"{total['reported']:,} combinations reported as done before a kill, {total['kept']:,} kept"
    print(f"{options.backend}: {total['kills']} kills in {total['chains']} sweeps; {counted}; {len(wrong)} faults")
    for fault in wrong:
        print(f"  {fault}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
