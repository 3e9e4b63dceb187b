"""The built-in measures: formula, reference, cutoff and name in MLflow.

A measure gives each query a value from 0 to 1, and a system is judged by the mean over queries: leaderboards, selection
and comparisons rank by the highest mean. A figure without a value per query, such as a median of ranks over all
queries, or one for which lower is better is not a measure here: use the reciprocal, or one minus the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from runner.metrics.graded import Floats, Graded
from runner.metrics.tokens import TokenCut

MISSED_CUTOFF = 10
"""The number of first hits among which a query that is not missed has gold, by default."""

Cutoff = Literal["required", "optional", "depth"]
"""Whether a measure is written with a cutoff; for `depth`, the cutoff only says how deep the ranking was."""


@dataclass(frozen=True)
class Formula:
    """A measure computed here.

    `formula` and `reference` are Markdown for the documentation, `mlflow` is its name in MLflow without the cutoff, and
    `aliases` are other names, in lower case. A `whole_ranking` measure is meant for the whole ranking; its cutoff, if
    any, is the depth of the search. A higher value is better, unless `is_merit` is false: the share of judged documents
    describes the judgments, and systems cannot be ranked by it. A measure that `needs_spans` counts the words of gold
    spans, and its cutoff may be a number of words. `not_in_reports` says why golden reports lack a measure, "" if they
    have it. `compute` takes the judged documents found, the number of gold documents per query, and the cutoff; it
    returns a value from 0 to 1 for each query, NaN if it has none.
    """

    name: str
    title: str
    formula: str
    reference: str
    mlflow: str
    cutoff: Cutoff
    compute: Callable[[Graded, NDArray[np.int64], int], Floats]
    aliases: tuple[str, ...] = ()
    whole_ranking: bool = False
    is_merit: bool = True
    needs_spans: bool = False
    not_in_reports: str = ""


def find_formula(measure: str) -> Formula | None:
    """Return the formula of a measure, given its name with or without a cutoff; None if it is not computed here."""
    return FORMULAS.get(measure.partition("@")[0])


def is_of_whole_ranking(measure: str) -> bool:
    """Return whether a measure is meant for the whole ranking, given its name with or without a cutoff."""
    formula = find_formula(measure)
    return formula is not None and formula.whole_ranking


def is_merit(measure: str) -> bool:
    """Return whether a higher value is better, given a measure with or without a cutoff; true for ir_measures."""
    formula = find_formula(measure)
    return formula is None or formula.is_merit


def find_missed_cutoff(primary: str) -> int:
    """Return the number of first hits among which a query that is not missed has gold, given the primary measure.

    This is the cutoff of the measure. It is `MISSED_CUTOFF` for a measure that has none, is meant for the whole ranking
    or counts words, and for a cutoff of 1, at which gold at rank 2 would be missed.
    """
    name, _, cutoff = primary.rpartition("@")
    by_rank = cutoff.isdecimal() and int(cutoff) > 1 and not is_of_whole_ranking(name)
    return int(cutoff) if by_rank else MISSED_CUTOFF


def _divide(parts: Floats | NDArray[np.int64], wholes: Floats | NDArray[np.int64]) -> Floats:
    """Return parts / wholes, 0 where the whole is 0."""
    return np.divide(parts, wholes, out=np.zeros(len(parts)), where=wholes > 0)


_TOKENS = "Smith and Troynikov 2024, *Evaluating Chunking Strategies for Retrieval*, Chroma Technical Report"


def _divide_cut(cut: TokenCut, by: Callable[[TokenCut], NDArray[np.int64]]) -> Floats:
    """Return the gold words covered divided by another number of words, 0 where that is 0."""
    return _divide(cut.covered, by(cut))


def _index(formulas: Iterable[Formula]) -> dict[str, Formula]:
    return {formula.name: formula for formula in formulas}


FORMULAS = _index(
    (
        Formula(
            name="nDCG",
            title="Normalised discounted cumulative gain",
            formula="DCG / largest possible DCG, where DCG is the sum of grade / log2(rank + 1) over the first k",
            reference="Järvelin and Kekäläinen 2002, doi:10.1145/582415.582418",
            mlflow="ndcg",
            cutoff="required",
            compute=lambda graded, golds, k: _divide(graded.dcg(k), graded.grader.ideal_dcg(k)),
        ),
        Formula(
            name="P",
            title="Precision",
            formula="(number of gold documents among the first k) / k",
            reference="van Rijsbergen 1979, *Information Retrieval*",
            mlflow="precision",
            cutoff="required",
            compute=lambda graded, golds, k: graded.gold.count(k) / k,
            aliases=("precision",),
        ),
        Formula(
            name="R",
            title="Recall",
            formula="(number of gold documents among the first k) / (number of gold documents)",
            reference="van Rijsbergen 1979, *Information Retrieval*",
            mlflow="recall",
            cutoff="required",
            compute=lambda graded, golds, k: _divide(graded.gold.count(k), golds),
            aliases=("recall",),
        ),
        Formula(
            name="RR",
            title="Reciprocal rank",
            formula="1 / (rank of the first gold document), or 0 if there is none (among the first k)",
            reference="Voorhees 1999, *The TREC-8 Question Answering Track Report*",
            mlflow="mrr",
            cutoff="optional",
            compute=lambda graded, golds, k: np.where(graded.first <= k, 1 / graded.first, 0),
            aliases=("mrr",),
        ),
        Formula(
            name="AP",
            title="Average precision",
            formula="(sum of the precision at the rank of each gold document found, among the first k) / "
            "(number of gold documents)",
            reference="Buckley and Voorhees 2000, doi:10.1145/345508.345543",
            mlflow="map",
            cutoff="optional",
            compute=lambda graded, golds, k: _divide(graded.precisions(k), golds),
            aliases=("map",),
            whole_ranking=True,
        ),
        Formula(
            name="Success",
            title="Success, or hit rate",
            formula="1 if there is a gold document among the first k, otherwise 0",
            reference="Craswell and Hawking 2004, *Overview of the TREC-2004 Web Track*",
            mlflow="success",
            cutoff="required",
            compute=lambda graded, golds, k: (graded.first <= k).astype(np.float64),
        ),
        Formula(
            name="F1",
            title="Harmonic mean of precision and recall",
            formula="2 x (number of gold documents among the first k) / (k + number of gold documents)",
            reference="van Rijsbergen 1979, *Information Retrieval*",
            mlflow="f1",
            cutoff="required",
            # 2PR / (P + R), which avoids 0 / 0
            compute=lambda graded, golds, k: 2 * graded.gold.count(k) / (k + golds),
        ),
        Formula(
            name="Judged",
            title="Share of judged documents",
            formula="(number of judged documents among the first k) / (number of documents among the first k); no "
            "value if none is found",
            reference="Thakur et al. 2021, arXiv:2104.08663 (as the hole rate, 1 - Judged)",
            mlflow="judged",
            cutoff="required",
            compute=lambda graded, golds, k: graded.share_judged(k),
            is_merit=False,
            not_in_reports="a report has no judgments of irrelevant items",
        ),
        Formula(
            name="Rprec",
            title="R-precision",
            formula="(number of gold documents among the first R) / R, for a query with R gold documents",
            reference="Buckley and Voorhees 2000, doi:10.1145/345508.345543",
            mlflow="rprec",
            cutoff="depth",
            compute=lambda graded, golds, k: _divide(
                graded.gold.count(np.minimum(golds, k)[graded.gold.queries]), golds
            ),
            whole_ranking=True,
            not_in_reports="a report may list fewer items than a query has gold",
        ),
        Formula(
            name="Bpref",
            title="Binary preference",
            formula="mean, over the R gold documents, of 1 - min(number of judged non-relevant documents ranked above "
            "the gold document, R) / min(R, number of judged non-relevant documents); a gold document that is not "
            "found contributes 0",
            reference="Buckley and Voorhees 2004, doi:10.1145/1008992.1009000",
            mlflow="bpref",
            cutoff="depth",
            compute=lambda graded, golds, k: _divide(graded.first_ranks(k).preferred, golds),
            whole_ranking=True,
            not_in_reports="a report has no judgments of irrelevant items",
        ),
        Formula(
            name="TokenR",
            title="Token recall",
            formula="(number of gold words in the first k chunks) / (number of gold words)",
            reference=_TOKENS,
            mlflow="token_recall",
            cutoff="required",
            compute=lambda graded, golds, k: _divide_cut(graded.count_tokens(k), lambda cut: cut.gold),
            needs_spans=True,
        ),
        Formula(
            name="TokenP",
            title="Token precision",
            formula="(number of gold words in the first k chunks) / (number of words in the first k chunks, counted "
            "as often as they are returned)",
            reference=_TOKENS,
            mlflow="token_precision",
            cutoff="required",
            compute=lambda graded, golds, k: _divide_cut(graded.count_tokens(k), lambda cut: cut.returned),
            needs_spans=True,
        ),
        Formula(
            name="TokenIoU",
            title="Token intersection over union",
            formula="(number of gold words in the first k chunks) / (number of words in the first k chunks, counted "
            "as often as they are returned, + number of gold words that are not in them)",
            reference=_TOKENS,
            mlflow="token_iou",
            cutoff="required",
            compute=lambda graded, golds, k: _divide_cut(
                graded.count_tokens(k), lambda cut: cut.returned + cut.gold - cut.covered
            ),
            needs_spans=True,
        ),
    )
)
"""The measures computed here, by name, in the order of reports."""
