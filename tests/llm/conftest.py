"""Language models behind the fake server, with a ledger file for each test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.llm.client import LLM
from runner.llm.providers import Anthropic, Azure, OpenAI
from tests.fake_llm import FakeLLM

CreateLLM = Callable[..., Any]


@pytest.fixture
def create_llm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CreateLLM:
    """Return a function that creates the settings of a class for a fake server, with almost no waiting."""
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-secret")
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(variable, raising=False)

    def make(fake: FakeLLM, kind: type[LLM] = OpenAI, **given: Any) -> LLM:
        address = fake.url if kind is OpenAI else fake.address
        usual = {"model": "m", "base_url": address, "ledger": str(tmp_path / "llm.db"), "backoff_s": 0.001}
        return kind(**(usual | given))

    return make


PROVIDERS = [OpenAI, Azure, Anthropic]
