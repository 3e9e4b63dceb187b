"""A grading of many questions in a process of its own, to be killed: python -m tests.evaluation.paid_work ..."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from retrievers.base import Corpus
from runner.datasets.base import Queries
from runner.evaluation.grades import Grades
from runner.evaluation.grading import Grading, grade_found
from runner.llm.providers import OpenAI


def work(url: str, folder: Path, n: int, max_calls: int | None, budget: str | None) -> Grades:
    """Grade n questions, each with a chunk of its own; the ledger and the journal are in the folder."""
    llm = OpenAI(
        model="m", base_url=url, ledger=str(folder / "llm.db"), backoff_s=0.001, timeout_s=300,
        max_calls=max_calls, budget=budget,
    )  # fmt: skip
    ids = [f"d{i}" for i in range(n)]
    corpus = Corpus(ids, [f"text {i}" for i in range(n)])
    queries = Queries([f"q{i}" for i in range(n)], [f"question number {i}" for i in range(n)], [""] * n)
    grading = Grading(llm=llm, backoff_s=0)
    rows = [[i] for i in ids]
    return grade_found(grading, corpus, queries, rows, rows, (), folder / "grading")[0]


def main() -> None:
    """Work as the arguments say, as JSON, and print the figures."""
    settings: dict[str, Any] = json.loads(sys.argv[1])
    settings["folder"] = Path(settings["folder"])
    sys.stdout.write(json.dumps(work(**settings).figures()))


if __name__ == "__main__":
    main()
