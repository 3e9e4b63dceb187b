"""No language model: the default until one is chosen."""

from __future__ import annotations

from typing import ClassVar

from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.llm.chat import Reply
from runner.config.objects import ConfigError


@settings(frozen=True, config={"extra": "forbid"})
class NoLLM:
    """Settings without a language model; asking it is an error."""

    access: ClassVar[Access] = Access()

    def ask(self, question: str, system: str = "", purpose: str = "") -> Reply:
        """Raise `ConfigError`."""
        raise ConfigError("llm=none: no language model is configured; set, for example, llm=openai llm.model=MODEL")
