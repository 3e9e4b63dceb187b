"""The inspection of a dataset as tables, sentences and JSON."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np
import orjson

from runner.features.inspect.finding import Finding
from runner.features.inspect.inspection import QUANTILES, Inspection
from runner.features.inspect.report.reliability import reliability_json
from runner.pages.numbers import gist, number, percent, score
from runner.pages.tables import Column, Table

VERSION = 1
"""The version of the JSON."""


def heading(inspection: Inspection) -> str:
    """Return what was inspected."""
    counts = inspection.counts
    chunks = f" in {counts['chunks']:,} chunks" if "chunks" in counts else ""
    return (
        f"{inspection.name} ({inspection.split}): {counts['documents']:,} documents{chunks}, "
        f"{counts['queries']:,} queries, {counts['judgments']:,} judgments"
    )


def samples_table(inspection: Inspection) -> Table:
    """Return the first queries with their gold documents."""
    columns = [Column("query"), Column("text", least=20), Column("gold", least=20, spare=1)]
    rows = [
        [
            sample.query,
            gist(sample.text, 120),
            "; ".join(f"{i}: {gist(text, 60)}" if text else i for i, text in sample.gold),
        ]
        for sample in inspection.samples
    ]
    return Table(columns, rows)


def verdict(inspection: Inspection) -> str:
    """Return the number of findings by severity in a sentence."""
    if not inspection.findings:
        return "No problems found."
    gravities = dict.fromkeys(finding.gravity for finding in inspection.findings)
    numbers = Counter(finding.gravity for finding in inspection.findings)
    counts = [f"{numbers[name]} {name}{'s' * (numbers[name] != 1 and name != 'info')}" for name in gravities]
    things = "finding" if len(inspection.findings) == 1 else "findings"
    return f"{len(inspection.findings)} {things}: {', '.join(counts)}."


def findings_table(inspection: Inspection) -> Table:
    """Return the findings, worst first, each with what to do about it."""
    columns = [
        Column("finding", least=14),
        Column("severity"),
        Column("affected", numeric=True),
        Column("problem", least=20),
        Column("remedy", least=18, spare=1),
    ]
    rows = [[f.name, f.gravity, f"{f.count:,} of {f.of:,}", f.text, f.remedy] for f in inspection.findings]
    return Table(columns, rows)


def grades_table(inspection: Inspection) -> Table:
    """Return how many judgments have which grade."""
    rows = [[grade, count] for grade, count in sorted(inspection.grades.items(), reverse=True)]
    return Table([Column("grade", numeric=True), _count("judgments")], rows)


def types_table(inspection: Inspection) -> Table:
    """Return the number of queries of each type, the most frequent first; empty without types."""
    rows = sorted(inspection.types.items(), key=lambda item: (-item[1], item[0]))
    return Table([Column("type", least=12), _count("queries")], [list(item) for item in rows])


def distributions_table(inspection: Inspection) -> Table:
    """Return quantiles of lengths, of gold per query and of overlap."""
    columns = [Column("quantity"), *(Column(name, number, numeric=True, spare=int("%" in name)) for name in QUANTILES)]
    return Table(columns, [[name, *quantiles] for name, quantiles in inspection.distributions.items()])


def retrievers_table(inspection: Inspection) -> Table:
    """Return what each retriever finds, and how much of it is judged."""
    rankings = inspection.findability
    columns = [
        Column("retriever", least=12),
        Column(f"Success@{rankings.cutoff}", score, numeric=True),
        Column(f"no gold in {rankings.depth}", percent, numeric=True),
        Column(f"Judged@{rankings.cutoff}", percent, numeric=True),
    ]
    queries = np.count_nonzero(rankings.answerable)
    rows = [
        [name, rankings.success[i], rankings.without_gold[i] / queries if queries else math.nan, rankings.judged[i]]
        for i, name in enumerate(rankings.names)
    ]
    return Table(columns, rows)


def examples_table(finding: Finding) -> Table:
    """Return the examples of a finding, a column for each thing that is known of one."""
    names = list(dict.fromkeys(name for example in finding.examples for name in example))
    columns = [Column(name, least=36 if name in _LONG else 12) for name in names]
    return Table(columns, [[_format_example(example.get(name)) for name in names] for example in finding.examples])


_LONG = ("text", "its text", "document", "like gold", "evidence", "gold", "queries", "documents")


def as_json(inspection: Inspection) -> bytes:
    """Return an inspection for machines; the same inspection gives the same bytes."""
    rankings = inspection.findability
    content = {
        "version": VERSION,
        "dataset": {"name": inspection.name, "split": inspection.split, "fingerprint": inspection.fingerprint},
        "reading": inspection.reading,
        "samples": [sample._asdict() for sample in inspection.samples],
        "counts": inspection.counts,
        "grades": inspection.grades,
        "types": inspection.types,
        "distributions": {
            name: dict(zip(QUANTILES, quantiles, strict=True)) for name, quantiles in inspection.distributions.items()
        },
        "retrievers": {
            name: {
                f"success@{rankings.cutoff}": rankings.success[i],
                f"judged@{rankings.cutoff}": rankings.judged[i],
                "without_gold": int(rankings.without_gold[i]),
            }
            for i, name in enumerate(rankings.names)
        },
        "depth": rankings.depth,
        "cutoff": rankings.cutoff,
        "lacking": inspection.lacking,
        "reliability": None if inspection.reliability is None else reliability_json(inspection.reliability),
        "findings": [{**asdict(finding), "share": finding.share} for finding in inspection.findings],
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY)


def _count(title: str = "") -> Column:
    return Column(title, number, numeric=True)


def _format_example(value: Any) -> str:  # noqa: ANN401 (whatever an example has)
    """Return a part of an example as text."""
    if isinstance(value, dict):
        return ": ".join(_format_example(part) for part in value.values())
    if isinstance(value, list):
        return "; ".join(map(_format_example, value))
    return gist(str(value), 240) if value is not None else ""
