from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.__main__ import main
from runner.evaluation.records import load_record
from runner.tracking.settings import Tracking


@pytest.mark.slow
def test_minilm_reaches_what_is_published_on_scifact(
    collections: Path, tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It embeds 5,183 abstracts, minutes of work; RETRIEVAL_CACHE names a folder that keeps them between runs."""
    monkeypatch.chdir(tmp_path)
    data = ["dataset=beir", f"dataset.path={collections / 'scifact'}"]
    store = os.environ.get("RETRIEVAL_CACHE", str(tmp_path / "cache"))
    assert main(["retriever=dense", "encoder=minilm", *data, f"store.path={store}", "tracking.background=false"]) == 0
    (record,) = Path(tracking.artifacts).rglob("result.json")
    means = load_record(record).means
    assert means["nDCG@10"] >= 0.63  # about 0.645 is published
    assert means["R@100"] >= 0.90
