"""Serve objects in memory through the parts of the JSON API of Google Cloud Storage that gcsfs uses.

Objects are written by one request or by a resumable upload, with `ifGenerationMatch=0` only if they do not exist, read
as a whole or in part, listed by prefix, and removed: https://cloud.google.com/storage/docs/json_api.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

PAGE = 1000
"""The most objects of a listing; a longer one has further pages."""

_RESUME = 308
"""The status of a part of a resumable upload, if more parts follow."""


class RefusedError(Exception):
    """A request that fails with a status."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


@dataclass(frozen=True)
class StoredObject:
    """An object; a later one of the same name has a higher generation."""

    content: bytes
    generation: int
    updated: str


@dataclass
class Upload:
    """A resumable upload and the bytes received so far."""

    bucket: str
    name: str
    is_new: bool
    content: bytearray = field(default_factory=bytearray)


class ObjectServer:
    """Buckets and unfinished uploads."""

    def __init__(self) -> None:
        self._buckets: dict[str, dict[str, StoredObject]] = {}
        self._uploads: dict[str, Upload] = {}
        self._numbers = count(1)
        self._lock = threading.Lock()

    def create_bucket(self, name: str) -> dict[str, Any]:
        """Create a bucket if it does not exist, and return its description."""
        self._buckets.setdefault(name, {})
        return {"kind": "storage#bucket", "name": name, "id": name}

    def describe_bucket(self, name: str) -> dict[str, Any]:
        """Return the description of a bucket; raises `RefusedError`."""
        self._objects(name)
        return {"kind": "storage#bucket", "name": name, "id": name}

    def write(self, bucket: str, name: str, content: bytes, is_new: bool) -> dict[str, Any]:
        """Write an object, with `is_new` only if it does not exist, and describe it; raises `RefusedError`."""
        with self._lock:
            objects = self._objects(bucket)
            if is_new and name in objects:
                raise RefusedError(HTTPStatus.PRECONDITION_FAILED)
            objects[name] = StoredObject(
                content, next(self._numbers), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            )
        return self.describe(bucket, name)

    def read(self, bucket: str, name: str) -> bytes:
        """Return the content of an object; raises `RefusedError`."""
        return self._find(bucket, name).content

    def describe(self, bucket: str, name: str) -> dict[str, Any]:
        """Return the metadata of an object; raises `RefusedError`."""
        stored = self._find(bucket, name)
        digest = base64.b64encode(hashlib.md5(stored.content, usedforsecurity=False).digest()).decode()
        return {
            "kind": "storage#object", "bucket": bucket, "name": name, "size": str(len(stored.content)),
            "generation": str(stored.generation), "metageneration": "1", "md5Hash": digest, "updated": stored.updated,
            "timeCreated": stored.updated,
        }  # fmt: skip

    def list_page(self, bucket: str, prefix: str, delimiter: str, after: str) -> dict[str, Any]:
        """Return the objects and, with a delimiter, the folders below a prefix that follow a name."""
        items, prefixes = [], set()
        for name in sorted(self._objects(bucket)):
            if not name.startswith(prefix) or name <= after:
                continue
            if delimiter and delimiter in name[len(prefix) :]:
                prefixes.add(prefix + name[len(prefix) :].partition(delimiter)[0] + delimiter)
                continue
            if len(items) == PAGE:
                return {"items": items, "prefixes": sorted(prefixes), "nextPageToken": items[-1]["name"]}
            items.append(self.describe(bucket, name))
        return {"kind": "storage#objects", "items": items, "prefixes": sorted(prefixes)}

    def remove(self, bucket: str, name: str) -> None:
        """Remove an object; raises `RefusedError`."""
        with self._lock:
            self._find(bucket, name)
            del self._objects(bucket)[name]

    def begin(self, upload: Upload) -> str:
        """Return the identifier of a resumable upload."""
        self._objects(upload.bucket)
        identifier = str(next(self._numbers))
        self._uploads[identifier] = upload
        return identifier

    def append(self, identifier: str, part: bytes, total: int | None) -> dict[str, Any] | int:
        """Add a part to an upload; return the object if it is complete, or else the number of bytes received."""
        upload = self._uploads.get(identifier)
        if upload is None:
            raise RefusedError(HTTPStatus.NOT_FOUND)
        upload.content.extend(part)
        if len(upload.content) != total:
            return len(upload.content)
        del self._uploads[identifier]
        return self.write(upload.bucket, upload.name, bytes(upload.content), upload.is_new)

    def cancel(self, identifier: str) -> None:
        """Forget an upload."""
        self._uploads.pop(identifier, None)

    def _objects(self, bucket: str) -> dict[str, StoredObject]:
        if bucket not in self._buckets:
            raise RefusedError(HTTPStatus.NOT_FOUND)
        return self._buckets[bucket]

    def _find(self, bucket: str, name: str) -> StoredObject:
        stored = self._objects(bucket).get(name)
        if stored is None:
            raise RefusedError(HTTPStatus.NOT_FOUND)
        return stored


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    objects: ObjectServer

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""

    def _answer(self) -> None:
        place = urlsplit(self.path)
        parts = [unquote(part) for part in place.path.strip("/").split("/")]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            self._route(parts, dict(parse_qsl(place.query)), body)
        except RefusedError as error:
            details = {"code": error.status.value, "message": error.status.phrase}
            self._send(error.status, json.dumps({"error": details}).encode())

    do_GET = do_POST = do_PUT = do_DELETE = _answer

    def _route(self, parts: list[str], query: Mapping[str, str], body: bytes) -> None:
        objects = self.objects
        match self.command, parts:
            case "POST", ["storage", "v1", "b"]:
                self._send_json(objects.create_bucket(json.loads(body)["name"]))
            case "GET", ["storage", "v1", "b", bucket]:
                self._send_json(objects.describe_bucket(bucket))
            case "GET", ["storage", "v1", "b", bucket, "o"]:
                prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
                self._send_json(objects.list_page(bucket, prefix, delimiter, query.get("pageToken", "")))
            case "GET", ["storage", "v1", "b", bucket, "o", name]:
                self._send_json(objects.describe(bucket, name))
            case "GET", ["download", "storage", "v1", "b", bucket, "o", name]:
                self._send_content(objects.read(bucket, name))
            case "DELETE", ["storage", "v1", "b", bucket, "o", name]:
                objects.remove(bucket, name)
                self._send(HTTPStatus.NO_CONTENT, b"")
            case "POST" | "PUT", ["upload", "storage", "v1", "b", _, "o"] if "upload_id" in query:
                self._continue_upload(query["upload_id"], body)
            case "POST", ["upload", "storage", "v1", "b", bucket, "o"]:
                self._begin_upload(bucket, query, body)
            case "DELETE", ["upload", "storage", "v1", "b", _, "o"]:
                objects.cancel(query["upload_id"])
                self._send(HTTPStatus.NO_CONTENT, b"")
            case _:
                raise RefusedError(HTTPStatus.NOT_IMPLEMENTED)

    def _begin_upload(self, bucket: str, query: Mapping[str, str], body: bytes) -> None:
        is_new = query.get("ifGenerationMatch") == "0"
        if query["uploadType"] == "multipart":
            metadata, content = _split_parts(self.headers["Content-Type"], body)
            self._send_json(self.objects.write(bucket, metadata["name"], content, is_new))
            return
        identifier = self.objects.begin(Upload(bucket, query["name"], is_new))
        place = (
            f"http://{self.headers['Host']}/upload/storage/v1/b/{bucket}/o?uploadType=resumable&upload_id={identifier}"
        )
        self._send(HTTPStatus.OK, b"{}", {"Location": place})

    def _continue_upload(self, identifier: str, body: bytes) -> None:
        total = self.headers["Content-Range"].rpartition("/")[2]
        reply = self.objects.append(identifier, body, int(total) if total.isdecimal() else None)
        if isinstance(reply, int):
            self._send(_RESUME, b"", {"Range": f"bytes=0-{reply - 1}"})
        else:
            self._send_json(reply)

    def _send_content(self, content: bytes) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked is None:
            self._send(HTTPStatus.OK, content)
            return
        first, last = int(asked[1]), int(asked[2] or len(content))
        if first >= len(content):
            raise RefusedError(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
        self._send(HTTPStatus.PARTIAL_CONTENT, content[first : last + 1])

    def _send_json(self, value: Mapping[str, Any]) -> None:
        self._send(HTTPStatus.OK, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serve_objects() -> Iterator[str]:
    """Yield the address of a server without any bucket."""
    handler = type("Handler", (_Handler,), {"objects": ObjectServer()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _split_parts(kind: str, body: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the metadata and the content of a `multipart/related` body."""
    boundary = re.search(r'boundary="?([^";]+)"?', kind)
    assert boundary is not None
    _, first, second = body.split(b"--" + boundary[1].encode(), 2)
    separator = re.compile(rb"\r?\n\r?\n")
    metadata = separator.split(first, maxsplit=1)[1]
    content = separator.split(second, maxsplit=1)[1]
    return json.loads(metadata), re.sub(rb"\r?\n--" + re.escape(boundary[1].encode()) + rb"--\s*\Z", b"", content)
