"""Servers of object stores for tests; they skip where a package or program is missing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from benchmarks.stand_in.object_stores import AZURITE, SERVERS
from runner.config.addresses import _CLIENTS


def serve_bucket(protocol: str = "s3") -> Iterator[str]:
    """Yield the address of a bucket while its server runs: the body of a fixture."""
    package, extra = _CLIENTS[protocol]
    if find_spec(package) is None:  # not imported yet: gcsfs reads the environment of its server when it is
        pytest.skip(f"{package} is not installed: pip install '.[{extra}]'")
    if protocol == "s3" and find_spec("moto") is None:
        pytest.skip("moto is not installed: pip install 'moto[s3]'")
    if protocol == "az" and shutil.which(AZURITE) is None:
        pytest.skip(f"no program {AZURITE} on the path: npm install --global azurite")
    with SERVERS[protocol]() as bucket:
        yield bucket
