"""A manual of an invented harbour in sections, whose other pages only make the words of the first ones rare."""

from __future__ import annotations

from collections.abc import Sequence

from retrievers.lexical.analyzer import Analyzer
from runner.features.synthesize.base import Bundle, Chunks
from runner.features.synthesize.terms import count_terms
from runner.features.synthesize.topics import Material

SPEECH = (
    "You can configure the beacon to set a signal. A pilot can refuse a ship, and has to inspect the cargo, "
    "or to store it. It can guide a vessel."
)


def write_material(text: str, title: str = "", more: Sequence[tuple[str, str]] = ()) -> Material:
    """Return the material of a chunk among pages of speech; `more` are titles and texts of further documents."""
    pages = [
        (title, text),
        ("", SPEECH),
        *more,
        *(("", f"Page {n} is about the cranes of quay {n}.") for n in range(20)),
    ]
    names = [str(number) for number in range(len(pages))]
    chunks = Chunks(names, names, [text for _, text in pages], [title for title, _ in pages])
    return Material(chunks, Bundle((0,), (1,)), count_terms(chunks, Analyzer()))
