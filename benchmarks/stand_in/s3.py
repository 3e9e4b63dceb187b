"""Run moto's S3 server on this machine, for tests and benchmarks."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from runner.objects import _open_system


@contextmanager
def serve_s3() -> Iterator[str]:
    """Yield the address of a bucket; this process and its children find the server through the environment."""
    import s3fs
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    access = {
        "AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything", "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }  # fmt: skip
    before = {name: os.environ.get(name) for name in access}
    os.environ.update(access)
    _forget_servers()
    try:
        bucket = f"bucket-{uuid.uuid4().hex[:8]}"
        s3fs.S3FileSystem(skip_instance_cache=True).mkdir(bucket)
        yield f"s3://{bucket}"
    finally:
        server.stop()
        _forget_servers()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _forget_servers() -> None:
    """Let the next access read the address of the server from the environment again."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    _open_system.cache_clear()
