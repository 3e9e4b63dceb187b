"""Write a dataset in a format that other programs read, and that this program reads back as the same dataset.

Content that a format cannot store is rejected if a score would change without it, and otherwise listed. Nothing here
reads a format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from retrievers.files import UNFINISHED, replace_file
from runner.datasets.base import DatasetError
from runner.datasets.dataset import Dataset
from runner.datasets.export_formats import WRITERS, Format, RatingsFormat, list_unanswerable, write_intervals
from runner.datasets.spans import describe_spans


@dataclass(frozen=True)
class Exported:
    """The result of an export: the files, the settings that read them back, by key, and what they leave out."""

    files: Sequence[Path]
    settings: Mapping[str, str]
    notes: Sequence[str]


def export(dataset: Dataset, format: Format, folder: Path, overwrite: bool = False) -> Exported:
    """Write a dataset into a folder; raises `DatasetError`, before anything is written, if the format cannot store it.

    A folder that is not empty is rejected, unless `overwrite` is true; files with other names are kept even then.
    """
    if dataset.whole is not None:
        raise DatasetError(
            "chunking: only whole documents can be exported, because judgments refer to documents; set "
            "chunking=none and chunk the exported dataset when you read it"
        )
    if folder.exists() and not folder.is_dir():
        raise DatasetError(f"output={folder}: expected a folder, found a file")
    if not overwrite and folder.exists() and any(path.suffix != UNFINISHED for path in folder.iterdir()):
        raise DatasetError(
            f"output={folder}: the folder is not empty; choose another, or set overwrite=true to replace files of "
            "the same name"
        )
    if dataset.judgments.spans is not None and format != "spans":
        raise DatasetError(f"format={format}: cannot store the spans of dataset.gold=spans; choose format=spans")
    files, settings = WRITERS[format](dataset, folder)
    if dataset.judgments.intervals:
        files = {**files, folder / "grade_intervals.csv": write_intervals(dataset)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:  # write all files before replacing earlier ones
            for path, lines in files.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                with stack.enter_context(replace_file(path)).open("wb") as file:
                    file.writelines(lines)
    except OSError as error:
        raise DatasetError(f"output={folder}: cannot be written ({error.strerror})") from None
    kept = {"unknown_judged": "keep"} if dataset.judgments.unknown_documents and format != "spans" else {}
    settings = {**settings, "split": dataset.split, **kept}
    choice = "judged" if format in get_args(RatingsFormat) else "beir" if format == "spans" else str(format)
    read = {"dataset": choice, **{f"dataset.{name}": str(value) for name, value in settings.items()}}
    return Exported(list(files), read, list(_notes(dataset, format)))


def _notes(dataset: Dataset, format: Format) -> Iterator[str]:
    """Yield what the files store differently or leave out."""
    if format == "spans" and dataset.judgments.spans is not None:
        yield from describe_spans(dataset.judgments.spans.anchored)
        return
    if format not in ("mined", "synthetic") and (silent := len(list_unanswerable(dataset))):
        yield (
            f"queries without a relevant document ({silent:,}) are written with grade 0 for "
            f"{dataset.corpus.ids[0]!r}, because these formats cannot store a query without judgments"
        )
    if dataset.judgments.by_search_type:
        names = ", ".join(dataset.judgments.by_search_type)
        yield f"judgments of single search types ({names}) are left out, because these formats cannot store them"
    if format == "trec" and (any(dataset.queries.types) or any(dataset.queries.metadata)):
        yield "query types and metadata are left out, because topics cannot store them"
