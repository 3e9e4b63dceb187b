"""Every measure of ir_measures is computed as by itself, or refused before any work with the reason."""

from __future__ import annotations

import re
import sys

import ir_measures
import numpy as np
import pytest

from runner.metrics import delegated
from runner.metrics.errors import MeasureError
from runner.metrics.measures import add_depth, check_grades, parse
from tests.metrics.worlds import World, by_ir_measures, rankings_of

SUBTOPICS = "needs judgments of subtopics"
REFUSED = {
    **dict.fromkeys(("alpha_DCG", "α_DCG", "alpha_nDCG", "α_nDCG", "ERR_IA", "nERR_IA", "NRBP", "nNRBP"), SUBTOPICS),
    **dict.fromkeys(("AP_IA", "MAP_IA", "P_IA", "StRecall"), SUBTOPICS),
}
"""The registered measures that no parameters make computable, with the reason."""

FORMS = {
    "BPM": "BPM(max_rel=3)@5",
    "ERR": "ERR@5",
    "INSQ": "INSQ(max_rel=3)",
    "INST": "INST(max_rel=3)",
    "IPrec": "IPrec@0.2",
    "NERR8": "NERR8(max_rel=3)@5",
    "NERR9": "NERR9(max_rel=3)@5",
    "NERR10": "NERR10(max_rel=3)",
    "NERR11": "NERR11(max_rel=3)",
    "RBP": "RBP(rel=1)",
    "SDCG": "SDCG(max_rel=3)@5",
    **{name: f"{name}@5" for name in ("nDCG", "NDCG", "P", "Precision", "R", "Recall", "Success", "Judged")},
}
"""How the measures are written that need more than their name."""


def random_world(largest: int = 3) -> World:
    """Return 12 queries that find some of 30 documents, with grades from 0 up to `largest`."""
    random = np.random.default_rng(5)
    ids = [f"d{document}" for document in range(30)]
    qrels = {q: {int(d): int(random.integers(0, largest + 1)) for d in random.permutation(30)[:9]} for q in range(12)}
    for grades in qrels.values():
        grades[next(iter(grades))] = largest
    rows = [[(int(d), float(8 - rank)) for rank, d in enumerate(random.permutation(30)[:8])] for _ in qrels]
    return World(qrels, rankings_of(rows, ids, 8), 30, ids)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the parser of ir_measures needs names that Python 3.14 lacks")
@pytest.mark.parametrize("text", [*FORMS.values(), "nDCG(dcg='exp-log2', gains={1: 5})@3", "SetF(beta=2.0)"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_measure_is_parsed_as_ir_measures_does(text: str) -> None:
    assert delegated.parse_delegated(text) == ir_measures.parse_measure(text)


@pytest.mark.parametrize("text", ["P(5)", "P(rel=x)@5", "P@", "1 + 1", "P@5; P@6", "P(**{'rel': 2})"])
def test_a_text_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(MeasureError, match=r"the measure .* is not valid: write it as Measure\(name=value\)@cutoff"):
        parse(text)


@pytest.mark.parametrize("name", ir_measures.measures.registry)
def test_a_registered_measure_is_computed_or_refused_with_the_reason(name: str) -> None:
    if name in REFUSED:
        with pytest.raises(MeasureError, match=REFUSED[name]):
            parse(f"{name}@5" if "cutoff" in ir_measures.measures.registry[name].SUPPORTED_PARAMS else name)
        return
    world, measure = random_world(), parse(FORMS.get(name, name))
    ours = world.grader.score(world.rankings, [measure]).values
    np.testing.assert_allclose(ours, by_ir_measures(world, [measure]), rtol=0, atol=1e-9)
    assert np.isfinite(ours).all()


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("RBP", "it needs rel; write for example RBP(rel=1)"),
        ("RBP(rel=1)@10", "it does not support the parameter cutoff"),
        ("RBP(rel=1,p=1)", "p=1 should be a float"),
        ("BPM", "it needs cutoff and max_rel; write for example BPM(max_rel=1)@10"),
        ("INST", "it needs max_rel; write for example INST(max_rel=1)"),
        ("INST(max_rel=0)", "it fails with these parameters (AssertionError: min_rel must be less than max_rel)"),
        ("P(rel=2)", "it needs cutoff; write for example P(rel=2)@10"),
        ("ERR", "it needs cutoff; write for example ERR@10"),
        ("nDCG(dcg='exp-log2')", "it needs cutoff; write for example nDCG(dcg='exp-log2')@10"),
        ("NumRel(rel=2)", "rel=2 is not supported"),
        ("infAP@5", "it does not support the parameter cutoff"),
    ],
)
def test_a_form_that_cannot_be_computed_says_what_to_write(written: str, reason: str) -> None:
    with pytest.raises(MeasureError) as caught:
        parse(written)
    assert f"the measure {written!r} cannot be computed: {reason}" in str(caught.value)
    assert "\n" not in str(caught.value)
    if suggested := re.search(r"write (.+), for example", str(caught.value)):
        parse(suggested[1])


def test_a_measure_of_a_missing_package_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    delegated.describe_obstacle.cache_clear()
    monkeypatch.setattr(ir_measures.cwl_eval, "_is_available", False)
    with pytest.raises(MeasureError, match=r"it needs cwl_eval \(pip install ir-measures\[cwl_eval\]\)$"):
        parse("RBP(rel=1)")
    delegated.describe_obstacle.cache_clear()


def test_the_depth_is_a_cutoff_only_where_the_measure_takes_one() -> None:
    assert str(add_depth(parse("RBP(rel=1)"), 100)) == "RBP(rel=1)"
    assert str(add_depth(parse("Accuracy"), 100)) == "Accuracy@100"


@pytest.mark.parametrize("written", ["nDCG(dcg='exp-log2')@5", "BPM(max_rel=4)@5"])
def test_larger_grades_are_refused_with_a_form_that_takes_them(written: str) -> None:
    """The form that the message suggests has the same values where both can be computed."""
    check_grades([parse(written)], 4)
    with pytest.raises(MeasureError, match="supports grades up to 4, but the judgments go up to 5") as caught:
        check_grades([parse(written)], 5)
    suggested = parse(str(caught.value).rpartition("or use ")[2])
    check_grades([suggested], 5)
    larger = random_world(5)
    assert np.isfinite(larger.grader.score(larger.rankings, [suggested]).values).all()
    if "dcg" in written:
        world = random_world(4)
        values = world.grader.score(world.rankings, [parse(written), suggested]).values
        np.testing.assert_allclose(values[0], values[1], atol=1e-5)  # gdeval prints five digits


DEGENERATE = {
    "a query without hits beside another": ({0: {0: 1, 1: 0}, 1: {0: 1, 1: 0}}, [[], [0, 1]]),
    "no relevant hit": ({0: {0: 1, 1: 0}}, [[1, 2, 3]]),
    "only relevant hits": ({0: {0: 1, 1: 2, 2: 0}}, [[0, 1]]),
    "everything judged is relevant": ({0: {0: 3, 1: 3}}, [[0, 1]]),
    "one relevant hit": ({0: {0: 1, 1: 0}}, [[0]]),
    "one irrelevant hit": ({0: {0: 1, 1: 0}}, [[1]]),
    "one unjudged hit": ({0: {0: 1, 1: 0}}, [[5]]),
    "negative grades": ({0: {0: 1, 1: -2, 2: -1}}, [[1, 0, 2]]),
    "a negative hit alone": ({0: {0: 1, 1: -2, 2: -1}}, [[1]]),
    "a query without gold": ({0: {1: 0}, 1: {0: 1}}, [[1], [0]]),
}
DELEGATED = [
    name for name in ir_measures.measures.registry if name not in REFUSED and not parse(FORMS.get(name, name)).built_in
]
COUNTS = ("NumQ", "NumRel", "NumRelRet", "NumRet")
"""The measures that are counts, not shares."""


@pytest.mark.parametrize("world", DEGENERATE)
@pytest.mark.parametrize("name", DELEGATED)
def test_a_measure_has_a_value_for_a_degenerate_query(name: str, world: str) -> None:
    qrels, rows = DEGENERATE[world]
    ids = [f"d{document}" for document in range(6)]
    ranked = rankings_of([[(d, float(9 - rank)) for rank, d in enumerate(row)] for row in rows], ids, 3)
    degenerate = World(qrels, ranked, 6, ids)
    scores = degenerate.grader.score(ranked, [parse(FORMS.get(name, name))])
    values = scores.values[0, scores.counted]
    assert np.isfinite(values).all()
    assert (values >= 0).all()
    assert name in COUNTS or (values <= 1 + 1e-6).all()


def test_accuracy_is_1_where_every_hit_is_relevant() -> None:
    qrels = {0: {0: 1, 1: 2, 2: 0}, 1: {0: 1, 1: 2, 2: 0}, 2: {0: 1, 1: 2, 2: 0}, 3: {0: 1}}
    rows = [[0, 1], [0, 2, 1], [0, 1, 2], [4]]
    ids = [f"d{document}" for document in range(5)]
    ranked = rankings_of([[(d, float(9 - rank)) for rank, d in enumerate(row)] for row in rows], ids, 3)
    measures = [parse(text) for text in ("Accuracy", "Accuracy@2", "Accuracy(rel=2)")]
    values = World(qrels, ranked, 5, ids).grader.score(ranked, measures).values
    assert values.tolist() == [[1, 0.5, 1, 0], [1, 1, 1, 0], [0, 0, 0.5, 0]]
