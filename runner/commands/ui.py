"""Open the MLflow UI on the store that runs are logged to."""

from __future__ import annotations

import os
import sys

from omegaconf import DictConfig, OmegaConf


def main(cfg: DictConfig) -> int:
    """Become the server of the UI, until it is stopped."""
    from runner.config.objects import build
    from runner.config.values import without_secrets
    from runner.reports import console
    from runner.tracking.tracker import Tracker

    tracking = build(OmegaConf.to_container(cfg.tracking, resolve=True), "tracking")
    shown = without_secrets(tracking.uri)
    if tracking.is_server():
        console.line(f"{shown} is a server of its own: open it in a browser")
        return 0
    tracker = Tracker(tracking)
    # The UI opens on traces of applications unless the address asks for runs.
    page = f"http://{cfg.host}:{cfg.port}/#/experiments/{tracker.experiment}/runs?workflowType=machine_learning"
    console.line(f"the runs in {shown}: {page}  (Ctrl-C stops it)")
    os.environ["MLFLOW_BACKEND_STORE_URI"] = tracker.uri  # it may hold a password, which others can read in a command
    os.environ.setdefault("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false")  # eight processes that runs do not need
    arguments = ["--host", cfg.host, "--port", str(cfg.port), "--workers", "1"]
    os.execv(sys.executable, [sys.executable, "-m", "mlflow", "server", *arguments])  # noqa: S606 (its own settings)
