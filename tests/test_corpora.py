"""The corpora that are made for measuring."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.corpora import Synthetic, vocabulary, write
from runner.datasets.beir import Beir


def test_a_corpus_is_the_beginning_of_every_larger_one_of_its_seed() -> None:
    texts = list(Synthetic(100, words=500).texts())
    assert len(texts) == 100
    assert list(islice(Synthetic(9_000, words=500).texts(), 100)) == texts
    assert list(Synthetic(100, words=500, seed=1).texts()) != texts


def test_lengths_and_words_are_spread_as_in_english() -> None:
    words = [text.lower().replace(".", "").replace(",", "").split() for text in Synthetic(2_000, words=5_000).texts()]
    lengths = sorted(map(len, words))
    assert sum(lengths) / len(lengths) == pytest.approx(60, rel=0.05)
    assert lengths[len(lengths) // 20] < 30
    assert lengths[-len(lengths) // 20] > 90
    commonest = Counter(word for text in words for word in text).most_common(100)
    assert [word for word, _ in commonest[:3]] == ["the", "of", "and"]
    assert sum(n for _, n in commonest) / sum(lengths) == pytest.approx(0.5, abs=0.1)


def test_words_differ_and_some_are_not_ascii() -> None:
    words = vocabulary(20_000, seed=0)
    assert len(set(words)) == 20_000
    assert 0 < sum(not word.isascii() for word in words) < 200


def test_what_is_written_is_a_dataset_whose_questions_are_of_their_answer(tmp_path: Path) -> None:
    corpus = Synthetic(200, words=1_000)
    write(corpus, tmp_path / "corpus", queries=20)
    dataset = Beir(path=str(tmp_path / "corpus")).load()
    assert list(dataset.corpus.texts) == list(corpus.texts())
    assert len(dataset.queries) == len(dataset.judgments) == 20
    for query, document in zip(dataset.queries.texts, dataset.judgments.documents, strict=True):
        answer = dataset.corpus.texts[document].lower()
        assert sum(word in answer for word in query.strip("?").split()) >= 3
