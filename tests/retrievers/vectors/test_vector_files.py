"""Vectors from files: every format gives the same rankings as the encoder that wrote them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from retrievers.base import Corpus, QueryText, Rankings, RetrieverError
from retrievers.encoders import base
from retrievers.encoders.base import Vectors
from retrievers.encoders.lsa import LSAEncoder
from retrievers.encoders.vectors import VectorFiles, load_vectors
from retrievers.filters import parse_filter
from retrievers.store import MemoryStore
from retrievers.vectors import nearest, points
from retrievers.vectors.dense import Dense

TEXTS = ["a cat sleeps on the sofa", "kittens and cats nap", "the market fell", "stocks rose on the market", "a sofa"]
CORPUS = Corpus([f"d{i}" for i in range(len(TEXTS))], TEXTS)
QUERIES = [QueryText("cats on a sofa", "q1"), QueryText("stock market", "q2")]


def write_npy(file: Path, ids: Sequence[str], vectors: NDArray[Any]) -> None:
    np.save(file, vectors)
    file.with_suffix(".txt").write_text("".join(f"{name}\n" for name in ids), encoding="utf-8")


def write_npz(file: Path, ids: Sequence[str], vectors: NDArray[Any]) -> None:
    np.savez(file, ids=np.array(ids), vectors=vectors)


def write_parquet(file: Path, ids: Sequence[str], vectors: NDArray[Any]) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"text": ["?"] * len(ids), "id": list(ids), "embedding": list(vectors)}), file)


def write_safetensors(file: Path, ids: Sequence[str], vectors: NDArray[Any]) -> None:
    save_file = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed").save_file
    save_file({"anything": np.ascontiguousarray(vectors)}, file)
    file.with_suffix(".txt").write_text("\n".join(ids), encoding="utf-8")


WRITERS: dict[str, Callable[[Path, Sequence[str], NDArray[Any]], None]] = {
    ".npy": write_npy, ".npz": write_npz, ".parquet": write_parquet, ".safetensors": write_safetensors,
}  # fmt: skip


def save(folder: Path, ending: str, name: str, ids: Sequence[str], vectors: NDArray[Any]) -> str:
    file = folder / f"{name}{ending}"
    WRITERS[ending](file, ids, vectors)
    return str(file)


def embed_lsa() -> tuple[Vectors, Vectors]:
    embedded = LSAEncoder(dimensions=3).embed(CORPUS, MemoryStore())
    return np.concatenate(embedded.documents), embedded.queries(QUERIES, MemoryStore())[0]


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_vectors_of_a_file_rank_as_their_encoder_does(
    tmp_path: Path, ending: str, kind: type[np.floating[Any]]
) -> None:
    documents, queries = embed_lsa()
    shuffled = np.random.default_rng(0).permutation(len(CORPUS))
    more = [*(CORPUS.ids[i] for i in shuffled), "another"]
    rows = np.concatenate([documents[shuffled], documents[:1]]).astype(kind)
    encoder = VectorFiles(
        save(tmp_path, ending, "documents", more, rows), save(tmp_path, ending, "queries", ["q2", "q1"], queries[::-1])
    )
    own = Dense(LSAEncoder(dimensions=3)).index(CORPUS, MemoryStore()).search(QUERIES, 5)
    read = Dense(encoder).index(CORPUS, MemoryStore()).search(QUERIES, 5)
    assert (read.documents == own.documents).all()
    assert (read.scores == own.scores).all()
    assert read.seconds is not None
    assert np.isnan(read.seconds).all()  # the time to encode a query is unknown


@pytest.mark.parametrize(
    "options",
    [
        {"index_type": "flat", "metric": "l2"},
        {"index_type": "flat", "quantization": "binary"},
        {"index_type": "ivf", "nlist": 4, "nprobe": 2, "quantization": "int8", "rescore": True},
        {"index_type": "ivf", "nlist": 4, "nprobe": 2, "metric": "dot"},
        {"index_type": "hnsw", "quantization": "int8"},
        {"index_type": "pq", "pq_m": 4, "pq_bits": 4},
    ],
)
@pytest.mark.parametrize("kind", [np.float16, np.int8])
def test_a_file_that_is_not_copied_into_memory_gives_the_same_hits(
    tmp_path: Path, kind: type[np.number[Any]], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    documents, queries = ((9 * random.normal(size=(n, 16))).astype(kind) for n in (200, 5))
    documents[[0, 7, 199]] = 0  # without a direction
    ids, names = [f"d{i}" for i in range(200)], [f"q{i}" for i in range(5)]
    order = random.permutation(200).tolist()
    metadata = [{"number": i % 5} for i in order]
    corpus = Corpus([ids[i] for i in order], [""] * 200, metadata=metadata, filter_fields=["number"])
    searched = [
        QueryText("", name, own=parse_filter({"number": [0, i]}) if i else None) for i, name in enumerate(names)
    ]
    encoder = VectorFiles(
        save(tmp_path, ".npy", "documents", ids, documents), save(tmp_path, ".npy", "queries", names, queries)
    )

    def search() -> tuple[Rankings, dict[str, float]]:
        store = MemoryStore()
        searcher = Dense(encoder, **options).index(corpus, store)
        return searcher.search(searched, 20, store), searcher.diagnostics(searched, 10, store)

    in_memory, figures = search()
    monkeypatch.setattr(points, "IN_MEMORY", 0)
    monkeypatch.setattr(base, "MAPPED_SHARD", 64)
    monkeypatch.setattr(nearest, "BLOCK", 400)
    mapped, same_figures = search()
    assert (mapped.documents == in_memory.documents).all()
    assert (mapped.scores == in_memory.scores).all()
    assert figures == same_figures


def test_the_identity_is_the_content_of_the_files_and_not_their_place(tmp_path: Path) -> None:
    documents, queries = embed_lsa()

    def encoder(folder: str, ids: Sequence[str] = CORPUS.ids) -> VectorFiles:
        (tmp_path / folder).mkdir()
        return VectorFiles(
            save(tmp_path / folder, ".npy", "documents", ids, documents),
            save(tmp_path / folder, ".npy", "queries", ["q1", "q2"], queries),
        )

    first = encoder("a")
    assert repr(first) == repr(encoder("b"))
    assert repr(first) != repr(encoder("c", [*CORPUS.ids[:-1], "other"]))


@pytest.mark.parametrize(
    ("ids", "vectors", "message"),
    [
        (["a", "a"], np.ones((2, 3)), "the id 'a' occurs more than once"),
        (["a"], np.ones((2, 3)), "2 vectors, but 1 ids"),
        (["a", "b"], np.ones(2), r"an array of float64 with shape \(2,\)"),
        (["a", "b"], np.array([[1.0, 2.0], [np.nan, 1.0]]), "the vector of 'b' has a value that is NaN or infinite"),
        (["a", "b"], np.array([["1"], ["2"]]), "expected numbers with one row per vector"),
    ],
)
def test_a_malformed_file_is_refused_by_name(
    tmp_path: Path, ids: Sequence[str], vectors: NDArray[Any], message: str
) -> None:
    file = tmp_path / "v.npy"
    write_npy(file, ids, vectors)
    with pytest.raises(RetrieverError, match=message) as refusal:
        load_vectors(file)
    assert str(refusal.value).startswith(str(file))


def test_lists_of_unequal_length_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "v.parquet"
    write_parquet(file, ["a", "b"], [[1.0, 2.0], [1.0]])  # type: ignore[arg-type]  # ragged on purpose
    with pytest.raises(RetrieverError, match="the vectors have different lengths: 2, 1"):
        load_vectors(file)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.bin", b"", "unknown format; the file must end in .npy, .npz, .parquet, .safetensors"),
        ("missing.npz", None, "no such file"),
        ("v.npz", b"not a zip file", "cannot be read"),
        ("v.parquet", b"not Parquet", "cannot be read"),
        ("v.npy", b"", r"its ids are missing; write them to .*v\.txt, one per line"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_name(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(RetrieverError, match=message):
        load_vectors(tmp_path / name)


def test_a_document_or_query_without_a_vector_is_an_error_that_counts_them(tmp_path: Path) -> None:
    documents, queries = embed_lsa()
    few = save(tmp_path, ".npz", "few", CORPUS.ids[1:], documents[1:])
    every = save(tmp_path, ".npz", "documents", CORPUS.ids, documents)
    one = save(tmp_path, ".npz", "one", ["q2"], queries[1:])
    narrow = save(tmp_path, ".npz", "narrow", ["q1", "q2"], queries[:, :2])
    with pytest.raises(RetrieverError, match="1 of 5 ids of documents have no vector, such as 'd0'"):
        Dense(VectorFiles(few, one)).index(CORPUS, MemoryStore())
    with pytest.raises(RetrieverError, match="1 of 2 ids of queries have no vector, such as 'q1'"):
        Dense(VectorFiles(every, one)).index(CORPUS, MemoryStore()).search(QUERIES, 2)
    with pytest.raises(RetrieverError, match=r"the vectors have 2 dimensions, but those of .* have 3"):
        Dense(VectorFiles(every, narrow)).index(CORPUS, MemoryStore()).search(QUERIES, 2)
