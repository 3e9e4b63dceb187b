"""The versioned record of a result: a folder of JSON and Parquet files.

`result.json` has the settings, means and timings, `per_query.parquet` every measure, outcome and any error of each
query, `rankings.parquet` the hits of each query with their grades, `documents.parquet` a hash of each document, and
`grades.parquet` the grades of a language model, if there are any. Equal inputs give equal bytes, except for `timings`,
`environment` and a model's grades.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from itertools import compress, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from retrievers.base import NOTHING, Rankings, create_empty_rankings
from retrievers.excerpts import shorten_text
from retrievers.files import replace_file
from retrievers.id_table import IdTable, select_ids
from retrievers.runs.trec_tokens import MARK, encode_token
from retrievers.work import Cost
from runner.datasets.document_hashes import DocumentHashes, check_document_hashes
from runner.evaluation.arrow import (
    build_coded_column,
    build_dictionary_column,
    build_integer_lists,
    build_number_column,
    build_text_column,
    build_text_lists,
)
from runner.evaluation.grades import load_grades, save_grades
from runner.evaluation.losses import Codes, Losses
from runner.evaluation.result import (
    ChunkPlaces,
    DatasetSummary,
    Hits,
    Holes,
    JudgedQueries,
    QueryTable,
    Result,
    ResultError,
    Timings,
)
from runner.metrics.abstention import Abstention
from runner.metrics.scores import Ranks

VERSION = 2

GoldArrays = tuple[Codes, Ranks]
"""The codes of the losses of each gold document, and its ranks in the stages."""

_TABLES = ("queries", "scores", "outcomes", "hits", "grades", "document_hashes", "losses")

_LOST_BY, _RANKS = "lost_by", "gold_rank"
"""The columns with the code of each gold document's loss, and with its rank in a stage, whose name follows."""


def save_record(result: Result, folder: Path) -> None:
    """Write a result to a folder; `result.json` is written last, so its existence means that the record is complete."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    q = result.queries
    shared = dict(_build_shared_columns(q.shared))
    table = {name: shared.pop(name) for name in ("query_id", "query", "type")} | {
        "status": build_dictionary_column(q.statuses),
        "error": build_dictionary_column(q.errors),
        "note": build_dictionary_column(q.notes),
        **shared,
    }
    names = [*result.measures, *result.outcomes]
    scores = {name: build_number_column(row) for name, row in zip(names, stack_values(result), strict=True)}
    if result.losses is not None:
        scores |= _build_loss_columns(result.losses, shared["expected"].offsets)
    folder.mkdir(parents=True, exist_ok=True)
    # Writing statistics and dictionaries of numbers would take as long as everything else.
    compact = {"compression": "zstd", "write_statistics": False}
    pq.write_table(pa.table(table | scores), folder / "per_query.parquet", **compact, use_dictionary=["type", "status"])
    if result.hits is not None:
        hits = _rankings_table(result)
        coded = ["query_id", "grade", "metadata", "parent_id"]
        if 2 * len(hits["document_id"].chunk(0).dictionary) < len(hits):  # else, a dictionary would only take longer
            coded.append("document_id")
        pq.write_table(hits, folder / "rankings.parquet", **compact, use_dictionary=coded)
    if result.document_hashes is not None:
        hashes = pa.table({"hash": build_number_column(result.document_hashes)})
        pq.write_table(hashes, folder / "documents.parquet", compression="none", use_dictionary=False)
    if result.grades is not None:
        save_grades(result.grades, q.ids, folder / "grades.parquet")
    content = format_record(result)
    with replace_file(folder / "result.json") as new:
        new.write_bytes(content)


def _build_loss_columns(losses: Losses, offsets: Any) -> dict[str, Any]:  # noqa: ANN401 (pyarrow has no types)
    """Return lists of the codes and ranks of each query's gold, in the order of the column `expected`."""
    import pyarrow as pa

    columns = {_LOST_BY: losses.codes} | {
        f"{_RANKS}.{stage}".rstrip("."): ranks for stage, ranks in zip(losses.stages, losses.ranks, strict=True)
    }
    return {name: pa.ListArray.from_arrays(offsets, build_number_column(column)) for name, column in columns.items()}


def _read_losses(table: Any, head: Mapping[str, Any], gold: int) -> GoldArrays | None:  # noqa: ANN401 (pyarrow has no types)
    if not head.get("losses"):
        return None
    stages = head["losses"]["stages"]
    names = [_LOST_BY, *(f"{_RANKS}.{stage}".rstrip(".") for stage in stages)]
    codes, *ranks = (table[name].combine_chunks().values.to_numpy(zero_copy_only=False) for name in names)
    return codes.astype(np.int8), np.array(ranks, dtype=np.int32).reshape(len(stages), gold)


@lru_cache(maxsize=1)
def _build_shared_columns(queries: JudgedQueries) -> Mapping[str, Any]:
    """Return the columns that the records of all results on a dataset have in common."""
    table = {
        "query_id": build_text_column(queries.ids),
        "query": build_text_column(queries.texts),
        "type": build_dictionary_column(queries.types),
        "expected": build_text_lists(queries.expected),
    }
    if queries.expected_grades:
        table["expected_grades"] = build_integer_lists(queries.expected_grades)
    if any(queries.clusters):
        table["cluster"] = build_dictionary_column(queries.clusters)
    if queries.fields:
        table["fields"] = build_dictionary_column([orjson.dumps(dict(of)).decode() for of in queries.fields])
    return table


def describe_result(result: Result) -> dict[str, Any]:
    """Return a result without its queries, scores, rankings and single grades; `rebuild_result` takes it."""
    head = {name: getattr(result, name) for name in result.__dataclass_fields__ if name not in _TABLES}
    stages = [asdict(stage) for stage in result.timings.stages]
    head |= {"dataset": asdict(result.dataset), "timings": {**vars(result.timings), "stages": stages}}
    head |= {"abstention": result.abstention.to_dict(), "holes": result.holes and asdict(result.holes)}
    head |= {"losses": result.losses and result.losses.describe()}
    head |= {"outcomes": list(result.outcomes)} if result.outcomes else {}
    return head | ({"grades": result.grades.head()} if result.grades is not None else {})


def stack_values(result: Result) -> NDArray[np.float64]:
    """Return the values of each query (n x queries): the measures, then the outcomes."""
    return np.vstack([result.scores, *result.outcomes.values()]) if result.outcomes else result.scores


def list_values(head: Mapping[str, Any]) -> list[str]:
    """Return the names of the rows of `stack_values` for a described result."""
    return [*head["measures"], *head.get("outcomes", ())]


def rebuild_result(
    head: Mapping[str, Any],
    queries: QueryTable,
    values: NDArray[np.float64],
    hits: Hits | None,
    grades: Mapping[str, Sequence[Any]] | None,
    document_hashes: DocumentHashes | None = None,
    losses: GoldArrays | None = None,
) -> Result:
    """Return the result that `describe_result` described, with the `values` that `stack_values` returned.

    `grades` has the columns of its grades, if it has any, and `losses` the codes and ranks of its gold. Raises
    `LookupError`, `TypeError`, `ValueError` or `AttributeError` for a head of another form.
    """
    timings = dict(head["timings"])
    stages = [Cost(**stage) for stage in timings.pop("stages")]
    built = {
        "dataset": DatasetSummary(**head["dataset"]),
        "timings": Timings(stages=stages, **timings),
        "abstention": Abstention.from_dict(head["abstention"]),
        "holes": Holes(**head["holes"]) if head.get("holes") else None,
        "intervals": {name: (low, high) for name, (low, high) in head["intervals"].items()},
        "grades": None if grades is None else load_grades(head["grades"], queries.ids, grades),
        "outcomes": dict(zip(head.get("outcomes", ()), values[len(head["measures"]) :], strict=True)),
        "losses": None if losses is None else Losses.restore(head["losses"], *losses),
    }
    if losses is not None and len(losses[0]) != sum(map(len, queries.expected)):
        raise ValueError("the losses are not those of the expected documents")
    scores = values[: len(head["measures"])]
    return Result(**{**head, **built}, queries=queries, scores=scores, hits=hits, document_hashes=document_hashes)


def format_record(result: Result) -> bytes:
    """Return the content of `result.json`: a result without its queries, scores, rankings and single grades."""
    head = {"version": VERSION} | describe_result(result)
    options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    head["swept"] = orjson.Fragment(orjson.dumps(dict(result.swept), option=options, default=str))  # unsorted
    options |= orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    return orjson.dumps(head, option=options, default=str)


def is_record(content: object) -> bool:
    """Return whether the content of a JSON file may be the head of a record."""
    return isinstance(content, Mapping) and "version" in content


def load_record(path: Path, rankings: bool = True) -> Result:
    """Return the result in a folder or its `result.json`, with or without its rankings; raises `ResultError`."""
    file = path / "result.json" if path.is_dir() else path
    try:
        return _load(file, rankings)
    except ResultError:
        raise
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        detail = shorten_text(str(error), 200)
        raise ResultError(f"{file.parent}: the record is damaged ({type(error).__name__}: {detail})") from None


def _load(file: Path, rankings: bool) -> Result:
    import pyarrow.parquet as pq

    try:
        head = orjson.loads(file.read_bytes())
        version = head.pop("version")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ResultError(f"{file}: expected a result record ({error})") from None
    if version != VERSION:
        raise ResultError(f"{file}: the record has version {version}, but this program reads version {VERSION}")
    for part in ["per_query.parquet", *(["grades.parquet"] if head.get("grades") else [])]:
        if not (file.parent / part).is_file():
            raise ResultError(f"{file}: the folder has no {part}; copy the complete folder of the record")
    table = pq.ParquetFile(file.parent / "per_query.parquet").read(use_threads=False)
    columns = {
        name: table[name].to_numpy().tolist() for name in ("query_id", "query", "type", "status", "error", "note")
    }
    queries = QueryTable(
        ids=columns["query_id"],
        texts=columns["query"],
        types=columns["type"],
        expected=_lists(table["expected"]),
        statuses=columns["status"],
        errors=columns["error"],
        notes=columns["note"],
        expected_grades=_lists(table["expected_grades"]) if "expected_grades" in table.column_names else (),
        clusters=table["cluster"].to_numpy().tolist() if "cluster" in table.column_names else (),
        fields=list(map(orjson.loads, table["fields"].to_pylist())) if "fields" in table.column_names else (),
    )
    values = np.array([table[name].to_numpy() for name in list_values(head)], dtype=np.float64)
    ranked = file.parent / "rankings.parquet"
    hits = _read_hits(pq.read_table(ranked), queries) if rankings and ranked.is_file() else None
    grades = None
    if head.get("grades"):
        grades = pq.ParquetFile(file.parent / "grades.parquet").read(use_threads=False).to_pydict()
    hashes = (
        _read_document_hashes(file.parent / "documents.parquet", head["dataset"]["documents"]) if rankings else None
    )
    losses = _read_losses(table, head, sum(map(len, queries.expected)))
    return rebuild_result(head, queries, values.reshape(-1, len(queries.ids)), hits, grades, hashes, losses)


def _read_document_hashes(file: Path, documents: int) -> DocumentHashes | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not file.is_file():
        return None
    (column,) = pq.read_table(file).columns
    if column.type != pa.uint64() or column.null_count:
        raise ValueError(f"{file.name}: expected a column of hashes, not of {column.type}")
    hashes: DocumentHashes = column.to_numpy()
    check_document_hashes(hashes, documents)
    return hashes


def write_trec(result: Result, file: Path) -> None:
    """Write a result's rankings as a gzipped TREC run.

    Fields of the format are separated by white space, so white space and "%" in an id are percent-encoded, and the tag
    then begins with `percent-encoded:`, because in the files of other programs "%20" is part of an id.
    """
    if result.hits is None:
        raise ResultError(f"{result.name} was loaded without its rankings")
    documents, scores = result.hits.rankings.documents, result.hits.rankings.scores
    names, queries = list(result.hits.documents), result.queries.ids
    ids, tokens = list(map(encode_token, names)), list(map(encode_token, queries))
    tag = encode_token(result.name) if ids == names and tokens == [*queries] else MARK + encode_token(result.name)
    lines = [
        f"{query} Q0 {ids[document]} {place + 1} {score!r} {tag}\n"
        for position, query in enumerate(tokens)
        for place, (document, score) in enumerate(
            zip(documents[position].tolist(), scores[position].tolist(), strict=True)
        )
        if document != NOTHING
    ]
    with file.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
        packed.write("".join(lines).encode())


def _rankings_table(result: Result) -> Any:  # noqa: ANN401 (pyarrow has no types)
    import pyarrow as pa

    assert result.hits is not None  # noqa: S101 (the caller checked)
    documents, ids = result.hits.rankings.documents, result.hits.documents
    there = documents != NOTHING
    is_used, codes = result.hits.number_used()
    codes = codes[there]
    queries, places = np.nonzero(there)
    columns: dict[str, Any] = {}
    if result.hits.metadata:
        shown = (orjson.dumps(dict(row)).decode() for row in compress(result.hits.metadata, is_used.tolist()))
        columns["metadata"] = build_dictionary_column(shown, codes)
    if result.hits.parents:
        columns["parent_id"] = build_dictionary_column(select_ids(result.hits.parents, is_used), codes)
    if result.hits.unknown is not None:
        columns["unknown"] = build_number_column(result.hits.is_unknown[there])
    if result.hits.chunks is not None:
        chunks = result.hits.chunks
        if chunks.titles:
            columns["chunk_title"] = build_dictionary_column(select_ids(chunks.titles, is_used), codes)
        columns["chunk_start"] = build_number_column(chunks.starts[documents[there]])
        columns["chunk_end"] = build_number_column(chunks.ends[documents[there]])
    return pa.table(
        {
            "query_id": build_coded_column(queries.astype(np.int32), result.queries.ids),
            "rank": build_number_column(places.astype(np.int32) + 1),
            "document_id": build_coded_column(codes, select_ids(ids, is_used)),
            "score": build_number_column(result.hits.rankings.scores[there]),
            "grade": build_number_column(result.hits.grades[there]),
            **columns,
        }
    )


def _lists(column: Any) -> list[list[Any]]:  # noqa: ANN401 (pyarrow has no types)
    """Return a column as lists; pyarrow's conversion, value by value, takes five times as long."""
    lists = column.combine_chunks()
    values, offsets = lists.values.to_numpy(zero_copy_only=False).tolist(), lists.offsets.to_numpy().tolist()
    return [values[begin:end] for begin, end in pairwise(offsets)]


def _read_hits(table: Any, query_table: QueryTable) -> Hits:  # noqa: ANN401 (pyarrow has no types)
    errors = {i: error for i, error in enumerate(query_table.errors) if error} or None
    if not table.num_rows:
        nothing = create_empty_rankings(len(query_table.ids), 0)
        return Hits(replace(nothing, errors=errors), [], nothing.documents)
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    position = {query: i for i, query in enumerate(query_table.ids)}
    codes = columns["document_id"].indices.to_numpy()
    ids = IdTable.of_arrow(columns["document_id"].dictionary).to_list()
    in_table = np.array([position[q] for q in columns["query_id"].dictionary.to_pylist()], dtype=np.int64)
    queries = in_table[columns["query_id"].indices.to_numpy()]
    places = columns["rank"].to_numpy() - 1
    shape = (len(query_table.ids), int(places.max(initial=-1)) + 1)
    documents, grades = np.full(shape, NOTHING, np.int32), np.full(shape, NOTHING, np.int32)
    scores = np.full(shape, -np.inf, np.float32)
    documents[queries, places], scores[queries, places] = codes, columns["score"].to_numpy()
    grades[queries, places] = columns["grade"].to_numpy()

    hit_of = np.zeros(len(ids), dtype=np.int64)
    hit_of[codes] = np.arange(len(codes))

    def list_texts(name: str) -> list[str]:
        """Return the text of a column for each document, by code; [] if there is no such column."""
        return columns[name].cast("string").to_numpy(zero_copy_only=False)[hit_of].tolist() if name in columns else []

    metadata = [orjson.loads(shown) for shown in list_texts("metadata")]
    unknown = columns["unknown"].to_numpy(zero_copy_only=False)[hit_of] if "unknown" in columns else None
    chunks = None
    if "chunk_start" in columns:
        starts, ends = (columns[name].to_numpy()[hit_of] for name in ("chunk_start", "chunk_end"))
        chunks = ChunkPlaces(list_texts("chunk_title"), starts, ends)
    parents = list_texts("parent_id")
    return Hits(Rankings(documents, scores, errors=errors), ids, grades, metadata, parents, unknown, chunks)
