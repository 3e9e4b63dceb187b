"""Find the tables and the judgments in a folder, in the layouts of BEIR, MTEB and NanoBEIR."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from retrievers.runs.run_formats import strip_compression
from runner.datasets.base import DatasetError, Qrel
from runner.datasets.files import Place, SourceRecord, json_lines
from runner.datasets.qrels import find_qrel_columns, iter_qrel_places, read_qrels
from runner.datasets.rows import iter_parquet, open_table
from runner.datasets.tabular import Tabular

_SHARD = r"(?P<shard>-\d{5}-of-\d{5})?"
_TABLE = re.compile(rf"(?P<name>corpus|queries)(/(?P<part>[\w.-]+?))?{_SHARD}\.(jsonl|parquet)")
_QRELS = re.compile(
    rf"(?P<folder>qrels|data|default)/(?P<split>\w+){_SHARD}\.(tsv|jsonl|parquet)"
    r"|(?!corpus|queries|collection|documents)(?P<bare>\w+)\.tsv"
)
"""The files of a folder, without the extensions of compressions: the tables, and the judgments by split."""
_FOLDERS = ("qrels", "data", "default", None)
"""Where judgments are; the first of these with any counts. None is the folder of the tables."""


def list_tables(folder: Path, name: Literal["corpus", "queries"], split: str) -> Sequence[Path]:
    """Return the files with documents or queries: a whole one, those of the split if that is a part, or all parts."""
    matches = ((file, _TABLE.fullmatch(path)) for path, file in _list_files(folder).items())
    tables = {file: match for file, match in matches if match and match["name"] == name}
    whole = [file for file, match in tables.items() if match["part"] is match["shard"] is None]
    return whole[:1] or [file for file, match in tables.items() if match["part"] == split] or [*tables]


def iter_rows(tables: Iterable[Path]) -> Iterator[SourceRecord]:
    """Yield the rows of files in JSONL or Parquet."""
    for file in tables:
        yield from iter_parquet(file) if file.suffix == ".parquet" else json_lines(file)


def list_qrels(folder: Path) -> Mapping[str, Sequence[Path]]:
    """Return the files of judgments by split; a file qrels.tsv beside the tables is that of the split test."""
    matches = [(file, match) for path, file in _list_files(folder).items() if (match := _QRELS.fullmatch(path))]
    place = next((place for place in _FOLDERS if any(match["folder"] == place for _, match in matches)), None)
    splits: dict[str, list[Path]] = {}
    for file, match in matches:
        if match["folder"] == place:
            split = match["split"] or match["bare"].replace("qrels", "test")
            splits.setdefault(split, []).append(file)
    return splits


def iter_qrels(file: Path) -> Iterator[Qrel]:
    """Yield the judgments of a file in columns or, in JSONL and Parquet, of a table; raises `DatasetError`."""
    yield from read_qrels(file) if _is_columns(file) else _build_columns(file).iter_qrels(str(file))


def iter_places(file: Path) -> Iterator[Place]:
    """Yield the line or row of each judgment."""
    yield from iter_qrel_places(file) if _is_columns(file) else _build_columns(file).iter_places("judgment")


def _list_files(folder: Path) -> Mapping[str, Path]:
    """Return the files by their path in the folder without the extension of a compression."""
    files: dict[str, Path] = {}
    for file in sorted(file for depth in ("*", "*/*") for file in folder.glob(depth) if file.is_file()):
        files.setdefault(strip_compression(file.relative_to(folder).as_posix()), file)
    return files


def _is_columns(file: Path) -> bool:
    return strip_compression(file.name).endswith(".tsv")


def _build_columns(file: Path) -> Tabular:
    """Return the settings that read a table of judgments."""
    columns = open_table(file, "qrels").columns
    named = find_qrel_columns(columns)
    if named is None or "qrel_grade" not in named:
        raise DatasetError(f"{file}: expected the columns query-id, corpus-id and score, found {', '.join(columns)}")
    return Tabular(queries="", qrels=str(file), **named)  # type: ignore[arg-type]  # the names of columns
