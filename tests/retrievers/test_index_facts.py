"""What an index reports about itself."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from retrievers.composed.fusion import Hybrid
from retrievers.index_facts import describe_indexes, remember_facts
from retrievers.lexical.bm25 import BM25
from retrievers.runs.run_file import RunFile
from retrievers.services.http_api import Http
from tests.retrievers.fake_api import Answer, Asked, fake_api
from tests.retrievers.http_search import FORM

FACTS = {
    "version": ("/", "version.number"),
    "documents": ("/{index}/_count", "count"),
    "mapping": ("/{index}/_mapping", "{index}.mappings"),
}
REPLIES = {"/": {"version": {"number": "2.11.0"}}, "/x/_count": {"count": 5}, "/x/_mapping": {"x": {"mappings": {}}}}


def api(url: str, **settings: Any) -> Http:
    return Http(url, **FORM | {"parameters": {"index": "x"}}, facts=FACTS, retries=0, **settings)


def answer(asked: Asked) -> Answer:
    return Answer(REPLIES[asked.path]) if asked.path in REPLIES else Answer({}, 404)


def test_an_api_reports_the_facts_that_its_settings_name() -> None:
    with fake_api(answer) as server:
        before = describe_indexes(api(server.url))
        assert {name: before[name] for name in ("version", "documents")} == {"version": "2.11.0", "documents": "5"}
        assert len(before["mapping"]) == 32
        server.search = lambda asked: Answer({"x": {"mappings": {"title": "text"}}, "count": 5})
        after = describe_indexes(api(server.url))
    assert after.keys() == {"documents", "mapping"}  # the others are missing from the replies
    assert after["documents"] == before["documents"]
    assert after["mapping"] != before["mapping"]


def test_an_api_that_does_not_answer_reports_nothing() -> None:
    with fake_api(answer) as server:
        url = server.url
    assert describe_indexes(api(url)) == {}


def test_the_facts_of_parts_have_the_names_of_the_parts(tmp_path: Path) -> None:
    (tmp_path / "x.trec").write_text("q 0 d 1 1 t\n")
    with fake_api(answer) as server:
        parts = {"api": api(server.url), "run": RunFile(str(tmp_path / "x.trec")), "bm25": BM25()}
        facts = describe_indexes(Hybrid(parts, method="rrf"))
    assert [*facts] == ["parts.api.version", "parts.api.documents", "parts.api.mapping", "parts.run.file"]
    assert describe_indexes(BM25()) == {}


def test_an_index_is_queried_once_while_its_facts_are_remembered() -> None:
    with fake_api(answer) as server:
        parts = {"one": api(server.url, timeout_s=20), "two": api(server.url, timeout_s=10), "bm25": BM25()}
        with remember_facts():
            facts = describe_indexes(Hybrid(parts, method="rrf"))
            again = describe_indexes(parts["one"])
            asked = Counter(asked.path for asked in server.asked)
            assert asked == {"/health": 2, "/": 2, "/x/_count": 2, "/x/_mapping": 2}
        assert again == {name.removeprefix("parts.one."): facts[name] for name in facts if ".one." in name}
        assert describe_indexes(parts["one"]) == again  # asked again
        assert len(server.asked) == 12


@pytest.mark.parametrize("change", ["content", "time"])
def test_a_changed_file_of_the_same_name_has_different_facts(change: str, tmp_path: Path) -> None:
    file = tmp_path / "x.trec"
    file.write_text("q 0 d 1 1 t\n")
    os.utime(file, (1e9, 1e9))
    before = describe_indexes(RunFile(str(file)))
    assert before == {"file": "12 bytes of 2001-09-09T01:46:40+00:00"}
    file.write_text("q 0 d 1 1 t\nq 0 e 2 0 t\n" if change == "content" else "q 0 e 1 1 t\n")
    os.utime(file, (1e9, 1e9 + (change == "time")))
    assert describe_indexes(RunFile(str(file))) != before
    assert describe_indexes(RunFile(str(tmp_path / "missing.trec"))) == {}
