"""Read a folder of Markdown or plain text as a corpus: each file is a document."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path

from retrievers.base import Corpus, RetrieverError
from retrievers.runs.run_formats import TABLES
from runner.datasets import files
from runner.datasets.base import DatasetError
from runner.datasets.sections import title_of

logger = logging.getLogger("runner.datasets")

_MARKDOWN = (".md", ".markdown", ".mdx")
_TEXT = (".txt", ".text", ".rst")

DOCUMENTS = (*_MARKDOWN, *_TEXT)
"""The extensions of the files that are read."""

_LOOKED_AT, _LONGEST_CHARACTER = 1024, 4
"""How many bytes of a file decide whether it is text, and the length of a character that may be cut at the end."""


def corpus_of_folder(path: str | Path, setting: str = "documents") -> Corpus:
    """Return the Markdown and text files of a folder and its subfolders, ordered by path, except hidden ones.

    An id is the path within the folder, without the extension. The text is the whole file, including front matter. The
    title of a Markdown file is that of its front matter, or else its first heading of level 1. Raises `DatasetError`,
    which names the setting with the path.
    """
    folder = files.resolve_path(path, setting)
    if not folder.is_dir():
        raise DatasetError(f"dataset.{setting}={folder}: expected a folder of documents, found a file")
    paths = [file for file in files.matching(str(folder), setting) if is_document(file) and not _hidden(file, folder)]
    if not paths:
        raise DatasetError(f"dataset.{setting}={folder}: no file ends with {', '.join(DOCUMENTS)}")
    texts = [_text(file) for file in paths]
    titles = [title_of(t) if f.suffix.lower() in _MARKDOWN else "" for f, t in zip(paths, texts, strict=True)]
    try:
        return Corpus(
            ids=[file.relative_to(folder).with_suffix("").as_posix() for file in paths],
            texts=texts,
            titles=titles if any(titles) else (),
            metadata=[{"path": file.relative_to(folder).as_posix()} for file in paths],
        )
    except RetrieverError as error:
        raise DatasetError(f"{folder}: {error}; two files differ only in their extension") from None


def warn_skipped(path: str | Path, setting: str = "documents") -> None:
    """Warn of text files in a folder that are not read as documents."""
    folder = files.resolve_path(path, setting)
    if skipped := count_skipped_text(folder):
        logger.warning(
            "dataset.%s=%s: skipped %s text files that are not Markdown or plain text: %s; convert them, for example "
            "by pandoc, if they are documents",
            setting, folder, f"{skipped.total():,}",
            ", ".join(f"{count:,} {ending or 'without an extension'}" for ending, count in skipped.most_common(5)),
        )  # fmt: skip


def count_skipped_text(folder: Path) -> Counter[str]:
    """Count the text files below a folder that are not read as documents, by extension ("" for none).

    A file is text if its beginning is UTF-8 without a null byte. Hidden files and folders are not counted.
    """
    skipped: Counter[str] = Counter()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not is_document(file) and not _hidden(file, folder) and _is_text(file):
            skipped[file.suffix.lower()] += 1
    return skipped


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
    names = [file for file in folder.rglob("*") if not _hidden(file, folder)] if folder.is_dir() else []
    return sum(map(is_document, names)) > sum(file.suffix.lower() in TABLES for file in names)


def is_document(path: Path) -> bool:
    """Tell Markdown and text files from others by their extension."""
    return path.suffix.lower() in DOCUMENTS


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _text(path: Path) -> str:
    with files.open_file(path) as file:
        return files.decode_content(file.read(), path)
