"""Runs that the tests of `look` share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.__main__ import main
from runner.tracking.settings import Tracking
from tests.features.look.stores import DATA, NAME, ServedStore, serve_store, write_dataset


@pytest.fixture(scope="package")
def served(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedStore]:
    """Serve a store with an evaluation and, after it, a sweep of two combinations, which is shown first."""
    folder = tmp_path_factory.mktemp("look")
    (folder / "mlruns").mkdir()
    shutil.copy(migrated, folder / "mlruns" / "mlflow.db")
    write_dataset(folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["retriever=rank_bm25", *DATA]) == 0
        assert main(["-m", "retriever=bm25", "retriever.k1=0.4,2", f"sweep.name='{NAME}'", *DATA]) == 0
        with serve_store(Tracking(uri=f"sqlite:///{folder}/mlruns/mlflow.db"), folder) as store:
            yield store
