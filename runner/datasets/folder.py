"""Read a folder of documents as a corpus: each file is a document."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from retrievers.base import Corpus
from retrievers.extras import MissingPackageError
from retrievers.runs.run_formats import TABLES
from runner.config.arguments import arguments
from runner.datasets import files
from runner.datasets.base import DatasetError
from runner.datasets.document_texts import FILE_READERS, READERS, read_plain
from runner.datasets.gold import strip_place
from runner.datasets.shapes import map_keys

logger = logging.getLogger("runner.datasets")

DOCUMENTS = (*map_keys("document")["markdown"], *map_keys("document")["plain"])
"""The extensions of Markdown and plain text."""

_BINARY = (".pdf", ".docx", ".doc", ".pptx", ".odt", ".rtf", ".epub")
"""The extensions of documents that are not text."""

_LOOKED_AT, _LONGEST_CHARACTER = 1024, 4
"""How many bytes of a file decide whether it is text, and the length of a character that may be cut at the end."""


def corpus_of_folder(path: str | Path, setting: str = "documents", extensions: Collection[str] = DOCUMENTS) -> Corpus:
    """Return the documents of a folder and its subfolders, ordered by path, except hidden ones.

    An id is the path within the folder, without the extension unless another document differs only in that. The text of
    Markdown and plain text is the whole file, including front matter. The title of a Markdown file is that of its front
    matter, or else its first heading of level 1. `extensions` are those to read, as plain text if
    `runner.datasets.document_texts` does not know them. Raises `DatasetError`, which names the setting with the path.
    """
    folder = files.resolve_path(path, setting)
    if not folder.is_dir():
        raise DatasetError(f"dataset.{setting}={folder}: expected a folder of documents, found a file")
    paths = _list_documents(folder, extensions)
    if not paths:
        problem = f"dataset.{setting}={folder}: no file ends with {', '.join(extensions)}"
        there = {file.suffix.lower() for file in folder.rglob("*")} & {*FILE_READERS}
        way_out = (
            f"; set dataset=folder {arguments({'dataset.extensions': sorted(there)})} to read these" if there else ""
        )
        raise DatasetError(problem + way_out)
    titles, texts = zip(*map(_read, paths), strict=True)
    names = [file.relative_to(folder).as_posix() for file in paths]
    stems = Counter(PurePosixPath(name).with_suffix("").as_posix() for name in names)
    return Corpus(
        ids=[stem if stems[stem := PurePosixPath(name).with_suffix("").as_posix()] == 1 else name for name in names],
        texts=texts,
        titles=titles if any(titles) else (),
        metadata=[{"path": name} for name in names],
    )


def describe_folder(path: str | Path, extensions: Collection[str]) -> str:
    """Return the number of documents in a folder and of the files that are left out, by extension, in one line."""
    folder = files.resolve_path(path, "path")
    documents = Counter(file.suffix.lower() for file in _list_documents(folder, extensions))
    skipped = count_skipped_text(folder, extensions)
    left_out = f"; left out {skipped.total():,}: {_list_counts(skipped)}" if skipped else ""
    return f"{documents.total():,} documents ({_list_counts(documents)}{left_out})"


def _list_documents(folder: Path, extensions: Collection[str]) -> list[Path]:
    documents = (file for file in folder.rglob("*") if is_document(file, extensions) and not _hidden(file, folder))
    return sorted(file for file in documents if file.is_file())


def _list_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {ending or 'without an extension'}" for ending, count in counts.most_common())


def describe_left_out(path: str | Path, extensions: Collection[str], names: Collection[str]) -> str:
    """Return which of the names are files of a folder that are not read, and what to set, "" for none."""
    folder = files.resolve_path(path, "path")
    read = set(_list_documents(folder, extensions))
    left_out = [file for file in sorted(folder.rglob("*")) if file not in read and file.is_file()]
    names = {*names, *map(strip_place, names)}
    ends = tuple("/" + name.replace("\\", "/").removeprefix("./").lstrip("/") for name in names)
    lasts = tuple("/" + end.rpartition("/")[2] for end in ends)
    matches = ([file for file in left_out if f"/{file.as_posix()}".endswith(wanted)] for wanted in (ends, lasts))
    if not (there := next(filter(None, matches), [])):
        return ""
    endings = sorted({file.suffix.lower() for file in there if not _hidden(file, folder)})
    way_out = f"set {arguments({'dataset.extensions': endings})} to read these too" if endings else "it is hidden"
    return f"{there[0].relative_to(folder)} is a file of the folder that is left out; {way_out}"


def warn_skipped(path: str | Path, setting: str = "documents") -> None:
    """Warn of text files in a folder that are not read as documents."""
    folder = files.resolve_path(path, setting)
    if skipped := count_skipped_text(folder):
        logger.warning(
            "dataset.%s=%s: skipped %s text files that are not Markdown or plain text: %s; convert them, for example "
            "by pandoc, if they are documents",
            setting, folder, f"{skipped.total():,}",
            _list_counts(skipped),
        )  # fmt: skip


def count_skipped_text(folder: Path, extensions: Collection[str] = DOCUMENTS) -> Counter[str]:
    """Count the text files below a folder that are not read as documents, by extension ("" for none).

    A file is text if its beginning is UTF-8 without a null byte; PDF and files of word processors count too. Hidden
    files and folders are not counted.
    """
    skipped: Counter[str] = Counter()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not is_document(file, extensions) and not _hidden(file, folder):
            ending = file.suffix.lower()
            skipped[ending] += ending in _BINARY or _is_text(file)
    return +skipped


def _is_text(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            beginning = opened.read(_LOOKED_AT)
        text = beginning.decode("utf-8", errors="strict" if len(beginning) < _LOOKED_AT else "ignore")
    except (OSError, UnicodeDecodeError):
        return False
    return "\0" not in text and len(text.encode()) > len(beginning) - _LONGEST_CHARACTER


def is_document_folder(path: str) -> bool:
    """Return whether a path is a folder with more documents than tables."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        return False
    tables = sum(file.suffix.lower() in TABLES for file in folder.rglob("*") if not _hidden(file, folder))
    return len(_list_documents(folder, READERS)) > tables


def is_document(path: Path, extensions: Collection[str] = DOCUMENTS) -> bool:
    """Tell documents, by default Markdown and text, from other files by their extension."""
    return path.suffix.lower() in extensions


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _read(path: Path) -> tuple[str, str]:
    """Return the title and the text of a document."""
    try:
        if reader := FILE_READERS.get(path.suffix.lower()):
            return reader(path)
    except (MissingPackageError, ValueError) as error:
        raise DatasetError(f"{path}: {error}") from None
    with files.open_file(path) as file:
        content = files.decode_content(file.read(), path)
    try:
        return READERS.get(path.suffix.lower(), read_plain)(content)
    except ValueError as error:
        raise DatasetError(f"{path}: {error}") from None
