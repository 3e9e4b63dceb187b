"""Types of settings that are local paths; addresses such as s3://bucket/x are refused."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""The beginning of an address: s3://, gs://, https://. A single letter is a drive."""


def is_address(path: str) -> bool:
    """Return whether a path is an address such as s3://bucket/x."""
    return bool(_ADDRESS.match(path))


def check_local(path: str) -> str:
    """Return the path; raises `ValueError` if it is an address."""
    if is_address(path):
        raise ValueError("remote addresses are not supported; set a local path")
    return path


LocalPath = Annotated[str, AfterValidator(check_local)]
"""A local path."""

RequiredPath = Annotated[str, Field(min_length=1), AfterValidator(check_local)]
"""A local path that is required."""
