from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from benchmarks.stand_in.object_stores import SERVERS
from retrievers.extras import write_install_command
from runner.__main__ import main
from runner.config import CONF
from runner.config.addresses import _CLIENTS
from runner.config.objects import ConfigError
from runner.store.settings import store_settings


@pytest.mark.parametrize("address", ["https://example.org/x", "file:///tmp/x"])
def test_the_store_is_a_folder_or_in_an_object_store(address: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"^store\.path={address}: set a local path, or an address such as s3://BUCKET"
    ):
        store_settings({"store": {"path": address}})


OBJECT_STORES = {protocol: client for protocol, client in _CLIENTS.items() if protocol != "memory"}  # for tests


@pytest.mark.parametrize("protocol", OBJECT_STORES)
def test_an_object_store_needs_a_package(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, extra = OBJECT_STORES[protocol]
    monkeypatch.setitem(sys.modules, package, None)
    install = re.escape(f"run {write_install_command(extra)}")
    with pytest.raises(ConfigError, match=rf"^store\.path={protocol}://b/x: needs {package}, .* {install}"):
        store_settings({"store": {"path": f"{protocol}://b/x"}})


def test_every_object_store_has_an_extra_a_row_in_each_table_and_a_server_for_tests() -> None:
    root = CONF.parent
    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    installation, machines = (
        (root / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("installation", "machines")
    )
    for package, extra in OBJECT_STORES.values():
        assert any(re.match(rf"{package}\b", requirement) for requirement in extras[extra])
        assert re.search(rf"[\[,]{extra}[\],]", extras["all"][0])
        assert re.search(rf"^\| .*`{extra}`.* \| .*\b{package}\b", installation, re.MULTILINE)
        assert f"`{package}` (the `{extra}` extra)" in machines
    assert {OBJECT_STORES[protocol] for protocol in SERVERS} == set(OBJECT_STORES.values())


@pytest.mark.parametrize("path", ["cache", "/tmp/a:b", "C:/cache", "a/s3:/b"])
def test_paths_that_look_like_addresses_are_paths(path: str) -> None:
    assert store_settings({"store": {"path": path}}).path == path


MINE = ("source=definitions", "source.definitions=x", "source.targets=x", "output=x")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["dataset=beir", "dataset.path=ftp://host/x"],
            "dataset.path=ftp://host/x: set a local path, or an address such as s3://",
        ),
        (
            ["dataset=beir", "dataset.path=http://me:hush@host/x"],
            "dataset.path=http://me:***@host/x: set a local path, or an address such as s3://",
        ),
        (
            ["export", "output=s3://bucket/x"],
            "output=s3://bucket/x: remote addresses are not supported; set a local path",
        ),
        (
            ["-m", "retriever.k1=1,2", "sweep.output=gs://x/y"],
            "sweep.output=gs://x/y: remote addresses are not supported; set",
        ),
        (
            ["synthesize", "source.path=s3://bucket/x"],
            "source.path=s3://bucket/x: remote addresses are not supported; set",
        ),
        (
            ["synthesize", "source.path=[x,s3://bucket/y]"],
            "source.path.1=s3://bucket/y: remote addresses are not supported; set",
        ),
        (["synthesize", "output=s3://bucket/x"], "output=s3://bucket/x: remote addresses are not supported; set"),
        (
            ["mine", *MINE, "source.definitions=s3://b/x"],
            "source.definitions=s3://b/x: remote addresses are not supported; set",
        ),
        (
            ["mine", *MINE, "source.targets=s3://b/x"],
            "source.targets=s3://b/x: remote addresses are not supported; set",
        ),
        (["mine", *MINE, "output=http://host/x"], "output=http://host/x: remote addresses are not supported; set"),
        (["traces", "path=s3://bucket/x", "output=x"], "path=s3://bucket/x: remote addresses are not supported; set"),
        (
            ["traces", "path=.", "tasks=s3://bucket/x", "output=x"],
            "tasks=s3://bucket/x: remote addresses are not supported; set",
        ),
        (["traces", "path=.", "output=s3://bucket/x"], "output=s3://bucket/x: remote addresses are not supported; set"),
        (
            ["compare", "baseline=x", "candidate=y", "baselines=s3://b/x"],
            "baselines=s3://b/x: remote addresses are not supported; set",
        ),
        (
            ["compare", "baseline=x", "candidate=y", "output=s3://b/x"],
            "output=s3://b/x: remote addresses are not supported; set",
        ),
        (
            ["promote", "run=x", "name=y", "baselines=s3://b/x"],
            "baselines=s3://b/x: remote addresses are not supported; set",
        ),
        (["judge", "run=abcd", "output=s3://b/x"], "output=s3://b/x: remote addresses are not supported; set"),
        (["inspect", "output=s3://b/x"], "output=s3://b/x: remote addresses are not supported; set"),
        (["cache", "store.path=ftp://b/x"], "store.path=ftp://b/x: set a local path, or an address such as s3://"),
        (
            ["llm=openai", "llm.model=x", "llm.ledger=s3://b/x"],
            "grading.llm.ledger=s3://b/x: remote addresses are not supported; set",
        ),
    ],
)
def test_addresses_of_data_and_outputs_are_refused_in_one_line(
    words: list[str], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*words, "tracking.background=false"]) == 2
    (shown,) = capsys.readouterr().err.strip().splitlines()
    assert shown.startswith(f"error: {line}")
    assert not [name for name in tmp_path.iterdir() if name.name.endswith(":")]
