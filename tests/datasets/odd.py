"""Compare sources of datasets with oracles of what their odd files say."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from runner.datasets.base import DatasetError
from runner.datasets.dataset import Dataset
from runner.datasets.source import DatasetSource
from tests.oracles_of_files import Content, Odd

Rows = Sequence[Mapping[str, Any]]
KEPT = {"unknown_judged": "keep", "unjudged_queries": "keep"}

WHOLE = re.compile("the file is UTF-16 text|no document has any of|no item has a value|no click or click_through event")
"""Faults of a whole file."""

odd = settings(max_examples=30)


def draw_rows(data: st.DataObject, most: int = 4, **columns: st.SearchStrategy[Any]) -> list[dict[str, Any]]:
    return data.draw(st.lists(st.fixed_dictionaries(columns), min_size=1, max_size=most))


def list_content(dataset: Dataset) -> Content:
    corpus, queries, judgments = dataset.corpus, dataset.queries, dataset.judgments
    names = [*corpus.ids, *dataset.judgments.unknown_documents]
    titles = corpus.titles or [""] * len(corpus)
    return (
        dict(zip(corpus.ids, zip(titles, corpus.texts, strict=True), strict=True)),
        dict(zip(queries.ids, queries.texts, strict=True)),
        {(queries.ids[query], names[document]): grade for query, document, grade in judgments.list_rows()},
    )


def compare(source: DatasetSource, oracle: Callable[[], Content], files: Sequence[Path]) -> None:
    """Assert that a source says what the oracle says, or refuses a file that the oracle refuses, naming it."""
    try:
        expected = oracle()
    except Odd:
        with pytest.raises(DatasetError) as refused:
            source.load()
        check_refusal(str(refused.value), files)
    else:
        assert list_content(source.load()) == expected


def check_refusal(message: str, files: Sequence[Path]) -> None:
    """Assert that a message names a file and, unless all of the file is at fault, a line, a row or an entry there."""
    assert "\n" not in message
    file = max((file for file in map(str, files) if file in message), key=len, default="")
    assert file, message
    assert WHOLE.search(message) or re.search(rf"{re.escape(file)}(:|,[\w' ]* |: .*\bline )[0-9]+\b", message), message


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
