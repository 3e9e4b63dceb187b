"""Judge pairs at the desk in a browser, and say how much of the time is left for reading.

`python -m benchmarks.desk DATASET [PAIRS]` evaluates two retrievers on a dataset in BEIR's layout, judges pairs (50 by
default) of their results by keys, each as soon as its page is shown, stops the desk, and evaluates with the grades that
it wrote. It prints how long the desk took between a key and the next pair, and how many of ten minutes are left to read
each document. How fast a person reads is not measured.
"""

from __future__ import annotations

import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson
from playwright.sync_api import sync_playwright

TEN_MINUTES_S = 600.0

RUNNER = (sys.executable, "-m", "runner")


def main() -> int:
    """Print the times, and the measures before and after."""
    dataset = ["dataset=beir", f"dataset.path={Path(sys.argv[1]).resolve()}", "dataset.split=test"]
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [*RUNNER, "-m", "retriever=bm25,rank_bm25", *dataset], cwd=folder, check=True, capture_output=True
        )
        command = [*RUNNER, "judge", "by=hand", "run=latest", "port=0", "assessor=reader"]
        desk = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        assert desk.stdout is not None
        address = next(match[1] for line in desk.stdout if (match := re.search(r"open (http://\S+)", line)))
        waits = judge(address, pairs)
        desk.send_signal(signal.SIGINT)
        override = next(match[1] for line in desk.stdout if (match := re.search(r"use them with: (\S+)", line)))
        desk.wait()
        spent = sum(waits)
        middle, last = statistics.median(waits), max(waits)
        print(
            f"{pairs} pairs: the desk took {spent:.1f} s, {1000 * middle:.0f} ms for a pair (at most {1000 * last:.0f})"
        )
        print(f"in ten minutes, {(TEN_MINUTES_S - spent) / pairs:.1f} s are left to read and grade each document")
        for words in ([], [override]):
            done = subprocess.run(
                [*RUNNER, "retriever=bm25", *dataset, *words, "--json"], cwd=folder, check=True, capture_output=True
            )
            result = orjson.loads(done.stdout)["result"]
            judgments, value = result["dataset"]["judgments"], result["means"]["nDCG@10"]
            print(f"nDCG@10 {value:.4f} with {judgments:,} judgments {' '.join(words)}")
    return 0


def judge(address: str, pairs: int) -> list[float]:
    """Grade pairs in chromium, and return the seconds between each key and the next pair."""
    waits = []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(address)
        for place in range(pairs):
            began = time.perf_counter()
            with page.expect_navigation():
                page.keyboard.press(str(place % 3))
            page.wait_for_function("document.activeElement?.id === 'document' || !document.querySelector('#document')")
            waits.append(time.perf_counter() - began)
        browser.close()
    return waits


if __name__ == "__main__":
    sys.exit(main())
