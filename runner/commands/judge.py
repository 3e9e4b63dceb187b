"""Let a language model or people grade unjudged hits, and score the results with these grades."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

import numpy as np
import orjson
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import NOTHING, Rankings
from retrievers.texts import fetch_documents
from runner.analysis.grades import verdict_columns, verdict_of
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
from runner.datasets.base import Dataset
from runner.datasets.settings import build_dataset
from runner.desk.desk import DeskSettings
from runner.desk.pairs import DeskPool
from runner.desk.queue import QueueOrder
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
from runner.result import Result, ResultError
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
        raise ConfigError("by=hand: people judge, so no language model is asked; remove llm=")
    if own.by == "model" and not has_judge and own.sample is None:
        raise ConfigError(
            "llm=none: judging needs a language model; set, for example, llm=openai llm.model=MODEL, or judge yourself "
            "with by=hand"
        )
    tracking = build(config["tracking"], "tracking")
    with Status("reading the results"):
        run, results = _load_results(words, tracking)
        ranked = _load_ranked(results, judging.depth, config["plugins"])
    folder = Path(own.output or f"mlruns/judgments/{run}").expanduser()
    if own.by == "hand":
        return _judge_by_hand(own, results, ranked, folder)
    measure = parse(results[0].primary)
    pairs = pool(ranked, judging.depth)
    ids = _pair_ids(ranked[0].dataset, pairs)
    verdicts, journal = (
        _judge(judging, ranked, pairs, folder) if has_judge else (_load_verdicts(folder, ids, own.sheet_order), None)
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
    """Serve the judging desk until it is stopped.

    Queries without gold are pooled if the dataset keeps unjudged queries or has no gold at all.
    """
    depth, judgments = own.judging.depth, ranked[0].judgments
    keeps = any(result.config["dataset"].get("unjudged_queries") == "keep" for result in results)
    pairs = pool(ranked, depth, all_queries=keeps or not (judgments.grades > 0).any())
    verdicts = _load_verdicts(folder, _pair_ids(ranked[0].dataset, pairs), "")
    desk_pool = DeskPool.build(name_runs((result.name for result in results), ranked), pairs, depth, own.scale)
    settings = DeskSettings(own.order or "decisive", own.seed, own.overlap, own.sample)
    judge_by_hand(desk_pool, list_strata(verdicts), settings, folder / "by_hand", own.assessor, own.port)
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
    ids, grades = _pair_ids(ranked[0].dataset, pairs), [row.grade for row in rows]
    size = min(int(own.sample or 0), len(pairs))
    if own.sheet_order == "random":
        strata = divide_strata(list_strata(verdicts), ranks, max(size, len(rows)))
        new = draw_pairs(strata, weigh_pairs(ranks), places, grades, size, own.seed)
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


def _pair_ids(dataset: Dataset, pairs: Collection[Pair]) -> list[PairIds]:
    names = dataset.documents.ids
    return [(dataset.queries.ids[query], names[document]) for query, document in pairs]


def _load_verdicts(folder: Path, ids: Sequence[PairIds], order: str) -> list[GradeVerdict]:
    """Return the verdicts on pairs from a folder; pairs without a verdict are unjudged."""
    file = folder / "verdicts.jsonl"
    if not file.is_file() and order == "random":
        raise ConfigError(
            f"llm=none: {file} does not exist, so there are no grades to correct; let a language model judge first, "
            "for example with llm=openai llm.model=MODEL, or set order=decisive, which needs none"
        )
    rows = [orjson.loads(line) for line in file.read_bytes().splitlines()] if file.is_file() else []
    earlier = {(row["query_id"], row["document_id"]): verdict_of(row) for row in rows}
    missing = GradeVerdict(None, "unasked", "no grade in verdicts.jsonl")
    return [earlier.get(pair, missing) for pair in ids]


def _load_results(words: Sequence[str], tracking: Tracking) -> tuple[str, list[Result]]:
    """Return a name for runs, which is the full id of a single run, and the results of all of them."""
    runs = dict(results_of_run(word, tracking) for word in words)
    name = next(iter(runs)) if len(runs) == 1 else "-".join(sorted(run[:8] for run in runs))
    return name, [result for results in runs.values() for result in results]


def _load_ranked(results: Sequence[Result], depth: int, plugins: Sequence[str]) -> list[JudgedRankings]:
    """Return the rankings of results with their dataset, which is loaded again and split as it was for each result.

    Documents among the first `depth` hits that the dataset lacks are added if the retrievers can return them by id.
    """
    prints = {result.dataset.fingerprint: result for result in results}
    if len(prints) > 1:
        names = ", ".join(sorted(result.dataset.name for result in prints.values()))
        raise ConfigError(f"run: the sweep has several datasets ({names}); choose one of its combinations")
    built = [build_dataset(result.config["dataset"], plugins) for result in results]
    whole = built[0][0].load()
    if whole.spans is not None:
        raise ConfigError(
            f"run: the gold of {whole.name} is spans, and judge grades documents; add passages to the file of spans, "
            "or evaluate with dataset.gold=documents"
        )
    datasets = {repr(chunking): whole.split_documents(chunking) for _, chunking in built}
    for (_, chunking), result in zip(built, results, strict=True):
        dataset, summary = datasets[repr(chunking)], result.dataset
        if (dataset.fingerprint, dataset.corpus.fingerprint) != (summary.fingerprint, summary.corpus_fingerprint):
            raise ConfigError(f"run: the dataset {dataset.name} has changed since the evaluation; evaluate it again")
    if all(dataset.whole is None for dataset in datasets.values()):
        whole = _add_documents(whole, results, depth, plugins)
        datasets = dict.fromkeys(datasets, whole)
    ranked = []
    for (_, chunking), result in zip(built, results, strict=True):
        dataset = datasets[repr(chunking)]
        judgments = whole.judgments_for(result.search_type or result.retriever)
        ranked.append(JudgedRankings(dataset, _positions(result, dataset), judgments))
    return ranked


def _add_documents(dataset: Dataset, results: Sequence[Result], depth: int, plugins: Sequence[str]) -> Dataset:
    """Return the dataset with the documents among the first hits that it lacks, fetched from the retrievers by id."""
    documents = dataset.corpus
    for result in results:
        if result.hits is None:
            continue
        first, grades = result.hits.rankings.documents[:, :depth], result.hits.grades[:, :depth]
        ids = [result.hits.documents[place] for place in first[(first != NOTHING) & (grades < 0)].tolist()]
        if not all(name in documents.positions for name in ids):
            try:
                retriever = build(result.config.get("retriever"), "retriever", plugins)
            except ConfigError as error:
                console.note(f"the texts of hits outside the dataset are not available ({error})")
                continue
            documents = fetch_documents(retriever, documents, ids)
    return dataset if documents is dataset.corpus else dataset.with_documents(documents)


def _positions(result: Result, dataset: Dataset) -> Rankings:
    """Return the rankings of a result with documents by their position in the dataset's corpus."""
    if result.hits is None:
        raise ResultError(f"{result.name}: the record contains no rankings to judge")
    at = {identifier: position for position, identifier in enumerate(dataset.corpus.ids)}
    unknown = tuple(dict.fromkeys(i for i in result.hits.documents if i not in at))
    at |= {identifier: len(dataset.corpus) + place for place, identifier in enumerate(unknown)}
    positions = np.array([*(at[i] for i in result.hits.documents), NOTHING], dtype=np.int32)
    return replace(result.hits.rankings, documents=positions[result.hits.rankings.documents], unknown_ids=unknown)


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
