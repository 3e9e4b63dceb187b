"""Evaluate mixtures of two recorded results: settings, documents, judgments and queries, each from either result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from retrievers.base import Corpus, RetrieverError
from runner.comparison.comparability import NotComparable
from runner.config.consent import Consent, restore_values
from runner.config.objects import ConfigError
from runner.datasets.base import DatasetError
from runner.datasets.chunking import Chunking, Whole
from runner.datasets.dataset import Dataset
from runner.datasets.given import GivenDataset
from runner.datasets.mixing import PARTS, DatasetPair
from runner.datasets.settings import build_dataset
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.result import Result
from runner.features.explain.settings_changes import SettingChange, mix_settings
from runner.features.explain.terms import name_setting
from runner.results.lookup import Named
from runner.results.re_evaluation import build_recorded_experiment, check_repeatable
from runner.statistics.attribution import Coalition


def load_data(key: str, named: Named, moved: Mapping[str, Any], bench: Bench, consent: Consent) -> Dataset:
    """Return the whole documents, queries and judgments of a result; raises `NotComparable` if they are not available.

    `moved` replaces recorded settings of the dataset; the setting explain.KEY_data gives them.
    """
    result, place = named.result, f"{key}={named.source}"
    way_out = f"set their current location, for example '+explain.{key}_data={{path: DIR}}'"
    if not (recorded := result.config.get("dataset")):
        raise NotComparable(f"{place}: the record does not contain the settings of its dataset")
    try:
        left = {key: value for key, value in recorded.items() if key not in moved}
        values = {**restore_values({"dataset": left}, consent)["dataset"], **moved}
        data = bench.datasets.load(build_dataset(values, consent.plugins)[0])
    except (ConfigError, DatasetError, RetrieverError) as error:
        raise NotComparable(f"{place}: its data cannot be loaded ({error}); {way_out}") from error
    if data.fingerprint != result.dataset.fingerprint:
        raise NotComparable(
            f"{place}: its data have changed since it was measured (fingerprint {data.fingerprint[:8]}, recorded "
            f"{result.dataset.fingerprint[:8]}); restore them and {way_out}"
        )
    return data


class MixedEvaluation:
    """Evaluates coalitions: sets of settings and parts of the data that are the candidate's. Each is evaluated once.

    `moved` are settings of the command line that replace recorded ones of datasets.
    """

    def __init__(
        self,
        results: tuple[Result, Result],
        pair: DatasetPair,
        changes: Sequence[SettingChange],
        bench: Bench,
        consent: Consent,
        moved: Mapping[str, Any],
    ) -> None:
        self._results, self._pair, self._changes = results, pair, changes
        self._bench, self._consent, self._moved = bench, consent, moved
        self._experiments: dict[frozenset[str], Experiment] = {}
        self._data: dict[tuple[int, ...], tuple[GivenDataset, Dataset]] = {}
        self._chunks: dict[tuple[int, str], Corpus] = {}
        self._evaluations: dict[Coalition, Result] = {}

    def __len__(self) -> int:
        return len(self._evaluations)

    def check(self, coalitions: Sequence[Coalition]) -> None:
        """Raise `NotComparable` if the settings of a coalition cannot be built, or not be evaluated again."""
        for coalition in coalitions:
            self._build_experiment(coalition)

    def evaluate(self, coalition: Coalition) -> Result:
        """Return the evaluation of a coalition; raises `NotComparable`."""
        if coalition not in self._evaluations:
            experiment = self._build_experiment(coalition)
            try:
                self._evaluations[coalition] = self._bench.evaluate(self._with_data(experiment, coalition))
            except (ConfigError, DatasetError, RetrieverError) as error:
                raise NotComparable(f"{experiment.name}: {error}") from error
        return self._evaluations[coalition]

    def _build_experiment(self, coalition: Coalition) -> Experiment:
        wanted = frozenset(change.name for change in self._changes if name_setting(change.name) in coalition)
        if wanted not in self._experiments:
            base = self._results[len(wanted) == len(self._changes)]
            mixed = replace(base, config=mix_settings(*self._results, wanted))
            try:
                experiment = build_recorded_experiment(mixed, mixed, self._consent, self._moved)
            except (ConfigError, DatasetError, RetrieverError) as error:
                raise NotComparable(str(error)) from error
            check_repeatable(experiment, mixed, any_code=True)
            self._experiments[wanted] = experiment
        return self._experiments[wanted]

    def _with_data(self, experiment: Experiment, coalition: Coalition) -> Experiment:
        """Return an experiment on the mixture of data of a coalition."""
        is_candidate = all(part in coalition for part in self._pair.changed)
        sides = tuple(int(part in coalition if part in self._pair.changed else is_candidate) for part in PARTS)
        if sides not in self._data:
            data = self._pair.mix(*sides)
            source = GivenDataset(name=data.name, split=data.split, content=data.fingerprint, dataset=data)
            self._data[sides] = source, data
        source, data = self._data[sides]
        self._bench.datasets.add(source, experiment.chunking, self._split(data, experiment.chunking))
        return replace(experiment, source=source)

    def _split(self, data: Dataset, chunking: Chunking) -> Dataset:
        """Return a dataset with chunks; each version of the documents is split once."""
        if isinstance(chunking, Whole):
            return data
        key = id(data.corpus), repr(chunking)
        if key not in self._chunks:
            self._chunks[key] = chunking.split(data.corpus)
        return data.with_chunks(self._chunks[key])
