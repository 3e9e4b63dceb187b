"""Packages that only an extra of retrieval-runner installs; a missing one is reported before any work."""

from __future__ import annotations

from importlib.util import find_spec

from retrievers.errors import RetrieverError


class MissingPackageError(RetrieverError):
    """A package that a setting needs is not installed."""


def check_installed(module: str, package: str, extra: str) -> None:
    """Raise `MissingPackageError` with the command that installs a package, unless its module can be imported."""
    if find_spec(module) is None:
        raise MissingPackageError(
            f"needs {package}, which is not installed; run pip install 'retrieval-runner[{extra}]'"
        )
