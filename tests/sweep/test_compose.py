from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from hypothesis import example, given, settings
from hypothesis import strategies as st
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from runner.config import CONF
from runner.config.objects import ConfigError
from runner.config.values import Settled, settle
from runner.sweep.compose import Composer
from tests.config.files import list_names
from tests.strategies.arguments import GROUPS, SETTINGS
from tests.strategies.settings import at_most

MISTAKES = (TypeError, ValueError, HydraException, OmegaConfBaseException)


@pytest.fixture(scope="module")
def loader() -> Iterator[ConfigLoader]:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield GlobalHydra.instance().config_loader()


@pytest.fixture(scope="module")
def composer(loader: ConfigLoader) -> Composer:
    """Return a composer that has composed whatever the tests before it asked for."""
    return Composer(loader, "evaluate", [])


def outcome(call: Callable[[], Any]) -> Any:
    """Return what a call returns, or what it says is wrong; what Hydra says in a builtin error counts alone."""
    try:
        return call()
    except MISTAKES as error:
        return (
            "refused" if not isinstance(error, (HydraException, OmegaConfBaseException)) else (type(error), str(error))
        )


def container(config: DictConfig) -> Any:
    return OmegaConf.to_container(
        OmegaConf.masked_copy(config, [key for key in config if key != "hydra"]), resolve=False
    )


@settings(max_examples=at_most(12))
@given(groups=GROUPS, values=st.lists(SETTINGS, max_size=3), groups_last=st.booleans())
@example(groups=["retriever=hybrid"], values=["+new.thing={a:1}", "~sweep.fail_fast"], groups_last=False)
@example(groups=[], values=["tracking.uri='sqlite:///${store.path}/x.db'", "store.path=null"], groups_last=True)
def test_it_composes_what_hydra_composes(
    composer: Composer, groups: list[str], values: list[str], groups_last: bool
) -> None:
    overrides = [*values, *groups] if groups_last else [*groups, *values]
    mine = outcome(lambda: container(composer.compose(overrides)))
    assert mine == outcome(lambda: container(compose("evaluate", overrides=overrides)))


@settings(max_examples=at_most(40))
@given(groups=GROUPS, values=st.lists(SETTINGS, max_size=6))
@example(groups=["retriever=hybrid"], values=["retriever.alpha=0.3", "retriever.parts.lexical.k1=2"])
@example(groups=[], values=["retriever.k1=2", "~retriever.k1"])
@example(groups=[], values=["retriever.k1=2", "retriever={k1:3}"])
@example(groups=[], values=["retriever.k1=2", "retriever.k1=3", "retriever.b='x ${retriever.k1}'"])
@example(groups=["dataset=beir"], values=["dataset.path=x", "dataset.split=y", "metrics.depth=200"])
@example(groups=[], values=["analyzer.stemmer=german", "encoder.dimensions=3", "store.path='http://a:b@c'"])
@example(groups=[], values=["+new.token.thing=x", "new.token.thing=y"])
def test_what_is_settled_sooner_is_the_same(composer: Composer, groups: list[str], values: list[str]) -> None:
    def exactly() -> Settled:
        config = composer.compose([*groups, *values])
        return settle(config, config.hydra.runtime.choices)

    sooner = outcome(lambda: composer.settle([*groups, *values]))
    exact = outcome(exactly)
    assert repr(sooner) == repr(exact)  # the order of keys and the types of values, too


def test_changing_a_value_that_nothing_depends_on_does_not_recompose(
    composer: Composer, monkeypatch: pytest.MonkeyPatch
) -> None:
    combination = ["retriever=hybrid", "++plugins=[]", "retriever.alpha=0.5", "retriever.parts.lexical.k1=1"]
    composer.settle(combination)
    monkeypatch.setattr(composer, "compose", None)
    combination[2:] = ["retriever.weights=[1,2]", "retriever.parts.lexical.k1=1.5", "metrics.depth=200"]
    settled = composer.settle(combination)
    assert settled.config["retriever"]["weights"] == [1, 2]
    assert settled.public["retriever"]["parts"]["lexical"]["k1"] == 1.5
    assert settled.parameters["metrics.depth"] == "200"


@dataclass
class Typed:
    k1: float = 1.0
    names: tuple[str, ...] = ()
    token: str = "none"


def test_changing_a_required_value_does_not_recompose(composer: Composer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep over files (`retriever.path=a,b`) composes once, though nothing can be settled without a file."""
    run = ["retriever=run", "dataset=beir", "dataset.path=data"]
    with pytest.raises(ConfigError, match=r"retriever\.path"):
        composer.settle(run)
    composer.settle([*run, "retriever.path=a"])
    with monkeypatch.context() as patch:
        patch.delattr(Composer, "compose")
        settled = composer.settle([*run, "retriever.path=b"])
    config = composer.compose([*run, "retriever.path=b"])
    assert settled == settle(config, config.hydra.runtime.choices)
    assert (settled.config["retriever"]["path"], settled.parameters["retriever.path"]) == ("b", "b")


def test_settings_with_a_type_of_their_own_stay_so(loader: ConfigLoader) -> None:
    ConfigStore.instance().store(group="retriever", name="typed", node=Typed)
    try:
        composer = Composer(loader, "evaluate", [])
        composer.settle(["retriever=typed"])
        settled = composer.settle(["retriever=typed", "retriever.k1=2"])
        assert repr(settled.config["retriever"]["k1"]) == "2.0"
        with pytest.raises(HydraException, match=r"Error merging override retriever\.k1=word"):
            composer.settle(["retriever=typed", "retriever.k1=word"])
    finally:
        del ConfigStore.instance().repo["retriever"]["typed.yaml"]


def test_a_config_that_refers_to_anything_is_settled_exactly(loader: ConfigLoader) -> None:
    composer = Composer(loader, "evaluate", [])
    combination = ["+new.which=k1", "+new.value='${retriever.${new.which}}'", "retriever.k1=3"]
    assert composer.settle(combination).config["new"]["value"] == 3
    assert composer.settle([*combination[:2], "retriever.k1=4"]).config["new"]["value"] == 4


def test_a_group_of_a_folder_that_hydra_was_pointed_to_is_known(loader: ConfigLoader, tmp_path: Path) -> None:
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra" / "one.yaml").write_text("a: 1\n")
    composer = Composer(loader, "evaluate", [f"hydra.searchpath=[file://{tmp_path}]"])
    assert composer.compose(["+extra=one", "extra.a=2"]).extra == {"a": 2}
    assert composer.value(["+extra=one"], "extra") == "one"


def test_a_group_that_is_null_is_said_in_one_line(composer: Composer) -> None:
    known = ", ".join(list_names("retriever")[:4])
    with pytest.raises(ConfigError, match=rf"^retriever=null: no such choice; choose {known}"):
        composer.compose(["metrics.depth=200", "retriever=null"])


def test_choices_are_known(composer: Composer) -> None:
    cfg = composer.compose(["retriever=hybrid"])
    assert cfg.hydra.runtime.choices["retriever"] == "hybrid"
    assert cfg.hydra.runtime.choices["retriever@retriever.parts.lexical"] == "bm25"


def test_presets_together_are_one_choice(composer: Composer) -> None:
    settled = composer.settle(["experiment=[bm25_grid,embedding_models]"])
    assert settled.parameters["experiment"] == "bm25_grid,embedding_models"
    assert settled.config["sweep"]["union"].keys() == {"bm25_grid", "embedding_models"}


def test_a_value_is_looked_up_in_what_the_choices_make(composer: Composer) -> None:
    overrides = ["retriever=hybrid", "retriever.alpha=0.5", "analyzer=german"]
    expected = {
        "retriever": "hybrid",
        "encoder": "minilm",
        "experiment": None,
        "retriever@retriever.parts.lexical": "bm25",
        "retriever.alpha": None,
        "retriever.parts.lexical.k1": 0.9,
        "retriever.parts.lexical.analyzer.stemmer": "german",
        "metrics.k_values": [1, 3, 5, 10, 100],
    }
    assert {key: composer.value(overrides, key) for key in expected} == expected
    assert composer.value(["dataset=beir"], "dataset.path") is None


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("retriever.k2", r"^retriever\.k2: no such setting; did you mean retriever\.k1\?"),
        ("retreiver.k1", r"^retreiver\.k1: no such setting; did you mean retriever\?"),
        ("retriever.k1.x", r"^retriever\.k1\.x: no such setting"),
    ],
)
def test_an_unknown_key_is_reported_with_similar_ones(composer: Composer, key: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        composer.value([], key)
