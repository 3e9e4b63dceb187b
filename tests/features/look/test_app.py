"""`look` over HTTP: which runs it shows, newer data, whole texts, the desk, and no way in for other sites."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import httpx
import pytest

from runner.__main__ import main
from runner.config.objects import ConfigError
from runner.features.judge.desk.journal import AssessorJournal, load_journals
from runner.features.look.shown import select_shown
from runner.tracking.fetching import Runs
from runner.tracking.settings import Tracking
from tests.features.look.stores import LONG, NAME, TEXTS, ServedStore, serve_store
from tests.pages.reading import read_explorer_data


def test_the_newest_sweep_is_the_first_page(served: ServedStore) -> None:
    reply = served.client.get("/", follow_redirects=True)
    assert reply.url.path == f"{served.page}/"
    data = read_explorer_data(reply.text)
    runs = served.read_runs()
    assert set(data["runs"]) == {runs["k1=0.4"], runs["k1=2"]}
    assert data["live"] == {"version": "2-0-FINISHED", "running": False, "finished": 2}


def test_a_combination_that_a_running_sweep_finishes_is_on_the_next_page(served: ServedStore) -> None:
    sweep, late = served.shown.runs[0].id, served.read_runs()["k1=2"]
    served.set_status(sweep, "RUNNING")
    served.set_status(late, "RUNNING")
    before = served.client.get(f"{served.page}/state").json()
    assert before == {"version": "1-0-RUNNING", "running": True, "finished": 1}
    assert len(read_explorer_data(served.client.get(f"{served.page}/").text)["runs"]) == 1
    served.set_status(late, "FAILED")
    failed = served.client.get(f"{served.page}/").text
    assert "1 failed" in failed
    served.set_status(late, "FINISHED")
    after = served.client.get(f"{served.page}/state").json()
    assert after == {"version": "2-0-RUNNING", "running": True, "finished": 2}
    assert len(read_explorer_data(served.client.get(f"{served.page}/").text)["runs"]) == 2
    served.set_status(sweep, "FINISHED")


def test_a_sweep_without_a_finished_combination_says_so(served: ServedStore) -> None:
    runs = served.read_runs()
    for name in ("k1=0.4", "k1=2"):
        served.set_status(runs[name], "RUNNING")
    reply = served.client.get(f"{served.page}/")
    assert (reply.status_code, "has no finished combination yet" in reply.text) == (409, True)
    for name in ("k1=0.4", "k1=2"):
        served.set_status(runs[name], "FINISHED")


def test_texts_are_whole_and_those_of_the_hits_and_the_gold(served: ServedStore) -> None:
    run = served.read_runs()["k1=2"]
    page = read_explorer_data(served.client.get(f"/show/{run}/").text)
    shown = dict(zip(page["documents"]["ids"], page["documents"]["texts"], strict=True))
    assert LONG.startswith(shown["d0"]) and len(shown["d0"]) < len(LONG)
    texts = served.client.get(f"/show/{run}/texts?query=q0").json()
    hits = {page["documents"]["ids"][place] for place in page["systems"][0]["hits"][0]}
    assert set(texts) == hits | {"d2"}
    assert {name: entry["text"] for name, entry in texts.items()} == {name: TEXTS[name] for name in texts}
    refused = served.client.get(f"/show/{run}/texts?query=q7")
    assert (refused.status_code, refused.text) == (409, "query=q7: no such query on this page\n")


@pytest.mark.parametrize("board", ["9" * 5000, "\u0661", "-1", "x"])
def test_a_number_of_a_dataset_that_is_none_shows_the_first(served: ServedStore, board: str) -> None:
    assert served.client.get(f"{served.page}/", params={"board": board}).status_code == 200


def test_several_runs_are_compared_with_the_first(served: ServedStore) -> None:
    runs = served.read_runs()
    chosen = [runs["rank_bm25"], runs["k1=2"]]
    reply = served.client.get("/show", params={"run": chosen}, follow_redirects=True)
    data = read_explorer_data(reply.text)
    assert (data["kind"], [system["name"] for system in data["systems"]]) == ("comparison", ["rank_bm25", "k1=2"])
    again = served.client.get(f"/show/{runs['rank_bm25']},{runs['rank_bm25']}/")
    assert (again.status_code, "names a run twice" in again.text) == (409, True)


def test_the_list_has_all_runs_without_their_markup(served: ServedStore) -> None:
    page = served.client.get("/runs").text
    for run in (served.shown.runs[0].id, served.read_runs()["rank_bm25"]):
        assert f'href="/show/{run}/"' in page
    assert NAME not in page and "&lt;img" in page


def test_the_desk_of_a_page_writes_the_journal_of_judge(served: ServedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(served.folder)
    run = served.read_runs()["rank_bm25"]
    page = served.client.get(f"/show/{run}/desk/")
    fields = dict(re.findall(r'name="(query_id|document_id)" value="([^"]*)"', page.text))
    assert set(fields) == {"query_id", "document_id"}, page.text
    foreign = {"origin": "https://evil.example"}
    refused = served.client.post(f"/show/{run}/desk/judge", data={**fields, "decision": "1"}, headers=foreign)
    assert refused.status_code == 403
    reply = served.client.post(f"/show/{run}/desk/judge", data={**fields, "decision": "1"})
    assert (reply.status_code, reply.headers["location"]) == (303, "./")
    journals = served.folder / "mlruns" / "judgments" / run / "by_hand" / "journals"
    assert list(load_journals(journals, 3)["anna"].grades.values()) == [1]


def test_the_grades_of_a_desk_are_written_when_the_server_stops(
    served: ServedStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(served.folder)
    run = served.read_runs()["k1=2"]
    judgments = Path("mlruns", "judgments", run, "by_hand", "judgments.tsv")
    for decision in ("skip", "1"):  # without a grade, nothing is written
        with serve_store(served.tracking, served.folder, run) as other:
            page = other.client.get(f"/show/{run}/desk/").text
            fields = dict(re.findall(r'name="(query_id|document_id)" value="([^"]*)"', page))
            other.client.post(f"/show/{run}/desk/judge", data={**fields, "decision": decision})
        assert judgments.exists() == (decision == "1")
    assert f"use them with: dataset.extra_qrels={judgments}" in capsys.readouterr().out


def test_looking_at_the_desk_neither_creates_nor_locks_a_journal(
    served: ServedStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(served.folder)
    run = served.read_runs()["k1=0.4"]
    folder = Path("mlruns", "judgments", run)
    with serve_store(served.tracking, served.folder, run) as other:
        for path in ("", "differences", "export"):
            assert other.client.get(f"/show/{run}/desk/{path}").status_code == 200
        assert not folder.exists()
        page = other.client.get(f"/show/{run}/desk/").text
        fields = dict(re.findall(r'name="(query_id|document_id)" value="([^"]*)"', page))
        form = {**fields, "decision": "1"}
        with AssessorJournal(folder / "by_hand" / "journals", "anna", 1) as elsewhere:
            refused = other.client.post(f"/show/{run}/desk/judge", data=form)
            assert refused.status_code == 409
            assert refused.text.startswith("Nothing was saved: assessor=anna: this assessor already judges in another")
            elsewhere.append("skip", (fields["query_id"], fields["document_id"]))
            assert "1 skipped" in other.client.get(f"/show/{run}/desk/").text
    assert not (folder / "by_hand" / "judgments.tsv").exists(), "nothing was decided at this desk"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("path", ["/", "/runs", "PAGE/", "PAGE/state", "PAGE/texts?query=q0", "PAGE/desk/"])
def test_no_page_is_shown_under_another_host_or_without_the_token(served: ServedStore, path: str) -> None:
    path = path.replace("PAGE", served.page)
    assert served.client.get(path, headers={"host": "rebound.example"}).status_code == 421
    for method in ("GET", "HEAD", "OPTIONS", "POST"):
        headers = {"origin": served.address}
        assert httpx.request(method, f"{served.address}{path}", headers=headers).status_code == 403


def test_only_its_own_script_runs_on_a_page_and_no_other_site_may_frame_it(served: ServedStore) -> None:
    reply = served.client.get(f"{served.page}/")
    assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]
    assert reply.headers["cross-origin-resource-policy"] == "same-origin"
    own = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', reply.text)
    assert own is not None and own[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "connect-src 'self'; frame-src 'self'" in own[1]


@pytest.mark.parametrize(
    ("words", "sweep", "message"),
    [
        (["latest"], "x", "sweep=x: cannot be combined with run=latest; remove one of them"),
        ([], "tunin", "tunin: no run id starts with this (at least 4 characters), and no sweep has this name"),
        (["0" * 8], None, "00000000: no run id starts with this"),
    ],
)
def test_what_cannot_be_shown_is_an_error_in_one_line(
    served: ServedStore, words: list[str], sweep: str | None, message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        select_shown(words, sweep, Runs(served.tracking))
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


def test_runs_can_be_shown_by_name_or_as_the_latest(served: ServedStore) -> None:
    runs = Runs(served.tracking)
    for words, sweep in (([NAME], None), ([], NAME), (["latest"], None), ([], None)):
        assert select_shown(words, sweep, runs).key == served.shown.key


def test_the_command_names_the_address_and_the_other_runs(
    served: ServedStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(served.folder)
    monkeypatch.setattr("runner.features.look.command.serve", lambda app, listener, ready: ready())  # and stop at once
    assert main(["look", "port=0", f"sweep={NAME}"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"open http://127\.0\.0\.1:\d+/\?token=[\w-]{43}  \(press", printed)
    assert f"others: {served.read_runs()['rank_bm25'][:8]} (rank_bm25); all of them: http://127.0.0.1:" in printed
    assert main(["look", "port=0", f"run=rank_bm25,{served.shown.key}"]) == 2
    assert capsys.readouterr().err.startswith("error: rank_bm25: no run id starts with")
    assert main(["look", "port=0", f"run={served.read_runs()['rank_bm25']},{served.shown.key}"]) == 0
    assert "rank_bm25 and k1=" in capsys.readouterr().out
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["look", f"port={taken.getsockname()[1]}"]) == 2
    assert "already in use on 127.0.0.1" in capsys.readouterr().err
    assert main(["look", "run=nothing", "port=0"]) == 2
    assert capsys.readouterr().err.startswith("error: nothing: no run id starts with")


def test_an_empty_store_says_what_to_do(
    tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["look", "port=0"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: run: no run in experiment retrieval of sqlite:///mlruns/mlflow.db; evaluate first")
    assert main(["look", "tracking=none"]) == 2
    assert "tracking=none: no runs are stored" in capsys.readouterr().err
