"""The figures of a combination that a race drops, in the database, against the questions that a server was asked."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests.fake_llm import FakeLLM
from tests.figures.logged import Figures, prepare_store, read_figures, run_logged
from tests.figures.planted import write_lines

QUERIES, BLOCK = 60, 5
BETS = (0.2, 0.5, 0.99)
EXPECTED = dict.fromkeys(("race/queries", "race/p", "race/partial_mean", "race/partial_mean_of_leader"))
"""The values follow from the requests of a run."""


def score(model: str, query: int) -> float:
    """Return the reciprocal rank of the gold, which is one of two documents: `good` fails in one of five queries."""
    return 1.0 if (query % 5 != 0 if model == "good" else query % 4 == 0) else 0.5


def answer(path: str, body: Any) -> dict[str, Any]:
    """Order two passages by the score that the model should have."""
    question = body["messages"][-1]["content"]
    is_first = question.index("gold") < question.index("other")
    query = int(re.findall(r"word(\d+)", question)[0])
    text = "[1] > [2]" if is_first == (score(body["model"], query) == 1) else "[2] > [1]"
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return {"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}


@pytest.fixture(scope="module")
def raced(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> tuple[Figures, list[int]]:
    """Return what is logged of the dropped combination, and the queries that it was asked, in order."""
    folder = tmp_path_factory.mktemp("raced")
    prepare_store(migrated, folder)
    documents = ({"id": f"d{i}{kind}", "text": f"word{i} {kind}"} for i in range(QUERIES) for kind in ("gold", "other"))
    write_lines(folder / "d.jsonl", documents)
    write_lines(folder / "q.jsonl", ({"id": f"q{i}", "text": f"word{i}", "gold": f"d{i}gold"} for i in range(QUERIES)))
    with FakeLLM(respond=answer) as server:
        run_logged(
            folder, "-m", "retriever=reranked", "reranker=llm", "reranker.threads=1", "retriever.depth=2", "llm=openai",
            f"llm.base_url={server.url}", "llm.model=bad,good", "grading=none", "metrics.primary=RR", "dataset=jsonl",
            "dataset.documents=d.jsonl", "dataset.queries=q.jsonl", "sweep.race=true", f"sweep.race_block={BLOCK}",
        )  # fmt: skip
    asked = [each.question for each in server.asked if each.model == "bad"]
    return read_figures(folder)["model=bad"], [int(re.findall(r"word(\d+)", question)[0]) for question in asked]


def compute_p(queries: list[int]) -> float:
    """Return one over the highest capital of three gamblers who bet on the better model, query by query."""
    lead, capital, highest = 0.0, [1.0] * len(BETS), 1.0
    for seen, query in enumerate(queries):
        bound = -lead / (QUERIES - seen)
        gain = score("good", query) - score("bad", query)
        capital = [own * (1 + bet * (gain - bound) / (bound + 1)) for own, bet in zip(capital, BETS, strict=True)]
        highest = max(highest, fmean(capital))
        lead += gain
    return 1 / highest


def test_the_figures_of_a_dropped_combination_follow_from_its_queries(raced: tuple[Figures, list[int]]) -> None:
    figures, queries = raced
    means = [fmean(score(model, query) for query in queries) for model in ("bad", "good")]
    expected = (len(queries), compute_p(queries), *means)
    assert 1 < len(queries) < QUERIES and not {0, 1} & {*expected}
    assert figures == pytest.approx(dict(zip(EXPECTED, expected, strict=True)))
