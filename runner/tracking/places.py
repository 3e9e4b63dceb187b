"""Decides which places of artifacts are used: a tracking store names them, and others may write to it.

MLflow would open whatever the store names: a file of this machine, or an address with the user's own keys.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from runner.config.objects import ConfigError
from runner.config.values import without_secrets
from runner.tracking.logged import local_path
from runner.tracking.settings import Tracking

RELOCATE = "python -m runner relocate"
"""The command that records where artifacts are now."""

_OF_SERVERS = {"http": "mlflow-artifacts", "databricks": "dbfs"}
"""The scheme of addresses that lead to the server itself, by the beginning of its own address."""

NOWHERE = "mlflow-artifacts:/"
"""An address of artifacts that is not on this machine."""


def is_own_place(tracking: Tracking, uri: str) -> bool:
    """Return whether artifacts are on the tracking server itself, or in the place that the user's settings name.

    In a database, folders of this machine are allowed, too.
    """
    parts = urlsplit(uri)
    scheme = next((own for start, own in _OF_SERVERS.items() if tracking.uri.startswith(start)), None)
    if scheme is not None and parts.scheme == scheme and not parts.netloc:
        return True
    if not tracking.is_server() and local_path(uri) is not None:
        return True
    if not tracking.names_artifacts:
        return False
    folder, place = local_path(tracking.artifacts), local_path(uri)
    if folder is not None and place is not None:
        return place.resolve().is_relative_to(folder.resolve())
    within = f"{uri}/".startswith(f"{tracking.artifacts.rstrip('/')}/")
    return within and ".." not in unquote(uri).split("/")


def describe_missing(tracking: Tracking, folder: Path) -> str:
    """Return a message that a folder for the artifacts of runs does not exist, and what to do."""
    return (
        f"{folder}: the folder with the artifacts of earlier runs does not exist; check whether its disk is mounted, "
        f"or if it was moved, run `{' '.join([RELOCATE, *tracking.overrides(), 'relocate.after=FOLDER'])}`"
    )


def check_place(tracking: Tracking, run_id: str, uri: str) -> str:
    """Return the address of a run's artifacts; raise `ConfigError` unless it is the user's own place."""
    if not is_own_place(tracking, uri):
        raise ConfigError(
            f"{without_secrets(tracking.uri)}: run {run_id[:8]} names a place for its artifacts that is neither the "
            f"server's nor yours ({uri}); if you trust it, set tracking.artifacts={uri.partition(f'/{run_id}')[0]}"
        )
    return uri
