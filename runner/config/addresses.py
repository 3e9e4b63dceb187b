"""Addresses given where paths belong: object stores are not supported."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""How an address begins: s3://, gs://, https://; a drive letter is a single one."""


def is_address(path: str) -> bool:
    """Tell an address such as s3://bucket/x from a path on this machine."""
    return bool(_ADDRESS.match(path))
