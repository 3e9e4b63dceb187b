"""Open the MLflow UI on the store that runs are logged to."""

from __future__ import annotations

import os
import sys

from omegaconf import DictConfig, OmegaConf
from pydantic import Field
from pydantic.dataclasses import dataclass as settings


@settings(frozen=True, config={"extra": "forbid"})
class Address:
    """Where the UI listens: see `conf/ui.yaml`."""

    host: str = Field(min_length=1)
    port: int = Field(ge=1, le=65535)


def main(cfg: DictConfig) -> int:
    """Become the server of the UI, until it is stopped; raises `ConfigError` where it cannot listen."""
    from runner.config.objects import build
    from runner.config.values import without_secrets
    from runner.reports import console
    from runner.serving.server import bind_socket
    from runner.tracking.tracker import Tracker

    tracking = build(OmegaConf.to_container(cfg.tracking, resolve=True), "tracking")
    shown = without_secrets(tracking.uri)
    if tracking.is_server():
        console.line(f"{shown} is a server of its own: open it in a browser")
        return 0
    address = _address_of(cfg)
    bind_socket(address.host, address.port).close()  # before an address is told at which somebody else may answer
    tracker = Tracker(tracking)
    # The UI opens on traces of applications unless the address asks for runs.
    page = f"http://{address.host}:{address.port}/#/experiments/{tracker.experiment}/runs?workflowType=machine_learning"
    console.line(f"the runs in {shown}: {page}  (Ctrl-C stops it)")
    os.environ["MLFLOW_BACKEND_STORE_URI"] = tracker.uri  # it may hold a password, which others can read in a command
    os.environ.setdefault("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false")  # eight processes that runs do not need
    arguments = ["--host", address.host, "--port", str(address.port), "--workers", "1"]
    os.execv(sys.executable, [sys.executable, "-m", "mlflow", "server", *arguments])  # noqa: S606 (its own settings)


def _address_of(cfg: DictConfig) -> Address:
    from runner.config.objects import ConfigError, build

    try:
        return build(  # type: ignore[no-any-return]  # its _target_ says what it is
            {"_target_": f"{__name__}.Address", "host": cfg.host, "port": cfg.port}, "ui"
        )
    except ConfigError as error:  # the settings are at the top
        raise ConfigError(str(error).removeprefix("ui.")) from error
