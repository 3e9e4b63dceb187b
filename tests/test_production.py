"""The page about live indexes: its commands run in order, in one folder, against a search API and a real PostgreSQL."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.stand_in.documents import Documents
from benchmarks.stand_in.files import write_files
from benchmarks.stand_in.search import Index, build_index
from benchmarks.stand_in.server import Api, run_server
from retrievers.engines.postgres_server import open_server
from runner.evaluation.records import load_record
from runner.tracking.settings import Tracking
from tests.documentation import blocks, chapters, page, run, write
from tests.retrievers.engines.postgresql import run_cluster

PAGE = page("docs/production.md")
YAML = re.compile(r"# (conf/\S+\.yaml)\n")
QUERIES = 12


@pytest.fixture(scope="module")
def index() -> Index:
    return build_index(Documents(4_000))


@pytest.fixture
def here(tracking: Tracking, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: it has the files of a trial, and those that the page shows."""
    monkeypatch.chdir(tmp_path)
    write_files(index.documents, tmp_path, QUERIES)
    write(tmp_path, {match[1]: block for block in blocks(PAGE, "yaml") if (match := YAML.match(block))})
    (project,) = blocks(PAGE, "toml")
    write(tmp_path, {"pyproject.toml": project})
    return tmp_path


def point_to(folder: Path, address: str, place: str) -> None:
    """Replace an address of the page by the place of what a test started."""
    for file in folder.rglob("conf/**/*.yaml"):
        file.write_text(file.read_text().replace(address, place))


def lines(heading: str) -> list[str]:
    """Return the commands of a chapter."""
    text = "\n".join(blocks(chapters(PAGE)[heading], "console"))
    commands = filter(None, text.replace("\\\n", " ").splitlines())
    return [line for line in commands if not line.startswith(("pip", "python -m bench"))]


def list_runs(folder: Path) -> list[Path]:
    """Return the folders of the artifacts of evaluations, the latest last."""
    files = folder.glob("mlruns/artifacts/**/result.json")
    return [file.parent for file in sorted(files, key=lambda file: file.stat().st_mtime_ns)]


def follow(folder: Path, heading: str) -> None:
    """Run the commands of a chapter."""
    for line in lines(heading):
        if line.startswith("python"):
            ids = [place.parent.name for place in list_runs(folder)] or [""]
            assert run(line.replace("RUN_OF_LIVE_TEXT", ids[0]).replace("RUN_OF_THE_WINNER", ids[-1])) == 0, line
        else:
            command = line.replace("RUN", list_runs(folder)[-1].parent.name)
            subprocess.run(["bash", "-o", "pipefail", "-c", command], check=True, cwd=folder)


def test_the_page_leads_from_an_empty_folder_to_a_gate(
    here: Path, index: Index, capsys: pytest.CaptureFixture[str]
) -> None:
    api, searches, chapter = Api(index), {}, "A hybrid sweep"
    with run_server(api) as url:
        point_to(here, "http://localhost:9200", url)
        for heading in ("The first run", "Vectors", chapter, "Recall of the approximate search", "A gate in CI"):
            before = api.searches
            capsys.readouterr()
            follow(here, heading)
            searches[heading] = api.searches - before
            if heading == chapter:
                assert "42 combinations" in capsys.readouterr().out
    assert searches == {
        "The first run": QUERIES,
        "Vectors": 2 * QUERIES,
        chapter: 2 * QUERIES,
        "Recall of the approximate search": 5 * QUERIES,
        "A gate in CI": 2 * QUERIES,
    }


def test_the_page_finds_the_recall_of_an_approximate_search(here: Path, index: Index) -> None:
    with run_server(Api(index)) as url:
        point_to(here, "http://localhost:9200", url)
        follow(here, "Recall of the approximate search")
    recall = {}
    for file in here.glob("mlruns/artifacts/**/result.json"):
        result = load_record(file.parent)
        if result.swept:
            recall[int(next(iter(result.swept.values())))] = result.means["R@10"]
    assert sorted(recall) == [100, 200, 400, 1600]
    assert recall[100] <= recall[200] <= recall[400] <= recall[1600] == 1  # which compares every vector


@pytest.fixture(scope="module")
def table(index: Index) -> Iterator[str]:
    """Return the address of a server whose table `articles` has the documents."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install '.[postgres]'")
    documents = index.documents
    with run_cluster() as cluster, psycopg.connect(cluster.dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE TABLE articles (id text, body text, embedding vector(32))")
        with connection.cursor() as cursor, cursor.copy("COPY articles FROM STDIN") as copy:
            for number in range(documents.count):
                vector = index.vectors[number % documents.topics, number // documents.topics].tolist()
                copy.write_row((f"d{number}", documents.write_text(number), str(vector)))
        connection.execute("ALTER TABLE articles ADD words tsvector")
        connection.execute("UPDATE articles SET words = to_tsvector('english', body)")
        connection.execute("CREATE INDEX ON articles USING hnsw (embedding vector_cosine_ops)")
        yield cluster.dsn
        open_server(cluster.dsn).close()


def test_the_page_evaluates_a_table_of_postgresql(here: Path, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    point_to(here, "postgresql://user@localhost:5432/database", table)
    follow(here, "PostgreSQL with pgvector")
    assert "9 combinations" in capsys.readouterr().out
    records = [load_record(file.parent) for file in here.glob("mlruns/artifacts/**/result.json")]
    assert all(result.means["nDCG@10"] > 0.1 for result in records)


def test_the_minutes_of_the_sizing_table_follow_the_formula() -> None:
    rows = re.findall(r"^\| ([\d,]+) \| .+? \| (\d+) \| ([\d,]+) \| (\d+) (ms|s) \| (\d+) \| ([\d.]+) \|$", PAGE, re.M)
    assert len(rows) == 4
    for queries, passes, requests, latency, unit, concurrency, minutes in rows:
        count = int(queries.replace(",", "")) * int(passes)
        seconds = count * int(latency) / (1000 if unit == "ms" else 1) / int(concurrency)
        assert int(requests.replace(",", "")) == count
        assert float(minutes) == pytest.approx(seconds / 60, abs=0.05)
