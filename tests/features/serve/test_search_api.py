"""A search API of another make, asked from the command line as the documentation says."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest

from runner.__main__ import main
from runner.evaluation.records import load_record
from runner.evaluation.result import Result
from runner.tracking.record import tags_of
from runner.tracking.settings import Tracking
from tests.retrievers.fake_api import Answer, Asked, fake_api, hits

EXAMPLE = re.compile(r"^```yaml\n# FOLDER/(retriever/elastic\.yaml).*?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DATASET = (
    "dataset=jsonl",
    "dataset.documents=documents.jsonl",
    "dataset.queries=queries.jsonl",
    "tracking.background=false",
)


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: it has a store of runs, three documents and two questions."""
    monkeypatch.chdir(tmp_path)
    documents = [{"id": name, "text": text} for name, text in (("d1", "a ship"), ("d2", "a ferry"), ("d3", "a pier"))]
    queries = [{"id": "q1", "text": "ships", "gold": ["d1"]}, {"id": "q2", "text": "ferries", "gold": ["d2"]}]
    for name, rows in (("documents", documents), ("queries", queries)):
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


def result(folder: Path) -> Result:
    (record,) = {*folder.rglob("result.json")}
    return load_record(record.parent)


def test_the_documented_example_of_another_search_api_works(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEARCH_AUTHORIZATION", "Bearer s3cr3t-token")
    page = (Path(__file__).parents[3] / "docs" / "serve.md").read_text(encoding="utf-8")
    ((name, content),) = EXAMPLE.findall(page)
    (here / "own" / "retriever").mkdir(parents=True)
    (here / "own" / name).write_text(content)

    def elastic(asked: Asked) -> Answer:
        first = {"ships": "d1", "ferries": "d3"}
        if asked.path != "/articles/_search":
            return Answer({"count": 3} if asked.path == "/articles/_count" else {})
        hits = [first[asked.body["query"]["match"]["text"]], "d2"]
        return Answer({"hits": {"hits": [{"_id": id_, "_score": 2 - i} for i, id_ in enumerate(hits)]}})

    words = (
        "+retriever.headers={X-Tenant: golden}",
        "+retriever.secret_headers={Authorization: SEARCH_AUTHORIZATION}",
    )
    with fake_api(elastic) as api:
        url = f"retriever.base_url={api.url}"
        assert main(["--config-dir=own", "retriever=elastic", url, *words, *DATASET]) == 0
        searches = [asked for asked in api.asked if asked.path == "/articles/_search"]
    assert sorted(asked.body["query"]["match"]["text"] for asked in searches) == ["ferries", "ships"]
    assert all(asked.body["size"] == 100 for asked in searches)
    assert {(asked.headers["X-Tenant"], asked.headers["Authorization"]) for asked in searches} == {
        ("golden", "Bearer s3cr3t-token")
    }
    found = result(here)
    assert found.of("RR").tolist() == [1, 0.5]
    assert found.addresses == {"": api.url}
    assert tags_of(found)["address"] == api.url
    assert f"answered by {api.url}\n" in capsys.readouterr().out
    assert all(f"{api.url}" in path.read_text().split("Summary measures")[0] for path in here.rglob("report.md"))
    kept = [file for file in here.rglob("*") if file.is_file()]
    assert not [file for file in kept if b"s3cr3t" in file.read_bytes()]


def test_a_query_that_the_api_refuses_is_an_error_with_exit_code_1_and_a_result(here: Path) -> None:
    no = Answer({"detail": "no"}, 400)
    words = (
        "retriever=http",
        "retriever.method=GET",
        "retriever.search_path=/search",
        "retriever.request={q: 'text:({query})'}",
        "retriever.results=results",
        "retriever.item_id=item_id",
        "retriever.score=null",
    )
    answers = {"text:(ships)": Answer({"results": [{"item_id": "d1"}]})}
    with fake_api(lambda asked: answers.get(asked.parameters["q"][0], no)) as api:
        assert main([*words, f"retriever.base_url={api.url}", *DATASET]) == 1
    found = result(here)
    assert found.queries.statuses == ["pass", "error"]
    assert "HTTP 400" in found.queries.errors[1]
    with fake_api(lambda _: no) as api:
        assert main([*words, f"retriever.base_url={api.url}", *DATASET]) == 1


def test_search_types_of_one_api_are_queried_at_the_same_time_by_several_workers(here: Path) -> None:
    types, both = set(), threading.Event()

    def search(asked: Asked) -> Answer:
        types.add(asked.body["search_type"])
        if len(types) == 2:
            both.set()
        both.wait()  # one type after the other, the first is never answered, and its queries time out
        return hits(("d1", 1.0))

    with fake_api(search) as api:
        words = ["retriever=http/runner", f"retriever.base_url={api.url}"]
        words += ["retriever.parameters.search_type=bm25,vector"]
        words += ["retriever.timeout_s=600", "retriever.retries=0", "sweep.backend=loky", "sweep.workers=2"]
        try:
            assert main(["-m", *words, *DATASET]) == 0
        finally:
            both.set()
    assert types == {"bm25", "vector"}
