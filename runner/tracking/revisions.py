"""The revision of a database's tables, and whether the installed MLflow would migrate them. MLflow is not loaded."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from runner.config.objects import ConfigError
from runner.tracking.settings import Tracking

REVISION = "select version_num from alembic_version"
"""The revision of the tables of a database."""

_REVISION = re.compile(r"^(down_)?revision(?:: [^=]+)? = [\"'](\w+)[\"']", re.MULTILINE)


@cache
def _list_revisions() -> tuple[frozenset[str], frozenset[str]]:
    """Return all revisions that the installed MLflow knows, and those that a later one follows."""
    spec = find_spec("mlflow")
    folders = [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []
    texts = [
        file.read_text(encoding="utf-8") for at in folders for file in at.glob("store/db_migrations/versions/*.py")
    ]
    revisions = [pair for text in texts for pair in _REVISION.findall(text)]
    return frozenset(name for down, name in revisions if not down), frozenset(name for down, name in revisions if down)


def check_revision(tracking: Tracking, revision: str) -> None:
    """Raise `ConfigError` if the installed MLflow would migrate tables of a revision, or does not know it."""
    known, followed = _list_revisions()
    place = f"tracking.uri={tracking.uri}: the database has the tables of"
    if revision in followed:
        raise ConfigError(
            f"{place} an older MLflow (revision {revision}); writing to it would migrate it, and that MLflow would "
            "then refuse it; migrate a copy with `mlflow db upgrade`, or choose another database"
        )
    if revision not in known:
        raise ConfigError(
            f"{place} another MLflow (revision {revision}), which the installed one does not know; install the MLflow "
            "that wrote it, or choose another database"
        )
