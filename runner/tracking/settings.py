"""Where runs are logged: the settings that `conf/tracking/` holds. It knows nothing of MLflow."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from pydantic import Field, field_validator
from pydantic.dataclasses import dataclass as settings

from runner.config.values import without_secrets

SCHEMES = ("sqlite", "postgresql", "mysql", "mssql", "http", "https", "databricks")
"""What a store's address may begin with. MLflow no longer takes a folder of files."""


@settings(frozen=True, config={"extra": "forbid"})
class Tracking:
    """Where and how runs are logged.

    `artifacts` is the folder (or s3://...) that a database's artifacts are in; a server decides for itself. `trec` adds
    the rankings as a TREC run to every combination of a sweep, not to single runs only. `background` logs in a process
    of its own, beside the work.
    """

    uri: str = "sqlite:///mlruns/mlflow.db"
    experiment: str = Field(default="retrieval", min_length=1)
    artifacts: str = "mlruns/artifacts"
    trec: bool = False
    background: bool = True

    @field_validator("uri")
    @classmethod
    def _known_scheme(cls, uri: str) -> str:
        if uri.partition(":")[0].partition("+")[0] not in SCHEMES:
            raise ValueError(f"not the address of a store; it begins with {', '.join(SCHEMES)}, as in {cls.uri}")
        return uri

    def is_server(self) -> bool:
        """Tell an MLflow server, which has a database and artifacts of its own, from a database."""
        return self.uri.startswith(("http", "databricks"))

    def artifact_location(self) -> str | None:
        """Return the address of a database's artifacts; None leaves it to the server."""
        if self.is_server():
            return None
        return self.artifacts if "://" in self.artifacts else Path(self.artifacts).resolve().as_uri()

    def overrides(self) -> list[str]:
        """Return what a printed command needs to find these runs, quoted for a shell, without passwords.

        Nothing where runs are logged to the default place.
        """
        default = Tracking()
        settings = {"uri": without_secrets(self.uri), "experiment": self.experiment}
        return [_override(f"tracking.{name}", v) for name, v in settings.items() if v != getattr(default, name)]

    def absolute_uri(self) -> str:
        """Return the address with a SQLite file's path made absolute, so that it holds in any working directory."""
        if not self.uri.startswith("sqlite:///") or self.uri.startswith("sqlite:////"):
            return self.uri
        return f"sqlite:///{Path(self.uri.removeprefix('sqlite:///')).resolve()}"


def _override(key: str, value: str) -> str:
    """Return an override as it is typed in a shell, its value quoted where Hydra would read more than text."""
    plain = re.fullmatch(r"[\w/.:+-]*[A-Za-z][\w/.:+-]*", value)
    escaped = value.replace("'", "\\'")
    return shlex.quote(f"{key}={value}" if plain else f"{key}='{escaped}'")
