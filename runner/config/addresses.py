"""Paths on this machine as a kind of setting: an address such as s3://bucket/x is refused, as nothing would read it."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""How an address begins: s3://, gs://, https://. A drive letter is a single letter."""


def is_address(path: str) -> bool:
    """Tell an address such as s3://bucket/x from a path on this machine."""
    return bool(_ADDRESS.match(path))


def check_local(path: str) -> str:
    """Return the path; raises `ValueError` if it is an address."""
    if is_address(path):
        raise ValueError("is an address; give a path on this machine")
    return path


LocalPath = Annotated[str, AfterValidator(check_local)]
"""The type of a setting that is a path on this machine."""

RequiredPath = Annotated[str, Field(min_length=1), AfterValidator(check_local)]
"""The type of a path that a verb cannot do without."""
