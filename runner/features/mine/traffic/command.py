"""Draw a golden set from traffic, show what was drawn, and log it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import orjson

from runner.config.arguments import arguments
from runner.config.objects import ConfigError
from runner.features.mine.traffic.source import SERVED, SUMMARY, GoldenDraw, TrafficSource, draw_golden_set
from runner.pages import console
from runner.pages.numbers import number, percent
from runner.pages.progress import Status
from runner.pages.tables import Column, Table
from runner.tracking.background import BackgroundTracker
from runner.tracking.record import DatasetMade, now
from runner.tracking.settings import Tracking

_LISTED = 5


def mine_traffic(source: TrafficSource, folder: Path, tracking: Tracking, parameters: Mapping[str, str]) -> int:
    """Draw queries into a folder, show and log what was drawn, and return 0."""
    started = now()
    if folder.exists() and not (folder / SUMMARY).exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"output={folder}: not a folder of an earlier draw; choose a new folder")
    with Status("reading traces and drawing queries"):
        draw = draw_golden_set(source, folder)
    with BackgroundTracker(tracking) as tracker:
        tracker.start()
        content = (folder / SUMMARY).read_text(encoding="utf-8")
        made = DatasetMade(folder.name, started, parameters, draw.to_figures(), {SUMMARY: content}, {"kind": "mining"})
        run = tracker.log_at_once(made)
    console.document(lambda: {"run": run.id or None, "dataset": str(folder), "summary": orjson.Fragment(content)})
    console.note(draw.reading)
    console.show_table(strata_table(draw), "Strata")
    for text in describe_draw(draw):
        console.paragraph(text)
    if run.id:  # empty with tracking=none
        console.line(f"run: {run.id}")
    dataset = {"dataset": "beir", "dataset.path": str(folder)}
    if source.documents:
        dataset["dataset.documents"] = str(Path(source.documents).expanduser().resolve())
    served = arguments({"retriever": "run", "retriever.path": str(folder / SERVED)})
    console.line(f"dataset: {folder}")
    console.line(f"judge it: python -m runner {arguments({**dataset, 'dataset.unjudged_queries': 'keep'})} {served}")
    console.line("          python -m runner judge by=hand run=latest")
    return 0


def strata_table(draw: GoldenDraw) -> Table:
    """Return the strata of a draw with their shares of the searches and of those represented."""
    columns = [
        Column("by", spare=1), Column("stratum", least=20), Column("queries", number, numeric=True, spare=2),
        Column("share of searches", percent, numeric=True), Column("share represented", percent, numeric=True),
    ]  # fmt: skip
    return Table(columns, [list(row.values()) for row in draw.strata])


def describe_draw(draw: GoldenDraw) -> list[str]:
    """Return what was drawn, what it covers, what was masked, and what changed since an earlier draw."""
    own, coverage = draw.summary, draw.coverage
    masked = ", ".join(f"{name} {count:,}" for name, count in own["masked"].items()) or "nothing"
    lines = [
        f"{own['searches']:,} searches for {own['texts']:,} texts are {own['groups']:,} queries after near-duplicates "
        f"were merged. {own['needed']:,} were wanted; the golden set has {own['queries']:,}. Masked: {masked}.",
        f"The golden set has the queries of {coverage.share:.1%} of these searches [{coverage.low:.1%}, "
        f"{coverage.high:.1%}]. Each represents its searches, and at least {own['least']:,.4g} of them.",
    ]
    if own["kept"] or own["gone"]:
        lines.append(
            f"Since the last draw: {len(own['added']):,} added, {len(own['kept']):,} kept, and nobody searched for "
            f"{len(own['gone']):,} again{_list_some(own['gone'])}."
        )
    if own["lost_gold"]:
        lines.append(
            f"Gold of {len(own['lost_gold']):,} queries no longer exists{_list_some(list(own['lost_gold']))}; judge "
            f"them again. {SUMMARY} lists the documents."
        )
    return lines


def _list_some(names: list[str]) -> str:
    more = ", ..." if len(names) > _LISTED else ""
    return f" ({', '.join(names[:_LISTED])}{more})" if names else ""
