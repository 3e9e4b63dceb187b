from __future__ import annotations

from collections.abc import Iterator

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from runner.config import CONF
from runner.config.objects import ConfigError
from runner.sweep.compose import Composer

GROUPS = st.sampled_from(
    [
        [],
        ["retriever=rank_bm25"],
        ["retriever=hybrid"],
        ["retriever=hybrid", "retriever@retriever.parts.lexical=sqlite_fts"],
        ["analyzer=german", "encoder=lsa", "retriever=dense"],
        ["+analyzer@retriever.analyzer=french"],
        ["dataset=beir", "dataset.path='a b/ü'"],
        ["experiment=tour"],
    ]
)
VALUES = st.sampled_from(
    [
        "metrics.depth=200",
        "metrics.k_values=[1,2,3]",
        "metrics.primary='nDCG@3'",
        "++metrics.depth=7",
        "+new.thing={a:1,b:[2,x]}",
        "~sweep.fail_fast",
        "tracking.uri='sqlite:///${store.path}/x.db'",
        "store.path=null",
        "tracking.experiment=${dataset.name}",
        "plugins=[a,b]",
    ]
)


@pytest.fixture(scope="module")
def loader() -> Iterator[ConfigLoader]:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield GlobalHydra.instance().config_loader()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(GROUPS, st.lists(VALUES, max_size=3, unique_by=lambda value: value.lstrip("+~").partition("=")[0]))
def test_it_composes_what_hydra_composes(loader: ConfigLoader, groups: list[str], values: list[str]) -> None:
    composer = Composer(loader, "evaluate", [])
    composer.compose(groups)  # the same choice of groups was there before
    mine = composer.compose([*groups, *values])
    theirs = compose("evaluate", overrides=[*groups, *values])
    own = OmegaConf.masked_copy(mine, [key for key in mine if key != "hydra"])
    assert OmegaConf.to_container(own, resolve=False) == OmegaConf.to_container(theirs, resolve=False)


def test_a_group_that_is_null_is_said_in_one_line(loader: ConfigLoader) -> None:
    with pytest.raises(ConfigError, match=r"^retriever=null: no such choice; there are bm25, dense"):
        Composer(loader, "evaluate", []).compose(["metrics.depth=200", "retriever=null"])


def test_choices_are_known(loader: ConfigLoader) -> None:
    cfg = Composer(loader, "evaluate", []).compose(["retriever=hybrid"])
    assert cfg.hydra.runtime.choices["retriever"] == "hybrid"
    assert cfg.hydra.runtime.choices["retriever@retriever.parts.lexical"] == "bm25"
