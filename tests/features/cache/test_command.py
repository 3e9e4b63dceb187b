from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.base import Corpus
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from retrievers.search import search_cached
from retrievers.store import Key
from retrievers.work import KINDS
from runner.__main__ import main
from runner.features.cache.command import CacheSettings, select_entries
from runner.store import disk as stores
from runner.store.base import Entry, EntryUse
from runner.store.disk import DiskStore
from runner.store.entries import find_damage, folder_of, list_entries, note_use, write

DAY = 86400.0
SCIFACT, MEDQUAD = "5c1fac7" + "0" * 25, "3ed00ad" + "0" * 25

Lines = Callable[..., list[str]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path / "mlruns" / "cache"


@pytest.fixture
def out(here: Path, capsys: pytest.CaptureFixture[str]) -> Lines:
    """Return a function that runs the verb and returns the lines that it prints."""

    def run(*arguments: str, code: int = 0) -> list[str]:
        assert main(["cache", *arguments]) == code
        return capsys.readouterr().out.splitlines()

    return run


def keep(store: Path, kind: str, days: float, size: int = 1000, **parts: object) -> Path:
    """Make an entry some days ago, with about so many bytes."""
    key = Key.of(KINDS[kind], "retrievers.search", days=days, **parts)
    folder = folder_of(store, key)
    write(folder, key, {"a": np.zeros(size, dtype=np.uint8)}, {key.digest: (kind, 2.0)})
    os.utime(folder / "manifest.json", (time.time() - days * DAY,) * 2)
    return folder


@pytest.fixture
def entries(here: Path) -> dict[str, Path]:
    """Return a store's entries by name: two of scifact, one of medquad, one that nobody noted the use of."""
    found = {
        "postings": keep(here, "postings", 100, corpus=SCIFACT, analyzer=Analyzer()),
        "rankings": keep(here, "rankings", 40, 5_000_000, corpus=SCIFACT, retriever=BM25(analyzer=Analyzer())),
        "medquad": keep(here, "rankings", 10, corpus=MEDQUAD, retriever=BM25(analyzer=Analyzer(), k1=2)),
        "vectors": keep(here, "document vectors", 50, texts="0" * 32, model="minilm"),
    }
    use = EntryUse(time.time() - 20 * DAY, "scifact", "f" * 32, "bm25 k1=0.9")
    note_use(here, "one", use, [found["postings"].name, found["rankings"].name])
    note_use(here, "two", EntryUse(time.time() - 1 * DAY, "medquad", MEDQUAD, "k1=2"), [found["medquad"].name])
    return found


def left(entries: dict[str, Path]) -> set[str]:
    return {name for name, folder in entries.items() if folder.exists()}


def test_an_empty_store_is_said_to_be_empty(here: Path, out: Lines) -> None:
    assert out() == ["mlruns/cache: the cache is empty"]
    here.mkdir(parents=True)
    assert out("cache.verify=true") == ["0 entries, 0 bytes: none damaged"]
    assert out("store.path=elsewhere", "cache.older_than=1d", "cache.remove=true") == ["elsewhere: the cache is empty"]


def test_each_entry_is_listed_with_its_kind_dataset_and_settings(entries: dict[str, Path], out: Lines) -> None:
    first, _, head, _, *rows = out()
    assert first == "mlruns/cache: 4 entries, 5.0 MB"
    assert head.split("  ")[0] == "kind"
    assert sorted(row.split()[0] for row in rows if row[0] != " ") == ["document", "postings", "rankings", "rankings"]
    assert "scifact" in rows[0]  # the largest first
    (scifact,) = (row for row in rows if row.startswith("rankings") and "scifact" in row)
    for word in ("5.0 MB", "BM25(", "2.0 s", "40 d", "20 d ago", "bm25"):
        assert word in scifact
    (vectors,) = (row for row in rows if row.startswith("document vectors"))
    for word in ("model=minilm", "50 d", "50 d ago", "\N{EN DASH}"):
        assert word in vectors


def test_entries_that_differ_in_their_settings_are_counted(here: Path, out: Lines) -> None:
    for k1 in (0.6, 0.9, 1.2):
        keep(here, "rankings", 1, corpus=SCIFACT, queries="1" * 32, retriever=BM25(analyzer=Analyzer(), k1=k1))
    (row,) = out()[4:]
    assert " 3 of BM25 " in row
    assert "corpus 5c1fac70" in row


@pytest.mark.parametrize("width", [40, 60, 90, 200])
def test_a_table_fits_the_terminal(
    entries: dict[str, Path], out: Lines, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert all(len(line) <= width for line in out()[1:])


@pytest.mark.parametrize(
    ("arguments", "goes"),
    [
        (["cache.older_than=30d"], "vectors"),  # what was used lately is not old
        (["cache.older_than=2w"], "vectors postings rankings"),
        (["cache.older_than=0d"], "vectors postings rankings medquad"),
        (["cache.older_than=23h", "cache.kind=rankings"], "rankings medquad"),
        (["cache.kind=document vectors"], "vectors"),
        (["cache.dataset=scifact"], "postings rankings"),
        (["cache.dataset=5c1fac7"], "postings rankings"),  # the corpus's
        (["cache.dataset=ffffff"], "postings rankings"),  # the dataset's
        (["cache.dataset=5c1f"], ""),  # too short to be sure
        (["cache.dataset=minilm"], ""),  # no fingerprint
        (["cache.max_size=1MB"], "vectors postings rankings"),
        (["cache.max_size=5.01 MB"], ""),
        (["cache.max_size=0B"], "vectors postings rankings medquad"),
        (["cache.dataset=scifact", "cache.max_size=5001 kB"], "postings"),
    ],
)
def test_matching_entries_are_listed_and_removed_only_with_cache_remove(
    entries: dict[str, Path], out: Lines, arguments: list[str], goes: str
) -> None:
    shown = out(*arguments)
    assert left(entries) == set(entries)
    assert ("add cache.remove=true to remove them" in shown[0]) == bool(goes)
    done = out(*arguments, "cache.remove=true")
    assert left(entries) == set(entries) - set(goes.split())
    assert (": removed " in done[0] and " of 4 entries" in done[0]) == bool(goes)
    assert done[1:] == shown[1:]


def test_what_goes_takes_its_notes_and_what_was_left_behind_along(
    entries: dict[str, Path], here: Path, out: Lines
) -> None:
    half = entries["postings"].with_name(f".{entries['postings'].name}.elsewhere.1.01234567")
    half.mkdir()
    os.utime(half, (0, 0))
    out("cache.older_than=0d", "cache.remove=true")
    assert [path for path in here.rglob("*") if path.is_file()] == []
    assert not half.exists()
    assert out() == ["mlruns/cache: the cache is empty"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cache.kind=ranking"], "no entry matches cache.kind=ranking; did you mean rankings?"),
        (["cache.dataset=scifcat"], "no entry matches cache.dataset=scifcat; did you mean scifact?"),
        (["cache.dataset=scifact", "cache.kind=document vectors"], "no entry matches"),
    ],
)
def test_a_filter_that_matches_nothing_is_reported_without_an_error(
    entries: dict[str, Path], out: Lines, arguments: list[str], said: str
) -> None:
    for more in ([], ["cache.remove=true"]):
        (line,) = out(*arguments, *more)
        assert said in line
    assert left(entries) == set(entries)


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("cache.remove=true", "cache.remove=true: needs a filter, such as cache.older_than=30d"),
        (
            "cache.older_than=30",
            "cache.older_than=30: should be a number followed by one of s, min, h, d, w, such as 30d",
        ),
        ("cache.older_than=-1d", "cache.older_than=-1d: should be a number"),
        ("cache.older_than=3 months", "cache.older_than=3 months: should be a number"),
        (
            "cache.max_size=much",
            "cache.max_size=much: should be a number followed by one of B, kB, MB, GB, TB, such as 2GB",
        ),
        ("cache.verify=maybe", "cache.verify=maybe: should be a valid boolean"),
        ("cache.older=30d", "cache.older: no such setting; did you mean cache.older_than?"),
        ("cash.verify=true", "cash.verify: no such setting"),
        ("store.path=null", "store.path"),
    ],
)
def test_a_mistake_is_one_line_and_removes_nothing(
    entries: dict[str, Path], argument: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = [] if "remove" in argument else ["cache.kind=rankings", "cache.remove=true"]
    assert main(["cache", argument, *choice]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert left(entries) == set(entries)


def test_verify_finds_what_is_damaged_and_removes_only_that(entries: dict[str, Path], out: Lines) -> None:
    assert out("cache.verify=true") == ["4 entries, 5.0 MB: none damaged"]
    array = entries["rankings"] / "a.npy"
    content = bytearray(array.read_bytes())
    content[4_000_000] ^= 1
    array.write_bytes(content)
    (entries["vectors"] / "manifest.json").unlink()
    first, *table = out("cache.verify=true", code=1)
    assert first == "4 entries, 5.0 MB: 2 damaged; cache.remove=true removes them"
    assert any("a.npy has changed since it was written" in line for line in table)
    assert any("manifest.json is missing" in line for line in table)
    assert out("cache.verify=true", "cache.kind=postings")[0].endswith("none damaged")
    assert left(entries) == set(entries)
    assert out("cache.verify=true", "cache.remove=true", code=1)[0].endswith("2 damaged, 2 removed")
    assert left(entries) == {"postings", "medquad"}
    assert out("cache.verify=true", "cache.remove=true")[0].endswith("none damaged, 0 removed")


def test_what_cannot_be_removed_is_an_error_and_the_rest_goes(
    entries: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if self == Path("mlruns/cache") / entries["postings"].relative_to(entries["postings"].parents[1]):
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    assert main(["cache", "cache.older_than=0d", "cache.remove=true"]) == 1
    told = capsys.readouterr()
    assert "removed 3 entries, 5.0 MB of 4 entries" in told.out
    assert f"postings/{entries['postings'].name}: cannot be removed (Permission denied)" in told.err
    assert left(entries) == {"postings"}


@pytest.mark.parametrize("trust", ["[]", "[services]", "[secrets]", "[services,secrets]"])
def test_no_table_is_dropped_on_a_server_that_an_entry_names(
    here: Path, trust: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    dropped: list[str] = []
    monkeypatch.setattr("runner.features.cache.command.drop_table", lambda parts, digest: dropped.append(digest))
    table = keep(here, "postgres index", 9, server="host=evil.example user=me", schema="retrieval_runner")
    nameless = keep(here, "postgres index", 8)  # without an address, there is nothing to drop
    other = keep(here, "rankings", 7)
    code = main(["cache", "cache.older_than=0d", "cache.remove=true", f"trust={trust}"])
    shown = capsys.readouterr().err.splitlines()
    assert not nameless.exists()
    assert not other.exists()
    if trust == "[services,secrets]":
        assert (code, dropped, shown, table.exists()) == (0, [table.name], [], False)
        return
    assert (code, dropped, table.exists()) == (1, [], True)
    (line,) = shown
    assert "1 entry, " in line
    assert "(host=evil.example user=me)" in line
    assert line.endswith("add 'trust=[services,secrets]'")


def test_json_output_lists_every_entry_with_its_details(entries: dict[str, Path], out: Lines) -> None:
    told = orjson.loads("\n".join(out("--json")))
    assert (told["store"], len(told["entries"])) == ("mlruns/cache", 4)
    assert told["bytes"] == sum(entry["bytes"] for entry in told["entries"])
    by_digest = {entry["digest"]: entry for entry in told["entries"]}
    postings = by_digest[entries["postings"].name]
    assert (postings["kind"], postings["parts"]["corpus"], postings["seconds"]) == ("postings", SCIFACT, 2.0)
    assert [(use["dataset"], use["run"]) for use in postings["uses"]] == [("scifact", "bm25 k1=0.9")]
    assert postings["used"] == postings["uses"][0]["at"] > postings["made"]
    assert not any(entry["removed"] or "damage" in entry for entry in told["entries"])


def test_json_output_reports_damaged_and_removed_entries(entries: dict[str, Path], out: Lines) -> None:
    (entries["vectors"] / "a.npy").unlink()
    told = orjson.loads("\n".join(out("--json", "cache.verify=true", "cache.remove=true", code=1)))
    by_digest = {entry["digest"]: (entry["damage"], entry["removed"]) for entry in told["entries"]}
    assert by_digest.pop(entries["vectors"].name) == ("a.npy is missing", True)
    assert set(by_digest.values()) == {(None, False)}


def test_a_sweep_goes_on_over_entries_that_are_removed(here: Path, out: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "WORTH_KEEPING_S", 0)
    corpus = Corpus(["a", "b"], ["red boat", "blue boat"])

    def search(store: DiskStore, k1: float) -> Any:
        with store.account() as costs:
            found = search_cached(BM25(analyzer=Analyzer(), k1=k1), corpus, ["red"], 2, store).documents.tolist()
        store.note_use(costs, "boats", "b" * 32, f"k1={k1}")
        return found

    first, second = DiskStore(here), DiskStore(here)
    before = search(first, 1.0)
    assert search(second, 1.0) == before
    assert "boats" in "\n".join(out("cache.dataset=boats", "cache.remove=true"))
    assert list_entries(here) == []
    assert search(first, 1.0) == search(first, 2.0) == search(second, 2.0) == search(DiskStore(here), 1.0) == before
    assert {use.run for entry in list_entries(here) for use in entry.uses} >= {"k1=2.0"}
    for entry in list_entries(here):
        assert find_damage(Path(entry.place)) is None


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 50)), max_size=20), st.integers(0, 600))
def test_what_stays_within_a_size_fits_and_is_what_was_used_last(sizes: list[tuple[int, int]], most: int) -> None:
    kept = [Entry(str(n), str(n), "k", {}, size, 0.0, float(used), ()) for n, (size, used) in enumerate(sizes)]
    kept.sort(key=lambda entry: entry.used)
    goes = select_entries(kept, CacheSettings(max_size=f"{most}B"), 100.0)  # type: ignore[arg-type]  # text, as from YAML
    stays = [entry for entry in kept if entry not in goes]
    assert sum(entry.bytes for entry in stays) <= most
    assert not goes or sum(entry.bytes for entry in stays) + goes[-1].bytes > most
    assert all(gone.used <= entry.used for gone in goes for entry in stays)


def test_help_explains_the_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "--help"]) == 0
    told = capsys.readouterr().out
    for name in CacheSettings.__dataclass_fields__:
        assert f"cache.{name}=" in told
