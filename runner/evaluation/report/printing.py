"""Print the result of one evaluation at a terminal."""

from __future__ import annotations

from rich.text import Text

from runner.comparison.insights import Insights
from runner.evaluation.report import tables
from runner.evaluation.report.sections import iter_sections
from runner.evaluation.represented import describe_over_searches
from runner.evaluation.result import Result
from runner.pages import numbers
from runner.pages.console import open_output
from runner.pages.terminal import show_sections, show_table


def show_result(result: Result, insight: Insights = Insights(), hardest: int = 3) -> None:  # noqa: B008 (immutable)
    """Print an evaluation: its measures, its query types, what went wrong, and what it cost."""
    out = open_output()
    low_high = numbers.interval(result.intervals.get(result.primary))
    out.print(Text.assemble((result.name, "bold"), "  on ", tables.heading(result)))
    for warning in tables.warnings(result):
        out.print(Text(f"warning: {warning}", style="yellow"))
    if address := tables.describe_addresses(result):
        out.print(Text(f"answered by {address}"))
    if index := tables.describe_index(result):
        out.print(Text(f"index: {index}"))
    mean = numbers.score(result.means.get(result.primary))
    out.print(Text.assemble((f"{result.primary} {mean}", "bold"), f"  {low_high}  ({tables.intervals_of(result)})"))
    show_table(out, tables.measures_table(result))
    whole = [f"{m} {numbers.score(result.means.get(m))}" for m in tables.whole_measures(result)]
    lines = [
        ", ".join(whole),
        describe_over_searches(result),
        tables.describe_judged(result),
        tables.outcomes_line(result),
        tables.describe_losses(result),
    ]
    out.print(Text("\n".join(["", *filter(None, lines)])))
    show_sections(out, iter_sections(result, insight, hardest))
    out.print(Text(f"\n{tables.cost(result)}", style="dim"))
