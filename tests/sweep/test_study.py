from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import optuna
import pytest

from runner.config.objects import ConfigError
from runner.sweep.products import Combination, products
from runner.sweep.settings import Space
from runner.sweep.space import SearchSpace
from runner.sweep.study import MEMORY, Sampler, Studies, Study
from tests.sweep.searches import open_storage

PLANE = ("a=interval(0,1)", "b=range(0,1.1,0.1)")
GRID = ("a=0,0.5,1", "b=x,y")


def space(*arguments: str, **settings: Any) -> SearchSpace:
    return SearchSpace(products(arguments, {}, Space(**settings)))


def studies(
    of: SearchSpace, sampler: Sampler = "tpe", address: str = MEMORY, seed: int = 0, objectives: int = 1
) -> Studies:
    return Studies(address, sampler, seed, of, [True] * objectives)


def value(point: Combination) -> list[float]:
    return [-math.hypot(*(float(text) - 0.3 for text in point.swept.values()))]


def go(study: Study, n: int, at_once: int = 1, of: Any = value) -> list[tuple[str, ...]]:
    """Answer so many trials and return their points."""
    found = []
    for _ in range(0, n, at_once):
        for asked in study.ask(at_once):
            found.append(asked.point.overrides)
            study.tell(asked, str(found[-1]), of(asked.point))
    return found


@pytest.mark.parametrize("sampler", ["tpe", "random", "nsga2", "nsga3", "qmc", "gp"])
def test_a_sampler_asks_for_other_points_and_the_same_seed_for_the_same(sampler: Sampler) -> None:
    n = 12 if sampler in ("tpe", "gp") else 6  # past the first ten, which are drawn
    first, again = (go(studies(space(*PLANE), sampler).new("s", {}, []), n) for _ in range(2))
    assert first == again
    assert len(set(first)) > n // 2
    assert first != go(studies(space(*PLANE), sampler, seed=1).new("s", {}, []), n)


@pytest.mark.parametrize("sampler", ["tpe", "random", "nsga2"])
@pytest.mark.parametrize("address", ["sqlite:///{}/o.db", "journal:{}/o.log"])
def test_a_study_that_was_cut_short_goes_on_as_if_it_had_not_been(
    sampler: Sampler, address: str, tmp_path: Path
) -> None:
    whole = go(studies(space(*PLANE), sampler).new("s", {}, []), 14)
    address = address.format(tmp_path)
    before = go(studies(space(*PLANE), sampler, address).new("s", {}, []), 11)
    cut = studies(space(*PLANE), sampler, address).latest("s")
    assert cut is not None
    cut.ask(1)  # and its process is killed
    resumed = studies(space(*PLANE), sampler, address).latest("s")
    assert resumed is not None
    assert [told.point.overrides for told in resumed.list_answers()] == before
    assert before + go(resumed, 3) == whole


def test_what_a_dead_process_left_has_failed(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/deep/o.db"
    of = studies(space(*PLANE), address=address)
    go(of.new("s", {"sweep": "x"}, []), 2)
    left = of.latest("s")
    assert left is not None
    left.ask(2)
    assert of.latest("s") is not None
    stored = optuna.load_study(study_name="s.1", storage=open_storage(address))
    assert [trial.state.name for trial in stored.trials] == ["COMPLETE"] * 2 + ["FAIL"] * 2
    assert stored.user_attrs == {"sweep": "x"}


def test_the_study_of_a_name_is_the_latest(tmp_path: Path) -> None:
    of = studies(space(*PLANE), address=f"sqlite:///{tmp_path}/o.db")
    assert of.latest("s") is None
    for generation in range(1, 12):
        assert of.new("s", {}, []).name == f"s.{generation}"
    assert of.new("s t", {}, []).name == "s t.1"
    latest = of.latest("s")
    assert latest is not None
    assert latest.name == "s.11"


def test_a_new_study_takes_over_trials_with_their_new_values() -> None:
    of = studies(space(*PLANE))
    old = of.new("s", {}, [])
    points = go(old, 3)
    new = of.new("s", {}, list(zip(old.list_answers(), [[1.0], None, [3.0]], strict=True)))
    assert [(told.point.overrides, told.values) for told in new.list_answers()] == [
        (points[0], [1.0]),
        (points[1], None),
        (points[2], [3.0]),
    ]


def test_trees_of_parzen_estimators_find_more_than_chance() -> None:
    def best(sampler: Sampler) -> float:
        found = [go(studies(space(*PLANE), sampler, seed=seed).new("s", {}, []), 40) for seed in range(3)]
        return sum(max(value(Combination((), {o[0]: o[2:] for o in p}))[0] for p in points) for points in found)

    assert best("tpe") > best("random")


def test_the_grid_asks_for_each_point_once_and_then_has_no_more() -> None:
    study = studies(space(*GRID, exclude=["a == 1 and b == y"]), "grid").new("s", {}, [])
    found = []
    while not study.exhausted:
        found += go(study, 1, of=lambda _: [0.0])
    assert len(found) == len(set(found)) == 5


def test_excluded_points_are_never_requested_and_excluding_all_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runner.sweep.study.MOST_EXCLUDED", 50)
    study = studies(space("a=1,2,3,4", exclude=["a < 4"])).new("s", {}, [])
    assert go(study, 3, of=lambda _: [0.0]) == [("a=4",)] * 3
    with pytest.raises(ConfigError, match="the conditions exclude all combinations"):
        go(studies(space("a=1,2", exclude=["a > 0"])).new("s", {}, []), 1)


def test_points_are_distinct_even_when_requested_in_batches() -> None:
    study = studies(space(*PLANE)).new("s", {}, [])
    assert len(set(go(study, 16, at_once=4))) == 16


def test_importances_find_what_matters() -> None:
    study = studies(space("a=interval(0,1)", "b=x,y,z"), "random").new("s", {}, [])
    go(study, 30, of=lambda point: [float(point.swept["a"])])
    ((group, shares),) = study.importances(0, 0).items()
    assert group == ""
    assert shares["a"] > 0.9
    assert sum(shares.values()) == pytest.approx(1)


def test_importances_of_each_product_come_from_the_settings_of_its_trials() -> None:
    of = space(union=[{"r": "p", "k": "interval(0,1)"}, {"r": "q", "m": "interval(0,1)", "n": "interval(0,1)"}])
    study = studies(of, "random").new("s", {}, [])
    go(study, 60, of=lambda point: [float(point.swept.get("n", 0)) + (point.swept["r"] == "q") * 5])
    found = study.importances(0, 0)
    assert set(found[""]) == {"sweep.union"}
    assert found["r=q"]["n"] > 0.9
    assert "r=p" not in found  # its values are all the same


@pytest.mark.parametrize("values", [[[1.0]] * 30, [[float(i)] for i in range(9)]])
def test_few_trials_or_equal_values_give_no_importances(values: Sequence[list[float]]) -> None:
    study = studies(space(*PLANE), "random").new("s", {}, [])
    rest = iter(values)
    go(study, len(values), of=lambda _: next(rest))
    assert study.importances(0, 0) == {}


@pytest.mark.parametrize(
    ("arguments", "sampler", "objectives", "said"),
    [
        (PLANE, "grid", 1, r"hydra.sweeper.sampler=grid: cannot enumerate the interval of a=interval\(0,1\)"),
        (GRID, "cmaes", 2, "hydra.sweeper.sampler=cmaes: supports only one objective"),
        (GRID, "cmaes", 1, "hydra.sweeper.sampler=cmaes: needs cmaes, which is not installed; run pip install cmaes"),
    ],
)
def test_what_a_sampler_cannot_do_is_said_before_any_work(
    arguments: Sequence[str], sampler: Sampler, objectives: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.sweep.study.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=said):
        studies(space(*arguments), sampler, objectives=objectives)


@pytest.mark.parametrize(
    "address", ["nowhere", "sqlite:////proc/nowhere/o.db", "oracle://x/y", "journal:/proc/no/o.log"]
)
def test_a_storage_that_cannot_be_opened_is_said_in_a_line(address: str) -> None:
    with pytest.raises(ConfigError, match=f"^hydra.sweeper.storage={address}: cannot be opened .*or memory$"):
        studies(space(*PLANE), address=address)
