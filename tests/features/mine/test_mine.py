"""Mining as a whole: gold, negatives, checks, and what a language model says of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from retrievers.llm.chat import ChatError
from retrievers.store import MemoryStore
from runner.datasets.duplicates import similarity
from runner.datasets.mined import Mined
from runner.features.mine.base import Case, ImpactSettings, Mining, MiningInput, Objection, Query
from runner.features.mine.forward import count_unfinished
from runner.features.mine.mine import mine_cases, select_kept
from runner.features.mine.output import write
from runner.features.mine.report import impact_note, impact_table
from runner.features.mine.targets import Target, Targets
from runner.llm.journal import Journal
from tests.evaluation.chats import Answer, Scripted, always
from tests.features.mine.worlds import (
    LOOP,
    PARALLEL,
    SEQUENTIAL,
    create_mining,
    create_model,
    format_reply,
    list_grades,
    read_rows,
    write_world,
)


@pytest.fixture
def material(tmp_path: Path) -> MiningInput:
    return write_world(tmp_path).load()


@pytest.fixture
def mine(material: MiningInput, tmp_path: Path) -> Callable[..., dict[str, Query]]:
    """Return a function that mines the world and returns queries by id, with a journal of its own each time."""
    numbers = count()

    def run(settings: Mining | None = None, cases: list[Case] | None = None) -> dict[str, Query]:
        given = material if cases is None else replace(material, cases=cases)
        journal = Journal(tmp_path / f"journal {next(numbers)}.jsonl")
        return {q.case.id: q for q in mine_cases(settings or create_mining(), given, MemoryStore(), journal)}

    return run


def test_gold_is_each_target_once_the_primary_one_first(
    mine: Callable[..., dict[str, Query]], material: MiningInput
) -> None:
    query = mine()["api:parallel"]
    assert [material.targets.all[gold].id for gold in query.golds] == [PARALLEL]
    assert [(r.name, r.way) for r in query.resolutions] == [
        ("kit.agents.ParallelAgent", "alias"),
        (PARALLEL, "exact"),
        ("kit.somewhere.Tool", "ambiguous"),
    ]
    assert query.rank in (1, 2)  # its near-duplicate ties with it
    assert query.verdict == "verified"


def test_a_case_without_gold_is_rejected_with_the_reason(mine: Callable[..., dict[str, Query]]) -> None:
    queries = mine()
    assert queries["api:gone"].verdict == queries["fix:three"].verdict == "rejected"
    assert queries["api:gone"].objections[0].evidence == (
        "no name in its answers identifies exactly one target: kit.Gone (unresolved), other.LoopAgent (unresolved)"
    )
    assert queries["fix:three"].objections[0].evidence == "neither fixed_file nor test_file exists"


def test_negatives_are_neither_gold_nor_similar_to_it_nor_other_candidates(
    mine: Callable[..., dict[str, Query]], material: MiningInput
) -> None:
    settings = create_mining(hard_negatives=50, random_negatives=50)
    for query in mine(settings).values():
        negatives = (*query.hard_negatives, *query.random_negatives)
        assert len(set(negatives)) == len(negatives)
        assert not set(negatives) & {i for resolution in query.resolutions for i in resolution.targets}
        for gold in query.golds:
            for negative in negatives:
                first, second = material.targets.all[gold].about, material.targets.all[negative].about
                assert similarity(first, second) < settings.ceiling
    parallel = mine(settings)["api:parallel"]
    ids = {material.targets.all[i].id for i in (*parallel.hard_negatives, *parallel.random_negatives)}
    assert ids == {SEQUENTIAL, LOOP, "kit.agents.Agent", "kit.bare"}  # neither tool, nor the copy
    assert [material.targets.all[i].name for i in parallel.near_golds] == ["ParallelAgent2"]
    one = mine(settings)["fix:one"]
    assert "kit.agents.Agent" not in {material.targets.all[i].id for i in one.hard_negatives}  # it was imported


def test_a_class_in_the_question_is_not_a_negative_of_uncertain_gold(
    mine: Callable[..., dict[str, Query]], material: MiningInput
) -> None:
    def negatives(name: str) -> set[str]:
        case = Case("q", "s", "What runs agents in order, as `SequentialAgent.run` does, or at a time?", (name,))
        query = mine(create_mining(hard_negatives=50, random_negatives=50), [case])["q"]
        return {material.targets.all[i].id for i in (*query.hard_negatives, *query.random_negatives)}

    assert SEQUENTIAL not in negatives("kit.elsewhere.LoopAgent")
    assert SEQUENTIAL in negatives(LOOP)


TREE = [
    Target("kit", "MODULE", docstring="Agents that run other agents."),
    Target("kit.agents", "MODULE", docstring="How agents run other agents."),
    Target("kit.agents.Loop", "CLASS", docstring="Runs other agents again and again.", aliases=("kit.Loop",)),
    Target("kit.agents.Loop.run", "METHOD", docstring="Run the agents of a loop once."),
    Target("kit.Loop.stop", "METHOD", docstring="Stop the agents of a loop."),
    Target("kit.agents.Looper", "CLASS", docstring="Draws loops of agents."),
    Target("kit.agents.Row.run", "METHOD", docstring="Run other agents in a row."),
    Target("kit.agents.bare", "MODULE"),
]


def mine_tree(tmp_path: Path, *cases: Case) -> list[Query]:
    """Return what is mined from modules with their members, with every negative that is possible."""
    material = MiningInput(Targets(TREE), cases)
    return mine_cases(
        create_mining(hard_negatives=9, random_negatives=9), material, MemoryStore(), Journal(tmp_path / "j")
    )


@pytest.mark.parametrize(
    ("gold", "negatives"),
    [
        ("kit.agents.Loop", {"kit.agents.Looper", "kit.agents.Row.run", "kit.agents.bare"}),
        ("kit.agents.Row.run", {"kit.agents.Loop", "kit.agents.Loop.run", "kit.Loop.stop", "kit.agents.Looper",
                                "kit.agents.bare"}),
    ],
)  # fmt: skip
def test_members_and_enclosing_modules_of_gold_are_not_negatives(
    tmp_path: Path, gold: str, negatives: set[str]
) -> None:
    (query,) = mine_tree(tmp_path, Case("q", "s", "What can run agents?", (gold,)))
    assert {TREE[i].id for i in (*query.hard_negatives, *query.random_negatives)} == negatives


def test_a_module_without_text_is_not_gold(tmp_path: Path) -> None:
    cases = [Case(str(n), "s", f"What can loop, {n}?", names) for n, names in enumerate(
        [("kit.agents.bare", "kit.agents.Loop"), ("kit.agents.bare",)]
    )]  # fmt: skip
    query, rejected = mine_tree(tmp_path, *cases)
    assert [TREE[gold].id for gold in query.golds] == ["kit.agents.Loop"]
    assert rejected.verdict == "rejected"
    assert rejected.objections[0].evidence == "the documents of its answers have no text: kit.agents.bare"


def test_a_copy_of_gold_is_not_a_negative_under_any_ceiling(
    mine: Callable[..., dict[str, Query]], material: MiningInput
) -> None:
    copies = [i for i, target in enumerate(material.targets.all) if target.name == "ParallelAgent2"]
    assert not set(copies) & set(mine(create_mining(ceiling=1.0))["api:parallel"].hard_negatives)


def test_random_negatives_depend_only_on_the_seed_and_the_query(
    mine: Callable[..., dict[str, Query]], material: MiningInput
) -> None:
    settings = create_mining(hard_negatives=0, random_negatives=2)
    everything = mine(settings)
    alone = mine(settings, [case for case in material.cases if case.id == "api:loop"])
    assert alone["api:loop"].random_negatives == everything["api:loop"].random_negatives
    others = [mine(replace(settings, seed=seed))["api:loop"].random_negatives for seed in range(6)]
    assert len(set(others)) > 1


def test_objections_have_a_verdict_and_the_evidence(mine: Callable[..., dict[str, Query]]) -> None:
    cases = [
        Case("contained", "s", "Runs its sub-agents in order", (SEQUENTIAL,)),
        Case("foreign", "s", "concurrency", (PARALLEL,)),
        Case("first", "s", "What is there to run many agents again and again?", (LOOP,)),
        Case("again", "s", "what is there to run many agents again and again", (LOOP,)),
        Case("other", "s", "What is there to run many agents again and again", (SEQUENTIAL,)),
        Case("empty", "s", "", (LOOP,)),
        Case("unnamed", "s", "What?"),
    ]
    objections = {
        i: (q.verdict, [f"{objection.check}: {objection.evidence}" for objection in q.objections])
        for i, q in mine(cases=cases).items()
    }
    assert objections["contained"] == ("rejected", [f"contained: the query occurs verbatim in its gold, {SEQUENTIAL}"])
    assert objections["foreign"] == (
        "doubtful",
        [
            "retrievable: the first 100 results of the retriever contain no gold",
            "shared words: the query shares no word with any gold, except stop words",
        ],
    )
    assert objections["first"] == (
        "doubtful",
        ["repeated: near-duplicates of this query have other gold: again, other"],
    )
    assert objections["again"] == objections["other"] == ("rejected", ["repeated: near-duplicate of first"])
    assert objections["empty"] == ("rejected", ["gold: the case has no question"])
    assert objections["unnamed"] == ("rejected", ["gold: its answers contain no names"])


def test_gold_without_a_docstring_can_be_dropped(mine: Callable[..., dict[str, Query]]) -> None:
    cases = [Case("bare", "s", "How is bare called?", ("kit.bare",))]
    assert mine(cases=cases)["bare"].verdict == "verified"
    dropped = mine(create_mining(bare_golds="drop"), cases)["bare"]
    assert (dropped.verdict, dropped.objections[0].evidence) == ("rejected", "no gold document has a docstring")


def test_difficulty_depends_on_the_rank_of_the_first_gold(mine: Callable[..., dict[str, Query]]) -> None:
    query = mine()["api:loop"]
    difficulties = [replace(query, rank=rank).difficulty for rank in (1, 2, 10, 11, None)]
    assert difficulties == ["easy", "medium", "medium", "hard", "hard"]


def test_concepts_are_common_words_with_gold_rarest_first(mine: Callable[..., dict[str, Query]]) -> None:
    assert mine()["api:parallel"].concepts == ("time", "runs", "agents")


def test_a_model_answers_from_gold_from_others_and_without_documents(mine: Callable[..., dict[str, Query]]) -> None:
    query = mine(create_mining(Scripted(create_model())))["api:loop"]
    assert query.verdict == "verified"
    assert list(query.model_replies) == ["sufficiency", "necessity, random documents", "necessity, no documents"]
    assert json.loads(query.model_replies["sufficiency"])["evidence"] == "x"


@pytest.mark.parametrize(
    ("reply", "verdict", "evidence"),
    [
        (create_model(sufficient=False), "rejected", "the model cannot answer the query from its gold"),
        (create_model(answer="Agent"), "doubtful", "the model's answer from the gold is 'Agent'"),
        (
            create_model(needed=False),
            "rejected",
            "the model can answer the query from random documents: 'It is LoopAgent'",
        ),
        (lambda question, before: "Who knows?", "doubtful", "not checked: unreadable reply: Who knows?"),
        (lambda question, before: ChatError("no connection", "unreachable"), "doubtful", "not checked: no connection"),
    ],
)
def test_the_replies_of_a_model_decide_the_verdict(
    mine: Callable[..., dict[str, Query]], reply: Callable[[str, int], Answer], verdict: str, evidence: str
) -> None:
    query = mine(create_mining(Scripted(reply)))["api:loop"]
    assert query.verdict == verdict
    assert query.objections[0].evidence == evidence


def test_a_wrong_answer_without_gold_is_not_an_objection(mine: Callable[..., dict[str, Query]]) -> None:
    def reply(question: str, before: int) -> Answer:
        return format_reply(answerable=True, answer="LoopAgent" if "nothing else" in question else "Something")

    assert mine(create_mining(Scripted(reply)))["api:loop"].verdict == "verified"


def test_a_model_settles_doubts_of_retrieval(mine: Callable[..., dict[str, Query]]) -> None:
    cases = [Case("foreign", "s", "concurrency", (PARALLEL,))]
    assert mine(cases=cases)["foreign"].verdict == "doubtful"
    assert mine(create_mining(Scripted(create_model())), cases)["foreign"].verdict == "verified"


def test_a_rejected_query_costs_no_call(mine: Callable[..., dict[str, Query]]) -> None:
    llm = Scripted(create_model())
    mine(create_mining(llm), [Case("gone", "s", "Where?", ("kit.Gone",))])
    assert llm.asked == []


def test_a_model_chooses_the_primary_of_several_candidates(
    mine: Callable[..., dict[str, Query]], material: MiningInput
) -> None:
    query = mine(create_mining(Scripted(create_model())))["fix:one"]
    assert [material.targets.all[gold].id for gold in query.golds] == ["kit.agents.Agent", SEQUENTIAL]
    assert query.case.metadata["primary_by"] == "language model"
    query = mine(create_mining(always("Tool, I think.")))["fix:one"]
    assert [material.targets.all[gold].id for gold in query.golds] == [SEQUENTIAL]
    assert query.case.metadata["primary_by"].startswith("specificity, for unreadable reply: Tool")


def test_a_missing_choice_of_the_primary_postpones_the_forward_check(material: MiningInput, tmp_path: Path) -> None:
    """Judged now, with another gold, it would have to be judged and paid for again."""

    def out_of_reach(question: str, before: int) -> Answer:
        return (
            ChatError("no answer in time", "timeout")
            if "mainly about" in question
            else create_model()(question, before)
        )

    journal, first, second = tmp_path / "journal.jsonl", Scripted(out_of_reach), Scripted(create_model())
    queries = mine_cases(create_mining(first), material, MemoryStore(), Journal(journal))
    left = [query for query in queries if query.unfinished]
    assert count_unfinished(queries) == len(left) == sum("mainly about" in question for question in first.asked) > 0
    assert {query.objections[-1] for query in left} == {
        Objection("primary", "doubtful", "not checked: no answer in time")
    }
    others = [question for question in first.asked if "mainly about" not in question]
    assert others
    assert not any(query.case.query in question for query in left for question in others)

    again = mine_cases(create_mining(second), material, MemoryStore(), Journal(journal))
    whole = Scripted(create_model())
    assert again == mine_cases(create_mining(whole), material, MemoryStore(), Journal(tmp_path / "other.jsonl"))
    assert count_unfinished(again) == 0
    assert sorted(others + second.asked) == sorted(whole.asked)


@pytest.mark.parametrize(
    "silence", ["Who knows?", ChatError("it will not say", "refusal"), ChatError("too long", "request")]
)
def test_a_query_with_a_lasting_refusal_is_finished(material: MiningInput, tmp_path: Path, silence: Answer) -> None:
    queries = mine_cases(create_mining(always(silence)), material, MemoryStore(), Journal(tmp_path / "journal.jsonl"))
    assert count_unfinished(queries) == 0
    assert all(query.verdict != "verified" for query in queries)


def test_the_impact_of_documents_is_in_a_file_of_its_own(material: MiningInput, tmp_path: Path) -> None:
    settings = create_mining(Scripted(create_model()), impact=ImpactSettings(subsets=3))
    queries = mine_cases(settings, material, MemoryStore(), Journal(tmp_path / "journal.jsonl"))
    summary = write(tmp_path / "mined.jsonl", queries, select_kept(settings, queries), material.targets)
    ids = {row["id"] for row in read_rows(tmp_path / "mined.jsonl") if "impact" in row["metadata"]}  # type: ignore[operator]  # rows of JSON
    assert ids == {row["query_id"] for row in read_rows(tmp_path / "mined.jsonl.impact.jsonl")} != set()
    assert summary.impact is not None and summary.impact.queries == len(ids)
    assert json.loads((tmp_path / "mined.jsonl.summary.json").read_text())["impact"] == summary.to_json()["impact"]
    assert impact_table(summary).rows
    assert impact_note(summary).startswith(f"impact of documents: {len(ids)} queries")


def test_an_unreadable_reply_is_requested_again(mine: Callable[..., dict[str, Query]]) -> None:
    llm = Scripted(lambda question, before: "Hm." if before < 2 else create_model()(question, before))
    assert mine(create_mining(llm))["api:loop"].verdict == "verified"


def test_mining_resumes_without_paying_for_a_question_twice(material: MiningInput, tmp_path: Path) -> None:
    def run(llm: Scripted, name: str) -> bytes:
        settings = create_mining(llm)
        queries = mine_cases(settings, material, MemoryStore(), Journal(tmp_path / f"{name}.journal.jsonl"))
        write(tmp_path / name, queries, select_kept(settings, queries), material.targets)
        return b"".join((tmp_path / f"{name}{end}").read_bytes() for end in ("", ".rejected.jsonl", ".summary.json"))

    whole = Scripted(create_model())
    expected = run(whole, "whole")
    parts = [Scripted(create_model(), budget=budget) for budget in (1, 3, 1_000)]
    last = [run(part, "parts") for part in parts][-1]
    assert last == expected
    assert sorted(question for part in parts for question in part.asked) == sorted(whole.asked)


def test_the_files_of_mining_have_every_case_once(material: MiningInput, tmp_path: Path) -> None:
    settings = create_mining(random_negatives=1)
    queries = mine_cases(settings, material, MemoryStore(), Journal(tmp_path / "journal.jsonl"))
    path = tmp_path / "mined.jsonl"
    summary = write(path, queries, select_kept(settings, queries), material.targets)
    verified, rejected = read_rows(path), read_rows(path.with_name("mined.jsonl.rejected.jsonl"))
    assert read_rows(path.with_name("mined.jsonl.doubtful.jsonl")) == []
    assert {row["id"] for row in [*verified, *rejected]} == {case.id for case in material.cases}
    saved = json.loads(path.with_name("mined.jsonl.summary.json").read_text())
    assert saved == summary.to_json()
    assert list(saved) == ["suites", "total", "targets"]
    assert saved["suites"]["api"] == {
        "cases": 3,
        "queries_kept": 2,
        "golds": {"exact": 1, "alias": 1, "name": 1, "ambiguous": 1, "unresolved": 2},
        "gold_documents": 2,
        "negatives": {"hard": 8, "random": 2},
        "verdicts": {"verified": 2, "doubtful": 0, "rejected": 1},
        "held_by": {"gold": 1},
        "difficulty": saved["suites"]["api"]["difficulty"],
        "unresolved_names": {"kit.Gone": 1, "other.LoopAgent": 1},
        "ambiguous_names": {"kit.somewhere.Tool": 1},
    }
    assert summary.total.cases == 6
    (first, *_) = verified
    assert list(first) == ["id", "source", "query", "positive_ctxs", "negative_ctxs", "metadata"]
    assert [(c["fqn"], c["rank_relevance"]) for c in first["positive_ctxs"]] == [(PARALLEL, 1)]  # type: ignore[attr-defined]  # rows of JSON
    assert {context["is_hard_negative"] for context in first["negative_ctxs"]} == {True, False}  # type: ignore[attr-defined]  # rows of JSON


def test_the_spans_in_the_file_give_the_same_gold(material: MiningInput, tmp_path: Path) -> None:
    queries = mine_cases(create_mining(), material, MemoryStore(), Journal(tmp_path / "journal.jsonl"))
    path = tmp_path / "mined.jsonl"
    write(path, queries, select_kept(create_mining(), queries), material.targets)
    whole, by_spans = Mined(path=str(path)).load(), Mined(path=str(path), gold="spans").load()
    assert by_spans.judgments.spans is not None
    assert {anchored.anchor.method for anchored in by_spans.judgments.spans.anchored} == {"exact"}
    assert list_grades(by_spans) == {(query, document, grade) for query, document, grade in list_grades(whole) if grade}


def test_only_verified_queries_can_be_selected(mine: Callable[..., dict[str, Query]]) -> None:
    queries = list(mine(cases=[Case("foreign", "s", "concurrency", (PARALLEL,))]).values())
    assert select_kept(create_mining(), queries) == queries
    assert select_kept(create_mining(keep="verified"), queries) == []
