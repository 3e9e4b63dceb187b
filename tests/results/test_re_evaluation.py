"""Comparisons after the data changed: the baseline is evaluated again, and data and code have their own effects."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from runner.__main__ import main
from runner.comparison.comparability import NotComparable
from runner.config.consent import Consent
from runner.evaluation.bench import Bench
from runner.evaluation.records import load_record
from runner.evaluation.result import Result
from runner.results.re_evaluation import describe_versions, load_documents, re_evaluate
from runner.store.opening import open_store
from runner.store.settings import StoreSettings
from tests.pages.reading import read_explorer_data
from tests.retrievers.http_search import FORM

Run = Callable[..., tuple[str, str]]

QUERIES = 30
DATA = ("dataset=beir", "dataset.path=data", "statistics.permutations=100")
VOWELS, CONSONANTS = "aeiou", "bdfgklmnprtvz"


def name(i: int) -> str:
    """Return a word that no other number has, and that a stemmer leaves as it is."""
    return f"{CONSONANTS[i % 13]}{VOWELS[i % 5]}{CONSONANTS[i // 13]}{VOWELS[i // 5 % 5]}k"


def write_data(folder: Path, documents: Mapping[str, str], queries: Mapping[str, str]) -> None:
    """Write a dataset whose query qN has the gold document dN."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    corpus = [json.dumps({"_id": i, "title": "", "text": text}) for i, text in documents.items()]
    (folder / "corpus.jsonl").write_text("\n".join(corpus) + "\n")
    rows = [json.dumps({"_id": i, "text": text}) for i, text in queries.items()]
    (folder / "queries.jsonl").write_text("\n".join(rows) + "\n")
    judgments = "".join(f"{i}\td{i[1:]}\t1\n" for i in queries)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judgments}")


def old_documents() -> dict[str, str]:
    """Return documents that a query finds by a rare word in the singular, and others that repeat its other word."""
    gold = {f"d{i}": f"{name(i)} {name(i + 30)}" for i in range(QUERIES)}
    return gold | {f"x{i}": f"{name(i + 30)} " * 30 for i in range(QUERIES)}


def old_queries() -> dict[str, str]:
    return {f"q{i}": f"{name(i)}s {name(i + 30)}" for i in range(QUERIES)}


def new_documents() -> dict[str, str]:
    """Return documents of which 5 % changed: a gold document lost its words, one is gone, and one is new."""
    documents = old_documents() | {"d0": "nothing of interest", "new": f"{name(1)} {name(2)}"}
    del documents["x5"]
    return documents


@pytest.fixture(scope="module")
def project(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with data, a promoted baseline of them, and then with changed data and a run on these."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "mlruns").mkdir()
    shutil.copy(migrated, folder / "mlruns" / "mlflow.db")
    before = Path.cwd()
    os.chdir(folder)
    try:
        write_data(folder / "data", old_documents(), old_queries())
        assert main([*DATA]) == 0
        assert main(["promote", "run=latest", "name=main"]) == 0
        write_data(folder / "data", new_documents(), old_queries())
        assert main([*DATA]) == 0
        assert main(["promote", "run=latest", "name=same"]) == 0
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def here(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, a copy of the project."""
    shutil.copytree(project, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


@pytest.fixture
def run(here: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a verb and returns what it prints, and what it says besides."""

    def run(*arguments: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert main([*arguments]) == code
        return tuple(capsys.readouterr())  # type: ignore[return-value]  # out and err

    return run


COMPARE = ("compare", "baseline=baseline:main", "candidate=latest", "statistics.permutations=500")


def test_without_a_change_of_code_its_effect_is_0_and_the_gate_passes(run: Run, here: Path) -> None:
    recorded, candidate = load_record(here / "baselines" / "main"), load_record(here / "baselines" / "same")
    out, _ = run(*COMPARE, "--json")
    content = orjson.loads(out)
    assert content["gate"]["passed"]
    assert content["data"]["changes"] == ["1 of 60 documents changed, 1 new, 1 gone"]
    assert content["data"]["queries"] == QUERIES
    for measure, of in content["data"]["measures"].items():
        (share,) = of["candidates"].values()
        assert share["code_and_settings"] == pytest.approx(0, abs=1e-12)
        assert of["data"] == pytest.approx(candidate.means[measure] - recorded.means[measure], abs=1e-12)
        assert of["recorded"] == pytest.approx(recorded.means[measure], abs=1e-12)
    assert content["data"]["measures"]["nDCG@10"]["data"] < -0.01
    for measure in content["measures"].values():
        _, other = measure["systems"].values()
        assert other["difference"] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("change", ["retriever.k1=100", "analyzer=plain"])
def test_a_change_of_settings_that_costs_quality_fails_the_gate(run: Run, change: str) -> None:
    run(*DATA, change)
    out, _ = run(*COMPARE, code=1)
    assert "gate failed" in out
    text = " ".join(out.split())
    assert "The data changed since the baseline was recorded: 1 of 60 documents changed, 1 new, 1 gone." in text
    assert "Effect of the data: the re-evaluated baseline is not significantly worse than the recorded" in text


def test_every_report_shows_the_effect_of_the_data_beside_that_of_code_and_settings(run: Run, here: Path) -> None:
    run(*DATA, "retriever.k1=100")
    run(*COMPARE, "output=out", "--json", code=1)
    for file in ("comparison.md", "comparison.html"):
        text = (here / "out" / file).read_text()
        assert "Effect of the data, and of code and settings" in text
        assert "The data changed since the baseline was recorded: 1 of 60 documents changed, 1 new, 1 gone." in text
    page = read_explorer_data((here / "out" / "comparison.html").read_text())["documents"]
    assert dict(zip(page["ids"], page["texts"], strict=True)).items() <= new_documents().items(), "ids have their texts"
    content = orjson.loads((here / "out" / "comparison.json").read_bytes())
    of = content["data"]["measures"]["nDCG@10"]
    (share,) = of["candidates"].values()
    assert of["recorded"] + of["data"] == pytest.approx(of["re_evaluated"], abs=1e-12)
    assert of["re_evaluated"] + share["code_and_settings"] == pytest.approx(share["mean"], abs=1e-12)
    assert content["systems"][0]["source"] == "baseline main, re-evaluated"
    assert content["baseline"].startswith("bm25 re-evaluated")


def test_queries_and_judgments_that_changed_are_listed_and_the_others_compared(run: Run, here: Path) -> None:
    queries = old_queries() | {"q30": "something new", "q1": f"where is {name(1)}", "q2": old_queries()["q2"]}
    del queries["q3"]
    write_data(here / "data", new_documents() | {"d30": "something"}, queries)
    qrels = here / "data" / "qrels" / "test.tsv"
    qrels.write_text(qrels.read_text() + "q2\td4\t1\n")
    run(*DATA)
    content = orjson.loads(run(*COMPARE, "--json")[0])
    assert content["data"]["changes"] == [
        "1 of 60 documents changed, 2 new, 1 gone",
        "1 query added (q30)",
        "1 query removed (q3)",
        "1 query reworded (q1)",
        "judgments of 1 query (q2)",
    ]
    assert content["data"]["queries"] == QUERIES - 2
    assert content["measures"]["nDCG@10"]["systems"]["bm25"]["difference"] == 0


def test_documents_that_changed_are_counted_with_gold_in_spans(run: Run, here: Path) -> None:
    documents, spans = old_documents(), here / "data" / "spans.jsonl"
    rows = [{"query_id": f"q{i}", "doc_id": f"d{i}", "quote": documents[f"d{i}"]} for i in range(QUERIES)]
    spans.write_text("".join(json.dumps(row) + "\n" for row in rows))
    of_spans = ("dataset.gold=spans", "dataset.spans=data/spans.jsonl")
    write_data(here / "data", documents, old_queries())
    run(*DATA, *of_spans)
    run("promote", "run=latest", "name=spans")
    moved = {i: f"a page before {documents[i]}" for i in ("d3", "d4", "x5")}
    write_data(here / "data", documents | moved | {"new": "something else"}, old_queries())
    run(*DATA, *of_spans)
    out, _ = run("compare", "baseline=baseline:spans", "candidate=latest", "output=out", "gate=none")
    sentence = "The data changed since the baseline was recorded: 3 of 60 documents changed, 1 new."
    assert sentence in " ".join(out.split())
    assert sentence in (here / "out" / "comparison.html").read_text()


def test_a_record_without_hashes_of_documents_gives_their_number(run: Run, here: Path) -> None:
    (here / "baselines" / "main" / "documents.parquet").unlink()
    content = orjson.loads(run(*COMPARE, "--json")[0])
    assert content["data"]["changes"] == ["documents (60 before and now, some with other contents)"]


def test_re_evaluation_can_be_turned_off(run: Run) -> None:
    _, err = run(*COMPARE, "compare.re_evaluate=never", code=2)
    assert "their documents differ; to evaluate the baseline again" in err


def test_datasets_without_a_common_query_are_refused(run: Run, here: Path) -> None:
    write_data(here / "data", old_documents(), {i: f"{text} again" for i, text in old_queries().items()})
    run(*DATA)
    _, err = run(*COMPARE, code=2)
    assert "have no query in common" in err
    assert len(err.splitlines()) == 2  # which run is the latest, and the error


def test_the_chunking_is_a_setting_and_the_documents_are_data(run: Run, here: Path) -> None:
    run(*DATA, "chunking=sentences", "chunking.size=1")
    content = orjson.loads(run(*COMPARE, "--json", "gate=none")[0])
    assert content["data"]["changes"] == ["1 of 60 documents changed, 1 new, 1 gone"]
    assert content["systems"][0]["name"] == "bm25 re-evaluated"


@pytest.fixture
def pair(project: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Result, Result]:
    """Return the baseline and a result on the changed data, in the folder of the project."""
    monkeypatch.chdir(project)
    return load_record(Path("baselines/main")), load_record(Path("baselines/same"))


def repeat(baseline: Result, candidate: Result, any_code: bool = False) -> Result:
    consent = Consent(("services", "secrets"), ("json",))
    return re_evaluate(baseline, candidate, Bench(open_store(StoreSettings("mlruns/cache"))), consent, any_code)


def with_settings(of: Result, **changes: Any) -> Result:
    return replace(of, config={**of.config, **changes})


def test_a_re_evaluated_baseline_equals_an_evaluation_of_its_settings(pair: tuple[Result, Result]) -> None:
    again = repeat(*pair)
    assert dict(again.means) == dict(pair[1].means)
    assert again.dataset.fingerprint == pair[1].dataset.fingerprint
    assert again.name == "bm25 re-evaluated"


HTTP = {"_target_": "retrievers.services.http_api.Http", "base_url": "http://127.0.0.1:9", **FORM}
LISTWISE = {
    "_target_": "retrievers.composed.reranked.Reranked",
    "reranker": {"llm": {"_target_": "runner.llm.providers.OpenAI"}},
}


@pytest.mark.parametrize(
    ("retriever", "reason"),
    [
        ({"_target_": "my_plugin.Mine"}, r"the record wants to run code of a plug-in .*'plugins=\[my_plugin\]'"),
        ({"_target_": "retrievers.gone.Gone"}, r"retrievers\.gone\.Gone: cannot be imported"),
        (HTTP, "bm25 was measured on a live service, which may have changed"),
        (
            {"_target_": "retrievers.runs.run_file.RunFile", "path": "x.trec"},
            "the rankings of bm25 were read from a file",
        ),
        ({"_target_": "retrievers.runs.existing.ExistingRetriever", "factory": "json:loads"}, "its own index"),
        (LISTWISE, "uses a language model, whose replies are not repeatable"),
        ({**HTTP, "headers": {"Authorization": "***"}}, r"retriever\.headers\.Authorization: the value is a secret"),
        ({**HTTP, "base_url": "${oc.env:NOT_SET_HERE}"}, "NOT_SET_HERE"),
        (None, "the record of bm25 does not contain the settings of its retriever"),
    ],
)
def test_a_configuration_that_cannot_be_evaluated_again_is_refused_with_the_reason(
    pair: tuple[Result, Result], retriever: Any, reason: str
) -> None:
    with pytest.raises(NotComparable, match=reason):
        repeat(with_settings(pair[0], retriever=retriever), pair[1])


def test_a_baseline_of_a_live_service_is_refused_with_its_address(pair: tuple[Result, Result]) -> None:
    with pytest.raises(NotComparable, match=r"live service \(http://127\.0\.0\.1:9\), which may have changed"):
        repeat(replace(pair[0], addresses={"": "http://127.0.0.1:9"}), pair[1])


def test_data_that_are_gone_or_changed_since_the_evaluation_are_refused(pair: tuple[Result, Result]) -> None:
    before, after = pair
    with pytest.raises(NotComparable, match="the record of bm25 does not contain the settings of its dataset"):
        repeat(before, with_settings(after, dataset=None))
    with pytest.raises(NotComparable, match="gone"):
        repeat(before, with_settings(after, dataset={**after.config["dataset"], "path": "gone"}))
    with pytest.raises(NotComparable, match=r"changed after its evaluation \(from 00000000 to .*evaluate it again"):
        repeat(before, replace(after, dataset=replace(after.dataset, fingerprint="0" * 32)))


def test_only_the_documents_that_a_result_was_measured_on_are_loaded(pair: tuple[Result, Result]) -> None:
    before, now = pair
    bench = Bench(open_store(StoreSettings("mlruns/cache")))
    documents = load_documents(now, bench, Consent())
    assert documents is not None
    assert dict(zip(documents.ids, documents.texts, strict=True)) == new_documents()
    assert load_documents(before, bench, Consent()) is None, "the data changed"
    gone = {**now.config, "dataset": {**now.config["dataset"], "path": "gone"}}
    assert load_documents(replace(now, config=gone), bench, Consent()) is None
    assert load_documents(replace(now, config={}), bench, Consent()) is None


def test_a_baseline_whose_code_changed_is_refused_unless_that_is_accepted(pair: tuple[Result, Result]) -> None:
    old_code = {**pair[0].environment, "code": {"retrievers": "another"}}
    baseline = replace(pair[0], environment=old_code)
    with pytest.raises(NotComparable, match="the code of retrievers has changed since bm25 was recorded"):
        repeat(baseline, pair[1])
    again = repeat(baseline, pair[1], any_code=True)
    assert describe_versions(baseline, again) == [
        (
            "The code has changed since the baseline was recorded; the effect of this change counts as an "
            "effect of the data."
        )
    ]


def test_what_is_not_known_of_code_and_versions_is_said(pair: tuple[Result, Result]) -> None:
    again = repeat(*pair)
    assert describe_versions(pair[0], again) == []
    bare = {"python": "2.7.18", "packages": again.environment["packages"]}
    assert describe_versions(replace(pair[0], environment=bare), again) == [
        "The record of the baseline does not identify its code, so the effect of any code change since then counts as "
        "an effect of the data.",
        f"Versions have changed (python 2.7.18 to {again.environment['python']}); the effect of these changes counts "
        "as an effect of the data.",
    ]
