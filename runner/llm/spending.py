"""Report the spending on models behind APIs: as text for people, and as figures by purpose for trackers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from retrievers.base import iter_parts
from runner.llm.api_model import ApiModel
from runner.llm.ledger import Usage, open_ledger

COUNTS = ("calls", "retries", "tokens_in", "tokens_out")


def describe_spending(settings: Iterable[object]) -> str:
    """Return all spending on the budgets of the models within settings, one line per kind of model; "" if none.

    This includes calls of this command's workers, and of other commands with the same named budget.
    """
    labels: dict[tuple[str, str], dict[str, ApiModel]] = {}
    for model in (model for part in settings for model in iter_models(part)):
        labels.setdefault((model.ledger, str(model.budget)), {}).setdefault(model.label, model)
    groups: dict[str, list[ApiModel]] = {}
    for models in labels.values():
        groups.setdefault(" and ".join(models), []).append(next(iter(models.values())))
    lines = []
    for label, group in groups.items():
        total = sum(measure_spending(group).values(), Usage())
        if total.calls:
            lines.append(_describe_usage(label, total))
    return "\n".join(lines)


def _describe_usage(label: str, total: Usage) -> str:
    retries = f" ({total.retries:,} of them retries)" if total.retries else ""
    cost = f", cost {total.cost:.4g}" if total.cost else ""
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(total.failures.items()))
    failures = f"; failed: {kinds}" if kinds else ""
    calls = "call" if total.calls == 1 else "calls"
    written = f", {total.tokens_out:,} out" if ApiModel.label in label else ""  # other models write nothing
    tokens = f"{total.tokens_in:,} tokens in{written}"
    return f"{label}: {total.calls:,} {calls}{retries}, {tokens}{cost}{failures}"


def measure_spending(settings: Iterable[object]) -> dict[str, Usage]:
    """Return all spending on the budgets of the models behind APIs within settings, by purpose."""
    budgets = {(model.ledger, str(model.budget)): None for part in settings for model in iter_models(part)}
    spending: dict[str, Usage] = {}
    for path, budget in budgets:
        if Path(path).exists():  # without a ledger there were no calls; do not create one
            for purpose, usage in open_ledger(path).usage(budget).items():
                spending[purpose] = spending.get(purpose, Usage()) + usage
    return spending


def compute_figures(spending: Mapping[str, Usage], before: Mapping[str, Usage]) -> dict[str, float]:
    """Return the spending since `before` as figures by name: `llm/grade/calls`, `llm/grade/failures/server`."""
    figures: dict[str, float] = {}
    for purpose, now in spending.items():
        then, place = before.get(purpose, Usage()), f"llm/{purpose or 'other'}"
        if now.calls == then.calls:
            continue
        figures |= {f"{place}/{name}": getattr(now, name) - getattr(then, name) for name in COUNTS}
        if now.cost:  # otherwise there are no prices
            figures[f"{place}/cost"] = now.cost - then.cost
        failures = {kind: n - then.failures.get(kind, 0) for kind, n in now.failures.items()}
        figures[f"{place}/failures"] = sum(failures.values())
        figures |= {f"{place}/failures/{kind}": n for kind, n in failures.items() if n}
    return figures


def iter_models(settings: object) -> Iterator[ApiModel]:
    """Yield the models behind APIs within settings."""
    if isinstance(settings, ApiModel):
        yield settings
        return
    for part in iter_parts(settings):
        yield from iter_models(part)
