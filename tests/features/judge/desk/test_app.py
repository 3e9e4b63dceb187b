"""The desk over HTTP: forms without JavaScript, nothing of systems on a page, and no way in for other sites."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import httpx
import orjson
import pytest

from runner.datasets.judged import JudgedFiles
from runner.features.judge.desk.journal import load_journals
from runner.web.guard import LoopbackAccess
from tests.features.judge.desk.desks import ServedDesk, build_pool, open_desk, serve_desk
from tests.features.judge.desk.payloads import PAYLOADS


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedDesk]:
    """Return a desk whose queries, needs, titles and documents are markup."""
    folder = tmp_path_factory.mktemp("desk")
    pool = build_pool(texts=PAYLOADS, queries=(PAYLOADS[0], PAYLOADS[1]), needs=(PAYLOADS[2], PAYLOADS[3]))
    with serve_desk(open_desk(folder, pool), folder) as desk:
        yield desk


def test_markup_in_texts_and_notes_is_escaped(served: ServedDesk) -> None:
    for payload in PAYLOADS:
        pair = served.desk.view().pair
        assert pair is not None
        served.post(query_id=pair.ids[0], document_id=pair.ids[1], decision="note", note=payload)
        page = served.client.get("/").text
        assert not [word for word in ("<script>", "<img", "<svg", "<iframe", "<style>", "</textarea") if word in page]
        assert served.desk.view().note == payload
        served.decide(1)
    served.post(decision="undo")


def test_pages_show_neither_rank_nor_score(served: ServedDesk) -> None:
    page = served.client.get("/").text.lower()
    assert not [word for word in ("rank", "score") if word in page]


def test_a_decision_leads_to_the_next_pair_without_javascript(served: ServedDesk) -> None:
    before = served.desk.view()
    assert before.pair is not None
    reply = served.decide(2)
    assert (reply.status_code, reply.headers["location"]) == (303, "./")
    assert served.desk.journal.assessment.grades[before.pair.ids] == 2
    assert served.desk.view().progress.decided == before.progress.decided + 1
    assert 'name="decision" value="0"' in served.client.get("/").text


def test_more_pairs_are_offered_after_a_goal_but_not_after_the_last_pair(tmp_path: Path) -> None:
    desk = open_desk(tmp_path, goal=len(build_pool()) - 3)
    with serve_desk(desk, tmp_path) as served:
        while desk.view().pair is not None:
            served.decide(1)
        assert "judge 3 more</button>" in served.client.get("/").text
        served.post(decision="more")
        while desk.view().pair is not None:
            served.decide(1)
        page = served.client.get("/").text
    assert "<h1>All done</h1>" in page
    assert f"You have judged {len(desk.pool)} pairs." in page
    assert "more</button>" not in page


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        ("9" * 5000, "does not exist"),
        ("9", "outside the scale"),
        ("-1", "does not exist"),
        ("grade", "does not exist"),
        ("", "does not exist"),
    ],
)
def test_a_wrong_decision_is_refused_and_nothing_saved(served: ServedDesk, decision: str, message: str) -> None:
    written = _read_journal(served)
    reply = served.decide(decision)
    assert (reply.status_code, message in reply.text) == (409, True)
    assert _read_journal(served) == written


def test_a_form_that_is_out_of_date_gets_the_present_page_with_a_message(tmp_path: Path) -> None:
    desk = open_desk(tmp_path)
    with serve_desk(desk, tmp_path) as served:
        old = desk.view().pair
        assert old is not None
        served.decide(3)
        now = desk.view().pair
        assert now is not None
        form = {"query_id": old.ids[0], "document_id": old.ids[1], "decision": "1"}
        headers = {"origin": served.address, "accept": "text/html,*/*"}
        reply = served.client.post("/judge", data=form, headers=headers)
        assert reply.status_code == 409
        assert "Nothing was saved: this page was out of date. You had graded that document 3 already" in reply.text
        assert f'value="{now.ids[1]}"' in reply.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),  # a form of another program
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "ADDRESS", "sec-fetch-site": "cross-site"}, 403),
        ({"origin": "ADDRESS", "sec-fetch-site": "same-site"}, 403),
        ({"origin": "ADDRESS", "host": "evil.example"}, 421),
        ({"origin": "http://evil.example", "host": "evil.example"}, 421),
        ({"origin": "ADDRESS", "sec-fetch-site": "same-origin"}, 303),
    ],
)
def test_only_pages_of_this_server_change_anything(served: ServedDesk, headers: dict[str, str], status: int) -> None:
    written = _read_journal(served)
    pair = served.desk.view().pair
    assert pair is not None
    sent = {name: value.replace("ADDRESS", served.address) for name, value in headers.items()}
    fields = {"query_id": pair.ids[0], "document_id": pair.ids[1], "decision": "1"}
    assert served.client.post("/judge", data=fields, headers=sent).status_code == status
    assert (_read_journal(served) != written) == (status == 303)


def test_pages_for_other_hosts_and_foreign_scripts_are_refused(served: ServedDesk) -> None:
    assert served.client.get("/", headers={"host": "rebound.example"}).status_code == 421
    for path in ("/", "/differences", "/export", "/style.css", "/desk.js"):
        reply = served.client.get(path)
        assert reply.status_code == 200
        assert "script-src 'self';" in reply.headers["content-security-policy"]
        assert "unsafe-inline" not in reply.headers["content-security-policy"]
    assert served.client.get("/judge").status_code == 405


def test_a_form_that_is_too_large_is_not_saved(served: ServedDesk) -> None:
    assert served.post(decision="1", query_id="q0", document_id="d3", note="x" * 70_000).status_code == 409


def test_exports_hold_the_grades_with_who_and_when(tmp_path: Path) -> None:
    desk = open_desk(tmp_path, overlap=1)
    with serve_desk(desk, tmp_path) as served:
        first = served.desk.view().pair
        assert first is not None
        served.post(query_id=first.ids[0], document_id=first.ids[1], decision="3", note="=1+1")
        for choice in ("qrels", "beir", "trec", "jsonl", "ratings", "quepid", "rank_eval", "opensearch"):
            page = served.post("/export", format=choice)
            assert (page.status_code, "1 grades are written" in page.text) == (200, True), page.text
        assert served.post("/export", format="../beir").text.startswith("Nothing was written: no such format; choose")
    assert (tmp_path / "judgments.tsv").read_text().splitlines()[1] == f"{first.ids[0]}\t{first.ids[1]}\t3"
    (row,) = csv.DictReader((tmp_path / "judgments.csv").read_text().splitlines())
    entry = load_journals(tmp_path / "journals", 3)["anna"].order[0]
    assert (row["assessors"], row["judged_at"], row["note"]) == ("anna", entry.at, "anna: =1+1")
    files = {
        "ratings": "ratings.csv", "quepid": "quepid_ratings.json", "rank_eval": "rank_eval.json",
        "opensearch": "opensearch_judgments.json",
    }  # fmt: skip
    for name, file in files.items():
        dataset = JudgedFiles(qrels=str(tmp_path / name / file), unknown_judged="keep").load()
        assert len(dataset.judgments) == 3, "one grade of the desk, two of the dataset"
    assert (tmp_path / "book.csv").read_text().splitlines()[0] == "query,docid,anna"


def test_a_damaged_journal_is_named_on_the_page_and_stops_nothing(tmp_path: Path) -> None:
    desk = open_desk(tmp_path, overlap=1)
    with serve_desk(desk, tmp_path) as served:
        served.decide(3)
        pair = desk.journal.assessment.order[0].pair
        line = {"at": "2026-01-02", "action": "grade", "query_id": pair[0], "document_id": pair[1], "grade": 7}
        (desk.journal.file.parent / "eve.jsonl").write_bytes(orjson.dumps(line) + b"\n[1]\n")
        assert "eve.jsonl:1: not a line that the desk writes (the grade 7 is outside the scale" in (
            page := served.client.get("/").text
        )
        assert "(and 1 more)" in page
        for path in ("/differences", "/export"):
            assert served.client.get(path).status_code == 200
        served.post("/export", format="qrels")
    assert (tmp_path / "judgments.tsv").read_text().splitlines()[1:] == [f"{pair[0]}\t{pair[1]}\t3"]


@pytest.mark.parametrize("path", ["/", "/differences", "/export", "/style.css", "/desk.js", "/judge"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "TRACE"])
def test_nothing_is_answered_without_the_token(served: ServedDesk, method: str, path: str) -> None:
    written, name, token = _read_journal(served), served.access.cookie_name, served.access.token
    for sent in (
        dict[str, str | bytes](),
        {"cookie": f"{name}="},
        {"cookie": f"{name}={token[:-1]}"},
        {"cookie": f"{name}=\u00e9".encode()},
        {"cookie": f"runner-1={token}"},
    ):
        headers = {"origin": served.address, **sent}
        reply = httpx.request(method, f"{served.address}{path}", headers=headers, params={"other": "1"})
        assert reply.status_code == 403
        assert method == "HEAD" or reply.text.startswith("This page needs the address with the token")
    assert _read_journal(served) == written


def _read_journal(served: ServedDesk) -> bytes:
    """Return the journal of the desk, which has no file before the first grade."""
    file = served.desk.journal.file
    return file.read_bytes() if file.exists() else b""


def test_a_token_becomes_a_cookie_that_no_script_and_no_other_site_gets(served: ServedDesk) -> None:
    reply = httpx.get(served.access.url)
    assert (reply.status_code, reply.headers["location"]) == (303, "/")
    name, token = served.access.cookie_name, served.access.token
    assert reply.headers["set-cookie"] == f"{name}={token}; HttpOnly; Path=/; SameSite=Strict"
    assert (reply.headers["cache-control"], len(token) >= 43) == ("no-store", True)
    assert httpx.get(f"{served.address}/", headers={"cookie": f"{name}={token}"}).status_code == 200
    for wrong in ("", token[:-1], f"{token}x", "%FF", "\u00e9"):
        assert httpx.get(served.address, params={"token": wrong}).status_code == 403
    for path in ("/judge", "//example.org/"):
        assert httpx.get(f"{served.address}{path}", params={"token": token}).status_code == 403
    form = {"decision": "more"}
    posted = httpx.post(
        f"{served.address}/judge", params={"token": token}, data=form, headers={"origin": served.address}
    )
    assert posted.status_code == 403
    assert httpx.get(served.access.url, headers={"host": "rebound.example"}).status_code == 421


def test_each_start_has_another_token_that_its_representation_hides() -> None:
    first, second = LoopbackAccess("http://127.0.0.1:1"), LoopbackAccess("http://127.0.0.1:1")
    assert first.token != second.token
    assert first.token not in repr(first)
