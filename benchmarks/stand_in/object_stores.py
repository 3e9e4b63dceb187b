"""Run servers of object stores on this machine, for tests and benchmarks.

S3 is served by moto, Azure by Azurite, and Google Cloud Storage by `gcs.py`.
"""

from __future__ import annotations

import base64
import logging
import os
import re
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import fsspec

from benchmarks.stand_in.gcs import serve_objects
from runner.system.object_stores import _open_system

AZURITE = "azurite-blob"
"""The program that `npm install azurite` installs."""


@contextmanager
def serve_s3() -> Iterator[str]:
    """Yield the address of a bucket of moto's S3 server."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    access = {
        "AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything", "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }  # fmt: skip
    try:
        with _connect("s3", access) as bucket:
            yield bucket
    finally:
        server.stop()


@contextmanager
def serve_gcs() -> Iterator[str]:
    """Yield the address of a bucket of a stand-in for Google Cloud Storage."""
    with serve_objects() as address:
        # Without its support of zonal buckets, gcsfs sends no request to Google itself.
        access = {
            "STORAGE_EMULATOR_HOST": address, "FSSPEC_GS_TOKEN": "anon", "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        }  # fmt: skip
        with _connect("gs", access) as bucket:
            yield bucket


@contextmanager
def serve_azure() -> Iterator[str]:
    """Yield the address of a container of Azurite, Microsoft's emulator of Azure Blob Storage."""
    key = base64.b64encode(uuid.uuid4().bytes).decode()
    with tempfile.TemporaryDirectory() as folder:
        command = [AZURITE, "--blobPort", "0", "--location", folder, "--skipApiVersionCheck", "--disableTelemetry"]
        environment = {**os.environ, "AZURITE_ACCOUNTS": f"account:{key}"}
        server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            address = next(
                (found[0] for line in server.stdout if (found := re.search(r"http://\S+:[1-9]\d*", line))), ""
            )
            if not address:
                raise OSError(f"{AZURITE} did not start")
            connection = (
                f"DefaultEndpointsProtocol=http;AccountName=account;AccountKey={key};BlobEndpoint={address}/account;"
            )
            with _connect("az", {"AZURE_STORAGE_CONNECTION_STRING": connection}) as container:
                yield container
        finally:
            server.terminate()
            server.communicate()


SERVERS: Mapping[str, Callable[[], AbstractContextManager[str]]] = {"s3": serve_s3, "gs": serve_gcs, "az": serve_azure}
"""The servers by the protocol of their addresses."""


@contextmanager
def _connect(protocol: str, access: Mapping[str, str]) -> Iterator[str]:
    """Yield the address of a new bucket; this process and its children find the server through the environment."""
    before = {name: os.environ.get(name) for name in access}
    os.environ.update(access)
    fsspec.config.set_conf_env(fsspec.config.conf)
    system = fsspec.get_filesystem_class(protocol)
    system.clear_instance_cache()
    _open_system.cache_clear()
    try:
        bucket = f"bucket-{uuid.uuid4().hex[:8]}"
        system(skip_instance_cache=True).mkdir(bucket)
        yield f"{protocol}://{bucket}"
    finally:
        system.clear_instance_cache()
        _open_system.cache_clear()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
