"""Weights of the parts of a hybrid by query, read from a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from retrievers.base import RetrieverError
from retrievers.store import fingerprint

PartWeights = float | list[float] | dict[str, float]
"""An alpha, or one number per part, by order or by name."""

_FORM = TypeAdapter(dict[str, PartWeights])


@dataclass(frozen=True)
class QueryWeights:
    """The weights in a file by the id of a query. Its repr identifies the content, not only the path."""

    path: str
    digest: str
    weights: Mapping[str, PartWeights] = field(repr=False)


def load_query_weights(path: object) -> object:
    """Return the weights in a JSON file, such as `{"q1": 0.2, "q2": [1, 3]}`; any other value is returned unchanged.

    Raises `RetrieverError` if the file cannot be read.
    """
    if not isinstance(path, str):
        return path
    try:
        content = Path(path).read_text(encoding="utf-8")
        weights = _FORM.validate_python(json.loads(content))
    except OSError as error:
        raise RetrieverError(f"weights_file={path}: cannot be read ({error.strerror})") from None
    except ValidationError as error:
        place = "".join(f"{name}: " for name in error.errors()[0]["loc"][:1])
        raise RetrieverError(
            f"weights_file={path}: {place}should be a JSON object of query ids, each with an alpha or a number for "
            'each part: {"q1": 0.2, "q2": [1, 3]}'
        ) from None
    except ValueError as error:
        raise RetrieverError(f"weights_file={path}: not JSON ({error})") from None
    return QueryWeights(path, fingerprint(content), weights)
