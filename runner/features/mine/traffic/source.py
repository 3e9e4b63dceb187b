"""Make a golden set of traffic: draw queries, mask them, and write what is needed to judge and to replay them.

A second draw keeps the queries of the first, whose judgments stay valid, and adds what the new traffic lacks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import orjson
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus
from retrievers.files import replace_file
from runner.config.addresses import LocalPath
from runner.datasets import files
from runner.datasets.base import Qrel
from runner.datasets.dataset import Dataset
from runner.datasets.qrels import read_qrels
from runner.datasets.query_fields import REPRESENTS
from runner.datasets.traffic.masking import PATTERNS, MaskPatterns
from runner.datasets.traffic.queries import UtcTime, format_time, format_week, group_searches, hash_query
from runner.datasets.traffic.searches import Traffic, count_searches
from runner.datasets.traffic.spans import ID_RULES, IdRule
from runner.datasets.traffic.telemetry import Telemetry
from runner.features.mine.traffic.draw import (
    FREQUENCIES,
    QueryGroup,
    Strata,
    TrafficCoverage,
    count_needed,
    draw_groups,
    estimate_coverage,
    list_strata,
    merge_queries,
    stratify,
)
from runner.pages.output import writing_to

QUERIES, CORPUS, QRELS, SERVED, SUMMARY = (
    "queries.jsonl", "corpus.jsonl", "qrels/test.tsv", "served.jsonl", "draw.json",
)  # fmt: skip
"""The files of a golden set, in the layout of BEIR, with the rankings that were served and a summary of the draw."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class TrafficSource:
    """Exported traces, of which queries are drawn; the settings up to `mask` are those of `Telemetry`.

    As many queries are drawn as it takes to `detect` a difference of `measure`, or `count`. Near-duplicates have a
    `similarity` of words. `clusters` is the number of topics.
    """

    access: ClassVar[Access] = Access(paths=("path", "documents", "qrels"))

    path: str
    documents: LocalPath | None = None
    qrels: LocalPath | None = None
    feedback: Literal["none", "first", "all"] = "none"
    since: UtcTime | None = None
    until: UtcTime | None = None
    sampling: float = Field(default=1.0, gt=0, le=1)
    ids: Annotated[tuple[IdRule, ...], Field(min_length=1)] = ID_RULES
    mask: MaskPatterns = Field(default_factory=dict)
    detect: float = Field(default=0.05, gt=0, lt=1)
    measure: str = "nDCG"
    count: int | None = Field(default=None, ge=1)
    similarity: float = Field(default=0.8, gt=0, le=1)
    clusters: int = Field(default=8, ge=1)
    seed: int = Field(default=0, ge=0)

    @property
    def telemetry(self) -> Telemetry:
        """Return the traffic as a dataset."""
        names = ("path", "documents", "qrels", "feedback", "since", "until", "sampling", "ids", "mask")
        return Telemetry(
            **{name: getattr(self, name) for name in names}, unjudged_queries="keep", unknown_judged="keep"
        )


@dataclass(frozen=True)
class GoldenDraw:
    """What a draw led to; `summary` has the counts and lists that are saved, and `reading` says what was read."""

    reading: str
    coverage: TrafficCoverage
    strata: Sequence[Mapping[str, Any]]
    summary: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the content of the file of the draw."""
        return {"reading": self.reading, **self.summary, "coverage": vars(self.coverage), "strata": list(self.strata)}

    def to_figures(self) -> dict[str, float]:
        """Return the figures for a tracker: the coverage, counts, and the lengths of lists."""
        sizes = {name: value if isinstance(value, int | float) else len(value) for name, value in self.summary.items()}
        return {**sizes, **{f"coverage_{name}": value for name, value in vars(self.coverage).items()}}


def draw_golden_set(source: TrafficSource, folder: Path) -> GoldenDraw:
    """Draw queries, write them to a folder in the layout of BEIR, and return what was drawn.

    The queries of an earlier draw in the folder are kept. Raises `DatasetError`.
    """
    with files.name_settings("source"):
        traffic, dataset = source.telemetry.read_traffic(), source.telemetry.load()
    before = {row.identifier("_id"): dict(row.fields) for row in _read_rows(folder / QUERIES)}
    by_text = {query.text: query.searches for query in group_searches(traffic, by_text=True)}
    masked = {
        name: n for name in {**PATTERNS, **(source.mask or {})} if (n := sum(f"<{name}>" in text for text in by_text))
    }
    texts = len(by_text)
    for row in before.values():
        by_text.setdefault(row["text"], [])
    every = merge_queries([*by_text], [*by_text.values()], source.similarity)
    groups = [group for group in every if group.searches]
    strata = stratify(groups, source.clusters, source.seed)
    needed = source.count or count_needed(source.detect, source.measure)
    represented = draw_groups(groups, strata, needed, source.seed)
    names = {place: _find_name(group, before, represented[place] > 0) for place, group in enumerate(groups)}
    chosen = {name: place for place, name in names.items() if name}
    rows = {
        name: {**row, "metadata": {**row["metadata"], REPRESENTS: 0, "searches": 0}} for name, row in before.items()
    }
    for name, place in chosen.items():
        rows[name] = _describe_group(name, rows.get(name), groups[place], strata, place, float(represented[place]))
    covered = {text for place in chosen.values() for text in groups[place].texts}
    every_search = [(search, text in covered) for text, own in by_text.items() for search in own]
    golden = {text: name for name, place in chosen.items() for text in groups[place].texts}
    judged = {(golden[text], d): g for text, d, g in _list_judgments(dataset) if text in golden}
    earlier = read_qrels(folder / QRELS) if (folder / QRELS).exists() else []
    judged = {(query, document): grade for query, document, grade in earlier} | judged
    known, lost = {*dataset.corpus.ids}, defaultdict[str, list[str]](list)
    for query_id, document in (pair for pair, grade in judged.items() if source.documents and grade > 0):
        if document not in known:
            lost[query_id].append(document)
    draw = GoldenDraw(
        dataset.reading,
        estimate_coverage(every_search),
        list_strata(groups, strata, represented),
        {
            "searches": count_searches(search for search, _ in every_search), "texts": texts, "groups": len(groups),
            "needed": needed, "least": float(represented[represented > 0].min()), "queries": len(rows),
            "added": [name for name in chosen if name not in before],
            "kept": [name for name in chosen if name in before], "gone": [n for n in before if n not in chosen],
            "lost_gold": dict(lost), "masked": masked,
        },
    )  # fmt: skip
    served = {name: _list_served(traffic, groups[place]) for name, place in chosen.items()}
    _write(folder, rows, None if source.documents else dataset.corpus, judged, served, draw)
    return draw


def _find_name(group: QueryGroup, before: Container[str], is_drawn: bool) -> str:
    """Return the id of a group's query: that of an earlier draw, else of the most frequent text, "" if not drawn."""
    earlier = next((name for name in map(hash_query, sorted(group.texts)) if name in before), "")
    return earlier or (hash_query(group.text) if is_drawn else "")


def _describe_group(
    name: str, before: Mapping[str, Any] | None, group: QueryGroup, strata: Strata, place: int, represented: float
) -> dict[str, Any]:
    newest = group.searches[-1]
    about = {
        "topic": f"topic {strata.topics[place] + 1}",
        "frequency": FREQUENCIES[strata.frequencies[place]],
        "week": format_week(newest.start_ns),
        "last": format_time(newest.start_ns),
        "searches": count_searches(group.searches),
        REPRESENTS: represented,
        **newest.slices,
    }
    return {"_id": name, "text": before["text"] if before else group.text, "metadata": about}


def _list_judgments(dataset: Dataset) -> Iterator[Qrel]:
    """Yield the text of each judged query, the document and the grade."""
    documents = [*dataset.documents.ids, *dataset.judgments.unknown_documents]
    for query, document, grade in dataset.judgments.list_rows():
        yield dataset.queries.texts[query], documents[document], grade


def _list_served(traffic: Traffic, group: QueryGroup) -> list[str]:
    """Return the documents of the newest ranking that was recorded."""
    newest = next((search for search in reversed(group.searches) if search.hits is not None), None)
    return list(dict.fromkeys(name for name, _ in traffic.list_hits(newest))) if newest else []


def _read_rows(path: Path) -> list[files.SourceRecord]:
    return list(files.json_lines(path)) if path.exists() else []


def _write(
    folder: Path,
    rows: Mapping[str, Mapping[str, Any]],
    corpus: Corpus | None,
    judged: Mapping[tuple[str, str], int],
    served: Mapping[str, Sequence[str]],
    draw: GoldenDraw,
) -> None:
    """Write the files of the folder, the summary last; documents and rankings of an earlier draw stay."""
    tables: dict[str, Iterable[Mapping[str, Any]]] = {QUERIES: rows.values()}
    if corpus is not None:
        documents = {row.identifier("_id"): row.fields for row in _read_rows(folder / CORPUS)}
        new = {name: {"_id": name, "text": text} for name, text in zip(corpus.ids, corpus.texts, strict=True)}
        tables[CORPUS] = (documents | new).values()
    earlier = (row.fields for row in _read_rows(folder / SERVED) if row.fields["query_id"] not in served)
    tables[SERVED] = [
        *earlier,
        *(
            {"query_id": name, "document_id": document, "score": len(own) - rank}
            for name, own in served.items()
            for rank, document in enumerate(own)
        ),
    ]
    contents = {
        name: b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in table)
        for name, table in tables.items()
    }
    qrels = (f"{query}\t{document}\t{grade}\n" for (query, document), grade in judged.items())
    contents[QRELS] = "".join(["query-id\tcorpus-id\tscore\n", *qrels]).encode()
    contents[SUMMARY] = orjson.dumps(draw.to_json(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    with writing_to(str(folder)):
        for name, content in contents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with replace_file(folder / name) as new_file:
                new_file.write_bytes(content)
