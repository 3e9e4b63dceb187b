"""Count the words of a text."""

from omegaconf import DictConfig
from pydantic.dataclasses import dataclass as settings

from runner.config.objects import build_settings
from runner.config.values import resolve_config
from runner.pages import console


@settings(frozen=True, config={"extra": "forbid"})
class WordsSettings:
    """What is counted: see `conf/words.yaml`."""

    text: str
    least: int = 1


def main(cfg: DictConfig) -> int:
    """Print the number of words; return 1 if it is below the least."""
    own = build_settings(WordsSettings, resolve_config(cfg))
    words = len(own.text.split())
    console.document(lambda: {"words": words})
    console.line(f"{words} words")
    return int(words < own.least)
