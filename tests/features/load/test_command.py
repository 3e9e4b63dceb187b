"""The command: figures, bounds, consent and partial results, against a server that is scripted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from retrievers.services.connection import load_certificates
from runner.__main__ import main
from runner.features.load.targets import is_this_machine
from runner.testing.features import check_document
from tests.features.load.certificates import write_certificate
from tests.features.load.scripted_server import Script, run_script

QUERIES = {"q0": "ferry", "q1": "tram", "q2": "bus", "q3": "boat"}
FAST = ("load.rates=[200]", "load.duration_s=0.5", "load.warmup_s=0", "load.arrivals=constant", "load.top_k=10")


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the overrides of a dataset in which document dN answers query qN."""
    folder = tmp_path / "data"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(QUERIES.values())]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    queries = [
        {"_id": name, "text": text, "metadata": {"sent": 10 * (name == "q0") + 1}} for name, text in QUERIES.items()
    ]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    qrels = "".join(f"q{i}\td{i}\t1\n" for i in range(4))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{qrels}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return ["dataset=beir", f"dataset.path={folder}", "tracking=none", *FAST]


@pytest.fixture
def script() -> Iterator[Script]:
    """Return a server that answers the queries q0 to q2 rightly, and q3 with another document."""
    places = {text: name for name, text in QUERIES.items()}

    def answer(number: int, query: str) -> tuple[int, list[str]]:
        return 200, ["d0"] if query == "boat" else [places[query].replace("q", "d")]

    with run_script(Script(answer)) as own:
        yield own


def api(script: Script) -> list[str]:
    request = "retriever.request={query: '{query}', n: '{top_k}'}"
    paths = ["retriever.search_path=/find", "retriever.results=hits", "retriever.item_id=id", "retriever.score=score"]
    return ["retriever=http", f"retriever.base_url={script.url}", request, *paths]


def load(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    assert main(["load", *words, "--json"]) == code
    content: dict[str, Any] = orjson.loads(capsys.readouterr().out)
    return content


def test_every_request_is_counted_and_measured(
    words: Sequence[str], script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    content = load(capsys, *words, *api(script))
    (rate,) = content["rates"]
    assert (content["requests"], rate["requests"], rate["answered"], rate["failed"]) == (100, 100, 100, 0)
    assert len(script.bodies) == 100
    assert {body["n"] for body in script.bodies} == {10}
    assert rate["quality"] == pytest.approx(0.75)  # one of four queries has no gold in its answers
    assert 0 < rate["latency"]["p50"] <= rate["latency"]["p99"]
    assert content["stopped"] == ""


def test_failed_requests_count_zero_and_are_listed(
    words: Sequence[str], script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    before = script.answer
    script.answer = lambda number, query: (500, []) if query == "ferry" else before(number, query)
    (rate,) = load(capsys, *words, *api(script))["rates"]
    assert rate["failed"] == 25
    assert rate["errors"] == {"HTTP 500": 25}
    assert rate["quality"] == pytest.approx(0.5)
    assert main(["load", *words, *api(script)]) == 0
    assert "25.0%" in capsys.readouterr().out


def test_queries_are_sent_as_often_as_a_field_says(
    words: Sequence[str], script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    content = load(capsys, *words, *api(script), "load.frequency=sent")
    sent = [body["query"] for body in script.bodies]
    assert sent.count("ferry") == pytest.approx(100 * 11 / 14, abs=1)
    assert content["rates"][0]["quality"] == pytest.approx(13 / 14)
    assert main(["load", *words, *api(script), "load.frequency=price"]) == 2
    assert "load.frequency=price: not a field with a number in every query" in capsys.readouterr().err


def test_never_more_requests_are_sent_than_allowed(
    words: Sequence[str], script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = ("load.max_requests=37", "load.warmup_s=0.1", "load.rates=[100,200]")
    content = load(capsys, *words, *api(script), *limits, code=1)
    assert len(script.bodies) == content["requests"] == 37
    assert content["rates"][0]["answered"] == 27
    assert (content["stopped"], content["rates"][0]["stopped"]) == ("load.max_requests", "load.max_requests")
    assert main(["load", *words, *api(script), *limits]) == 1
    assert "Partial result: the limit load.max_requests was reached." in capsys.readouterr().out


def test_a_host_that_is_not_this_machine_needs_consent(
    words: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    own = api(Script(lambda number, query: (200, []), url="http://192.0.2.7:9200"))
    assert main(["load", *words, *own]) == 2
    assert "If you may test it, add load.consent=192.0.2.7" in capsys.readouterr().err


def test_a_service_with_a_certificate_of_its_own_is_tested_if_it_is_trusted(
    words: Sequence[str],
    script: Script,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = Script(script.answer, tls=write_certificate(tmp_path / "own.pem"))
    with run_script(script):
        (rate,) = load(capsys, *words, *api(script), code=1)["rates"]
        (reason,) = rate["errors"]
        assert reason.startswith("the certificate is not trusted: self-signed certificate")
        assert (rate["answered"], rate["stopped"]) == (0, "load.max_failed")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "own.pem"))
        load_certificates.cache_clear()
        try:
            (rate,) = load(capsys, *words, *api(script))["rates"]
        finally:
            load_certificates.cache_clear()
    assert (rate["answered"], rate["quality"]) == (100, pytest.approx(0.75))


def test_only_loopback_addresses_are_this_machine() -> None:
    assert [is_this_machine(host) for host in ("", "localhost", "127.0.0.1", "::1")] == [True] * 4
    assert [is_this_machine(host) for host in ("192.0.2.7", "10.0.0.1", "0.0.0.0")] == [False] * 3


def test_a_measure_that_needs_more_results_is_an_error(
    words: Sequence[str], script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["load", *words, *api(script), "load.top_k=5"]) == 2
    assert "load.top_k=5: nDCG@10 needs 10 results" in capsys.readouterr().err
    assert not script.bodies


def test_a_retriever_is_served_in_processes_of_its_own(
    words: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    served = ("retriever=bm25", "load.rates=[40]", "store.path=cache")
    content = load(capsys, *words, *served)
    assert content["target"] == "bm25, served by 1 process with 1 thread"
    assert content["rates"][0]["answered"] == 20
    assert content["rates"][0]["quality"] == 1.0


def test_the_report_has_all_figures(
    words: Sequence[str], script: Script, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["load", *words, *api(script), "output=out", "load.rates=[100,200]"]) == 0
    assert "It kept up with 200 requests/s" in capsys.readouterr().out
    assert all("0.7500" in (tmp_path / "out" / name).read_text() for name in ("load.html", "load.md"))
    record = orjson.loads((tmp_path / "out" / "load.json").read_text())
    assert [rate["answered"] for rate in record["rates"]] == [50, 100]


def test_the_document_has_the_declared_keys(words: Sequence[str], script: Script) -> None:
    check_document("load", *words, *api(script))
