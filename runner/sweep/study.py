"""Optuna studies over the products of a sweep: they suggest points and receive their values.

No other module imports Optuna.
"""

from __future__ import annotations

import logging
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from filelock import FileLock

from retrievers.excerpts import shorten_text
from runner.config.objects import ConfigError
from runner.sweep.products import Combination
from runner.sweep.space import ALL_EXCLUDED, MOST_EXCLUDED, UNION, SearchSpace

if TYPE_CHECKING:
    import optuna
    from optuna.samplers import BaseSampler
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial, Trial

Sampler = Literal["tpe", "random", "gp", "cmaes", "nsga2", "nsga3", "qmc", "grid"]

Direction = Literal["maximize", "minimize"]

MEMORY, JOURNAL = "memory", "journal:"
"""Storages other than databases: memory, and a file such as journal:mlruns/optuna.log."""

LEAST_TRIALS = 10
"""The smallest number of trials to estimate importances from."""


@dataclass(frozen=True, eq=False)
class PendingTrial:
    """A running trial and its point."""

    trial: Trial
    point: Combination


@dataclass(frozen=True, eq=False)
class AnsweredTrial:
    """A finished trial: its point and its values, None if it failed or a race dropped it.

    `dropped` is what a race wrote about it, `alpha` the part of the error rate that its race used up.
    """

    number: int
    point: Combination
    values: Sequence[float] | None
    frozen: FrozenTrial
    dropped: str | None = None
    alpha: float = 0.0


class Study:
    """An Optuna study. The same seed and answers give the same points, even after an interruption."""

    def __init__(self, study: optuna.Study, space: SearchSpace, sampler: Callable[[int], BaseSampler]) -> None:
        self._study, self._space, self._sampler = study, space, sampler
        self.exhausted = bool(study.user_attrs.get("exhausted"))
        self._over = sum(_is_over(trial) for trial in study.get_trials(deepcopy=False))

    @property
    def name(self) -> str:
        """Return the name of the study in the storage."""
        return self._study.study_name

    def list_answers(self) -> list[AnsweredTrial]:
        """Return the finished trials in order, without excluded ones."""
        from optuna.trial import FixedTrial, TrialState

        answers = []
        for trial in self._study.get_trials(deepcopy=False):
            dropped, alpha = trial.user_attrs.get("dropped"), trial.user_attrs.get("alpha", 0.0)
            if _is_over(trial) and (trial.state is not TrialState.PRUNED or dropped):
                point = self._space.point(FixedTrial(trial.params))
                assert point is not None  # noqa: S101 (the study's name identifies the space)
                answers.append(AnsweredTrial(trial.number, point, trial.values, trial, dropped, alpha))
        return answers

    def ask(self, n: int) -> list[PendingTrial]:
        """Return the next n points, or fewer if there are no more; they do not depend on each other's values.

        Raises `ConfigError` if too many consecutive points are excluded.
        """
        pending: list[PendingTrial] = []
        excluded = 0
        with _quietly():
            self._study.sampler = self._sampler(self._over)
            while len(pending) < n and not self.exhausted:
                trial = self._study.ask()
                point = self._space.point(trial)
                if point is not None:
                    pending.append(PendingTrial(trial, point))
                    continue
                self._end(trial, None, pruned=True)
                excluded += 1
                if excluded == MOST_EXCLUDED:
                    raise ConfigError(ALL_EXCLUDED)
        return pending

    def tell(self, pending: PendingTrial, combination: str, values: Sequence[float] | None) -> None:
        """Record the combination of a point and its values, None if it failed."""
        pending.trial.set_user_attr("combination", combination)
        with _quietly():
            self._end(pending.trial, values)

    def drop(self, pending: PendingTrial, combination: str, dropped: str, queries: int, mean: float) -> None:
        """Record that a race dropped the combination of a point after some queries, with the mean over these.

        Optuna learns that the trial was pruned, and the mean as an intermediate value, not as the value of the trial.
        """
        pending.trial.report(mean, queries)
        pending.trial.set_user_attr("dropped", dropped)
        pending.trial.set_user_attr("combination", combination)
        with _quietly():
            self._end(pending.trial, None, pruned=True)

    def charge(self, pending: PendingTrial, alpha: float) -> None:
        """Record the part of the error rate that the race of a trial used up."""
        pending.trial.set_user_attr("alpha", alpha)

    def importances(self, objective: int, seed: int) -> dict[str, dict[str, float]]:
        """Return the share of an objective's variance that each parameter explains (fANOVA, Hutter et al. 2014).

        The key "" has the parameters of all trials, each other key those of the trials of one product. Groups with too
        few trials are left out.
        """
        from optuna.trial import TrialState

        every = self._study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        groups = {"": every}
        if len(self._space.labels) > 1:
            groups |= {label: [t for t in every if t.params[UNION] == label] for label in self._space.labels}
        importances = {group: _importances(trials, objective, seed) for group, trials in groups.items()}
        return {group: shares for group, shares in importances.items() if shares}

    def _end(self, trial: Trial, values: Sequence[float] | None, pruned: bool = False) -> None:
        from optuna.trial import TrialState

        failed = TrialState.PRUNED if pruned else TrialState.FAIL
        self._over += 1
        try:
            self._study.tell(trial, values, failed if values is None else TrialState.COMPLETE)
        except RuntimeError as error:  # a sampler that has no more points stops Optuna's loop
            if "Study.stop" not in str(error):
                raise
            self.exhausted = True
            self._study.set_user_attr("exhausted", True)


class Studies:
    """The studies of a storage, continued by a sampler."""

    def __init__(self, address: str, sampler: Sampler, seed: int, space: SearchSpace, larger: Sequence[bool]) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        _check(sampler, space, larger)
        self._sampler, self._seed, self._space = sampler, seed, space
        self._directions: list[Direction] = ["maximize" if more else "minimize" for more in larger]
        self._storage = _storage(address)

    def latest(self, name: str) -> Study | None:
        """Return the latest study of a name with its interrupted trials marked as failed; None if there is none."""
        import optuna
        from optuna.trial import TrialState

        names = self._names(name)
        if not names:
            return None
        study = optuna.load_study(study_name=names[-1], storage=self._storage)
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            study.tell(trial.number, state=TrialState.FAIL)
        return self._start(study)

    def new(
        self, name: str, about: Mapping[str, Any], trials: Sequence[tuple[AnsweredTrial, Sequence[float] | None]]
    ) -> Study:
        """Create another study of a name, with the trials of an earlier one and their current values."""
        import optuna
        from optuna.trial import TrialState

        study = optuna.create_study(
            storage=self._storage, directions=self._directions, study_name=f"{name}.{len(self._names(name)) + 1}"
        )
        for key, value in about.items():
            study.set_user_attr(key, value)
        for answer, values in trials:
            frozen = answer.frozen
            study.add_trial(
                optuna.trial.create_trial(
                    state=TrialState.FAIL if values is None else TrialState.COMPLETE,
                    values=values,
                    params=frozen.params,
                    distributions=frozen.distributions,
                    user_attrs=frozen.user_attrs,
                    system_attrs=frozen.system_attrs,
                )
            )
        return self._start(study)

    def passing(self) -> Study:
        """Return a study in memory."""
        import optuna

        return self._start(optuna.create_study(directions=self._directions))

    def _names(self, name: str) -> list[str]:
        """Return the full names of the studies of a name, the latest last."""
        import optuna

        names = [n for n in optuna.get_all_study_names(self._storage) if n.rpartition(".")[0] == name]
        return sorted(names, key=lambda n: int(n.rpartition(".")[2]))

    def _start(self, study: optuna.Study) -> Study:
        return Study(study, self._space, lambda over: _sampler(self._sampler, self._seed, over, self._space))


def _is_over(trial: FrozenTrial) -> bool:
    """Return whether a trial was answered or excluded, and not interrupted."""
    from optuna.trial import TrialState

    return trial.state in (TrialState.COMPLETE, TrialState.PRUNED) or "combination" in trial.user_attrs


def _check(sampler: Sampler, space: SearchSpace, larger: Sequence[bool]) -> None:
    """Raise `ConfigError` for a search that the sampler does not support."""
    place = f"hydra.sweeper.sampler={sampler}"
    if sampler == "grid" and space.intervals():
        raise ConfigError(
            f"{place}: cannot enumerate the interval of {space.intervals()[0]}; write range(from,to,step)"
        )
    if sampler == "cmaes" and len(larger) > 1:
        raise ConfigError(f"{place}: supports only one objective; for several, choose tpe, gp, nsga2 or nsga3")
    if sampler == "cmaes" and find_spec("cmaes") is None:
        raise ConfigError(f"{place}: needs cmaes, which is not installed; run pip install cmaes")


def _sampler(name: Sampler, seed: int, over: int, space: SearchSpace) -> BaseSampler:
    """Return a sampler that continues after `over` trials as if the search had not been interrupted."""
    from optuna import samplers

    now = int(np.random.SeedSequence([seed, over]).generate_state(1)[0])
    if name == "tpe":
        conditional: dict[str, Any] = {"multivariate": True, "group": True} if space.conditional else {}
        return samplers.TPESampler(seed=now, constant_liar=True, warn_independent_sampling=False, **conditional)
    if name == "qmc":  # all trials share one sequence; the study stores the position
        return samplers.QMCSampler(
            seed=seed, scramble=True, warn_independent_sampling=False, warn_asynchronous_seeding=False
        )
    if name == "cmaes":
        return samplers.CmaEsSampler(seed=now, warn_independent_sampling=False)
    if name == "gp":
        return samplers.GPSampler(seed=now, warn_independent_sampling=False, deterministic_objective=True)
    others: dict[str, Callable[..., BaseSampler]] = {
        "random": samplers.RandomSampler,
        "nsga2": samplers.NSGAIISampler,
        "nsga3": samplers.NSGAIIISampler,
        "grid": samplers.BruteForceSampler,
    }
    return others[name](seed=now)


def _importances(trials: Sequence[FrozenTrial], objective: int, seed: int) -> dict[str, float]:
    import optuna

    values = {trial.values[objective] for trial in trials}
    shared = set.intersection(*(set(trial.params) for trial in trials)) if trials else set()
    varied = [name for name in shared if len({trial.params[name] for trial in trials}) > 1]
    if len(trials) < LEAST_TRIALS or len(values) < 2 or not varied:
        return {}
    passing = optuna.create_study(directions=["maximize"] * len(trials[0].values))
    passing.add_trials(trials)
    with _quietly():
        shares = optuna.importance.get_param_importances(
            passing,
            evaluator=optuna.importance.FanovaImportanceEvaluator(seed=seed),
            params=sorted(varied),
            target=lambda trial: trial.values[objective],
        )
    return {name: float(share) for name, share in shares.items()}


def _storage(address: str) -> BaseStorage:
    """Open a storage; raises `ConfigError`."""
    from optuna.exceptions import OptunaError
    from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import SQLAlchemyError

    try:
        if address == MEMORY:
            return InMemoryStorage()
        if address.startswith(JOURNAL):
            path = Path(address.removeprefix(JOURNAL))
            path.parent.mkdir(parents=True, exist_ok=True)
            return JournalStorage(JournalFileBackend(str(path)))
        url = make_url(address)
        if url.get_backend_name() != "sqlite" or not url.database:
            return _close_with_owner(RDBStorage(address))
        file = Path(url.database)
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(file.with_suffix(".lock")):  # processes must not create tables at the same time
            storage = RDBStorage(address)
        _write_ahead(storage)
        return _close_with_owner(storage)
    except (SQLAlchemyError, OptunaError, ImportError, OSError, ValueError) as error:
        why = shorten_text(str(error).partition("(Background on")[0], 300)
        way_out = "set, for example, sqlite:///mlruns/optuna.db, journal:mlruns/optuna.log or memory"
        raise ConfigError(f"hydra.sweeper.storage={address}: cannot be opened ({why}); {way_out}") from error


def _close_with_owner(storage: Any) -> BaseStorage:  # noqa: ANN401 (an RDBStorage)
    """Have the connections of a storage closed when nothing uses it any more, which Optuna leaves to its caller."""
    weakref.finalize(storage, storage.engine.dispose)
    return cast("BaseStorage", storage)


def _write_ahead(storage: Any) -> None:  # noqa: ANN401 (its engine is SQLAlchemy's)
    """Turn on SQLite's write-ahead log: a trial makes many commits, which would each wait for the disk."""
    from sqlalchemy import event

    def set_up(connection: Any, _record: object) -> None:  # noqa: ANN401 (sqlite3's)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA busy_timeout=60000")

    event.listen(storage.engine, "connect", set_up)
    storage.engine.dispose()  # close connections without these settings


@contextmanager
def _quietly() -> Iterator[None]:
    """Suppress Optuna's warnings about experimental features and samplers."""
    logger, level = logging.getLogger("optuna"), logging.getLogger("optuna").level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
