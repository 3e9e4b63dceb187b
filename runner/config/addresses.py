"""Types of settings that are paths; most of them are local and do not accept addresses such as s3://bucket/x."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

SPLIT = "{split}"
"""The placeholder in a path of a dataset for the name of a split, which contains no dot and no slash."""

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""The beginning of an address: s3://, gs://, https://. A single letter would be a Windows drive."""


_S3, _GCS, _AZURE = ("s3fs", "s3"), ("gcsfs", "gcs"), ("adlfs", "azure")
_CLIENTS = {
    "s3": _S3, "gs": _GCS, "gcs": _GCS, "az": _AZURE, "abfs": _AZURE, "abfss": _AZURE, "memory": ("fsspec", "s3"),
}  # fmt: skip
"""The package that gives access to the addresses of each protocol, and the extra that installs it."""


def is_address(path: str) -> bool:
    """Return whether a path is an address such as s3://bucket/x."""
    return bool(_ADDRESS.match(path))


def check_local(path: str) -> str:
    """Return the path; raises `ValueError` if it is an address."""
    if is_address(path):
        raise ValueError("remote addresses are not supported; set a local path")
    return path


def check_reachable(path: str) -> str:
    """Return a local path or the address of an object store; raises `ValueError` for any other address.

    Raises `MissingPackageError` if the package for the object store is not installed.
    """
    if not is_address(path):
        return path
    protocol, separator, place = path.partition("://")
    if protocol not in _CLIENTS or not separator or not place:
        raise ValueError("set a local path, or an address such as s3://BUCKET/FOLDER, gs://BUCKET or az://CONTAINER")
    from retrievers.extras import check_installed  # slow to import

    package, extra = _CLIENTS[protocol]
    check_installed(package, package, extra)
    return path


LocalPath = Annotated[str, AfterValidator(check_local)]
"""A local path."""

RequiredPath = Annotated[str, Field(min_length=1), AfterValidator(check_local)]
"""A local path that is required."""

StoreAddress = Annotated[str, Field(min_length=1), AfterValidator(check_reachable)]
"""A local path or the address of an object store, required."""
