"""The cheapest settings of a real index that keep its recall, by selectivity of the filters: from command to table."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from runner.__main__ import main
from tests.features.load.filtered import read_table, write_filtered

pytest.importorskip("faiss", reason="faiss-cpu is not installed: pip install '.[dense]'")


@pytest.mark.parametrize(
    ("index", "setting", "values"),
    [("ivf", "nprobe", (1, 80)), ("hnsw", "ef_search", (2, 600))],
)
def test_the_cheapest_settings_with_recall_are_named_for_each_band(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    index: str,
    setting: str,
    values: tuple[int, int],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    few, many = values
    words = [*write_filtered(tmp_path / "data"), "retriever=dense", f"retriever.index_type={index}", "retriever.m=4"]
    assert main(["-m", *words, f"retriever.{setting}={few},{many}"]) == 0
    rows = read_table(capsys.readouterr().out, "Cheapest settings with recall 0.95")
    figures = {}
    for value in values:
        assert main([*words, f"retriever.{setting}={value}", "--json"]) == 0
        figures[value] = orjson.loads(capsys.readouterr().out)["result"]["diagnostics"]
    bands = {"5 to 20 %": "filter_5_to_20_percent", "over 20 %": "filter_over_20_percent"}
    for (label, combination, recall, _, below), (shown, band) in zip(rows, bands.items(), strict=True):
        name = f"index_recall_at_10.{band}"
        assert figures[few][name] < 0.95 <= figures[many][name]
        assert (label, combination) == (shown, f"{setting}={many}")
        assert recall == f"{figures[many][name]:.3f}"
        assert below == "1"
