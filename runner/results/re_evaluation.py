"""Evaluate the recorded configuration of a result again on the data of another result.

Two results on different data differ in their settings and in their data. Evaluating the settings of one on the data of
the other separates the two effects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from retrievers.base import Corpus, RetrieverError, iter_parts
from retrievers.capabilities import read_declaration
from retrievers.runs.existing import ExistingRetriever
from runner.comparison.comparability import NotComparable, check_comparable
from runner.comparison.compare import Comparison, TableStatistics, compare_results
from runner.comparison.data_effect import DataEffect, check_shared_queries, measure_data_effect
from runner.config.consent import Consent, NotAllowedError, restore_values
from runner.config.objects import ConfigError
from runner.config.values import Settled
from runner.datasets.base import DatasetError
from runner.datasets.dataset import Dataset
from runner.datasets.settings import CHUNKING, build_dataset
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment, build_experiment
from runner.evaluation.result import Result
from runner.pages import console
from runner.results.lookup import Named
from runner.system.environment import describe_code

RE_EVALUATED = "re-evaluated"
"""The suffix of the name of a result that was evaluated again."""

_LLM, _NO_LLM = "runner.llm.", "runner.llm.none.NoLLM"


ReEvaluation = Literal["auto", "any_code", "never"]
"""When to evaluate a baseline again if the data differ: only if its code is unchanged, with any code, or never."""


def compare_on_same_data(
    results: Sequence[Named],
    statistics: TableStatistics,
    primary: str | None,
    wanted: ReEvaluation,
    open_bench: Callable[[], Bench],
    consent: Consent,
    dataset: Dataset | None = None,
    rules: Sequence[str] = (),
    rivals: Sequence[Result] = (),
) -> tuple[Comparison, DataEffect | None]:
    """Compare candidates with the first result; if data differ, evaluate its configuration on the candidates' data.

    `dataset` is the candidates' dataset, if it is already loaded, `rules` are the measures of the gate, and `rivals`
    the results among which these were chosen. The effect of the data is None if the data are the same. Raises
    `NotComparable`.
    """
    first, *candidates = results
    again = _bring_to_data(first.result, [named.result for named in candidates], wanted, open_bench, consent, dataset)
    systems = [again or first.result, *(named.result for named in candidates)]
    sources = [f"{first.source}, {RE_EVALUATED}" if again else first.source, *(named.source for named in candidates)]
    comparison = compare_results(systems, statistics, primary, sources, rules, rivals)
    if again is None:
        return comparison, None
    if RE_EVALUATED not in comparison.labels[0]:
        comparison = replace(comparison, labels=[f"{comparison.labels[0]} {RE_EVALUATED}", *comparison.labels[1:]])
    effect = measure_data_effect(first.result, again, comparison.results[1:], comparison.labels[1:], comparison)
    remarks = [*comparison.notes, *describe_versions(first.result, again)]
    return replace(comparison, notes=remarks), effect


def _bring_to_data(
    baseline: Result,
    candidates: Sequence[Result],
    wanted: ReEvaluation,
    open_bench: Callable[[], Bench],
    consent: Consent,
    dataset: Dataset | None,
) -> Result | None:
    """Return the baseline evaluated on the candidates' data; None if the results are comparable or data are unknown."""
    other = next((c for c in candidates if c.dataset.fingerprint != baseline.dataset.fingerprint), None)
    if other is None or not (baseline.dataset.corpus_fingerprint and other.dataset.corpus_fingerprint):
        return None
    try:
        check_comparable(baseline, other)
    except NotComparable as problem:
        if wanted == "never":
            raise NotComparable(
                f"{problem}; to evaluate the baseline again on the candidate's data, set compare.re_evaluate=auto"
            ) from None
        try:
            check_shared_queries(baseline, other)
            return re_evaluate(baseline, other, open_bench(), consent, wanted == "any_code", dataset)
        except NotComparable as reason:
            raise NotComparable(
                f"{problem}; the baseline cannot be evaluated on the candidate's data: {reason}"
            ) from reason
    return None


def re_evaluate(
    baseline: Result,
    candidate: Result,
    bench: Bench,
    consent: Consent,
    any_code: bool,
    dataset: Dataset | None = None,
) -> Result:
    """Return the result of the baseline's retriever, chunking and measures on the candidate's data.

    Unless `any_code` is true, the code must be unchanged since the baseline: otherwise the effect of a code change
    would count as an effect of the data. Raises `NotComparable` with the reason if the configuration or the data cannot
    be restored.
    """
    try:
        experiment = build_recorded_experiment(baseline, candidate, consent)
        check_repeatable(experiment, baseline, any_code)
        if dataset is not None:
            bench.datasets.add(experiment.source, experiment.chunking, dataset)
        data = bench.dataset(experiment)
        if data.fingerprint != candidate.dataset.fingerprint:
            raise NotComparable(
                f"the data of {candidate.name} changed after its evaluation (from {candidate.dataset.fingerprint[:8]} "
                f"to {data.fingerprint[:8]}); evaluate it again"
            )
        return bench.evaluate(experiment)
    except (ConfigError, DatasetError, RetrieverError) as error:
        raise NotComparable(str(error)) from error


def load_documents(result: Result, bench: Bench, consent: Consent) -> Corpus | None:
    """Return the documents that a result was measured on; None if they cannot be loaded, or have changed since.

    If loading them needs more consent, a note says so.
    """
    if not (recorded := result.config.get("dataset")):
        return None
    try:
        values = restore_values({"dataset": recorded}, consent)["dataset"]
        data = bench.datasets.load(*build_dataset(values, consent.plugins))
    except NotAllowedError as refusal:
        console.note(f"the texts of the documents of {result.name} are not shown: {refusal}")
        return None
    except (ConfigError, DatasetError, RetrieverError):
        return None
    return data.documents if data.fingerprint == result.dataset.fingerprint else None


def find_obstacle(result: Result) -> str:
    """Return why a record shows that its evaluation cannot be repeated; "" if nothing in it does."""
    targets = list(_iter_targets(result.config.get("retriever")))
    if "retrievers.runs.run_file.RunFile" in targets:
        return f"the rankings of {result.name} were read from a file"
    if missing := [key for key in ("retriever", "metrics", "dataset", "choices") if not result.config.get(key)]:
        return f"the record of {result.name} does not contain the settings of its {missing[0]}"
    if any(str(target).startswith(_LLM) and target != _NO_LLM for target in targets):
        return f"the retriever of {result.name} uses a language model, whose replies are not repeatable"
    if "retrievers.runs.existing.GivenRetriever" in targets:
        return f"the retriever of {result.name} is an object that was passed in Python"
    if result.addresses:
        services = ", ".join(dict.fromkeys(result.addresses.values()))
        return f"{result.name} was measured on a live service ({services}), which may have changed since"
    return ""


def build_recorded_experiment(
    baseline: Result, candidate: Result, consent: Consent, moved: Mapping[str, Any] | None = None
) -> Experiment:
    """Return the experiment of the baseline's recorded settings on the candidate's dataset.

    `moved` are settings of the command line that replace recorded ones of the dataset.
    Raises `NotComparable` if the record or the retriever does not allow a second evaluation.
    """
    recorded, others = baseline.config, candidate.config
    if obstacle := find_obstacle(baseline):
        raise NotComparable(obstacle)
    if not others.get("dataset"):
        raise NotComparable(f"the record of {candidate.name} does not contain the settings of its dataset")
    moved = moved or {}
    data = {key: value for key, value in others["dataset"].items() if key != CHUNKING and key not in moved}
    if CHUNKING in recorded["dataset"]:
        data[CHUNKING] = recorded["dataset"][CHUNKING]
    public = {
        "retriever": recorded["retriever"],
        "metrics": recorded["metrics"],
        "statistics": recorded.get("statistics") or {},
        "dataset": data,
        "choices": {**recorded["choices"], "dataset": (others.get("choices") or {}).get("dataset", "")},
    }
    config = {**restore_values(public, consent), "plugins": list(consent.plugins)}
    config["dataset"], public["dataset"] = {**config["dataset"], **moved}, {**data, **moved}
    name = f"{baseline.name} {RE_EVALUATED}"
    return replace(build_experiment(Settled(config, public, {}), name, baseline.swept), label=baseline.retriever)


def check_repeatable(experiment: Experiment, baseline: Result, any_code: bool) -> None:
    """Raise `NotComparable` if a second search with the same settings could give other rankings on the same data."""
    for part in _iter_settings(experiment.retriever):
        if isinstance(part, ExistingRetriever) and not part.pass_corpus:
            raise NotComparable(
                f"the retriever of {baseline.name} ({part.factory}) has its own index; only a retriever "
                "with retriever.pass_corpus=true can search other documents"
            )
        if read_declaration(part).live and not isinstance(part, ExistingRetriever):
            raise NotComparable(f"{baseline.name} was measured on a live service, which may have changed since")
    recorded, now = baseline.environment.get("code"), describe_code(experiment.retriever)
    if recorded and not any_code:
        changed = sorted(name for name in {*recorded, *now} if recorded.get(name) != now.get(name))
        if changed:
            raise NotComparable(
                f"the code of {', '.join(changed)} has changed since {baseline.name} was recorded, and the effect "
                "of that change would be attributed to the data; evaluate the old code on the new data and "
                "use the result as the baseline, or set compare.re_evaluate=any_code to ignore the change"
            )


def describe_versions(baseline: Result, again: Result) -> list[str]:
    """Return remarks on the code and versions of a recorded result that differ from today's, or are unknown."""
    remarks = []
    recorded, now = baseline.environment, again.environment
    if not recorded.get("code"):
        remarks.append(
            "The record of the baseline does not identify its code, so the effect of any code change since then "
            "counts as an effect of the data."
        )
    elif recorded["code"] != now["code"]:
        remarks.append(
            "The code has changed since the baseline was recorded; the effect of this change counts as an effect "
            "of the data."
        )
    before, after = ({"python": e.get("python"), **e.get("packages", {})} for e in (recorded, now))
    changed = [f"{n} {v} to {after[n]}" for n, v in before.items() if v and after.get(n) and after[n] != v]
    if changed:
        remarks.append(
            f"Versions have changed ({', '.join(changed)}); the effect of these changes counts as an effect of the "
            "data."
        )
    return remarks


def _iter_settings(settings: object) -> Iterator[object]:
    """Yield settings and all settings nested in them."""
    yield settings
    for part in iter_parts(settings):
        yield from _iter_settings(part)


def _iter_targets(node: Any) -> Iterator[Any]:  # noqa: ANN401 (any recorded value)
    """Yield the class that each part of a recorded configuration names."""
    if isinstance(node, Mapping):
        yield node.get("_target_")
        for value in node.values():
            yield from _iter_targets(value)
    elif isinstance(node, list):
        for value in node:
            yield from _iter_targets(value)
