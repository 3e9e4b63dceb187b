"""Generate a dataset from chunks: validated queries with the chunks and documents that answer them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from omegaconf import DictConfig
from pydantic.dataclasses import dataclass as settings

from retrievers.llm.chat import ChatError
from runner.config.addresses import RequiredPath
from runner.config.arguments import arguments
from runner.config.objects import ConfigError, build, build_settings
from runner.config.parameters import deciding, flatten
from runner.config.values import public, resolve_config, without_environment
from runner.datasets.saving import INSPECTION, JOURNAL, SUMMARY, beside, check_output
from runner.features.synthesize.loading import check_source, count_skipped_files
from runner.features.synthesize.output import REJECTED, write
from runner.features.synthesize.pipeline import Synthesis, SynthesisResult, synthesize
from runner.features.synthesize.report import (
    chunks_line,
    describe_located,
    describe_skipped,
    reasons_table,
    samples_note,
    samples_table,
    types_table,
)
from runner.features.synthesize.summary import count_spans, figures, summarize_types, summary
from runner.llm.journal import Journal
from runner.llm.none import NoLLM
from runner.llm.spending import describe_spending
from runner.pages import console
from runner.pages.progress import Status
from runner.store.opening import open_store
from runner.store.settings import store_settings
from runner.tracking.background import BackgroundTracker
from runner.tracking.record import DatasetMade, now

UNFINISHED = 1
"""The exit code if the language model stopped answering, or no query was accepted."""

DECIDING = ("count", "seed", "source", "checks", "selection", "sampling", "generator", "validation")
"""The parts of the config that affect which queries are generated."""


@settings(frozen=True, config={"extra": "forbid", "coerce_numbers_to_str": True})
class SynthesizeSettings:
    """The file to write queries to: see `conf/synthesize.yaml`."""

    output: RequiredPath


def main(cfg: DictConfig) -> int:
    """Generate queries, write and show them; return 1 if none was accepted or the language model stopped answering."""
    started, config = now(), resolve_config(cfg)
    output = Path(build_settings(SynthesizeSettings, config).output).expanduser()
    synthesis, tracking = _build_synthesis(config), build(config["tracking"], "tracking")
    check_output(output, *(Path(path).expanduser() for path in synthesis.source.paths))
    check_source(synthesis.source)  # before waiting for a tracker
    store, journal = open_store(store_settings(config)), Journal(beside(output, JOURNAL))
    with BackgroundTracker(tracking) as tracker:
        tracker.start()
        try:
            with Status("synthesize") as status:
                outcome = synthesize(synthesis, store, journal, status.note)
                types = summarize_types(outcome, store)
        except ChatError as error:
            console.error(f"{error}. Run the same command to resume; replies so far are kept.")
            return UNFINISHED
        finally:
            if spent := describe_spending([synthesis]):
                console.note(spent)
        recorded = without_environment(cfg, config)
        decided = public(deciding({name: recorded[name] for name in DECIDING}, synthesis))
        write(output, outcome, summary(outcome, types, decided))
        journal.forget()
        console.line(chunks_line(len(outcome.source), outcome.rejected, len(set(outcome.source.doc_ids))))
        if skipped := count_skipped_files(synthesis.source):
            console.note(describe_skipped(skipped))
        console.show_table(types_table(types), "By query type")
        console.show_table(reasons_table(types), "Rejected")
        if outcome.exhausted and outcome.accepted:
            console.note(_describe_shortage(outcome, synthesis.count))
        if outcome.accepted:
            console.line(describe_located(count_spans(outcome)))
        console.line(f"\nqueries: {output}")
        if outcome.accepted:
            dataset = {"dataset": "synthetic", "dataset.path": str(output)}
            inspection = {**dataset, "output": str(beside(output, INSPECTION))}
            console.line(f"inspect them: python -m runner inspect {arguments(inspection)}")
            console.line(f"evaluate them: python -m runner {' '.join([arguments(dataset), *tracking.overrides()])}")
        files = {"summary.json": beside(output, SUMMARY).read_text(encoding="utf-8")}
        record = DatasetMade(output.stem, started, flatten(decided), figures(types), files, {"kind": "synthesis"})
        run = tracker.log_at_once(record)
    console.document(
        lambda: {"run": run.id or None, "queries": str(output), "summary": orjson.Fragment(files["summary.json"])}
    )
    if run.id:  # empty with tracking=none
        console.line(f"run: {run.id}")
    if outcome.accepted:
        console.show_table(samples_table(outcome.accepted, synthesis.seed), "Samples")
        console.note(samples_note(synthesis.generator))
    if not outcome.accepted:
        console.error(
            f"no query was accepted; see the reasons in {beside(output, REJECTED)}. Try more chunks, more types or "
            "less strict validation."
        )
    return 0 if outcome.accepted else UNFINISHED


def _build_synthesis(config: Mapping[str, Any]) -> Synthesis:
    synthesis = build_settings(Synthesis, config, plugins=config["plugins"])
    if isinstance(getattr(synthesis.generator, "llm", None), NoLLM):
        raise ConfigError("generator=llm: needs a language model; set, for example, llm=openai llm.model=MODEL")
    return synthesis


def _describe_shortage(outcome: SynthesisResult, count: int | None) -> str:
    """Return why there are fewer queries than requested, and how to get more."""
    return (
        f"only {len(outcome.accepted):,} of {count:,} queries were accepted, although every type was requested "
        f"from all {len(outcome.bundles):,} bundles. Try more chunks, more types or less strict validation."
    )
