"""Generate the documentation page of the measures.

`python -m runner.metrics.page docs/measures.md` writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from runner.metrics.delegated import list_delegated
from runner.metrics.formulas import FORMULAS, Formula
from runner.metrics.measures import WHOLE_FROM

_WRITTEN = {"required": "`{0}@k`", "optional": "`{0}`, `{0}@k`", "depth": "`{0}`"}

_INTRODUCTION = f"""\
# Measures

<!-- Generated from runner/metrics/formulas.py: `make docs` -->

Measure names are those of ir_measures: `metrics.measures=[nDCG,P@5,RR]`. The names of built-in measures are not
case-sensitive. A name without a cutoff stands for every cutoff in `metrics.k_values`. Systems are ranked by
`metrics.primary`, the highest mean first; `Judged`, which only describes the judgments, cannot be the primary measure.

A gold document is one with a grade above 0. As in trec_eval, a negative grade means that a document was pooled but
not assessed: Bpref, infAP and measures with `judged_only=True` take it for unjudged, all others for irrelevant. Reports
show it as 0.

Every measure is first computed for each query and then averaged over the queries that have gold. Built-in measures have
values from 0 to 1. A query without any results scores 0, except that it has no value of `Judged`
and is left out of the mean of that measure. Queries without gold, and queries whose search failed, are excluded from
all means. Equal scores are ordered by document id, descending, as in trec_eval
([ties](explanations/ties.md)).

Token measures count words of gold spans. They need `dataset.gold=spans` and are then measured at every cutoff in
`metrics.k_values` and at every word budget in `metrics.token_budgets`: [gold spans](spans.md).

If `metrics.depth` is below {WHOLE_FROM:,}, a measure of the whole ranking has the depth of the search as its cutoff,
such as `AP@100`: see [the depth of the search](insight.md#depth-of-the-search)."""

_DELEGATED = """\
## Measures of ir_measures

Any other measure of ir_measures, or a built-in one with another threshold, is written with its parameters, and quoted
in a shell: `'metrics.measures=[nDCG,"AP(rel=2)","RBP(rel=1,p=0.9)"]'`. Its name in MLflow is its name in lower case
with underscores. `rel` is the lowest grade that counts as relevant, and `max_rel` is the largest grade in the dataset.
A measure that does not support the dataset's grades is rejected before any work starts: `ERR` and
`nDCG(dcg='exp-log2')` support grades up to 4 and need Perl. `Accuracy`, the share of pairs of a relevant and an
irrelevant hit that are in the right order, is 1 if all hits are relevant, and 0 if none is."""

_UNSUPPORTED = """\
## Unsupported measures

These are rejected before any work starts, with a message that gives the reason."""


def render_page() -> str:
    """Return the page in Markdown."""
    delegated = [row for row in list_delegated() if row[0].partition("@")[0] not in FORMULAS]
    computed = [[f"`{example}`", title] for example, title, obstacle in delegated if not obstacle]
    refused = [[f"`{example}`", title, obstacle] for example, title, obstacle in delegated if obstacle]
    parts = [
        _INTRODUCTION,
        "## Built-in measures",
        _table(["measure", "written", "formula", "higher is better", "name in MLflow"], map(_row, FORMULAS.values())),
        "References:",
        "\n".join(f"- `{formula.name}`: {formula.reference}" for formula in FORMULAS.values()),
        _DELEGATED,
        _table(["example", "measure"], computed),
        _UNSUPPORTED,
        _table(["example", "measure", "reason"], refused),
    ]
    return "\n\n".join(parts) + "\n"


def _row(formula: Formula) -> list[str]:
    if formula.needs_spans:
        written, mlflow = f"`{formula.name}@k`, `{formula.name}@tokens=n`", f"`{formula.mlflow}_at_k`"
        return [formula.title, written, formula.formula, "yes", f"{mlflow}, `{formula.mlflow}_at_tokens_n`"]
    mlflow = formula.mlflow if formula.cutoff == "depth" else f"{formula.mlflow}_at_k"
    names = f"`{formula.mlflow}`, `{mlflow}`" if formula.cutoff == "optional" else f"`{mlflow}`"
    better = "yes" if formula.is_merit else "not applicable: it describes the judgments"
    return [formula.title, _WRITTEN[formula.cutoff].format(formula.name), formula.formula, better, names]


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown; the one for reports belongs to a layer above this one."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render_page(), encoding="utf-8")
