"""The figures of a language model's grades in the database, against what a server saw and said."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean

import pytest

from tests.fake_llm import FakeLLM
from tests.figures.logged import Figures, prepare_store, read_figures, run_logged
from tests.figures.planted import write_lines

NAMES = [f"q{n}" for n in range(1, 9)]
REPLIES = {
    **{"q1": '{"grade": 9}', "q2": '{"grade": 4}', "q3": '{"grade": 57}', "q4": '{"grade": -3}'},
    **{"q5": "grade: 6", "q6": "score: 7", "q7": "No.", "q8": "No idea."},
}
GRADES = {"q1": 9, "q2": 4, "q3": 10, "q4": 1, "q5": 6, "q6": 7}  # of 1 to 10; there are none for q7 and q8
RANKS = {"q1": 1, "q2": 2, "q3": 2, "q4": 3, "q5": 1, "q6": 4, "q7": 7, "q8": 7}  # 5 chunks are read
WEIGHTS = {1: 1.0, 2: 0.8, 3: 0.8, 4: 0.8}
PEOPLE = {"q1": 8, "q2": 2, "q3": 9, "q4": 4}
PRICE_IN, PRICE_OUT = 2000, 3000  # for a million tokens


def reply(question: str, system: str) -> str:
    """Grade a question by its number."""
    return REPLIES[re.findall(r"\bq\d\b", question)[0]]


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> tuple[Figures, FakeLLM]:
    """Return what is logged of a run that is graded, and the server, which failed twice at first."""
    folder = tmp_path_factory.mktemp("graded")
    prepare_store(migrated, folder)
    write_lines(folder / "d.jsonl", ({"id": f"d{n}", "text": f"text {n}"} for n in range(9)))
    write_lines(
        folder / "q.jsonl",
        ({"id": name, "text": f"about {name}", "gold": ["d0"], "answer": f"about {name}" if name < "q4" else "x"}
         for name in NAMES),
    )  # fmt: skip
    hits = {name: [*(f"d{n}" for n in range(1, RANKS[name])), "d0"] for name in NAMES}
    lines = (f"{name} Q0 {hit} {rank} {99 - rank} r" for name in NAMES for rank, hit in enumerate(hits[name], start=1))
    (folder / "run.trec").write_text("\n".join(lines))
    write_lines(folder / "people.jsonl", ({"query_id": name, "grade": grade} for name, grade in PEOPLE.items()))
    with FakeLLM(answer=reply, script=("server", "server")) as server:
        run_logged(
            folder, "retriever=run", "retriever.path=run.trec", "dataset=jsonl", "dataset.documents=d.jsonl",
            "dataset.queries=q.jsonl", "dataset.query_answer=answer", "llm=openai", f"llm.base_url={server.url}",
            "llm.model=m", "llm.backoff_s=0.001", f"llm.price_in={PRICE_IN}", f"llm.price_out={PRICE_OUT}",
            "llm.concurrency=1", "grading.backoff_s=0", "grading.retries=1", "grading.reference=people.jsonl",
        )  # fmt: skip
    return read_figures(folder)["run"], server


EXPECTED = {
    "grade/mean": fmean(GRADES.values()),
    "grade/total_score": fmean(grade * WEIGHTS[RANKS[name]] for name, grade in GRADES.items()),
    "grade/failures": 2,
    "grade/parse_failures": 2,
    "grade/rescued": 2,
    "grade/clamped": 2,
    "grade/echoes": 3,
    "grade/mrr": fmean(1 / rank if rank <= 5 else 0 for rank in RANKS.values()),
    "grade/asked": 6 + 2 * 2,
    "grade/calls": 6 + 2 * 2 + 2,
    "hit_at_1": 2 / 8,
    "hit_at_5": 6 / 8,
    "grade/agreement/questions": 4,
    "grade/agreement/spearman": 0.8,  # ranks 3, 2, 4, 1 and 3, 1, 4, 2: 1 - 6 x 2 / (4 x 15)
    "grade/agreement/mean_error": (1 + 2 + 1 - 3) / 4,
    "grade/agreement/mean_absolute_error": (1 + 2 + 1 + 3) / 4,
    "llm/grade/calls": 12,
    "llm/grade/retries": 2,
    "llm/grade/failures": 2,
    "llm/grade/failures/server": 2,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_figure_of_grades_is_worked_out_by_hand(graded: tuple[Figures, FakeLLM], name: str) -> None:
    assert graded[0][name] == pytest.approx(EXPECTED[name])


def test_tokens_and_cost_of_grades_are_those_of_the_server(graded: tuple[Figures, FakeLLM]) -> None:
    figures, server = graded
    answered = [asked for asked in server.asked if asked.behaviour == "ok"]
    read = sum(len(f"{asked.system} {asked.question}".split()) for asked in answered)
    written = sum(len(reply(asked.question, "").split()) for asked in answered)
    cost = (PRICE_IN * read + PRICE_OUT * written) / 1e6
    for place in ("grade", "llm/grade"):
        assert [figures[f"{place}/{name}"] for name in ("tokens_in", "tokens_out")] == [read, written]
        assert figures[f"{place}/cost"] == pytest.approx(cost)
