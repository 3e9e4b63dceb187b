from __future__ import annotations

from collections.abc import Iterator, Sequence

from runner.llm.rounds import Rounds


def test_a_question_is_repeated_after_all_others_until_retries_run_out() -> None:
    rounds_asked: list[list[str]] = []

    def ask(questions: Sequence[str]) -> Iterator[tuple[int, str]]:
        rounds_asked.append(list(questions))
        yield from reversed([(place, question) for place, question in enumerate(questions)])

    rounds = Rounds(ask, {3: "a", 5: "b", 9: "c"}, retries=2)
    again = [(position, rounds.ask_again(position)) for position, _ in rounds.outcomes() if position != 5]
    assert rounds_asked == [["a", "b", "c"], ["a\n", "c\n"], ["a\n\n", "c\n\n"]]
    assert again == [(9, True), (3, True), (9, True), (3, True), (9, False), (3, False)]


def test_an_addition_takes_the_place_of_the_line_break() -> None:
    rounds = Rounds(lambda questions: list(enumerate(questions)), {0: "a"}, retries=1)
    texts = [text for position, text in rounds.outcomes() if rounds.ask_again(position, " because") or True]
    assert texts == ["a", "a because"]
