"""Have a language model judge what results found and nobody has judged, and score them without and with that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from retrievers.base import Rankings
    from runner.analysis.judging import Judging, Pair, Ranked, Standing
    from runner.analysis.verdicts import Verdict
    from runner.datasets.base import Dataset
    from runner.result import Result
    from runner.tracking.settings import Tracking


def main(cfg: DictConfig) -> int:
    """Pool, judge, score, and write what came of it into a folder."""
    from pathlib import Path

    from hydra.core.hydra_config import HydraConfig

    from runner.analysis.judging import SCALE, Standing, bounds, filled, judge_pairs, pool
    from runner.analysis.verdicts import cut_warning
    from runner.config.objects import ConfigError, build
    from runner.llm.none import NoLLM
    from runner.llm.spending import describe_spending
    from runner.lookup import as_typed, results_of_run
    from runner.metrics.measures import parse
    from runner.reports import console
    from runner.reports.judging import pool_figures, pool_table, standings_table
    from runner.tracking.background import BackgroundTracker
    from runner.tracking.record import DatasetMade, now

    started = now()
    config: Any = OmegaConf.to_container(cfg, resolve=True)
    word = ",".join(as_typed(config["run"], "run", HydraConfig.get().overrides.task))
    judging: Judging = build(config["judging"], "judging", config["plugins"])
    if isinstance(judging.llm, NoLLM):
        raise ConfigError("llm=none: there is nobody to judge; choose a language model: llm=openai llm.model=MODEL")
    tracking: Tracking = build(config["tracking"], "tracking")
    with console.Working("reading the results"):
        run, results = results_of_run(word, tracking)
        found = _ranked(results, config["plugins"])
    folder = Path(str(config["output"] or f"mlruns/judgments/{run}")).expanduser()
    measure = parse(results[0].primary)
    pairs = pool(found, judging.depth)
    try:
        with console.Progress(len(pairs), what="pairs") as progress:
            said, journal = judge_pairs(judging, found, pairs, folder, progress.advance)
    finally:  # what is spent is spent, whatever became of it
        if spent := describe_spending([judging]):
            console.note(spent)
    after = {id(each.judgments): filled(each.judgments, pairs, said) for each in found}
    standings = [
        Standing(
            result.name,
            bounds(own, measure, judging.depth),
            bounds(own._replace(judgments=after[id(own.judgments)]), measure, judging.depth),
        )
        for result, own in zip(results, found, strict=True)
    ]
    warnings = [warning for warning in (SCALE.warning(said), cut_warning(said)) if warning]
    files = _files(pool_figures(said), warnings, standings)
    _write(folder, found[0].dataset, pairs, said, files)
    console.show_table(pool_table(said))
    console.show_table(standings_table(standings, str(measure), judging.depth))
    for warning in warnings:
        console.note(f"warning: {warning}")
    left = [verdict for verdict in said if verdict.outcome in ("unasked", "error")]
    if left:
        unasked = [verdict for verdict in left if verdict.outcome == "unasked"]
        of_all = f"{len(left):,} of {len(said):,} pairs are left without a verdict, {len(unasked):,} of them unasked"
        console.note(f"{of_all} ({(unasked or left)[0].said}): the same command goes on with them")
    else:
        journal.forget()
    console.line(f"judgments: {folder / 'judgments.tsv'}")
    parameters = {"judge": repr(judging.llm), "prompt": judging.prompt, "depth": str(judging.depth)}
    figures = {f"judge/{name}": value for name, value in pool_figures(said).items()}
    tags = {"kind": "judging", "judged_run": run, "warnings": " ".join(warnings)}
    with BackgroundTracker(tracking) as tracker:
        tracker.start()
        (logged,) = tracker.ask("log", [DatasetMade(f"judge {run[:8]}", started, parameters, figures, files, tags)])
    console.line(f"run: {logged.id}")
    return 0


def _ranked(results: Sequence[Result], plugins: Sequence[str]) -> list[Ranked]:
    """Return what results found in the dataset that all of them are of, loaded again, and cut as it was for each."""
    from runner.analysis.judging import Ranked
    from runner.config.objects import ConfigError
    from runner.datasets.settings import build_dataset

    prints = {result.dataset.fingerprint: result for result in results}
    if len(prints) > 1:
        names = ", ".join(sorted(result.dataset.name for result in prints.values()))
        raise ConfigError(f"run: a sweep over several datasets ({names}): judge one of its combinations")
    built = [build_dataset(result.config["dataset"], plugins) for result in results]
    whole = built[0][0].load()
    datasets = {repr(chunking): whole.split_documents(chunking) for _, chunking in built}
    found = []
    for (_, chunking), result in zip(built, results, strict=True):
        dataset, made = datasets[repr(chunking)], result.dataset
        if (dataset.fingerprint, dataset.corpus.fingerprint) != (made.fingerprint, made.corpus_fingerprint):
            raise ConfigError(f"run: the dataset {dataset.name} is not what it was when these results were made")
        judgments = whole.judgments_for(result.search_type or result.retriever)
        found.append(Ranked(dataset, _positions(result, dataset), judgments))
    return found


def _positions(result: Result, dataset: Dataset) -> Rankings:
    """Return the rankings of a result with documents by their position in the dataset's corpus."""
    from dataclasses import replace

    import numpy as np

    from retrievers.base import NOTHING
    from runner.result import ResultError

    if result.hits is None:
        raise ResultError(f"{result.name} has no rankings in its record")
    at = {identifier: position for position, identifier in enumerate(dataset.corpus.ids)}
    unknown = tuple(dict.fromkeys(i for i in result.hits.documents if i not in at))
    at |= {identifier: len(dataset.corpus) + place for place, identifier in enumerate(unknown)}
    positions = np.array([*(at[i] for i in result.hits.documents), NOTHING], dtype=np.int32)
    return replace(result.hits.rankings, documents=positions[result.hits.rankings.documents], unknown_ids=unknown)


def _files(figures: Mapping[str, float], warnings: Sequence[str], standings: Sequence[Standing]) -> dict[str, str]:
    """Return what is logged and written alike: the scores, and how many verdicts ended how, with the warnings."""
    from dataclasses import asdict

    import orjson

    contents: dict[str, object] = {
        "standings.json": [asdict(standing) for standing in standings],
        "summary.json": {**figures, "warnings": list(warnings)},
    }
    return {name: orjson.dumps(each, option=orjson.OPT_INDENT_2).decode() for name, each in contents.items()}


def _write(
    folder: Path, dataset: Dataset, pairs: Collection[Pair], said: Sequence[Verdict], files: Mapping[str, str]
) -> None:
    """Write the model's judgments as TREC's qrels have them, its verdicts with their reasons, and the other files."""
    from dataclasses import asdict

    import orjson

    folder.mkdir(parents=True, exist_ok=True)
    ids = [(dataset.queries.ids[query], dataset.documents.ids[document]) for query, document in pairs]
    rows = [f"{q}\t{d}\t{v.grade:.0f}\n" for (q, d), v in zip(ids, said, strict=True) if v.grade is not None]
    (folder / "judgments.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows), encoding="utf-8")
    verdicts = [{"query_id": q, "document_id": d, **asdict(v)} for (q, d), v in zip(ids, said, strict=True)]
    (folder / "verdicts.jsonl").write_bytes(b"".join(orjson.dumps(verdict) + b"\n" for verdict in verdicts))
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
