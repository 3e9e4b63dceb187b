"""Settings of a model behind HTTP and JSON: the form of the request, and the paths of the results in the reply."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.services.templates import MISSING, fill_address, fill_template, get_path, has_placeholder
from retrievers.strict_values import parse_count
from runner.llm.api_model import ApiModel


@settings(frozen=True, config={"extra": "forbid"})
class HttpModel(ApiModel, ABC):
    """Settings of a model behind HTTP. Paths into replies are keys and positions, joined by dots: `data.0.embedding`.

    `request` is sent as JSON to `base_url` + `path`; `{model}`, `{texts}` and other placeholders are replaced, then
    null values are left out. The key is sent in `key_header`, after "Bearer " if that is Authorization. `tokens` is the
    path of the number of billed tokens in a reply. A name in a path that ends with "?" may be missing.
    """

    path: str = "/"
    key_header: str = Field(default="Authorization", min_length=1, repr=False)
    request: dict[str, Any] | None = None
    tokens: str | None = Field(default=None, repr=False)

    @model_validator(mode="after")
    def _check_request(self) -> Self:
        if not has_placeholder(self.template, "texts"):
            raise ValueError('request should contain "{texts}", where the texts are sent')
        return self

    @property
    @abstractmethod
    def template(self) -> Mapping[str, Any]:
        """Return the request with its placeholders."""

    @property
    @abstractmethod
    def address(self) -> str:
        """Return the address of the server."""

    def post(self, **values: object) -> object:
        """Make one request and return the JSON of its reply; raises `Fault`."""
        from runner.llm.http_request import post_json  # slow to import; planning a sweep does not need it

        values = {"model": self.model, **values}
        path, payload = fill_address(self.path, values), fill_template(self.template, values)
        return post_json(self.address, path, payload, self.key_header, self.key(), self.timeout_s)

    def count_billed(self, reply: object, path: str | None) -> int | None:
        """Return the number at a path of a reply; None without a path, or if an optional value is missing.

        Raises `LookupError`, or `ValueError` for a value that is not a possible count.
        """
        value = MISSING if path is None else get_path(reply, path)
        if value is MISSING or value is None:
            return None
        try:
            return parse_count(value)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def read_items(reply: object, path: str, position: str | None, n: int) -> list[tuple[int, Any]]:
    """Return the items at a path of a reply, each with the position of its text; each of 0 to n - 1 occurs once.

    `position` is the path in an item; without it, the items are in the order of the texts. Raises `LookupError` or
    `ValueError`.
    """
    items = get_path(reply, path)
    if not isinstance(items, list):
        raise ValueError(f"{path or 'the reply'} is not a list")
    positions = list(range(len(items))) if position is None else [get_path(item, position) for item in items]
    if sorted(positions, key=repr) != sorted(range(n), key=repr):
        raise ValueError(f"{len(items)} results for {n} texts")
    return list(zip(positions, items, strict=True))


def to_floats(values: object) -> NDArray[np.float32]:
    """Return numbers as 32-bit floats; raises `ValueError` unless all are finite."""
    if isinstance(values, list) and not {*map(type, values)} <= {int, float}:  # numpy converts texts and booleans
        raise ValueError("a vector is not a list of finite numbers")
    try:
        with np.errstate(over="ignore"):  # numbers that are too large become infinite
            floats = np.asarray(values, dtype=np.float32)
    except OverflowError as error:  # a whole number of very many digits
        raise ValueError("a vector is not a list of finite numbers") from error
    if floats.ndim != 1 or not len(floats) or not np.isfinite(floats).all():
        raise ValueError("a vector is not a list of finite numbers")
    return floats
