from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow
import pytest
from pyarrow import parquet

from retrievers.encoders.lsa import LSAEncoder
from retrievers.store import MemoryStore
from runner.config.objects import ConfigError
from runner.datasets.base import DatasetError
from runner.datasets.chunking import Headings, Whole
from runner.features.synthesize.base import Chunks
from runner.features.synthesize.loading import ChunkSource, embed_chunks, hash_chunks, read, rows
from tests.conftest import DATA
from tests.features.synthesize.worlds import scatter_chunks, write_chunks

ROWS: list[dict[str, Any]] = [
    {"doc_id": "a", "chunk_id": "1", "chunk": "The ferry leaves at noon.", "embedding": [3, 4]},
    {"doc_id": "a", "chunk_id": "2", "chunk": "The museum opens at ten.", "embedding": [1, 0]},
    {"doc_id": "b", "chunk_id": "1", "chunk": "Fish is sold on Saturdays.", "embedding": [0, 2]},
]


def create_source(path: Path | str | None, **more: Any) -> ChunkSource:
    return ChunkSource(
        encoder=LSAEncoder(), **{"chunking": Headings(), "path": path if path is None else str(path), **more}
    )


def load_chunks(source: ChunkSource) -> Chunks:
    return embed_chunks(source, read(source), MemoryStore())


def test_every_format_of_chunks_reads_the_same(tmp_path: Path) -> None:
    lines = tmp_path / "chunks.jsonl"
    write_chunks(lines, ROWS)
    table = tmp_path / "chunks.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), table)
    one, many = tmp_path / "one", tmp_path / "many"
    for folder in (one, many):
        folder.mkdir()
    (one / "all.json").write_bytes(orjson.dumps(ROWS))
    for i, row in enumerate(ROWS):
        other = {"doc_id": row["doc_id"], "chunk_id": row["chunk_id"]}
        other |= {"chunk_text": row["chunk"], "content_vector": row["embedding"]}
        (many / f"{i}.json").write_bytes(orjson.dumps(other))
    prints = {hash_chunks(load_chunks(create_source(path))) for path in (lines, table, one, many)}
    assert len(prints) == 1
    chunks = load_chunks(create_source(lines))
    assert chunks.vectors.tolist() == pytest.approx(np.array([[0.6, 0.8], [1, 0], [0, 1]]))
    assert list(chunks.doc_ids) == ["a", "a", "b"]


@pytest.mark.parametrize("size", [1e30, 1.0, 1e-30])
def test_vectors_of_any_size_are_scaled_to_length_one(tmp_path: Path, size: float) -> None:
    path = tmp_path / "c.jsonl"
    write_chunks(path, [{**row, "embedding": [size * x for x in row["embedding"]]} for row in ROWS])
    assert load_chunks(create_source(path)).vectors.tolist() == pytest.approx(np.array([[0.6, 0.8], [1, 0], [0, 1]]))


def test_chunks_without_vectors_are_embedded_at_length_one(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    write_chunks(path, [{k: v for k, v in row.items() if k != "embedding"} for row in ROWS])
    assert np.linalg.norm(load_chunks(create_source(path)).vectors, axis=1) == pytest.approx(1)
    with pytest.raises(ConfigError, match=r"source.dimensions=7: the vectors of the encoder have \d dimensions"):
        load_chunks(create_source(path, dimensions=7))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"chunk_id": "1", "embedding": [1, 1]}, "c.jsonl:4: chunk '1' of 'a' is already defined at .*c.jsonl:1"),
        (
            {"chunk_id": "9", "embedding": [1]},
            "c.jsonl:4: the vector has 1 dimensions, but the first chunk's vector",
        ),
        ({"chunk_id": "9"}, "c.jsonl:4: the chunk has no vector, but earlier chunks have one"),
        ({"chunk_id": "9", "embedding": [0, 0]}, "c.jsonl:4: 'embedding' has only zeros"),
        ({"chunk_id": "9", "embedding": []}, "c.jsonl:4: 'embedding' is empty; remove the chunk, or embed it again"),
        ({"chunk_id": "9", "embedding": ["x", 0]}, "c.jsonl:4: 'embedding' is not a list of numbers"),
        ({"chunk_id": "9", "embedding": 3}, "c.jsonl:4: 'embedding' is not a list of numbers"),
        ({"chunk_id": "9", "embedding": [1e300, 0]}, "c.jsonl:4: 'embedding' has values that are not finite numbers"),
        ({"chunk_id": "9", "embedding": [1, 1], "chunk": " "}, "c.jsonl:4: chunk '9' of 'a' is empty"),
        ({"chunk_id": "", "embedding": [1, 1]}, "c.jsonl:4: 'chunk_id' is ''; an id"),
    ],
)
def test_an_error_names_the_first_invalid_chunk(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    path = tmp_path / "c.jsonl"
    write_chunks(path, [*ROWS, {"doc_id": "a", "chunk": "Some words.", **row}])
    with pytest.raises(DatasetError, match=message):
        read(create_source(path))


def test_other_dimensions_than_requested_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    write_chunks(path, ROWS)
    assert len(read(create_source(path, dimensions=2))) == 3
    with pytest.raises(DatasetError, match=r"the vector has 2 dimensions, but source.dimensions=1536"):
        read(create_source(path, dimensions=1536))


def test_a_vector_after_chunks_without_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    write_chunks(path, [{"doc_id": "z", "chunk_id": "1", "chunk": "Some words."}, *ROWS])
    with pytest.raises(DatasetError, match="the chunk has a vector, but earlier chunks have none"):
        read(create_source(path))


def test_chunks_of_documents_have_the_id_of_their_document(tmp_path: Path) -> None:
    (tmp_path / "ferry.md").write_text("# Ferry\n\nIt leaves at noon.\n\n## Tickets\n\nThey are sold on board.\n")
    (tmp_path / "museum.txt").write_text("It opens at ten.")
    table = read(create_source(tmp_path))
    assert table.doc_ids == ["ferry", "ferry", "museum"]
    assert table.chunk_ids == ["0", "1", "0"]
    assert "Tickets" in table.titles[1]
    whole = read(create_source(tmp_path, chunking=Whole()))
    assert list(zip(whole.doc_ids, whole.chunk_ids, strict=True)) == [("ferry", "0"), ("museum", "0")]


def test_a_path_with_neither_or_both_formats_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"source.path=.*nowhere: no such file or folder"):
        read(create_source(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match=r"contains neither documents .* nor chunks"):
        read(create_source(tmp_path))
    (tmp_path / "README.md").write_text("About these chunks.")
    with pytest.raises(ConfigError, match=r"README.md: expected a folder of documents, found a file"):
        read(create_source(tmp_path / "README.md"))
    with pytest.raises(ConfigError, match=r"contains no chunks, but source.format=chunks requires them"):
        read(create_source(tmp_path, format="chunks"))
    write_chunks(tmp_path / "c.jsonl", ROWS)
    with pytest.raises(ConfigError, match=r"choose source.format=chunks or documents"):
        read(create_source(tmp_path))
    assert len(read(create_source(tmp_path, format="chunks"))) == 3
    assert read(create_source(tmp_path, format="documents")).doc_ids == ["README"]
    (tmp_path / "c.csv").write_text("x")
    with pytest.raises(DatasetError, match=r"c.csv: unknown format; name a .jsonl"):
        read(create_source(tmp_path / "c.csv"))
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(DatasetError, match=r"none.jsonl: the file or folder contains no chunks"):
        read(create_source(tmp_path / "none.jsonl"))


def test_several_paths_are_read_in_order(tmp_path: Path) -> None:
    write_chunks(tmp_path / "a.jsonl", ROWS[:2])
    write_chunks(tmp_path / "b.jsonl", ROWS[2:])
    names = [str(tmp_path / "b.jsonl"), str(tmp_path / "a.jsonl")]
    several = load_chunks(ChunkSource(encoder=LSAEncoder(), chunking=Headings(), path=tuple(names)))
    assert list(several.doc_ids) == ["b", "a", "a"]
    assert several.vectors.tolist() == pytest.approx(np.array([[0, 1], [0.6, 0.8], [1, 0]]))


def test_several_paths_need_unique_chunks_and_equal_dimensions(tmp_path: Path) -> None:
    write_chunks(tmp_path / "a.jsonl", ROWS)
    write_chunks(tmp_path / "again.jsonl", ROWS[:1])
    write_chunks(tmp_path / "bare.jsonl", [{"doc_id": "z", "chunk_id": "1", "chunk": "Some words."}])

    def both(other: str) -> ChunkSource:
        paths = (str(tmp_path / "a.jsonl"), str(tmp_path / other))
        return ChunkSource(encoder=LSAEncoder(), chunking=Headings(), path=paths)

    with pytest.raises(
        ConfigError, match=r"again.jsonl: the chunk '1' of 'a' is also in .*a.jsonl; each pair of ids must be unique"
    ):
        read(both("again.jsonl"))
    with pytest.raises(ConfigError, match=r"bare.jsonl: the vectors have 0 dimensions, but those in .*a.jsonl have 2"):
        read(both("bare.jsonl"))
    with pytest.raises(ConfigError, match=r"source.path=.*nowhere: no such file or folder"):
        read(both("nowhere"))


@pytest.mark.parametrize("path", [None, "bundled:golden"])
def test_without_a_path_the_bundled_golden_corpus_is_read(path: str | None) -> None:
    assert len(set(read(create_source(path)).doc_ids)) == 120


def test_rows_selects_from_every_column() -> None:
    chunks = scatter_chunks(5, 3)
    some = rows(chunks, np.array([3, 1]))
    assert list(some.doc_ids) == ["d0", "d1"]
    assert list(some.texts) == [chunks.texts[3], chunks.texts[1]]
    assert some.vectors.tolist() == chunks.vectors[[3, 1]].tolist()


@pytest.mark.skipif(not (DATA / "chunks").is_dir(), reason=f"no real data at {DATA / 'chunks'}: set RETRIEVAL_DATA")
def test_real_precomputed_chunks_load() -> None:
    """Their chunk ids repeat in other documents, and two vectors are equal, which are two chunks all the same."""
    some = read(create_source(DATA / "chunks" / "data"))
    assert (len(some), len(set(some.chunk_ids)), some.vectors.shape) == (7, 2, (7, 5))  # type: ignore[union-attr]  # it has
    others = load_chunks(create_source(DATA / "chunks" / "sample_data", dimensions=512))
    assert others.chunk_ids[0] == "chunk-001"
    assert others.vectors.shape == (5, 512)
