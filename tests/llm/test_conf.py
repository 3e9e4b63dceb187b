from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from runner.config import CONF
from runner.config.objects import build
from runner.llm.client import LLM
from runner.llm.none import NoLLM
from tests.config.files import load_settings
from tests.documentation import blocks, chapters, documented, page

WANTED = {
    "none": [],
    "openai": ["llm.model=m"],
    "azure": ["llm.model=m", "llm.base_url=https://x.example"],
    "anthropic": ["llm.model=m"],
}
"""What a choice leaves for the user to say."""


def build_model(choice: str, overrides: list[str], folder: Path = CONF) -> Any:
    with initialize_config_dir(str(folder), version_base="1.3"):
        config = compose(f"llm/{choice}", overrides)
    return build(OmegaConf.to_container(config.llm, resolve=True, throw_on_missing=True), "llm")


@pytest.mark.parametrize("choice", WANTED)
def test_each_choice_becomes_a_language_model_or_none(choice: str) -> None:
    llm = build_model(choice, WANTED[choice])
    assert isinstance(llm, NoLLM if choice == "none" else LLM)


@pytest.mark.parametrize("choice", ["openai", "azure", "anthropic"])
def test_what_the_files_say_is_what_the_classes_do(choice: str) -> None:
    llm = build_model(choice, WANTED[choice])
    named = {"model": "m", **({"base_url": "https://x.example"} if choice == "azure" else {})}
    assert llm == type(llm)(**named)


def test_the_documented_example_of_a_custom_model_can_be_built(tmp_path: Path) -> None:
    (text,) = (block for block in blocks(page("docs/llm.md"), "yaml") if "judge.yaml" in block)
    (tmp_path / "llm").mkdir()
    (tmp_path / "llm" / "judge.yaml").write_text(text)
    for name in ("_limits", "_api", "openai"):
        (tmp_path / "llm" / f"{name}.yaml").write_text((CONF / "llm" / f"{name}.yaml").read_text())
    llm = build_model("judge", [], tmp_path)
    assert (llm.model, llm.max_cost, llm.price_in, llm.price_out) == ("my-model", 5, 0.15, 0.6)


def test_every_setting_is_documented_with_its_default() -> None:
    said = chapters(page("docs/llm.md"))
    settings = documented(said["What determines an answer"]) | documented(said["Limits, budget, cost"])
    config = load_settings(CONF / "llm" / "openai.yaml")
    assert settings == {key: config[key] for key in config.keys() - {"_target_", "model", "base_url", "api_key_env"}}
