"""The vendored libraries are the published files, each with its version and licence, and small."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from runner.pages.explorer.page import STATIC, load_libraries, load_manifest

AXE = Path(__file__).with_name("axe")
KIBIBYTES = 700
"""The largest file that the repository should hold."""

ENTRIES = [
    *((STATIC / "vendor", entry) for entry in load_manifest()),
    *((AXE, entry) for entry in json.loads((AXE / "manifest.json").read_text(encoding="utf-8"))),
]


@pytest.mark.parametrize(("folder", "entry"), ENTRIES, ids=[entry["package"] for _, entry in ENTRIES])
def test_a_vendored_file_is_the_published_one(folder: Path, entry: dict[str, str]) -> None:
    content = gzip.decompress((folder / entry["file"]).read_bytes())
    assert hashlib.sha256(content).hexdigest() == entry["sha256"]
    assert entry["version"].encode() in content
    assert "Copyright" in (folder / entry["licence_file"]).read_text(encoding="utf-8") or entry["licence"] == "MPL-2.0"
    assert (folder / entry["file"]).stat().st_size < 1024 * KIBIBYTES


def test_the_folders_hold_nothing_else() -> None:
    for folder in {folder for folder, _ in ENTRIES}:
        entries = [entry for place, entry in ENTRIES if place == folder]
        names = {entry[key] for entry in entries for key in ("file", "licence_file")}
        assert {path.name for path in folder.iterdir()} == {"manifest.json", *names}


def test_libraries_come_in_the_order_in_which_they_need_each_other() -> None:
    assert [entry["package"] for entry in load_manifest()] == ["vega", "vega-lite", "vega-embed"]
    assert len(load_libraries()) == 3
