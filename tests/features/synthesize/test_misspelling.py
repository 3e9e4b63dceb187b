from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from runner.features.synthesize.misspelling import NEIGHBOURS, make_error, misspell


def test_neighbours_are_mutual_and_as_on_a_keyboard() -> None:
    assert set(NEIGHBOURS["g"]) == set("fhtyvb")
    assert set(NEIGHBOURS["q"]) == set("wa")
    assert all(key in NEIGHBOURS[near] for key in NEIGHBOURS for near in NEIGHBOURS[key])


def _one_slip(word: str, other: str) -> bool:
    if len(other) == len(word) - 1:
        return any(word[:at] + word[at + 1 :] == other for at in range(len(word)))
    differ = [at for at in range(len(word)) if word[at] != other[at]]
    if len(differ) == 1:
        return other[differ[0]].lower() in NEIGHBOURS[word[differ[0]].lower()]
    a, b = differ
    return b == a + 1 and (word[a], word[b]) == (other[b], other[a])


@given(st.from_regex(r"[a-zA-Z]{4,12}", fullmatch=True), st.integers(0, 2**32))
def test_a_typing_error_is_of_a_known_kind_and_not_in_the_first_letter(word: str, seed: int) -> None:
    other = make_error(word, random.Random(seed))
    assert other != word
    assert other[0] == word[0]
    assert _one_slip(word, other)


def test_all_three_kinds_of_typing_errors_occur() -> None:
    lengths = Counter(len(make_error("lighthouse", random.Random(seed))) for seed in range(60))
    swapped = sum(sorted(make_error("lighthouse", random.Random(seed))) == sorted("lighthouse") for seed in range(60))
    assert 5 < lengths[9] < 40
    assert 5 < swapped < 40


@given(st.integers(1, 3), st.integers(0, 1000))
def test_typing_errors_are_in_different_words_and_not_in_short_ones(slips: int, seed: int) -> None:
    query = "lighthouse on the northern pier 2024"
    changed = [a != b for a, b in zip(query.split(), misspell(query, slips, random.Random(seed)).split(), strict=True)]
    assert sum(changed) == slips
    assert not (changed[1] or changed[2] or changed[5])


def test_other_scripts_have_transpositions_and_deletions() -> None:
    assert make_error("причал", random.Random(1)) != "причал"
    assert misspell("a an to", 2, random.Random(0)) == "a an to"
