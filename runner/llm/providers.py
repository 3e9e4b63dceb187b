"""Providers of language models: OpenAI and all servers with its protocol, Azure OpenAI, Anthropic.

Each request goes through the provider's own SDK, with the SDK's retries off. SDKs are imported on the first request.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.excerpts import shorten_text
from retrievers.extras import check_installed
from retrievers.strict_values import parse_count, parse_reply
from runner.llm.api_model import API_ACCESS, Answer
from runner.llm.client import LLM
from runner.llm.faults import SHOWN, Fault, fault_of, fault_of_form

if TYPE_CHECKING:
    import anthropic
    import openai
    from openai.types.chat import ChatCompletion, ChatCompletionMessageParam

NO_KEY = "none"
"""The key sent to servers without keys, because SDKs require one."""


@settings(frozen=True, config={"extra": "forbid"})
class OpenAI(LLM):
    """Settings of a model behind OpenAI's chat completions: OpenAI, vLLM, Ollama, llama.cpp, LiteLLM and others.

    `temperature` and `seed` are sent with each request unless they are null: some models reject them.
    """

    access: ClassVar[Access] = API_ACCESS
    usual_key: ClassVar[str] = "OPENAI_API_KEY"

    temperature: float | None = Field(default=0.0, ge=0, le=2)
    seed: int | None = None

    def __post_init__(self) -> None:
        check_installed("openai", "openai", "llm")

    def connect(self) -> openai.OpenAI:
        """Return the SDK's client."""
        url = self.base_url or "https://api.openai.com/v1"
        return cast("openai.OpenAI", _open_client("openai", "OpenAI", api_key=self.key(), base_url=url))

    def send(self, client: openai.OpenAI, question: str, system: str) -> Answer:
        """Make one request; raises `Fault`."""
        # OpenAI's newer models reject `max_tokens`; other servers may not support any other name.
        limit = "max_tokens" if self.base_url else "max_completion_tokens"
        return _complete(client, self, limit, self.seed, question, system)


@settings(frozen=True, config={"extra": "forbid"})
class Azure(LLM):
    """Settings of a model on Azure OpenAI: `model` is the deployment, `base_url` the resource."""

    access: ClassVar[Access] = API_ACCESS

    model: str = Field(min_length=1)
    base_url: str = Field(min_length=1)
    temperature: float | None = Field(default=0.0, ge=0, le=2)
    seed: int | None = None
    api_version: str = Field(default="2024-10-21", min_length=1)
    api_key_env: str = Field(default="AZURE_OPENAI_API_KEY", min_length=1, repr=False)

    def __post_init__(self) -> None:
        check_installed("openai", "openai", "llm")

    def connect(self) -> openai.AzureOpenAI:
        """Return the SDK's client."""
        where = {"azure_endpoint": self.base_url, "api_version": self.api_version}
        return cast("openai.AzureOpenAI", _open_client("openai", "AzureOpenAI", api_key=self.key(), **where))

    def send(self, client: openai.AzureOpenAI, question: str, system: str) -> Answer:
        """Make one request; raises `Fault`."""
        return _complete(client, self, "max_completion_tokens", self.seed, question, system)


@settings(frozen=True, config={"extra": "forbid"})
class Anthropic(LLM):
    """Settings of a model behind Anthropic's messages API, which has no seed; newer models reject a temperature."""

    access: ClassVar[Access] = API_ACCESS
    usual_key: ClassVar[str] = "ANTHROPIC_API_KEY"

    def __post_init__(self) -> None:
        check_installed("anthropic", "anthropic", "llm")

    def connect(self) -> anthropic.Anthropic:
        """Return the SDK's client."""
        url = self.base_url or "https://api.anthropic.com"
        return cast("anthropic.Anthropic", _open_client("anthropic", "Anthropic", api_key=self.key(), base_url=url))

    def send(self, client: anthropic.Anthropic, question: str, system: str) -> Answer:
        """Make one request; raises `Fault`."""
        from anthropic import AnthropicError, omit
        from anthropic.types import Message

        extra = (
            {} if self.temperature is None else {"temperature": self.temperature}
        )  # no longer a parameter of the SDK
        try:
            raw = client.messages.with_raw_response.create(
                model=self.model,
                max_tokens=self.max_tokens,
                messages=[{"role": "user", "content": question}],
                system=system or omit,
                timeout=self.timeout_s,
                extra_body=extra,
            )
            message = _parse_strictly(raw)
        except (AnthropicError, ValueError) as error:
            raise fault_of(error) from error
        if not isinstance(message, Message) or not isinstance(message.content, list) or not message.usage:
            raise fault_of_form(message)
        usage = message.usage
        tokens_in = (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens)
        text = "".join(block.text for block in message.content if block.type == "text")
        return _check_answer(text, message.stop_reason == "refusal", _count_tokens(tokens_in, usage.output_tokens))


def _complete(client: openai.OpenAI, llm: LLM, limit: str, seed: int | None, question: str, system: str) -> Answer:
    from openai import OpenAIError

    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": question}]
    if system:
        messages.insert(0, {"role": "system", "content": system})
    options = {"model": llm.model, "temperature": llm.temperature, "seed": seed, limit: llm.max_tokens}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    try:
        raw = client.chat.completions.with_raw_response.create(messages=messages, timeout=llm.timeout_s, **given)
        completion = _parse_strictly(raw)
    except (OpenAIError, ValueError) as error:
        raise fault_of(error) from error
    return _read_completion(completion)


def _parse_strictly(raw: Any) -> Any:  # noqa: ANN401 (a raw response of either SDK)
    """Return what an SDK makes of a reply; raises `ValueError` for a repeated key, of which it keeps the last."""
    reply = raw.parse()
    if not isinstance(reply, str):  # a page that is not JSON
        parse_reply(raw.http_response.content)
    return reply


def _read_completion(completion: ChatCompletion) -> Answer:
    from openai.types.chat import ChatCompletion

    # The SDK does not validate: an HTML page from a proxy arrives as a string, a missing field as None.
    if not isinstance(completion, ChatCompletion) or not completion.choices or not completion.choices[0].message:
        raise fault_of_form(completion)
    choice, usage = completion.choices[0], completion.usage
    is_refusal = bool(choice.message.refusal) or choice.finish_reason == "content_filter"
    tokens = _count_tokens((usage.prompt_tokens,), usage.completion_tokens) if usage else None
    return _check_answer(choice.message.content or choice.message.refusal or "", is_refusal, tokens)


def _count_tokens(tokens_in: Iterable[object], tokens_out: object) -> tuple[int, int] | None:
    """Return the tokens in and out, None if one is not a possible count; the SDKs do not validate."""
    try:
        return sum(parse_count(part or 0) for part in tokens_in), parse_count(tokens_out or 0)
    except ValueError:
        return None


def _check_answer(text: str, is_refusal: bool, tokens: tuple[int, int] | None) -> Answer:
    if is_refusal:
        raise Fault("refusal", f"refused to answer ({shorten_text(text, SHOWN) or 'no reason given'})", tokens=tokens)
    if not text.strip():
        raise Fault("empty", "gave an empty answer", tokens=tokens)
    return Answer(text, tokens)


_OPENING = threading.Lock()


def _open_client(package: str, name: str, api_key: str, **where: str) -> Any:  # noqa: ANN401 (an SDK's client)
    """Return an SDK's client, opened once per process."""
    with _OPENING:
        return _open(package, name, os.getpid(), tuple({"api_key": api_key or NO_KEY, **where}.items()))


@cache
def _open(package: str, name: str, _process: int, options: tuple[tuple[str, str], ...]) -> Any:  # noqa: ANN401 (clients of several packages)
    return getattr(importlib.import_module(package), name)(max_retries=0, **dict(options))
