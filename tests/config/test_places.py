from __future__ import annotations

import pytest

from runner.config.objects import ConfigError
from runner.config.values import store_path


@pytest.mark.parametrize("address", ["s3://bucket/cache", "gs://bucket", "https://example.org/x", "file:///tmp/x"])
def test_the_store_is_a_local_folder(address: str) -> None:
    with pytest.raises(ConfigError, match=rf"^store\.path={address}: is an address; give a path on this machine$"):
        store_path({"store": {"path": address}})


@pytest.mark.parametrize("path", ["cache", "/tmp/a:b", "C:/cache", "a/s3:/b"])
def test_paths_that_look_like_addresses_are_paths(path: str) -> None:
    assert str(store_path({"store": {"path": path}})) == path
