"""The content of runs in MLflow: metrics, parameters, tags, datasets and artifacts, and the spelling of their names.

Figures come from the result, and other modules do the logging.
"""

from __future__ import annotations

import json
import math
import re
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import yaml

from retrievers.base import NOTHING
from retrievers.files import replace_texts
from runner.evaluation.records import save_record, write_trec
from runner.evaluation.result import Result
from runner.metrics.abstention import Abstention
from runner.metrics.formulas import find_formula

LONGEST_NAME, LONGEST_PARAMETER, LONGEST_TAG = 250, 6000, 5000
"""MLflow's length limits in characters for a name, the value of a parameter and the value of a tag."""

REUSED = "reused"
"""The value of the tag `link_key`."""

USER = "mlflow.user"
"""The tag with the name of the user who logged a run."""

Point = tuple[str, float, int]
"""A metric: its name, its value, its step."""

TagChanges = Mapping[str, str | None]
"""The tags of a run to set, or to remove if they are None."""

LoggedDataset = tuple[str, str, str, str, str]
"""A dataset as it is logged: its name, digest, source, profile and split."""

_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # not every build of PyYAML has the faster C version


@dataclass(frozen=True)
class RunRecord:
    """The complete content of a run to log. Times are in milliseconds since the epoch.

    `ended` is None while the run is running. `write` writes the artifacts of the run to a folder.
    """

    name: str
    status: str
    started: int
    ended: int | None
    tags: Mapping[str, str]
    parameters: Mapping[str, str]
    metrics: Sequence[Point] = ()
    dataset: LoggedDataset | None = None
    write: Callable[[Path], None] = field(default=lambda folder: None)


@dataclass(frozen=True)
class Finished:
    """A finished evaluation to log, with its parameters, its reports, and additional tags."""

    result: Result
    parameters: Mapping[str, str]
    reports: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    trec: bool = True

    @property
    def bytes(self) -> int:
        """Return the approximate size in memory, in bytes: that of the rankings and scores."""
        rankings = self.result.hits
        ranked = (
            rankings.rankings.documents.nbytes + rankings.rankings.scores.nbytes + rankings.grades.nbytes
            if rankings
            else 0
        )
        return ranked + self.result.scores.nbytes

    @cached_property
    def record(self) -> RunRecord:
        """Return the content of the run."""
        result, ended = self.result, now()
        return RunRecord(
            result.name,
            "FINISHED",
            ended - int(result.timings.wall_s * 1000),
            ended,
            {**tags_of(result), **self.tags},
            _parameters(self.parameters),
            metrics_of(result),
            dataset_of(result),
            self._write,
        )

    def _write(self, folder: Path) -> None:
        config = yaml.dump(dict(self.result.config), Dumper=_Dumper, sort_keys=False, allow_unicode=True)
        replace_texts(folder, {"config.yaml": config, **self.reports})
        if self.trec:
            write_trec(self.result, folder / "rankings.trec.gz")
        save_record(self.result, folder)


@dataclass(frozen=True)
class Failed:
    """A failed evaluation to log, with its traceback."""

    name: str
    parameters: Mapping[str, str]
    error: str
    traceback: str
    tags: Mapping[str, str] = field(default_factory=dict)
    bytes: int = field(default=0, init=False)

    @property
    def record(self) -> RunRecord:
        """Return the content of the run."""
        moment, tags = now(), {"kind": "evaluation", "error": self.error[:LONGEST_TAG], **self.tags}
        return RunRecord(
            self.name, "FAILED", moment, moment, tags, _parameters(self.parameters),
            write=partial(replace_texts, texts={"traceback.txt": self.traceback}),
        )  # fmt: skip


@dataclass(frozen=True)
class Dropped:
    """A combination that a race dropped, to log with figures about the queries that it has searched."""

    name: str
    parameters: Mapping[str, str]
    figures: Mapping[str, float]
    tags: Mapping[str, str] = field(default_factory=dict)
    bytes: int = field(default=0, init=False)

    @property
    def record(self) -> RunRecord:
        """Return the content of the run, whose status is KILLED because the evaluation is not finished."""
        moment, tags = now(), {key: value[:LONGEST_TAG] for key, value in self.tags.items()}
        metrics = [(name, float(value), 0) for name, value in self.figures.items()]
        return RunRecord(
            self.name, "KILLED", moment, moment, {"kind": "evaluation", **tags}, _parameters(self.parameters), metrics
        )


@dataclass(frozen=True)
class DatasetMade:
    """A new dataset to log, with figures about it and files that describe it."""

    name: str
    started: int
    parameters: Mapping[str, str]
    figures: Mapping[str, float]
    files: Mapping[str, str]
    tags: Mapping[str, str]

    @property
    def record(self) -> RunRecord:
        """Return the content of the run."""
        return RunRecord(
            self.name, "FINISHED", self.started, now(), self.tags, _parameters(self.parameters),
            points_of(self.figures), write=partial(replace_texts, texts=self.files),
        )  # fmt: skip


def _parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    return {sanitize_name(key): value[:LONGEST_PARAMETER] for key, value in parameters.items() if value != ""}


def metric_name(measure: str) -> str:
    """Return the name of a measure in MLflow, which does not allow "@": nDCG@10 is ndcg_at_10, RR is mrr."""
    name, _, cutoff = measure.partition("@")
    formula = find_formula(name)
    name = _slug(name) if formula is None else formula.mlflow
    return f"{name}_at_{cutoff.replace('=', '_')}" if cutoff else name


def points_of(figures: Mapping[str, float]) -> list[Point]:
    """Return figures by name as metrics, without values that are not finite."""
    return [(sanitize_name(name), float(value), 0) for name, value in figures.items() if math.isfinite(value)]


def metrics_of(result: Result) -> list[Point]:
    """Return all metrics of a result, without values that are not finite.

    They are the means by measure with the primary one first, means by query type, curves over K as steps, losses by
    step, figures on no-result queries, grades of a language model, times and diagnostics.
    """
    means = {result.primary: result.means[result.primary], **result.means}  # by default, the UI plots the first one
    points = [(metric_name(measure), mean, 0) for measure, mean in means.items()]
    slugs = _slugs(sorted(set(result.queries.types) - {""}))
    for kind, by_type in result.by_type.items():
        points += [(f"by_type/{slugs[kind]}/{metric_name(measure)}", mean, 0) for measure, mean in by_type.items()]
    points += [(f"by_type/{slugs[kind]}/{rate}", value, 0) for kind, rate, value in _no_result_by_type(result)]
    for measure, mean in result.means.items():
        name, _, cutoff = measure.partition("@")
        if cutoff.isdecimal():
            points.append((f"curve/{metric_name(name)}", mean, int(cutoff)))
    points += [(f"hole_rate_at_{k}", rate, 0) for k, rate in (result.holes.rates if result.holes else {}).items()]
    points += _list_losses(result)
    points += _abstention_metrics(result.abstention)
    points += [(name, value, 0) for name, value in _grades(result).items()]
    t = result.timings
    points += [("time/index_s", t.index_s, 0), ("time/search_s", t.search_s, 0), ("time/score_s", t.score_s, 0)]
    points += [("time/wall_s", t.wall_s, 0), ("queries/failed", float(len(result.failures)), 0)]
    if t.mean_ms is not None and t.p95_ms is not None:
        points += [("latency/mean_ms", t.mean_ms, 0), ("latency/p95_ms", t.p95_ms, 0)]
    if t.median_ms is not None:
        points.append(("latency/median_ms", t.median_ms, 0))
    points += points_of(result.diagnostics)
    return list(dict.fromkeys((name, float(value), step) for name, value, step in points if math.isfinite(value)))


def _list_losses(result: Result) -> list[Point]:
    """Return the number of gold documents that each step lost, and that each threshold would drop."""
    if result.losses is None:
        return []
    place, losses = f"lost_at_{result.losses.cutoff}", result.losses
    points = [(f"{place}/{_slug(step)}", float(n), 0) for step, n in losses.counts.items()]
    return points + [(f"threshold_{threshold}/{place}", float(n), 0) for threshold, n in losses.dropped.items()]


def _no_result_by_type(result: Result) -> Iterator[tuple[str, str, float]]:
    """Yield the rates of each query type with no-result queries: of these, and of its answerable queries."""
    if not result.abstention.no_result:
        return
    queries = result.queries
    is_empty = None if result.hits is None else (result.hits.rankings.documents == NOTHING).all(axis=1).tolist()
    for kind in sorted(set(queries.types) - {""}):
        places = [place for place, own in enumerate(queries.types) if own == kind]
        ended = [queries.statuses[place] for place in places]
        right, wrong = ended.count("true_negative"), ended.count("false_positive")
        if right + wrong:
            yield kind, "tn_rate", right / (right + wrong)
            yield kind, "fp_rate", wrong / (right + wrong)
            answerable = [at for at in places if queries.expected[at] and queries.statuses[at] != "error"]
            if answerable and is_empty is not None:
                yield kind, "answerable_rejected", sum(is_empty[at] for at in answerable) / len(answerable)


def _abstention_metrics(abstention: Abstention) -> list[tuple[str, float, int]]:
    """Return the figures on no-result queries: those without a threshold, then those of each threshold."""
    if not abstention.no_result:
        return []
    everything, *thresholds = abstention.thresholds
    figures = [("auroc", abstention.auroc), ("tn_rate", everything.tn_rate), ("fp_rate", everything.fp_rate)]
    figures.append(("answerable_rejected", everything.left_with_nothing))
    for at in thresholds:
        place = f"threshold_{at.threshold:g}"
        figures += [(f"{place}/tn_rate", at.tn_rate), (f"{place}/fp_rate", at.fp_rate), (f"{place}/recall", at.recall)]
        figures += [(f"{place}/recall_lost", at.recall_lost), (f"{place}/answerable_rejected", at.left_with_nothing)]
    return [(name, value, 0) for name, value in figures if not math.isnan(value)]


def _grades(result: Result) -> dict[str, float]:
    """Return the figures of a language model's grades; {} if there are none."""
    figures = result.grades.figures() if result.grades else {}
    return {name: value for name, value in figures.items() if value is not None}


def axes_of(swept: Mapping[str, Any]) -> dict[str, str]:
    """Return the swept values as separate parameters; the prefix puts them first in the UI, which sorts by name."""
    return {f"Axis/{key}": str(value) for key, value in swept.items()}


def tags_of(result: Result) -> dict[str, str]:
    """Return the tags by which a run can be found: dataset, retriever, fingerprints, versions."""
    env = result.environment
    tags = {
        "kind": "evaluation",
        "dataset": f"{result.dataset.name}/{result.dataset.split}",
        "dataset_fingerprint": result.dataset.fingerprint,
        "corpus_fingerprint": result.dataset.corpus_fingerprint,
        "config_hash": result.config_hash,
        "retriever": result.retriever,
        "address": ", ".join(dict.fromkeys(result.addresses.values())),
        "index": json.dumps(dict(result.index), sort_keys=True) if result.index else "",
        "mlflow.source.git.commit": str(env.get("git_commit", "")),
        "git_dirty": str(env.get("git_dirty", "")).lower(),
        "versions": json.dumps({"python": env.get("python"), **env.get("packages", {})}),
        "judge": result.grades.judge if result.grades else "",
        "judge_prompt": result.grades.prompt if result.grades else "",
    }
    return {key: value[:LONGEST_TAG] for key, value in tags.items() if value}


def dataset_of(result: Result) -> LoggedDataset:
    """Return the dataset as MLflow's input of a run: name, digest, source, profile, split."""
    d = result.dataset
    profile = {"num_documents": d.documents, "num_queries": d.queries, "num_judgments": d.judgments}
    source = json.dumps(
        {key: str(value) for key, value in result.config.get("dataset", {}).items() if value is not None}
    )
    return d.name, d.fingerprint[:32], source[:60000], json.dumps(profile), d.split


def link_key(parent: str) -> str:
    """Return the tag of a combination that was computed under another parent run but is also reported by this one."""
    return f"sweep/{parent}"


def sanitize_name(name: str) -> str:
    """Return a name with only the characters that MLflow allows in keys."""
    return re.sub(r"[^\w\-. :/]", "_", name)[:LONGEST_NAME]


def _slug(name: str) -> str:
    return re.sub(r"\W+", "_", unicodedata.normalize("NFKC", name).lower()).strip("_") or "none"


def _slugs(names: Iterable[str]) -> dict[str, str]:
    """Return a unique slug for each name; equal slugs are numbered."""
    slugs: dict[str, str] = {}
    for name in names:
        slug, number = _slug(name), 2
        while slug in slugs.values():
            slug, number = f"{_slug(name)}_{number}", number + 1
        slugs[name] = slug
    return slugs


def now() -> int:
    """Return the time in milliseconds since the epoch, the unit of MLflow."""
    return int(time.time() * 1000)
