"""A load test of PostgreSQL with pgvector: quality, latency and the recall of its indexes, from command to table."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.__main__ import main
from tests.features.load.filtered import read_table, write_filtered
from tests.retrievers.engines.postgresql import Cluster

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install '.[postgres]'")
pytest.importorskip("hdrh", reason="hdrhistogram is not installed: pip install '.[load]'")


@pytest.mark.parametrize(
    ("index", "setting", "few", "many"), [("hnsw", "ef_search", 10, 400), ("ivfflat", "probes", 1, 20)]
)
def test_settings_of_pgvector_are_compared_under_load(
    cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    index: str,
    setting: str,
    few: int,
    many: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    words = [*write_filtered(tmp_path / "data"), "retriever=pgvector", f"retriever.dsn={cluster.dsn}"]
    words += [f"retriever.index_type={index}", "retriever.lists=20", f"retriever.{setting}={few},{many}"]
    load = ["load.rates=[100]", "load.duration_s=1", "load.warmup_s=0", "load.arrivals=constant", "load.timeout_s=60"]
    assert main(["load", "-m", *words, *load]) == 0
    output = capsys.readouterr().out
    under_load = read_table(output, "Under load")
    assert [row[0] for row in under_load] == ["100", "100"]
    assert all(0 < float(row[4]) <= float(row[6].replace(",", "")) for row in under_load)  # p50 and p99
    quality = {row[2]: float(row[3]) for row in under_load}
    assert 0.3 < quality[f"{setting}={few}"] <= quality[f"{setting}={many}"] <= 1
    rows = read_table(output, "Cheapest settings with recall 0.95")
    assert [row[0] for row in rows] == ["5 to 20 %", "over 20 %"]
    assert rows[0][1] == f"{setting}={many}"  # an index that filters afterwards loses hits of a narrow filter
