"""Look at a folder of documents: their lengths and language, and the file with questions about them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retrievers.base import Corpus
from retrievers.runs.run_formats import strip_compression
from runner.datasets.base import DatasetError
from runner.datasets.dataset import Dataset
from runner.datasets.document_texts import READERS
from runner.datasets.folder import corpus_of_folder, describe_folder
from runner.datasets.question_folder import QuestionFolder
from runner.datasets.rows import FORMATS
from runner.datasets.sections import sections
from runner.datasets.words import word_starts
from runner.evaluation.language import Language, detect_language

QUESTIONS = re.compile(r"question|quer(y|ies)|gold|truth|eval|(^|[^a-z])(qa|faq)([^a-z]|$)", re.IGNORECASE)
"""What the names of files with questions contain."""

MOST_FILES = 20
"""Most files in which questions are sought."""

SPACELESS = ("zh", "ja", "th", "lo", "km", "my")
"""Languages that are written without spaces between words, in which a character counts as a word (ISO 639-1)."""


@dataclass(frozen=True, eq=False)
class DocumentFolder:
    """The documents of a folder, how they were read, the number of words of each, and their language if it is clear.

    `has_sections` says whether most of them have two headings or more.
    """

    path: str
    reading: str
    documents: Corpus
    words: Sequence[int]
    language: Language | None
    has_sections: bool

    @property
    def analyzer(self) -> str:
        """Return the analyzer for the language."""
        return self.language.analyzer if self.language else "plain"

    @property
    def is_spaceless(self) -> bool:
        """Return whether a word is a character."""
        return self.language is not None and self.language.code in SPACELESS

    def measure(self, share: float) -> int:
        """Return the number of words that a share of the documents does not exceed."""
        return int(np.quantile(self.words, share, method="higher"))

    def count_longer(self, words: int) -> float:
        """Return the share of documents with more words."""
        return float(np.mean(np.array(self.words) > words))


def read_folder(path: str) -> DocumentFolder:
    """Read the documents of a folder as `dataset=folder` does; raises `DatasetError`."""
    documents = corpus_of_folder(path, "path", READERS)
    headings = [sum(bool(section.path) for section in sections(text)) for text in documents.texts]
    return DocumentFolder(
        path,
        describe_folder(path, READERS),
        documents,
        [len(word_starts(text)) for text in documents.texts],
        detect_language(documents.texts),
        float(np.median(headings)) >= 2,
    )


def find_questions(path: str) -> tuple[tuple[str, Dataset] | None, dict[str, str]]:
    """Return the first file in a folder or beside it that has questions about it, with the dataset; None without.

    Files whose names say that they have questions, but that cannot be read, are returned with the reason.
    """
    folder = Path(path).expanduser()
    beside = folder.parent.glob("*") if folder.resolve().parent != Path.home() else ()
    files = [*sorted(folder.rglob("*")), *sorted(beside)]
    faults: dict[str, str] = {}
    for file in [file for file in files if _may_have_questions(file)][:MOST_FILES]:
        try:
            return (str(file), read_questions(path, str(file))), faults
        except DatasetError as error:
            faults[str(file)] = str(error)
    return None, faults


def read_questions(path: str, questions: str) -> Dataset:
    """Return the dataset of a folder and a file of questions; raises `DatasetError`."""
    return QuestionFolder(path=path, questions=questions).load()


def _may_have_questions(file: Path) -> bool:
    ending = Path(strip_compression(file.name)).suffix.lower()
    return ending in FORMATS and bool(QUESTIONS.search(file.stem)) and not file.name.startswith(".") and file.is_file()
