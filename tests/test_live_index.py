"""An index that only a server has, from the command line: measures, texts by id, and a server that comes and goes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from retrievers.base import Corpus
from retrievers.composed.fusion import Hybrid
from retrievers.services.http_api import Http
from runner.__main__ import main
from runner.config import CONF
from runner.datasets.beir import Beir
from runner.evaluation.bench import Bench
from runner.evaluation.records import load_record
from runner.evaluation.result import Result
from runner.metrics.settings import MetricSettings
from runner.store.disk import DiskStore
from runner.tracking.settings import Tracking
from tests.config.files import load_settings
from tests.fake_llm import FakeLLM
from tests.retrievers.elasticsearch import SETTINGS, run_elasticsearch
from tests.test_unknown_hits import WHOLE, World, experiment, same

JUDGED = ("dataset=judged", "dataset.queries=queries.jsonl", "dataset.qrels=qrels.tsv", "tracking.background=false")


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: it has a store of runs, two queries and a judgment for each."""
    monkeypatch.chdir(tmp_path)
    queries = {"q1": "lighthouse ships", "q2": "ferries islands"}
    (tmp_path / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in queries.items())
    )
    (tmp_path / "qrels.tsv").write_text("q1\td5\t1\nq2\td2\t1\n")
    return tmp_path


def results(folder: Path) -> list[Result]:
    """Return the results in the order of their evaluation."""
    files = sorted(folder.glob("mlruns/artifacts/**/result.json"), key=lambda file: file.stat().st_mtime_ns)
    return [load_record(file.parent) for file in files]


def test_measures_do_not_depend_on_the_documents_of_the_dataset(collections: Path, tmp_path: Path) -> None:
    whole, metrics = collections / "cranfield", MetricSettings(depth=1000)
    dataset = Beir(path=str(whole)).load()
    judged = {dataset.corpus.ids[place] for place in dataset.judgments.documents.tolist()}
    (tmp_path / "few" / "qrels").mkdir(parents=True)
    for name in ("queries.jsonl", "qrels/test.tsv"):
        (tmp_path / "few" / name).write_bytes((whole / name).read_bytes())
    lines = (whole / "corpus.jsonl").read_bytes().splitlines(keepends=True)
    few = [line for line in lines if str(orjson.loads(line)["_id"]) in judged]
    (tmp_path / "few" / "corpus.jsonl").write_bytes(b"".join(few))
    folders: list[dict[str, Any]] = [
        {"path": str(whole)}, {"path": str(tmp_path / "few")}, {"path": str(whole), "documents": None}
    ]  # fmt: skip
    sources = [Beir(**folder, max_queries=30) for folder in folders]
    preset = load_settings(CONF / "retriever" / "http" / "opensearch.yaml")  # Elasticsearch's is the same
    preset = {name: value for name, value in preset.items() if name not in ("_target_", "base_url")}
    with run_elasticsearch(dataset.corpus) as api:
        http = Http(api.url, **{**preset, "parameters": {"index": "articles", "field": "text"}})
        bench = Bench(DiskStore(tmp_path / "store"))
        evaluated = [bench.evaluate(replace(experiment(http, source), metrics=metrics)) for source in sources]
    full, of_judged, of_none = evaluated
    assert [each.dataset.documents for each in evaluated] == [len(lines), len(few), 0]
    assert len(lines) > len(few)
    assert {"nDCG@10", "AP", "R@100"} <= set(full.means)
    assert 0.2 < full.means["nDCG@10"] < 1
    same(full, of_judged)
    same(full, of_none)


def test_a_judge_reads_texts_that_only_the_index_has(
    here: Path, harbour: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that the index does not return stay unjudged."""
    with run_elasticsearch(harbour, without_text=["d3"]) as api, FakeLLM() as server:
        assert main([*SETTINGS, f"retriever.base_url={api.url}", *JUDGED, "--json"]) == 0
        run = json.loads(capsys.readouterr().out)["run"]
        words = ["llm=openai", "llm.model=m", f"llm.base_url={server.url}", "judging.backoff_s=0", "output=judged"]
        assert main(["judge", f"run={run}", *words, "trust=[services]"]) == 0
    (result,) = results(here)
    assert result.hits
    hits = {name: set(result.hits.ids(place)) for place, name in enumerate(result.queries.ids)}
    verdicts = [orjson.loads(line) for line in (here / "judged" / "verdicts.jsonl").read_bytes().splitlines()]
    pairs = {(each["query_id"], each["document_id"]) for each in verdicts}
    judged = {("q1", "d5"), ("q2", "d2")}
    assert "d3" in hits["q1"] & hits["q2"]
    assert pairs == {(query, hit) for query in hits for hit in hits[query] if hit != "d3"} - judged
    texts = [harbour.texts[harbour.positions[document]] for _, document in pairs]
    assert len(server.asked) == len(pairs) > 0
    assert all(any(text in asked.question for asked in server.asked) for text in texts)
    assert not any(harbour.texts[2] in asked.question for asked in server.asked)


def test_a_sweep_continues_when_the_server_is_back(
    here: Path, harbour: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    with run_elasticsearch(harbour) as api:
        url = api.url
    sweep = ["-m", *SETTINGS, f"retriever.base_url={url}", "retriever.retries=0,1", "retriever.backoff_s=0", *JUDGED]
    assert main(sweep) == 1
    assert f"no search API answered at {url}" in capsys.readouterr().out.replace("\n", " ")
    with run_elasticsearch(harbour, int(url.rpartition(":")[2])) as api:
        assert main(sweep) == 0  # the same command
        assert len(api.searches) >= 4
    assert "failed" not in capsys.readouterr().out
    assert [result.means["RR"] > 0 for result in results(here)] == [True, True]


def test_an_evaluation_asks_each_part_of_a_hybrid_once_for_the_facts_of_its_index(tmp_path: Path) -> None:
    facts = {"version": ("/", "version.number"), "documents": ("/articles/_count", "count")}
    request = {"query": {"bool": {"must": {"match": {"text": "{query}"}}}}, "size": "{top_k}"}
    form: dict[str, Any] = {"results": "hits.hits", "item_id": "_id", "score": "_score", "facts": facts}
    bench, requests, source = Bench(DiskStore(tmp_path)), list[Counter[str]](), World()
    with run_elasticsearch(WHOLE) as api:
        form |= {"search_path": "/articles/_search", "health_path": "/", "request": request}
        parts = {f"part {n}": Http(api.url, **form, timeout_s=n) for n in (20, 30)}
        for k in (1, 60):
            before = len(api.asked)
            result = bench.evaluate(experiment(Hybrid(parts, method="rrf", rrf_k=k), source))
            requests.append(Counter(asked.path for asked in api.asked[before:]))
            assert result.index["parts.part 20.version"] == "8.19.0"
    # Two parts, each asked for two facts, of which "/" is also the address of two checks: before the facts and, the
    # first time, before the five queries.
    assert requests[0] == {"/": 2 + 2 + 2, "/articles/_count": 2, "/articles/_search": 2 * 5}
    assert requests[1] == {"/": 2 + 2, "/articles/_count": 2}
