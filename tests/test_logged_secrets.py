"""No part of a secret is in what is logged: databases, configs, records, rankings, pages and tracebacks.

The services repeat the secrets that they receive in their errors, in several spellings.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

from runner.__main__ import main
from runner.tracking.settings import Tracking
from tests.config.test_secrets import quote_override, write_dsn
from tests.retrievers.fake_api import Answer, Asked, fake_api

PART = "xqvz"
"""A part of each password, on both sides of odd characters, which no text of the dataset has."""

ODD = ["%zz@:&=;?#", "'\"\\{}<b>$|é %25"]
"""The middle of passwords; one in a header has only characters that a header can have."""

_BASE64 = re.compile(rb"[A-Za-z0-9+/]{40,}={0,2}")


class _Echo:
    """Answers with hits, or as a model; to every third request with an error that quotes the secrets in it."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, asked: Asked) -> Answer:
        secrets = [value for name, value in asked.headers.items() if name in ("Authorization", "X-Odd")]
        self._count += 1
        if self._count % 3 == 0:
            spellings = [*secrets, *map(quote, secrets), *map(repr, secrets)]
            return Answer({"error": {"message": f"refused: {' '.join(spellings)}"}, "secrets": secrets}, 400)
        if "chat" in asked.path:
            message = {"role": "assistant", "content": '{"grade": 5, "reasoning": "good"}'}
            return Answer({"choices": [{"message": message, "finish_reason": "stop"}], "usage": {}})
        return Answer({"results": [{"item_id": f"d{n}", "score": 9.0 - n} for n in range(5)]})


def _iter_contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield the content of each file below a folder, and what is compressed in it."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = file.read_bytes()
        yield file, content
        if file.suffix == ".gz":
            yield file, gzip.decompress(content)
        if file.suffix == ".parquet":
            yield file, json.dumps(pq.read_table(file).to_pylist(), default=str).encode()
        for coded in _BASE64.findall(content) if file.suffix == ".html" else ():
            if len(coded) % 4 == 1:
                continue  # a long word or a hash, for no base64 has this length
            data = base64.b64decode(coded + b"=" * (-len(coded) % 4))
            yield file, gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


@pytest.mark.parametrize("odd", ODD)
def test_no_part_of_a_secret_is_logged(
    odd: str, tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    secret = f"{PART}1{odd}{PART}2"
    for name in ("HEADER", "MODEL_KEY"):
        monkeypatch.setenv(name, secret.replace("é", "e"))
    with fake_api(_Echo()) as api:
        service = ["retriever=http/runner", f"retriever.base_url={api.url}", "+retriever.secret_headers.X-Odd=HEADER",
                   "retriever.retries=0", "retriever.health_path=null", "retriever.concurrency=1"]  # fmt: skip
        model = ["llm=openai", f"llm.base_url={api.url}/v1", "llm.model=m", "llm.api_key_env=MODEL_KEY",
                 "llm.retries=0", "llm.price_in=0", "llm.price_out=0"]  # fmt: skip
        logged = ["tracking.background=false", "sweep.reports=true"]
        main([*service, *model, *logged])
        main(["-m", *service, *logged, "retriever.timeout_s=20,30"])
    dsn = quote_override("retriever.dsn", write_dsn(secret, "encoded"))
    main(["-m", "retriever=postgres", dsn, "retriever.config=english,german", *logged])
    with closing(sqlite3.connect(tmp_path / "mlruns" / "mlflow.db")) as database:
        runs = [run for (run,) in database.execute("select run_uuid from runs where status = 'FINISHED' and "
                "run_uuid in (select run_uuid from tags where key = 'kind' and value = 'evaluation')")]  # fmt: skip
        statuses = {status for (status,) in database.execute("select status from runs")}
    assert {"FINISHED", "FAILED"} <= statuses
    assert len(runs) == 3
    main(["compare", f"baseline={runs[0]}", f"candidate={runs[1]}", "output=comparison", "trust=[services,secrets]"])
    contents = [*_iter_contents(tmp_path)]
    assert {"report.html", "traceback.txt", "result.json", "mlflow.db"} <= {file.name for file, _ in contents}
    assert any(b"refused" in content for _, content in contents)  # the errors are there
    shown = [(file.name, content.find(PART.encode()), content) for file, content in contents]
    assert [(name, content[at - 60 : at + 60]) for name, at, content in shown if at >= 0] == []
