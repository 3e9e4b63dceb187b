"""The API keeps to its own OpenAPI description, whatever it is sent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.features.serve.process import Running


def test_schemathesis_finds_nothing(server: Running, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json"]
    options = ["--max-examples=20", "--seed=1", "--no-color", "--generation-database=none"]
    done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "No issues found" in done.stdout
    assert '"status": 500' not in server.said.read_text()
