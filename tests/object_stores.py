"""An S3 server for tests; they skip where its packages are missing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.stand_in.s3 import serve_s3


def serve_bucket() -> Iterator[str]:
    """Yield the address of a bucket while the server runs: the body of a fixture."""
    pytest.importorskip("s3fs", reason="s3fs is not installed: pip install 'retrieval-runner[s3]'")
    pytest.importorskip("moto", reason="moto is not installed: pip install 'moto[s3]'")
    with serve_s3() as bucket:
        yield bucket
