"""A measure is a value, named as ir_measures names it."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.metrics.delegated import parse_delegated
from runner.metrics.errors import MeasureError
from runner.metrics.formulas import FORMULAS
from runner.metrics.measures import Measure, check_grades, expand, parse


@pytest.mark.parametrize(
    "name",
    [
        "nDCG@10",
        "P@5",
        "R@100",
        "RR",
        "RR@10",
        "AP",
        "AP@100",
        "Success@1",
        "F1@5",
        "Judged@10",
        "Rprec",
        "Bpref",
        "TokenR@5",
        "TokenIoU@tokens=1024",
    ],
)
def test_a_name_parses_prints_and_hashes_as_itself(name: str) -> None:
    assert str(parse(name)) == name
    assert parse(name).built_in
    assert {parse(name)} == {parse(name)}
    assert pickle.loads(pickle.dumps(parse(name))) == parse(name)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("MRR", "RR"),
        ("MRR@10", "RR@10"),
        ("MAP", "AP"),
        ("map@100", "AP@100"),
        ("ndcg@10", "nDCG@10"),
        (" NDCG@10 ", "nDCG@10"),
        ("Recall@5", "R@5"),
        ("Precision@5", "P@5"),
        ("RPrec", "Rprec"),
        ("BPref", "Bpref"),
        ("nDCG@010", "nDCG@10"),
        ("nDCG(dcg='log2')@10", "nDCG@10"),
        ("P(rel=1)@5", "P@5"),
    ],
)
def test_another_way_to_write_a_measure_is_the_same_measure(written: str, canonical: str) -> None:
    assert parse(written) == parse(canonical)
    assert str(parse(written)) == canonical


@pytest.mark.parametrize(
    ("written", "cutoff"),
    [
        ("ERR@10", 10),
        ("nDCG(dcg='exp-log2')@10", 10),
        ("P(rel=2)@5", 5),
        ("nDCG(gains={1:5})@3", 3),
        ("SetF(beta=2.0)", None),
        ("IPrec@0.1", None),
        ("infAP", None),
    ],
)
def test_what_is_not_built_in_is_a_measure_of_ir_measures(written: str, cutoff: int | None) -> None:
    measure = parse(written)
    assert not measure.built_in
    assert measure.cutoff == cutoff
    assert str(measure) == written == str(parse_delegated(written))
    assert parse(str(measure)) == measure


@given(st.sampled_from(sorted(FORMULAS)), st.integers(1, 10**6))
def test_every_cutoff_survives_printing_and_parsing(name: str, cutoff: int) -> None:
    assert parse(str(Measure(name, cutoff))) == Measure(name, cutoff)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("nDGC@10", "unknown measure 'nDGC@10'; did you mean nDCG@10?"),
        ("Succes@1", "unknown measure 'Succes@1'; did you mean Success@1?"),
        ("judge@5", "unknown measure 'judge@5'; did you mean Judged@5?"),
        ("xyzzy", "unknown measure 'xyzzy'; choose from AP, Bpref, F1, .* or the measures of ir_measures"),
        ("P", "the measure 'P' needs a cutoff; write for example P@10"),
        ("nDCG@0", "the measure 'nDCG@0' has the cutoff 0; a cutoff must be at least 1"),
        ("ERR@0", "the measure 'ERR@0' has the cutoff 0"),
        ("nDCG@", "the measure 'nDCG@' is not valid"),
        (
            "nDCG(depth=3)@10",
            r"the measure 'nDCG\(depth=3\)@10' cannot be computed: it does not support the parameter depth",
        ),
        ("", "the measure '' is not valid"),
        ("alpha_nDCG@5", "the measure 'alpha_nDCG@5' cannot be computed: it needs judgments of subtopics"),
    ],
)
def test_an_invalid_measure_is_refused_in_one_line(written: str, message: str) -> None:
    with pytest.raises(MeasureError, match=message) as caught:
        parse(written)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_names_without_a_cutoff_get_every_k_in_their_order() -> None:
    names = ["P", "RR", "nDCG@7", "MAP", "Bpref", "p@1", "ERR@5"]
    assert [str(measure) for measure in expand(names, [1, 5])] == [
        *("P@1", "P@5", "RR", "RR@1", "RR@5", "nDCG@7", "AP", "AP@1", "AP@5", "Bpref", "ERR@5"),
    ]


@given(st.lists(st.sampled_from(sorted(FORMULAS))), st.lists(st.integers(1, 20)))
def test_no_measure_is_expanded_twice(names: list[str], k_values: list[int]) -> None:
    expanded = expand(names, k_values)
    assert len(expanded) == len(set(expanded))
    assert expand(map(str, expanded), []) == expanded


def test_ir_measures_is_only_loaded_for_its_own_measures() -> None:
    code = (
        "import sys; from runner.metrics.scores import parse; parse('nDCG@10'); sys.exit('ir_measures' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_err_is_refused_for_grades_above_four() -> None:
    check_grades([parse("ERR@10"), parse("nDCG@10")], 4)
    check_grades([parse("nDCG@10")], 5)
    with pytest.raises(MeasureError, match=r"ERR@10 supports grades up to 4, but the judgments go up to 5; remove it"):
        check_grades([parse("ERR@10")], 5)
