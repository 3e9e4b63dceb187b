"""The size of an environment is that of all its files, and its largest packages are listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from release.check import measure


def test_the_size_of_an_environment_counts_all_files_and_lists_packages_by_size(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "python" / "site-packages"
    sizes = {packages / "big/data/a.bin": 3, packages / "big.libs/b.so": 2, packages / "small/c.so": 1}
    for file, megabytes in (sizes | {tmp_path / "bin/python": 4}).items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * (megabytes << 20))
    megabytes, largest = measure(tmp_path)
    assert megabytes == pytest.approx(10, abs=0.1)  # folders count too
    assert largest == "big 5, small 1"
