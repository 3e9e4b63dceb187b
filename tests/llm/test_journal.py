from __future__ import annotations

from pathlib import Path

import pytest

from retrievers.llm.chat import Reply
from runner.llm.journal import Journal
from tests.evaluation.chats import always
from tests.fake_llm import FakeLLM
from tests.llm.conftest import CreateLLM


def test_nothing_is_paid_twice_whenever_the_reader_of_answers_stops(create_llm: CreateLLM, tmp_path: Path) -> None:
    """Ctrl-C may come while an answer is made use of, and others are under way: they are kept all the same."""
    questions = [f"question {i}" for i in range(40)]
    with FakeLLM(delay_s=0.02) as fake:
        llm = create_llm(fake, concurrency=4)
        for _ in range(4):
            before = len(fake.asked)
            with pytest.raises(KeyboardInterrupt):
                for _position, _outcome in Journal(tmp_path / "j").ask_all(llm, questions, "p"):
                    if len(fake.asked) >= before + 3:
                        raise KeyboardInterrupt
        assert 0 < len(fake.asked) < len(questions)
        found = dict(Journal(tmp_path / "j").ask_all(llm, questions, "p"))
        assert sorted(found) == list(range(len(questions)))
        assert all(isinstance(outcome, Reply) for outcome in found.values())
        assert len(fake.asked) == len(questions)


def test_each_occurrence_of_a_question_has_its_own_answer(tmp_path: Path) -> None:
    llm = always("yes")
    list(Journal(tmp_path / "j").ask_all(llm, ["a", "a"], "p"))
    again = always("no")
    found = dict(Journal(tmp_path / "j").ask_all(again, ["a", "a", "a"], "p"))
    assert again.asked == ["a"]
    assert [found[place].text for place in range(3)] == ["yes", "yes", "no"]  # type: ignore[union-attr]  # all replied
