"""Open the MLflow UI on the store that runs are logged to."""

from __future__ import annotations

import subprocess
import sys

from omegaconf import DictConfig, OmegaConf


def main(cfg: DictConfig) -> int:
    """Serve the UI until it is stopped; return its exit code."""
    from runner.config.objects import build
    from runner.reports import console
    from runner.tracking.tracker import Tracker

    tracking = build(OmegaConf.to_container(cfg.tracking, resolve=True), "tracking")
    if not tracking.uri.startswith(("sqlite:", "postgresql", "mysql", "mssql")):
        console.line(f"{tracking.uri} is a server of its own: open it in a browser")
        return 0
    tracker = Tracker(tracking)
    # The UI opens on traces of applications unless the address asks for runs.
    page = f"http://{cfg.host}:{cfg.port}/#/experiments/{tracker.experiment}/runs?workflowType=machine_learning"
    console.line(f"the runs in {tracking.uri}: {page}  (Ctrl-C stops it)")
    arguments = ["--backend-store-uri", tracker.uri, "--host", cfg.host, "--port", str(cfg.port), "--workers", "1"]
    return subprocess.call([sys.executable, "-m", "mlflow", "server", *arguments])  # noqa: S603 (its own settings)
