"""Every fusion method and normalization, against its formula."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.choices import list_choices
from retrievers.composed.fusion import Hybrid
from retrievers.composed.fusion_methods import FUSIONS, Method, Normalization
from tests.retrievers.given_parts import EACH_METHOD, IDS, METHODS, Row, by_id, fuse, given_rows
from tests.strategies.hybrids import PART_ROWS, PART_WEIGHTS

NORMALIZATIONS: tuple[Normalization, ...] = tuple(list_choices(Normalization))


def best_first(row: Row) -> list[int]:
    return sorted(row, key=lambda document: (row[document], IDS[document]), reverse=True)


def normalized(row: Row, normalization: str) -> tuple[Row, float]:
    """Return the values of what was found, and of what was not."""
    if not row:
        return {}, 0.0
    low, high = min(row.values()), max(row.values())
    if normalization == "minmax":
        return {d: (s - low) / (high - low) if high > low else 1.0 for d, s in row.items()}, 0.0
    if normalization == "zscore":
        mean, spread = statistics.fmean(row.values()), statistics.pstdev(row.values())
        values = {d: (s - mean) / spread if spread else 0.0 for d, s in row.items()}
        return values, min(values.values()) if high > low else -1.0
    if normalization == "max":
        if low == high <= 0:
            return dict.fromkeys(row, 1.0), 0.0
        values = {d: s / max(abs(low), abs(high)) for d, s in row.items()}
        return values, min(0.0, *values.values())
    if normalization == "rank":
        return {d: 1 - place / len(row) for place, d in enumerate(best_first(row))}, 0.0
    return row, 0.0


def fuse_rows(method: str, rows: Sequence[Row], weights: Sequence[float], normalization: str, rrf_k: float) -> Row:
    """Return the score of each document by the formula in the paper of a method."""
    parts = [(row, weight) for row, weight in zip(rows, weights, strict=True) if weight]
    candidates = {d for row, _ in parts for d in row}
    ranks = [{d: place for place, d in enumerate(best_first(row), start=1)} for row, _ in parts]
    total: Row = {}
    for d in candidates:
        hits = [(rank[d], weight) for rank, (row, weight) in zip(ranks, parts, strict=True) if d in row]
        n = len(hits)
        if method in ("combmax", "combmin"):
            values = [weight * normalized(row, normalization)[0][d] for row, weight in parts if d in row]
            total[d] = max(values) if method == "combmax" else min(values)
        elif method in ("weighted", "combmnz", "combanz"):
            values = [(weight, *normalized(row, normalization)) for row, weight in parts]
            sum_of_values = sum(weight * present.get(d, missing) for weight, present, missing in values)
            total[d] = sum_of_values * {"weighted": 1, "combmnz": n, "combanz": 1 / n}[method]
        elif method == "dbsf":
            total[d] = sum(weight * spread(row)[d] for row, weight in parts if d in row)
        elif method == "borda":
            points = [
                weight * (len(candidates) - rank[d] + 1 if d in row else (len(candidates) - len(row) + 1) / 2)
                for rank, (row, weight) in zip(ranks, parts, strict=True)
            ]
            total[d] = sum(points)
        elif method == "rrf":
            total[d] = sum(weight * (1 / (rrf_k + rank)) for rank, weight in hits)
        else:
            total[d] = sum(weight * (1 / rank**2) for rank, weight in hits) * (n if method == "isr" else math.log(n))
    return total


def spread(row: Row) -> Row:
    """Return the place of each score between three standard deviations of the sample below and above the mean."""
    deviation = statistics.stdev(row.values()) if len(row) > 1 else 0.0
    if not deviation:
        return dict.fromkeys(row, 0.5)
    low = statistics.fmean(row.values()) - 3 * deviation
    return {d: (score - low) / (6 * deviation) for d, score in row.items()}


SCORED = ("weighted", "combmnz", "combanz", "combmax", "combmin")
CASES = [*product(SCORED, NORMALIZATIONS), *((method, "minmax") for method in METHODS if method not in SCORED)]


@EACH_METHOD
@given(data=st.data(), weights=PART_WEIGHTS, n=st.integers(0, 4), k=st.integers(1, 9))
@pytest.mark.parametrize(("method", "normalization"), CASES)
def test_every_method_is_what_dictionaries_say(
    method: Method, normalization: Normalization, data: st.DataObject, weights: list[float], n: int, k: int
) -> None:
    rows = [[data.draw(PART_ROWS) for _ in range(n)] for _ in weights]
    parts = {f"part {i}": given_rows(*part) for i, part in enumerate(rows)}
    hybrid = Hybrid(parts, method=method, normalization=normalization, weights=weights, rrf_k=10, depth=len(IDS))
    rankings = fuse(hybrid, n, k)
    assert rankings.documents.shape == rankings.scores.shape
    assert len(rankings) == n
    assert rankings.documents.dtype == np.int32
    assert rankings.scores.dtype == np.float32
    for query in range(n):
        total = fuse_rows(method, [part[query] for part in rows], weights, normalization, 10)
        expected = sorted(((float(np.float32(s)), IDS[d]) for d, s in total.items()), reverse=True)[:k]
        found = [(score, name) for name, score in by_id(rankings, query).items()]
        if normalization == "zscore" or method in ("dbsf", "log_isr"):  # means and logarithms differ in the last bit
            assert [score for score, _ in found] == pytest.approx([score for score, _ in expected], abs=1e-5)
            assert [score for score, _ in found] == pytest.approx([total[IDS.index(i)] for _, i in found], abs=1e-5)
        else:
            assert found == expected


@EACH_METHOD
@given(rows=st.lists(PART_ROWS, min_size=2, max_size=4), data=st.data())
@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_the_parts_does_not_matter(method: Method, rows: list[Row], data: st.DataObject) -> None:
    parts = {f"part {i}": given_rows(row) for i, row in enumerate(rows)}
    names = data.draw(st.permutations(list(parts)))
    weights = {name: data.draw(st.sampled_from([0.5, 1.0, 2.0])) for name in parts}
    one = by_id(fuse(Hybrid(parts, method=method, weights=weights)))
    other = by_id(fuse(Hybrid({name: parts[name] for name in names}, method=method, weights=weights)))
    assert one == pytest.approx(other, abs=1e-5)


def test_the_documented_table_of_methods_is_that_of_the_program() -> None:
    page = (Path(__file__).parents[3] / "docs" / "fusion.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \| (scores|ranks) \| (.+?) \|$", page, re.MULTILINE)
    assert rows == [(name, fusion.formula, fusion.reads, fusion.reference) for name, fusion in FUSIONS.items()]
    assert list(FUSIONS) == list(METHODS)


def test_scores_of_a_small_example() -> None:
    """Both parts find b; d, f and e are found by one of them."""
    first, second = given_rows({1: 8.0, 2: 6.0, 0: 4.0}), given_rows({1: 1.0, 5: 3.0})
    expected: dict[str, dict[str, float]] = {
        "minmax": {"b": 1, "f": 0.5, "d": 0, "e": 1},
        "zscore": {"b": 1.5**0.5 - 1, "f": 0 - 1, "d": -(1.5**0.5) - 1, "e": -(1.5**0.5) + 1},
        "max": {"b": 1 + 1 / 3, "f": 0.75, "d": 0.5, "e": 1},
        "rank": {"b": 1 + 0.5, "f": 2 / 3, "d": 1 / 3, "e": 1},
        "none": {"b": 9, "f": 6, "d": 4, "e": 3},
    }
    for normalization, scores in expected.items():
        hybrid = Hybrid({"first": first, "second": second}, normalization=normalization)  # type: ignore[arg-type]  # one of its names
        assert by_id(fuse(hybrid)) == pytest.approx(scores, abs=1e-6)
    by_method: dict[Method, dict[str, float]] = {
        "combmnz": {"b": 2, "f": 0.5, "d": 0, "e": 1},
        "combanz": {"b": 0.5, "f": 0.5, "d": 0, "e": 1},
        "combmax": {"b": 1, "f": 0.5, "d": 0, "e": 1},
        "combmin": {"b": 0, "f": 0.5, "d": 0, "e": 1},
        "dbsf": {"b": 2 / 3 + 0.5 - 1 / 72**0.5, "f": 1 / 2, "d": 1 / 3, "e": 0.5 + 1 / 72**0.5},
        "rrf": {"b": 1 / 61 + 1 / 62, "e": 1 / 61, "f": 1 / 62, "d": 1 / 63},
        "isr": {"b": 2 * (1 + 1 / 4), "f": 1 / 4, "d": 1 / 9, "e": 1},
        "log_isr": {"b": math.log(2) * (1 + 1 / 4), "f": 0, "d": 0, "e": 0},
        "borda": {"b": 4 + 3, "f": 3 + 1.5, "d": 2 + 1.5, "e": 1 + 4},
    }
    for method, scores in by_method.items():
        assert by_id(fuse(Hybrid({"first": first, "second": second}, method=method))) == pytest.approx(scores)


def test_negative_scores_keep_their_order() -> None:
    parts = {"logits": given_rows({0: -1.0, 1: -2.0, 2: -4.0}), "other": given_rows({})}
    for normalization in NORMALIZATIONS:
        found = fuse(Hybrid(parts, normalization=normalization)).documents[0]
        assert found[:3].tolist() == [0, 1, 2]


@pytest.mark.parametrize("row", [{1: 12.5}, {1: 0.7, 2: 0.7, 3: 0.7}])
def test_zscore_places_equal_hits_of_a_part_above_documents_it_lacks(row: Row) -> None:
    semantic = given_rows({0: 0.9, 1: 0.8, 4: 0.1})
    found = by_id(fuse(Hybrid({"lexical": given_rows(row), "semantic": semantic}, normalization="zscore")))
    assert next(iter(found)) == IDS[1]
    expected = {0: 0.3 / 0.38**0.5 * 3**0.5 - 1, 1: 0.2 / 0.38**0.5 * 3**0.5, 4: -0.5 / 0.38**0.5 * 3**0.5 - 1}
    assert {name: found[name] for name in map(IDS.__getitem__, expected)} == pytest.approx(
        {IDS[document]: score for document, score in expected.items()}, abs=1e-6
    )


@pytest.mark.parametrize("row", [{1: 0.0}, {1: 0.0, 2: 0.0}, {1: -3.0}, {1: -2.0, 2: -2.0}])
def test_max_places_equal_hits_of_a_part_above_documents_it_lacks(row: Row) -> None:
    semantic = given_rows({0: 0.8, 1: 0.4, 4: 0.1})
    found = by_id(fuse(Hybrid({"lexical": given_rows(row), "semantic": semantic}, normalization="max")))
    assert next(iter(found)) == IDS[1]
    expected = {IDS[0]: 1.0, IDS[1]: 1.5, IDS[4]: 0.125}
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-6)


def test_max_places_no_document_that_a_part_lacks_above_its_hits() -> None:
    parts = {"logits": given_rows({0: -1.0, 1: -4.0}), "other": given_rows({0: 2.0, 1: 2.0, 3: 2.0})}
    found = by_id(fuse(Hybrid(parts, normalization="max")))
    assert found == {IDS[0]: 0.75, IDS[1]: 0.0, IDS[3]: 0.0}


def test_dbsf_gives_equal_hits_half_of_the_weight() -> None:
    parts = {"equal": given_rows({0: 0.7, 1: 0.7, 2: 0.7}), "other": given_rows({})}
    assert list(by_id(fuse(Hybrid(parts, method="dbsf", weights=[3.0, 1.0]))).values()) == [1.5, 1.5, 1.5]


def test_zeros_are_equal_whatever_their_sign() -> None:
    parts = {"one": given_rows({0: -0.0, 1: 0.0}), "other": given_rows({})}
    assert list(by_id(fuse(Hybrid(parts, normalization="none")))) == ["d", "b"]


def test_many_queries_are_fused_as_one_is() -> None:
    rows: list[Row] = [{0: 3.0, 1: 2.0, 2: 1.0}, {3: 3.0, 1: 1.0}] * 300
    hybrid = Hybrid({"one": given_rows(*rows), "other": given_rows(*rows[1:], rows[0])}, depth=7)
    many, few = fuse(hybrid, 600, 5), fuse(hybrid, 2, 5)
    assert few.documents.tolist()[0][:2] == [0, 3]
    assert (many.documents.reshape(300, 2, -1) == few.documents).all()
    assert (many.scores.reshape(300, 2, -1) == few.scores).all()


def test_a_fusion_takes_memory_for_its_hits_not_for_its_depth() -> None:
    hybrid = Hybrid({"one": given_rows({0: 2.0, 1: 1.0}, {}), "other": given_rows({3: 1.0, 1: 1.0}, {2: 1.0})}, depth=9)
    rankings = fuse(hybrid, 2, 10**12)
    assert rankings.documents.shape == rankings.scores.shape == (2, 3)
    assert [sorted(by_id(rankings, query)) for query in range(2)] == [sorted(IDS[d] for d in (0, 1, 3)), [IDS[2]]]
