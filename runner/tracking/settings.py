"""The settings of tracking, in `conf/tracking/`: where and how runs are logged. MLflow is not needed."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from runner.config.values import without_secrets

SCHEMES = ("sqlite", "postgresql", "mysql", "mssql", "http", "https", "databricks")
"""The schemes that the address of a tracking store may have. MLflow no longer supports a folder of files."""

OFF = "none"
"""The address with which runs are not logged."""

NOT_STORED = "tracking=none: no runs are stored, so none can be read; choose another store"
"""The message of an error: runs are read that were not logged."""

DEFAULT_URI = "sqlite:///mlruns/mlflow.db"
"""The tracking store if neither the user nor the environment names one."""

URI_VARIABLE, EXPERIMENT_VARIABLE = "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"
"""The environment variables that MLflow's own tools use."""

EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}
"""The tags of a new experiment. Its kind makes MLflow's UI open the table of runs, not the traces of an application."""

_WRONG_SCHEME = f"not the address of a store; it should begin with {', '.join(SCHEMES)}, as in {DEFAULT_URI}"


@settings(frozen=True, config={"extra": "forbid"})
class Tracking:
    """Where and how runs are logged.

    `uri` null means MLFLOW_TRACKING_URI if it is set, else a SQLite file; with "none", runs are not logged.
    `experiment` null means MLFLOW_EXPERIMENT_NAME if it is set, else "retrieval". `artifacts` is the folder (or
    s3://...) for the artifacts of a database; a server has its own place, which is used if it is on the server itself
    or in `artifacts`. `trec` adds the rankings as a TREC run to every combination of a sweep; single runs always have
    them. `background` logs in a separate process while the work continues.
    """

    access: ClassVar[Access] = Access("services", names=("uri",), paths=("uri",))

    uri: str = Field(default=None, validate_default=True)  # filled in below
    experiment: str = Field(default=None, min_length=1, validate_default=True)
    artifacts: str = "mlruns/artifacts"
    trec: bool = False
    background: bool = True

    @field_validator("uri", mode="before")
    @classmethod
    def _uri_of_environment(cls, uri: object) -> object:
        if uri is not None:
            return uri
        given = os.environ.get(URI_VARIABLE)
        if given and not _has_scheme(given):
            raise ValueError(f"{URI_VARIABLE} is {_WRONG_SCHEME}")
        return given or DEFAULT_URI

    @field_validator("uri")
    @classmethod
    def _check_scheme(cls, uri: str) -> str:
        if not _has_scheme(uri):
            raise ValueError(_WRONG_SCHEME)
        return uri

    @field_validator("experiment", mode="before")
    @classmethod
    def _experiment_of_environment(cls, experiment: object) -> object:
        return (os.environ.get(EXPERIMENT_VARIABLE) or "retrieval") if experiment is None else experiment

    @property
    def from_environment(self) -> str:
        """Return a message about where runs are logged if environment variables of MLflow set it, else ""."""
        decided = {URI_VARIABLE: self.uri, EXPERIMENT_VARIABLE: self.experiment}
        names = [name for name, value in decided.items() if os.environ.get(name) == value]
        if not names:
            return ""
        return f"logged to {without_secrets(self.uri)}, experiment {self.experiment} (from {', '.join(names)})"

    @property
    def is_off(self) -> bool:
        """Return whether runs are not logged."""
        return self.uri == OFF

    def is_server(self) -> bool:
        """Return whether runs are logged to an MLflow server, not to a database."""
        return self.uri.startswith(("http", "databricks"))

    def sqlite_file(self) -> Path | None:
        """Return the file of a SQLite store, None for any other store."""
        if not self.uri.startswith("sqlite:///"):
            return None
        return Path(self.absolute_uri().removeprefix("sqlite:///").partition("?")[0])

    def describe_deleted(self) -> str:
        """Return a message that the experiment was deleted, and what to do."""
        return (
            f"tracking.experiment={self.experiment}: the experiment was deleted; restore it in MLflow, or choose "
            "another name"
        )

    @property
    def names_artifacts(self) -> bool:
        """Return whether the place of artifacts was chosen; otherwise, an existing experiment keeps its own."""
        return self.artifacts != Tracking.artifacts

    def artifact_location(self) -> str | None:
        """Return the address for the artifacts of a database; None for a server, which chooses it."""
        if self.is_server():
            return None
        if self.is_off:
            return f"{OFF}:/artifacts"
        return self.artifacts if "://" in self.artifacts else Path(self.artifacts).resolve().as_uri()

    def overrides(self) -> list[str]:
        """Return the overrides with which a printed command finds these runs, quoted for a shell, without passwords.

        Settings with their default value are left out.
        """
        default = Tracking()
        settings = {"uri": without_secrets(self.uri), "experiment": self.experiment}
        return [_override(f"tracking.{name}", v) for name, v in settings.items() if v != getattr(default, name)]

    def absolute_uri(self) -> str:
        """Return the address, with the path of a SQLite file made absolute, to be valid in any working directory."""
        if not self.uri.startswith("sqlite:///") or self.uri.startswith("sqlite:////"):
            return self.uri
        return f"sqlite:///{Path(self.uri.removeprefix('sqlite:///')).resolve()}"


def _override(key: str, value: str) -> str:
    """Return an override quoted for a shell; its value is also quoted unless Hydra reads it as plain text."""
    plain = re.fullmatch(r"[\w/.:+-]*[A-Za-z][\w/.:+-]*", value)
    escaped = value.replace("'", "\\'")
    return shlex.quote(f"{key}={value}" if plain else f"{key}='{escaped}'")


def _has_scheme(uri: str) -> bool:
    return uri == OFF or uri.partition(":")[0].partition("+")[0] in SCHEMES
