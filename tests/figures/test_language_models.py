"""The figures of searches, judges and grades with a language model in the database, against what a server saw."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean, variance

import pytest

from tests.fake_llm import FakeLLM
from tests.figures.logged import Figures, prepare_store, read_figures, run_logged
from tests.figures.planted import write_lines

PRICE_IN, PRICE_OUT = 2000, 3000  # for a million tokens
DATA = ("dataset=jsonl", "dataset.documents=d.jsonl", "dataset.queries=q.jsonl")
NAMES = [f"q{n}" for n in range(1, 6)]


def prepare(folder: Path, migrated: Path) -> Path:
    """Write 8 documents, 5 queries, and two runs, one of which has unknown hits; return the folder."""
    prepare_store(migrated, folder)
    write_lines(
        folder / "d.jsonl",
        ({"id": f"d{n}", "text": f"boat text {n}" + " more" * (30 if n == 3 else 0)} for n in range(8)),
    )
    write_lines(folder / "q.jsonl", ({"id": name, "text": f"boat {name}", "gold": ["d1"]} for name in NAMES))
    hits = [("d1", "x1", "d2"), ("x2", "d1", "x3", "d3"), ("d4", "d4", "d1", "d4")]
    lines = [f"q{q} Q0 {hit} {rank} {9 - rank} r" for q, row in enumerate(hits, 1) for rank, hit in enumerate(row, 1)]
    (folder / "run.trec").write_text("\n".join(lines))
    every = (f"q{q} Q0 d{number} {number + 1} {9 - number} r" for q in (1, 2, 3) for number in range(8))
    (folder / "all.trec").write_text("\n".join(every))
    return folder


def ask(server: FakeLLM) -> tuple[str, ...]:
    """Return the settings of the model behind a server."""
    return (
        "llm=openai", f"llm.base_url={server.url}", "llm.model=m", "llm.backoff_s=0.001", "llm.concurrency=1",
        f"llm.price_in={PRICE_IN}", f"llm.price_out={PRICE_OUT}",
    )  # fmt: skip


def grade(question: str, system: str) -> str:
    """Judge a document by its number: two grades are off the scale, one is said in words, and one is missing."""
    number = int(re.findall(r"boat text (\d)", question)[0])
    return {4: '{"grade": 9}', 5: '{"grade": 9}', 6: "grade: 1", 7: "No."}.get(number, f'{{"grade": {number}}}')


def word_price(words_in: int, words_out: int) -> float:
    """Return the cost of words."""
    return (PRICE_IN * words_in + PRICE_OUT * words_out) / 1e6


# Five queries are expanded: the first after a retry, two are refused. A prompt is "a b c" and "2 of boat q1".
EXPANDED = {
    "llm_calls": 5 + 1,
    "llm_failures": 2,
    "llm_tokens_in": 3 * 7,
    "llm_tokens_out": 3 * 4,
    "llm_cost": word_price(3 * 7, 3 * 4),
}
# Three queries have hits: d1 and d2, d1 and d3, d4 and d1, of which d4 is there twice; x1, x2 and x3 have no text.
RERANKED = {
    "hits_without_text": 3,
    "base.unknown_items": 3,
    "base.repeated_items": 2,
    "base.missing_queries": 2,
    "llm/rerank/calls": 6,
    "passages_cut": 6,  # after 2 words; five have 3 words, and d3 has 33
    "passages_words": 5 * 3 + 33,
    "passages_words_unread": 5 * 1 + 31,
}
# Of the documents d0 to d7, d1 is judged. Three queries have all of them as hits.
JUDGED = {
    "judge/pairs": 3 * 7,
    "judge/graded": 3 * 5,
    "judge/rescued": 3,
    "judge/unreadable": 3,
    "judge/clamped": 3 * 2,
    "judge/cut": 3,
    "judge/calls": 3 * 7 + 3,
}
# The first grade of two queries is refused; the spread is that of the three others, pooled.
GRADES = {"q1": (6,), "q2": (3,), "q3": (2, 8), "q4": (9, 5), "q5": (4, 4)}
GRADED = {
    "grade/errors": 2,
    "grade/mean": fmean(map(fmean, GRADES.values())),
    "grade/spread": fmean(variance(grades) for grades in GRADES.values() if len(grades) > 1) ** 0.5,
}
EXPECTED = {**EXPANDED, **RERANKED, **JUDGED, **GRADED}


@pytest.fixture(scope="module")
def expanded(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Figures:
    """Return what is logged of queries that a model expands."""
    folder = prepare(tmp_path_factory.mktemp("expanded"), migrated)
    answer = "small boat\nbig boat"
    with FakeLLM(answer=lambda *_: answer, script=("server", "ok", "bad_request", "bad_request")) as server:
        run_logged(
            folder, "retriever=expanded", "retriever.n=2", "retriever.threads=1", "retriever.system=a b c",
            "retriever.multi_query_prompt='{n} of {query}'", "grading=none", *ask(server), *DATA,
        )  # fmt: skip
    return read_figures(folder)["expanded"]


@pytest.fixture(scope="module")
def reranked(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Figures:
    """Return what is logged of a run that a model reranks."""
    folder = prepare(tmp_path_factory.mktemp("reranked"), migrated)
    with FakeLLM(answer=lambda *_: "7") as server:
        run_logged(
            folder, "retriever=reranked", "retriever@retriever.base=run", "retriever.base.path=run.trec",
            "reranker=pointwise", "reranker.threads=1", "reranker.max_words=2", "grading=none", *ask(server), *DATA,
        )  # fmt: skip
    return read_figures(folder)["reranked"]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> tuple[Figures, FakeLLM]:
    """Return what is logged of a judged pool, and the server."""
    folder = prepare(tmp_path_factory.mktemp("judged"), migrated)
    run_logged(folder, "retriever=run", "retriever.path=all.trec", *DATA)
    with FakeLLM(answer=grade) as server:
        run_logged(
            folder, "judge", "run=latest", "judging.depth=8", "judging.backoff_s=0", "judging.retries=1",
            "judging.max_characters=100", *ask(server),
        )  # fmt: skip
    (figures,) = (own for name, own in read_figures(folder).items() if name.startswith("judge "))
    return figures, server


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Figures:
    """Return what is logged of a run that is graded twice."""
    folder = prepare(tmp_path_factory.mktemp("graded_twice"), migrated)
    turns = {name: iter(pair) for name, pair in GRADES.items()}

    def answer(question: str, system: str) -> str:
        return f'{{"grade": {next(turns[re.findall(r"q[1-5]", question)[0]])}}}'

    with FakeLLM(answer=answer, script=("bad_request", "bad_request")) as server:
        run_logged(
            folder, "retriever=run", "retriever.path=run.trec", "grading.backoff_s=0", "grading.repeats=2",
            *ask(server), *DATA,
        )  # fmt: skip
    return read_figures(folder)["run"]


@pytest.mark.parametrize("name", EXPANDED)
def test_figure_of_expanded_queries_is_worked_out_by_hand(expanded: Figures, name: str) -> None:
    assert expanded[name] == pytest.approx(EXPANDED[name])


@pytest.mark.parametrize("name", RERANKED)
def test_figure_of_reranked_hits_is_counted_by_hand(reranked: Figures, name: str) -> None:
    assert reranked[name] == RERANKED[name]


@pytest.mark.parametrize("name", JUDGED)
def test_figure_of_a_judged_pool_is_counted_by_hand(judged: tuple[Figures, FakeLLM], name: str) -> None:
    assert judged[0][name] == JUDGED[name]


def test_tokens_and_cost_of_a_judged_pool_are_those_of_the_server(judged: tuple[Figures, FakeLLM]) -> None:
    figures, server = judged
    read = sum(len(f"{asked.system} {asked.question}".split()) for asked in server.asked)
    written = sum(len(grade(asked.question, "").split()) for asked in server.asked)
    assert [figures[f"judge/{name}"] for name in ("tokens_in", "tokens_out")] == [read, written]
    assert figures["judge/cost"] == pytest.approx(word_price(read, written))


@pytest.mark.parametrize("name", GRADED)
def test_figure_of_repeated_grades_is_worked_out_by_hand(graded: Figures, name: str) -> None:
    assert graded[name] == pytest.approx(GRADED[name])
