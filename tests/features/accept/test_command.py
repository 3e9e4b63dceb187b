"""A configuration is searched until a gate is decided, and no further; paid calls stop with it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from runner.__main__ import main
from runner.testing.features import check_document
from tests.fake_llm import FakeLLM

QUERIES, BLOCK = 60, 5


def answer(path: str, body: Any) -> dict[str, Any]:
    """Order two passages: the model `good` puts the gold first, `mixed` for every third query, all others last."""
    question = body["messages"][-1]["content"]
    gold_first = question.index("gold") < question.index("other")
    number = int(re.findall(r"word(\d+)", question)[0])
    is_right = body["model"] == "good" or (body["model"] == "mixed" and number % 3 > 0)
    text = "[1] > [2]" if gold_first == is_right else "[2] > [1]"
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return {"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}


@pytest.fixture
def fake(tracking: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLM]:
    """Return a language model, in a folder with a dataset in which each query has two candidates, one of them gold."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    documents = [{"id": f"d{i}{kind}", "text": f"word{i} {kind}"} for i in range(QUERIES) for kind in ("gold", "other")]
    queries = [{"id": f"q{i}", "text": f"word{i}", "gold": f"d{i}gold"} for i in range(QUERIES)]
    for name, rows in (("documents", documents), ("queries", queries)):
        Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with FakeLLM(respond=answer) as service:
        yield service


def settings(fake: FakeLLM, model: str, *more: str) -> list[str]:
    return [
        "retriever=reranked", "reranker=llm", "retriever.depth=2", "llm=openai", f"llm.base_url={fake.url}",
        f"llm.model={model}", "metrics.primary=RR", "dataset=jsonl", "dataset.documents=documents.jsonl",
        "dataset.queries=queries.jsonl", "tracking.background=false", *more,
    ]  # fmt: skip


def evaluate(fake: FakeLLM, model: str) -> None:
    assert main(settings(fake, model, "grading=none")) == 0


def accept(fake: FakeLLM, model: str, *more: str) -> list[str]:
    return ["accept", "baseline=latest", f"accept.block={BLOCK}", *settings(fake, model, *more)]


def count_calls(fake: FakeLLM, model: str) -> int:
    return sum(request.model == model for request in fake.asked)


def test_a_loss_is_shown_after_a_few_blocks_and_the_rest_is_not_paid_for(
    fake: FakeLLM, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate(fake, "good")
    capsys.readouterr()
    fake.delay_s = 0.1  # the store does not keep what takes a moment
    assert main(accept(fake, "bad", "junit=gate.xml", "--json")) == 1
    document = json.loads(capsys.readouterr().out)
    searched, (rule,) = document["searched"], document["gate"]["rules"]
    # Every query loses 0.5: log(40 * 3) / log(1 + 0.99 * 0.5) is 12, and the other bets own the rest of the capital.
    assert searched == count_calls(fake, "bad") == len(document["queries"]) == 15
    assert (document["sequential"], document["blocks"], document["of"]) == (True, 3, QUERIES)
    assert document["saved"] == {"searches": 45, "calls": 45}
    assert (document["gate"]["verdict"], rule["measure"], rule["limit"]) == ("fail", "RR", 0.01)
    assert (rule["before"], rule["after"]) == (1.0, 0.5)
    assert rule["low"] < -0.5 < rule["high"] < 0
    (case,) = ElementTree.parse("gate.xml").getroot()[0]
    assert case.find("failure") is not None
    assert set(document["queries"]) != {f"q{i}" for i in range(15)}  # in random order

    assert main(accept(fake, "bad")) == 1  # from the store
    assert count_calls(fake, "bad") == 15
    out = " ".join(capsys.readouterr().out.split())
    assert "gate failed: 1 of 1 rules violated" in out
    assert (
        "Sequential: 15 of 60 queries with gold were searched, in 3 blocks of up to 5, in random order (seed 0)." in out
    )
    assert "This saved 45 searches (75.0%), and up to 45 calls of language models." in out


def test_a_gain_passes_early_and_an_equal_system_by_what_is_asked(
    fake: FakeLLM, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate(fake, "bad")
    assert main(accept(fake, "good", "gate.proof=noninferior")) == 0
    assert count_calls(fake, "good") == 15
    assert main(accept(fake, "worse", "gate.proof=noninferior")) == 4  # equal to the baseline on every query
    assert count_calls(fake, "worse") == QUERIES
    out = " ".join(capsys.readouterr().out.split())
    assert "Sequential: 60 of 60 queries with gold were searched, in 12 blocks of up to 5" in out
    assert "None were saved." in out
    assert main(accept(fake, "worse", "gate.proof=noninferior", "gate.undecided=warn")) == 0
    assert "warning: gate undecided" in capsys.readouterr().err
    check_document("accept", *accept(fake, "worse")[1:])  # within the limit on these queries
    assert main(accept(fake, "worse", "gate.proof=noninferior", "gate.drops.primary=0.2")) == 0


def test_a_drop_beyond_the_limit_on_these_queries_is_not_passed(fake: FakeLLM) -> None:
    evaluate(fake, "good")
    assert main(accept(fake, "mixed")) == 1  # a third of the queries loses 0.5
    assert main(accept(fake, "mixed", "gate.drops.primary=0.17")) == 0


REJECTED = [
    (["gate=default"], "gate.drops_by_type: accept decides only drops over all queries"),
    (["+gate.floors={mrr: 0.5}"], "gate.floors: accept decides only drops over all queries"),
    (["gate.alpha=null"], "gate.alpha: accept needs it; set for example gate.alpha=0.05"),
    (["~gate.drops.primary"], "gate.drops: accept needs it"),
    (["gate.drops.primary=2"], "gate.drops.RR=2: should be from 0 to 1"),
    (["+gate.drops.tn_rate=0.1"], "gate.drops.tn_rate: accept needs a measure of rankings"),
    (["accept.block=0"], "accept.block"),
    (["metrics.depth=110"], "RR depends on the depth of the rankings"),
    (["dataset.documents=more.jsonl"], "was measured on other data"),
    (["-m"], "accept cannot run a sweep"),
    (["experiment=tour"], "accept decides on one configuration"),
]


def test_what_cannot_be_decided_in_blocks_is_rejected(fake: FakeLLM, capsys: pytest.CaptureFixture[str]) -> None:
    Path("more.jsonl").write_text(Path("documents.jsonl").read_text() + '\n{"id": "new", "text": "new"}\n')
    words = ["retriever=bm25", "metrics.primary=RR", "dataset=jsonl", "dataset.documents=documents.jsonl"]
    words += ["dataset.queries=queries.jsonl", "tracking.background=false"]
    assert main(words) == 0
    for arguments, message in REJECTED:
        assert main(["accept", "baseline=latest", *words, *arguments]) == 2
        assert message in " ".join(capsys.readouterr().err.split())


def test_a_failed_search_decides_nothing(fake: FakeLLM, capsys: pytest.CaptureFixture[str]) -> None:
    evaluate(fake, "good")
    fake.respond = lambda path, body: {"choices": []}
    assert main(accept(fake, "bad")) == 2
    assert "so nothing is decided; run the same command to resume" in capsys.readouterr().err
