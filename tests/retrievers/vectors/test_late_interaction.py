"""Late interaction against brute force, with token vectors of the bundled model, as a retriever and as a reranker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from retrievers.base import NOTHING, Corpus, RetrieverError
from retrievers.composed.reranked import Reranked
from retrievers.encoders.multi_vector import MultiVectorModel, TokenVectors
from retrievers.encoders.pretrained import find_folder
from retrievers.lexical.bm25 import BM25
from retrievers.rerankers.late_interaction import LateInteractionReranker
from retrievers.search import plan_rankings, search_cached
from retrievers.store import MemoryStore, NoStore
from retrievers.vectors.late_interaction import LateInteraction, rank_max_sim
from tests.retrievers.encoders.test_encoders import Disk

QUERIES = ["ships and ferries", "something to eat", "café", ""]


def build_model() -> Any:
    """Return a model of the bundled one's tokens, without a projection: nothing of it is random."""
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
    from sentence_transformers.sentence_transformer.modules import Normalize

    names = {"module_input_name": "token_embeddings", "module_output_name": "token_embeddings"}
    modules = [Transformer(str(find_folder("all-MiniLM-L6-v2"))), MultiVectorMask(), Normalize(**names)]
    return MultiVectorEncoder(modules=modules)


@pytest.fixture(scope="module")
def live_model() -> Any:
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    return build_model()


@pytest.fixture(scope="module")
def model(live_model: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("late interaction"))
    live_model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    """Return a store in which the model is opened once for all tests."""
    return MemoryStore()


def compute_max_sim(query: NDArray[Any], document: NDArray[Any]) -> float:
    """Return MaxSim by its definition."""
    total = 0.0
    for token in query.astype(np.float64):
        total += max(float(sum(token * other)) for other in document.astype(np.float64))
    return total


# Arithmetic, without a model


@given(st.integers(0, 10_000), st.integers(0, 60), st.integers(1, 8))
def test_the_best_documents_are_those_of_brute_force(seed: int, n: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    matrices = [rng.integers(-2, 3, size=(rng.integers(0, 4), 4)).astype(np.float32) for _ in range(n)]
    query = rng.integers(-2, 3, size=(3, 4)).astype(np.float32)
    corpus = Corpus([f"d{i}" for i in range(n)], [""] * n)
    best = rank_max_sim(query, TokenVectors.join(matrices), k, corpus.tie_order)
    scored = [
        (compute_max_sim(query, matrix), name) for matrix, name in zip(matrices, corpus.ids, strict=True) if len(matrix)
    ]
    expected = sorted(scored, reverse=True)[:k]
    found = [(float(s), corpus.ids[d]) for s, d in zip(best.scores[0], best.documents[0], strict=True) if d != NOTHING]
    assert found == expected


# With a model


def test_scores_are_maxsim_by_brute_force(live_model: Any, model: str, store: MemoryStore, harbour: Corpus) -> None:
    rankings = LateInteraction(model).index(harbour, store).search(QUERIES, 6, store)
    queries = live_model.encode_query(QUERIES, show_progress_bar=False, convert_to_numpy=True, batch_size=1)
    documents = live_model.encode_document(
        list(harbour.contents()), show_progress_bar=False, convert_to_numpy=True, batch_size=1
    )
    for row, query in enumerate(queries[:3]):
        expected = {
            place: compute_max_sim(query, documents[place])
            for place in range(6)
            if harbour.texts[place] or harbour.titles[place]
        }
        found = dict(zip(rankings.documents[row].tolist(), rankings.scores[row].tolist(), strict=True))
        found.pop(NOTHING, None)
        assert found.keys() == expected.keys()
        for place, score in expected.items():
            assert found[place] == pytest.approx(score, rel=1e-6)
    assert (rankings.documents[3] == NOTHING).all()


def test_a_reloaded_model_ranks_alike(live_model: Any, model: str, harbour: Corpus, store: MemoryStore) -> None:
    kept = MemoryStore()
    kept.share(MultiVectorModel(model).build_live_key(), lambda: live_model)
    first = LateInteraction(model).index(harbour, kept).search(QUERIES, 6, kept)
    second = LateInteraction(model).index(harbour, store).search(QUERIES, 6, store)
    assert first.documents.tobytes() == second.documents.tobytes()
    assert first.scores.tobytes() == second.scores.tobytes()


def test_a_reranker_scores_as_the_retriever_does(model: str, store: MemoryStore, harbour: Corpus) -> None:
    alone = LateInteraction(model).index(harbour, store).search(QUERIES, 6, store)
    reranked = Reranked(BM25(), LateInteractionReranker(model), depth=6)
    rankings = search_cached(reranked, harbour, QUERIES, 6, store)
    for row in range(len(QUERIES)):
        expected = dict(zip(alone.documents[row].tolist(), alone.scores[row].tolist(), strict=True))
        places = rankings.documents[row][rankings.documents[row] != NOTHING]
        assert [expected[place] for place in places.tolist()] == rankings.scores[row][: len(places)].tolist()
    assert (rankings.documents[0] != NOTHING).sum() == 3


def test_pooling_encodes_nothing_again_and_leaves_fewer_tokens(model: str, harbour: Corpus) -> None:
    disk, retriever = Disk(), LateInteraction(model)
    whole = retriever.index(harbour, disk)
    whole.search(QUERIES, 3, disk)
    assert disk.kinds == ["document token vectors", "query token vectors"]
    pooled = replace(retriever, pool_factor=2.0).index(harbour, disk)
    pooled.search(QUERIES, 3, disk)
    assert disk.kinds[2:] == ["pooled token vectors"]
    sizes, fewer = np.diff(whole.documents.offsets), np.diff(pooled.documents.offsets)
    assert (fewer[sizes > 4] < sizes[sizes > 4]).all()
    assert (fewer[sizes > 0] > 0).all()
    reranker = LateInteractionReranker(model, pool_factor=2.0).open(MemoryStore())
    scores = reranker(QUERIES[:1], [list(harbour.contents())], NoStore())[0].scores
    rankings = pooled.search(QUERIES[:1], 6, disk)
    for place, score in zip(rankings.documents[0], rankings.scores[0], strict=True):
        assert place == NOTHING or scores[place] == score


def test_a_plan_lists_the_texts_to_encode(model: str) -> None:
    long = Corpus([f"d{i}" for i in range(300)], [f"text {i}" for i in range(300)])
    works = plan_rankings(LateInteraction(model), long, QUERIES, 3, NoStore()).needs
    rows = [int(dict(work.key.parts)["rows"]) for work in works]
    assert [work.title for work in works] == ["embed"] * 3
    assert (sum(rows[:2]), rows[2]) == (300, 4)
    *pooled, _ = plan_rankings(LateInteraction(model, pool_factor=2), long, QUERIES, 3, NoStore()).needs
    assert [(work.title, work.needs[0].title) for work in pooled] == [("pool tokens", "embed")] * 2


def test_a_corpus_that_does_not_fit_is_refused_before_it_is_encoded(
    model: str, harbour: Corpus, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 50_000})())
    disk = Disk()
    with pytest.raises(
        RetrieverError, match=r"6 documents need 0\.0 GiB of memory, but 0\.0 GiB are available; rerank"
    ):
        LateInteraction(model).index(harbour, disk)
    assert disk.kinds == ["document token vectors"]


@pytest.mark.parametrize("build", [LateInteraction, LateInteractionReranker])
def test_a_dense_model_is_refused_as_it_would_get_random_weights(build: Any, harbour: Corpus) -> None:
    with pytest.raises(RetrieverError, match=r"^model=all-MiniLM-L6-v2: .* random weights; choose a late-interaction"):
        if build is LateInteraction:
            LateInteraction("all-MiniLM-L6-v2").index(harbour, MemoryStore())
        else:
            LateInteractionReranker("all-MiniLM-L6-v2").open(MemoryStore())(["a"], [["b"]], NoStore())


def test_a_stanford_checkpoint_brings_its_own_projection(tmp_path: Path) -> None:
    import json
    import shutil

    import torch
    from safetensors.torch import load_file, save_file

    folder = Path(find_folder("all-MiniLM-L6-v2") or "")
    for file in ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        if (folder / file).is_file():
            shutil.copy(folder / file, tmp_path / file)
    config = json.loads((tmp_path / "config.json").read_text()) | {"architectures": ["HF_ColBERT"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    weights = {f"bert.{name}": tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    projection = torch.rand((16, config["hidden_size"]), generator=torch.Generator().manual_seed(0))
    save_file({**weights, "linear.weight": projection}, tmp_path / "model.safetensors", {"format": "pt"})
    settings = MultiVectorModel(str(tmp_path))
    model = settings.open_once(MemoryStore())()
    assert settings.encode(model, "document", ["ships"])[0].shape[1] == 16
