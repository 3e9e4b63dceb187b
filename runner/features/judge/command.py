"""Let a language model or people grade unjudged hits, and score the results with these grades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import orjson
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.files import replace_texts
from runner.config.addresses import LocalPath
from runner.config.consent import Consent
from runner.config.objects import ConfigError, build, build_settings
from runner.config.values import resolve_config
from runner.evaluation.result import Result
from runner.evaluation.verdicts import GradeVerdict, cut_warning
from runner.features.judge.desk.desk import DeskSettings
from runner.features.judge.desk.results import build_desk_pool, load_rankings, name_judged
from runner.features.judge.desk.session import judge_by_hand
from runner.features.judge.judged_files import (
    JUDGMENTS,
    VERDICTS,
    format_correction,
    format_scores,
    load_verdicts,
    write_people,
    write_verdicts,
)
from runner.features.judge.judged_pool import GradedSheet, JudgedPool
from runner.features.judge.judging import SCALE, JudgedRankings, Judging, judge_pairs, list_pair_ids, pool
from runner.features.judge.order import UNJUDGED, PairOrder
from runner.features.judge.people import FEWEST, list_strata, name_runs, report_judge
from runner.features.judge.prediction_powered import GradedSample
from runner.features.judge.report import (
    confusion_table,
    correction_table,
    judge_table,
    pool_figures,
    pool_table,
    standings_table,
)
from runner.llm.journal import Journal
from runner.llm.none import NoLLM
from runner.llm.spending import describe_spending
from runner.metrics.measures import Measure, parse
from runner.pages import console
from runner.pages.progress import Progress, Status
from runner.results.lookup import as_typed, results_of_run
from runner.tracking.background import BackgroundTracker
from runner.tracking.record import DatasetMade, now
from runner.tracking.settings import Tracking


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True, "coerce_numbers_to_str": True})
class JudgeSettings:
    """How results are judged, and where judgments are written: see `conf/judge.yaml`."""

    judging: Judging
    by: Literal["model", "hand"] = "model"
    assessor: str | None = None
    scale: int | None = Field(default=None, ge=1, le=9)
    overlap: float = Field(default=0.2, ge=0, le=1)
    queries: int | None = Field(default=None, ge=1)
    port: int = Field(default=8002, ge=0, le=65535)
    output: LocalPath | None = None
    sample: int | None = Field(default=None, ge=1)
    order: PairOrder | None = None
    sheet: LocalPath | None = None
    seed: int = Field(default=0, ge=0)

    @property
    def has_judge(self) -> bool:
        """Return whether a language model judges."""
        return not isinstance(self.judging.llm, NoLLM)

    @property
    def chosen_order(self) -> PairOrder:
        """Return how pairs are chosen: what matters most at the desk, and for a sheet, a sample that can correct."""
        return self.order or ("decisive" if self.by == "hand" else "random")


def main(cfg: DictConfig) -> int:
    """Pool, judge and score; write the judgments and scores to a folder, and log them."""
    started, config = now(), resolve_config(cfg)
    words = as_typed(config["run"], "run", HydraConfig.get().overrides.task)
    own = build_settings(JudgeSettings, config, plugins=config["plugins"])
    _check_judge(own)
    consent = Consent.of(config)
    tracking = build(config["tracking"], "tracking")
    with Status("reading the results"):
        run, results = _load_results(words, tracking)
        ranked = load_rankings(results, own.judging.depth, consent)
    folder = Path(own.output or f"mlruns/judgments/{run}").expanduser()
    if own.by == "hand":
        return _judge_by_hand(own, results, ranked, folder)
    judged, journal = _judge(own, ranked, folder)
    sheet = _load_sheet(own, folder, judged)
    measure = parse(results[0].primary)
    warnings = [warning for warning in (SCALE.warning(judged.verdicts), cut_warning(judged.verdicts)) if warning]
    files = _score(own, folder, judged, sheet, results, measure, warnings)
    if journal is not None and not _note_missing(judged.verdicts):
        journal.forget()
    if own.sample is not None:
        files |= _use_people(own, folder, judged, sheet, results, measure)
    if own.has_judge:
        console.line(f"judgments: {folder / JUDGMENTS}")
    parameters = {"judge": repr(own.judging.llm), "prompt": own.judging.prompt, "depth": str(judged.depth)}
    figures = {f"judge/{name}": value for name, value in pool_figures(judged.verdicts).items()}
    tags = {"kind": "judging", "judged_run": run, "warnings": " ".join(warnings)}
    with BackgroundTracker(tracking) as tracker:
        tracker.start()
        logged = tracker.log_at_once(DatasetMade(f"judge {run[:8]}", started, parameters, figures, files, tags))
    console.document(
        lambda: {
            "run": logged.id or None,
            "judgments": str(folder / JUDGMENTS),
            "measure": str(measure),
            **{name.removesuffix(".json"): orjson.Fragment(text) for name, text in files.items()},
        }
    )
    if logged.id:  # empty with tracking=none
        console.line(f"run: {logged.id}")
    return 0


def _check_judge(own: JudgeSettings) -> None:
    """Raise `ConfigError` if nobody judges, or both people and a language model."""
    if own.by == "hand" and own.has_judge:
        raise ConfigError("by=hand: people judge, not a language model; remove llm=")
    if own.by == "model" and own.queries is not None:
        raise ConfigError("queries: limits the desk; set by=hand, or limit the pairs of people with sample=")
    if own.by == "model" and not own.has_judge and own.sample is None:
        raise ConfigError(
            "llm=none: judging needs a language model; set, for example, llm=openai llm.model=MODEL, or judge yourself "
            "with by=hand"
        )


def _judge_by_hand(
    own: JudgeSettings, results: Sequence[Result], ranked: Sequence[JudgedRankings], folder: Path
) -> int:
    """Serve the judging desk until it is stopped."""
    desk_pool = build_desk_pool(results, ranked, own.judging.depth, own.scale, own.queries, own.seed)
    chosen = DeskSettings(own.chosen_order, own.seed, own.overlap, own.sample)
    judge_by_hand(desk_pool, chosen, folder / "by_hand", own.assessor, own.port)
    return 0


def _judge(own: JudgeSettings, ranked: Sequence[JudgedRankings], folder: Path) -> tuple[JudgedPool, Journal | None]:
    """Let the model grade the pool, and show its cost; without a model, load the earlier verdicts from the folder."""
    judging = own.judging
    pairs = pool(ranked, judging.depth)
    ids = list_pair_ids(ranked[0].dataset, pairs)
    if not pairs and not any((one.judgments.grades > 0).any() for one in ranked):
        raise ConfigError(
            "nothing to judge: only queries with a relevant document are pooled, and none is known; by=hand judges all"
        )
    if not own.has_judge:
        if own.chosen_order == "random" and not (folder / VERDICTS).is_file():
            raise ConfigError(
                f"llm=none: {folder / VERDICTS} does not exist, so there are no grades to correct; let a language "
                "model judge first, for example with llm=openai llm.model=MODEL, or set order=decisive to need none"
            )
        return JudgedPool(ranked, judging.depth, pairs, ids, load_verdicts(folder, ids)), None
    try:
        with Progress(len(pairs), what="pairs") as progress:
            verdicts, journal = judge_pairs(judging, ranked, pairs, folder, progress.advance)
    finally:  # the cost is shown even after an error
        if spent := describe_spending([judging]):
            console.note(spent)
    return JudgedPool(ranked, judging.depth, pairs, ids, verdicts), journal


def _load_sheet(own: JudgeSettings, folder: Path, judged: JudgedPool) -> GradedSheet:
    """Return the sheet that people grade, which is empty unless a sample is requested."""
    path = Path(own.sheet).expanduser() if own.sheet else folder / "sheet.csv"
    if own.sample is None:
        return GradedSheet(path, own.chosen_order, [], [])
    return GradedSheet.load(path, own.chosen_order, judged.ids)


def _score(
    own: JudgeSettings,
    folder: Path,
    judged: JudgedPool,
    sheet: GradedSheet,
    results: Sequence[Result],
    measure: Measure,
    warnings: Sequence[str],
) -> dict[str, str]:
    """Score the results with the grades, write and show the scores, and return them as files."""
    people = sheet.grades(len(judged.pairs))
    standings = judged.compare_standings([result.name for result in results], people, measure)
    files = format_scores(pool_figures(judged.verdicts), warnings, standings)
    folder.mkdir(parents=True, exist_ok=True)
    if own.has_judge and judged.verdicts:
        write_verdicts(folder, judged.ids, judged.verdicts)
    replace_texts(folder, files)
    console.show_table(pool_table(judged.verdicts))
    console.show_table(standings_table(standings, str(measure), judged.depth))
    for warning in warnings:
        console.note(f"warning: {warning}")
    return files


def _note_missing(verdicts: Sequence[GradeVerdict]) -> bool:
    """Print how many pairs have no verdict, and return whether there are any."""
    left = [verdict for verdict in verdicts if verdict.outcome in ("unasked", "error")]
    if left:
        unasked = [verdict for verdict in left if verdict.outcome == "unasked"]
        of_all = (
            f"{len(left):,} of {len(verdicts):,} pairs have no verdict, and {len(unasked):,} of these were not "
            "sent to the model"
        )
        console.note(f"{of_all} ({(unasked or left)[0].reasoning}); run the same command to judge them")
    return bool(left)


def _use_people(
    own: JudgeSettings,
    folder: Path,
    judged: JudgedPool,
    sheet: GradedSheet,
    results: Sequence[Result],
    measure: Measure,
) -> dict[str, str]:
    """Extend the sheet, write the grades in it, and return the estimates that these correct as a file."""
    if waiting := sheet.extend(judged, int(own.sample or 0), own.judging.max_characters, own.seed):
        console.line(
            f"sheet: {sheet.path} has {waiting:,} pairs to grade; write a grade from {SCALE.least} to {SCALE.greatest} "
            "in the column 'grade', from the top, then run the same command without llm="
        )
    write_people(folder, judged.ids, sheet.grades(len(judged.pairs)))
    if own.chosen_order != "random":
        return {}
    runs = name_runs((result.name for result in results), judged.ranked)
    files = _correct_judge(judged, sheet, runs, min(measure.cutoff or judged.depth, judged.depth))
    replace_texts(folder, files)
    return files


def _correct_judge(
    judged: JudgedPool, sheet: GradedSheet, runs: Mapping[str, JudgedRankings], k: int
) -> dict[str, str]:
    """Show estimates corrected by people's grades and return them as a file; {} if there are too few grades."""
    people = sheet.grades(len(judged.pairs))
    graded = np.flatnonzero(people != UNJUDGED)
    if len(graded) < FEWEST:
        if len(graded):
            console.note(f"{len(graded)} of at least {FEWEST} grades; estimates appear once there are enough")
        return {}
    with Status("correcting the judge"):
        sample = GradedSample(list_strata(judged.verdicts), graded, people[graded], SCALE.greatest)
        report = report_judge(sample, runs, list(judged.pairs), k)
    console.show_table(judge_table(report))
    console.show_table(confusion_table(report))
    console.show_table(correction_table(report))
    console.line("intervals are of 95 %")
    return format_correction(report)


def _load_results(words: Sequence[str], tracking: Tracking) -> tuple[str, list[Result]]:
    """Return a name for runs, which is the full id of a single run, and the results of all of them."""
    runs: dict[str, list[Result]] = {}
    for word in words:
        run, results = results_of_run(word, tracking)
        runs[run] = results
        if not run.startswith(word.lower()):
            console.note(f"run={word}: run {run}")
    return name_judged(list(runs)), [result for results in runs.values() for result in results]
