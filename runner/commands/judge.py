"""Let a language model or people grade unjudged hits, and score the results with these grades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import numpy as np
import orjson
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from runner.analysis.grades import verdict_columns
from runner.analysis.judging import (
    SCALE,
    JudgedRankings,
    Judging,
    Pair,
    Place,
    Standing,
    bounds,
    fill_judgments,
    judge_pairs,
    pool,
    read_content,
)
from runner.analysis.judging_order import UNJUDGED, RankedPool, order_pairs
from runner.analysis.pair_strata import divide_strata, list_strata, weigh_pairs
from runner.analysis.people import (
    FEWEST,
    draw_pairs,
    name_runs,
    people_grades,
    rank_pool,
    replace_grades,
    report_judge,
)
from runner.analysis.prediction_powered import GradedSample, Ints
from runner.analysis.sheet import PairIds, SheetRow, load_sheet, match_sheet, save_sheet
from runner.analysis.verdicts import GradeVerdict, cut_warning, shorten
from runner.config.addresses import LocalPath
from runner.config.objects import ConfigError, build, build_settings
from runner.config.values import resolve_config
from runner.desk.desk import DeskSettings
from runner.desk.queue import QueueOrder
from runner.desk.results import build_desk_pool, list_pair_ids, load_rankings, load_verdicts, name_judged
from runner.desk.session import judge_by_hand
from runner.llm.journal import Journal
from runner.llm.none import NoLLM
from runner.llm.spending import describe_spending
from runner.lookup import as_typed, results_of_run
from runner.metrics.measures import parse
from runner.reports import console
from runner.reports.judging import (
    confusion_table,
    correction_table,
    judge_table,
    pool_figures,
    pool_table,
    standings_table,
)
from runner.reports.progress import Progress, Status
from runner.result import Result
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
    port: int = Field(default=8002, ge=0, le=65535)
    output: LocalPath | None = None
    sample: int | None = Field(default=None, ge=1)
    order: QueueOrder | None = None
    sheet: LocalPath | None = None
    seed: int = Field(default=0, ge=0)

    @property
    def sheet_order(self) -> QueueOrder:
        """Return the order of a sheet."""
        return self.order or "random"


def main(cfg: DictConfig) -> int:
    """Pool, judge and score; write the judgments and scores to a folder, and log them."""
    started = now()
    config = resolve_config(cfg)
    words = as_typed(config["run"], "run", HydraConfig.get().overrides.task)
    own = build_settings(JudgeSettings, config, plugins=config["plugins"])
    judging = own.judging
    has_judge = not isinstance(judging.llm, NoLLM)
    if own.by == "hand" and has_judge:
        raise ConfigError("by=hand: people judge, not a language model; remove llm=")
    if own.by == "model" and not has_judge and own.sample is None:
        raise ConfigError(
            "llm=none: judging needs a language model; set, for example, llm=openai llm.model=MODEL, or judge yourself "
            "with by=hand"
        )
    tracking = build(config["tracking"], "tracking")
    with Status("reading the results"):
        run, results = _load_results(words, tracking)
        ranked = load_rankings(results, judging.depth, config["plugins"])
    folder = Path(own.output or f"mlruns/judgments/{run}").expanduser()
    if own.by == "hand":
        return _judge_by_hand(own, results, ranked, folder)
    measure = parse(results[0].primary)
    pairs = pool(ranked, judging.depth)
    ids = list_pair_ids(ranked[0].dataset, pairs)
    verdicts, journal = (
        _judge(judging, ranked, pairs, folder) if has_judge else (load_verdicts(folder, ids, own.sheet_order), None)
    )
    sheet = Path(own.sheet).expanduser() if own.sheet else folder / "sheet.csv"
    rows = load_sheet(sheet) if own.sample is not None else []
    places = match_sheet(sheet, rows, {pair: place for place, pair in enumerate(ids)}, own.sheet_order)
    people = people_grades(len(pairs), places, [row.grade for row in rows])
    final = replace_grades(verdicts, people)
    after = {id(one.judgments): fill_judgments(one.judgments, pairs, final) for one in ranked}
    standings = [
        Standing(
            result.name,
            bounds(own, measure, judging.depth),
            bounds(own._replace(judgments=after[id(own.judgments)]), measure, judging.depth),
        )
        for result, own in zip(results, ranked, strict=True)
    ]
    warnings = [warning for warning in (SCALE.warning(verdicts), cut_warning(verdicts)) if warning]
    files = _files(pool_figures(verdicts), warnings, standings)
    _write(folder, ids, verdicts if has_judge else (), files)
    console.show_table(pool_table(verdicts))
    console.show_table(standings_table(standings, str(measure), judging.depth))
    for warning in warnings:
        console.note(f"warning: {warning}")
    if journal is not None and not _note_missing(verdicts):
        journal.forget()
    if own.sample is not None:
        ranks = rank_pool(ranked, list(pairs), judging.depth)
        _extend_sheet(own, sheet, rows, ranked, pairs, verdicts, places, ranks)
        _write_people(folder / "people.tsv", ids, people)
        if own.sheet_order == "random":
            named = name_runs((result.name for result in results), ranked)
            strata = divide_strata(list_strata(verdicts), ranks, len(rows))
            cutoff = min(measure.cutoff or judging.depth, judging.depth)
            files |= _correct_judge(own, named, pairs, strata, people, cutoff)
            _write_files(folder, files)
    if has_judge:
        console.line(f"judgments: {folder / 'judgments.tsv'}")
    parameters = {"judge": repr(judging.llm), "prompt": judging.prompt, "depth": str(judging.depth)}
    figures = {f"judge/{name}": value for name, value in pool_figures(verdicts).items()}
    tags = {"kind": "judging", "judged_run": run, "warnings": " ".join(warnings)}
    with BackgroundTracker(tracking) as tracker:
        tracker.start()
        logged = tracker.log_at_once(DatasetMade(f"judge {run[:8]}", started, parameters, figures, files, tags))
    console.document(
        lambda: {
            "run": logged.id or None,
            "judgments": str(folder / "judgments.tsv"),
            "measure": str(measure),
            **{name.removesuffix(".json"): orjson.Fragment(text) for name, text in files.items()},
        }
    )
    if logged.id:  # empty with tracking=none
        console.line(f"run: {logged.id}")
    return 0


def _judge_by_hand(
    own: JudgeSettings, results: Sequence[Result], ranked: Sequence[JudgedRankings], folder: Path
) -> int:
    """Serve the judging desk until it is stopped."""
    pool, strata = build_desk_pool(results, ranked, own.judging.depth, folder, own.scale)
    settings = DeskSettings(own.order or "decisive", own.seed, own.overlap, own.sample)
    judge_by_hand(pool, strata, settings, folder / "by_hand", own.assessor, own.port)
    return 0


def _judge(
    judging: Judging, ranked: Sequence[JudgedRankings], pairs: Mapping[Pair, Place], folder: Path
) -> tuple[list[GradeVerdict], Journal]:
    """Let the model grade the pool, and show its cost."""
    try:
        with Progress(len(pairs), what="pairs") as progress:
            return judge_pairs(judging, ranked, pairs, folder, progress.advance)
    finally:  # the cost is shown even after an error
        if spent := describe_spending([judging]):
            console.note(spent)


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


def _extend_sheet(
    own: JudgeSettings,
    sheet: Path,
    rows: Sequence[SheetRow],
    ranked: Sequence[JudgedRankings],
    pairs: Mapping[Pair, Place],
    verdicts: Sequence[GradeVerdict],
    places: Sequence[int],
    ranks: RankedPool,
) -> None:
    """Add pairs to the sheet until it has the requested number, and print how many wait for a grade."""
    ids, grades = list_pair_ids(ranked[0].dataset, pairs), [row.grade for row in rows]
    size = min(int(own.sample or 0), len(pairs))
    if own.sheet_order == "random":
        strata = divide_strata(list_strata(verdicts), ranks, max(size, len(rows)))
        new = draw_pairs(strata, weigh_pairs(ranks), places, size, own.seed)
    else:
        people = people_grades(len(pairs), places, grades)
        waiting = {place for place in places if people[place] == UNJUDGED}
        ordered = order_pairs(own.sheet_order, ranks, people, max(size - len(rows), 0) + len(waiting))
        new = [place for place in ordered if place not in waiting][: max(size - len(rows), 0)]
    if new:
        added = [SheetRow(ids[place], *_texts(own, ranked, pairs, place), order=own.sheet_order) for place in new]
        save_sheet(sheet, [*rows, *added])
    if empty := len(new) + grades.count(None):
        console.line(
            f"sheet: {sheet} has {empty:,} pairs to grade; write a grade from {SCALE.least} to {SCALE.greatest} in the "
            "column 'grade', from the top, then run the same command without llm="
        )


def _correct_judge(
    own: JudgeSettings,
    runs: Mapping[str, JudgedRankings],
    pairs: Mapping[Pair, Place],
    strata: Ints,
    people: Ints,
    k: int,
) -> dict[str, str]:
    """Show estimates corrected by people's grades and return them as a file; {} if there are too few grades."""
    graded = np.flatnonzero(people != UNJUDGED)
    if len(graded) < FEWEST:
        if len(graded):
            console.note(f"{len(graded)} of at least {FEWEST} grades; estimates appear once there are enough")
        return {}
    with Status("correcting the judge"):
        sample = GradedSample(strata, graded, people[graded], SCALE.greatest)
        report = report_judge(sample, runs, list(pairs), k, own.seed)
    console.show_table(judge_table(report))
    console.show_table(confusion_table(report))
    console.show_table(correction_table(report))
    console.line(f"nDCG@{k} is corrected to first order, the other measures exactly; intervals are of 95 %")
    return {"correction.json": orjson.dumps(asdict(report), option=orjson.OPT_INDENT_2).decode()}


def _texts(
    own: JudgeSettings, ranked: Sequence[JudgedRankings], pairs: Mapping[Pair, Place], place: int
) -> tuple[str, str]:
    """Return the query and the document of a pair, shortened for the sheet."""
    (query, _), (run, position) = list(pairs.items())[place]
    text, document = ranked[0].dataset.queries.texts[query], read_content(ranked[run].dataset.corpus, position)
    return shorten(text, own.judging.max_characters), shorten(document, own.judging.max_characters)


def _write_people(path: Path, ids: Sequence[PairIds], people: Ints) -> None:
    """Write people's grades as qrels."""
    rows = [f"{q}\t{d}\t{grade}\n" for (q, d), grade in zip(ids, people.tolist(), strict=True) if grade != UNJUDGED]
    if rows:
        path.write_text("query-id\tcorpus-id\tscore\n" + "".join(rows), encoding="utf-8")


def _files(figures: Mapping[str, float], warnings: Sequence[str], standings: Sequence[Standing]) -> dict[str, str]:
    """Return the files to write and to log: the scores, and the counts of outcomes with the warnings."""
    contents: dict[str, object] = {
        "standings.json": [asdict(standing) for standing in standings],
        "summary.json": {**figures, "warnings": list(warnings)},
    }
    return {name: orjson.dumps(content, option=orjson.OPT_INDENT_2).decode() for name, content in contents.items()}


def _write(folder: Path, ids: Sequence[PairIds], verdicts: Sequence[GradeVerdict], files: Mapping[str, str]) -> None:
    """Write the judgments of the model as qrels, its verdicts with their reasons, if there are any, and other files."""
    folder.mkdir(parents=True, exist_ok=True)
    if verdicts:
        pairs = list(zip(ids, verdicts, strict=True))
        rows = [f"{q}\t{d}\t{v.grade:.0f}\n" for (q, d), v in pairs if v.grade is not None]
        (folder / "judgments.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows), encoding="utf-8")
        records = [{"query_id": q, "document_id": d, **verdict_columns(v)} for (q, d), v in pairs]
        (folder / "verdicts.jsonl").write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    _write_files(folder, files)


def _write_files(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _load_results(words: Sequence[str], tracking: Tracking) -> tuple[str, list[Result]]:
    """Return a name for runs, which is the full id of a single run, and the results of all of them."""
    runs: dict[str, list[Result]] = {}
    for word in words:
        run, results = results_of_run(word, tracking)
        runs[run] = results
        if not run.startswith(word.lower()):
            console.note(f"run={word}: run {run}")
    return name_judged(list(runs)), [result for results in runs.values() for result in results]
