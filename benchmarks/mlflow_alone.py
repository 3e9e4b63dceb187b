"""The peer for the logging of a BM25 run: an MLflow run with the same figures, logged by MLflow's own functions.

usage: python mlflow_alone.py DATABASE FIGURES
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import mlflow

figures = json.loads(Path(sys.argv[2]).read_text())
mlflow.set_tracking_uri(f"sqlite:///{sys.argv[1]}")
mlflow.set_experiment("bare")
with mlflow.start_run():
    mlflow.set_tags(figures["tags"])
    mlflow.log_params(figures["params"])
    mlflow.log_metrics(figures["metrics"])
