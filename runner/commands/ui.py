"""Open the MLflow UI on the tracking store."""

from __future__ import annotations

import os
import sys

from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.extras import check_installed
from runner.config.objects import ConfigError, build, build_settings
from runner.config.values import resolve_config, without_secrets
from runner.pages import console
from runner.tracking.revisions import check_file
from runner.tracking.store import choose_store
from runner.web.server import bind_socket


@settings(frozen=True, config={"extra": "forbid"})
class Address:
    """Where the UI listens: see `conf/ui.yaml`."""

    host: str = Field(min_length=1)
    port: int = Field(ge=1, le=65535)


def main(cfg: DictConfig) -> int:
    """Replace this process with the server of the UI; raises `ConfigError` if it cannot listen."""
    config = resolve_config(cfg)
    tracking = build(config["tracking"], "tracking")
    check_installed("flask", "mlflow", "ui")  # mlflow-skinny has no server
    store = choose_store(tracking)
    if not store.keeps_runs:
        raise ConfigError("tracking=none: no runs are stored, so none can be shown; choose another store")
    uri = without_secrets(tracking.uri)
    if store.page is not None:
        console.line(f"{uri} is a tracking server; open it in a browser")
        return 0
    address = build_settings(Address, config)
    bind_socket(address.host, address.port).close()  # raises an error if another program listens there
    check_file(tracking)
    store.check()
    if place := store.relocate():
        console.note(place)
    store.open()
    # Without `workflowType`, the UI opens on the traces of applications.
    page = f"http://{address.host}:{address.port}/#/experiments/{store.experiment}/runs?workflowType=machine_learning"
    console.line(f"runs in {uri}: {page}  (press Ctrl-C to stop the UI)")
    os.environ["MLFLOW_BACKEND_STORE_URI"] = tracking.absolute_uri()  # not an argument: it may contain a password
    os.environ.setdefault("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false")  # eight processes that are not needed
    arguments = ["--host", address.host, "--port", str(address.port), "--workers", "1"]
    os.execv(sys.executable, [sys.executable, "-m", "mlflow", "server", *arguments])  # noqa: S606 (its own settings)
