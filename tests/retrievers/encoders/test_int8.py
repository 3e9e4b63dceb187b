"""Inference with 8-bit integers: how far its vectors are from those in 32 bits, and what it is refused for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from retrievers.base import RetrieverError
from retrievers.encoders import sentence_transformer
from retrievers.encoders.pretrained import find_folder
from retrievers.encoders.sentence_transformer import SentenceTransformerEncoder
from retrievers.store import MemoryStore, NoStore
from tests.retrievers.encoders.test_encoders import SENTENCES, Disk, corpus_of, documents

INT8 = SentenceTransformerEncoder(precision="int8")
TEXTS = [*SENTENCES, "", " ".join(["Ferries leave the harbour in the morning."] * 9)]


def test_vectors_are_close_to_those_in_32_bits() -> None:
    store = MemoryStore()
    exact, close = (encoder.embed(corpus_of(TEXTS), store) for encoder in (SentenceTransformerEncoder(), INT8))
    for one, other in (
        (np.concatenate(exact.documents), np.concatenate(close.documents)),
        (exact.queries(TEXTS, NoStore())[0], close.queries(TEXTS, NoStore())[0]),
    ):
        assert other.dtype == np.float32
        assert not np.array_equal(one, other)
        assert other.any(axis=1).tolist() == [bool(text) for text in TEXTS]
        cosines = (one * other).sum(axis=1)
        assert cosines[[bool(text) for text in TEXTS]].min() > 0.99


def test_a_layer_differs_from_the_exact_one_by_rounding_only() -> None:
    import torch

    from retrievers.encoders.int8 import Int8Linear

    layer = torch.nn.Linear(64, 32)
    chance = np.random.default_rng(0)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(chance.normal(size=(32, 64)).astype(np.float32)))
        layer.weight[3] = 0  # an output without weights has no scale of its own
        inputs = torch.from_numpy(chance.normal(size=(2, 5, 64)).astype(np.float32))
        inputs[..., [7, 40]] *= 1000  # would leave no precision to the others
        before = inputs.clone()
        exact, close = layer(inputs).numpy(), Int8Linear(layer, torch.tensor([7, 40]))(inputs).numpy()
    assert close.shape == exact.shape
    assert torch.equal(inputs, before)
    # A step of the inputs is at most a 127th of their range, and half a step is the most that rounding changes.
    rounded = np.delete(inputs.numpy(), [7, 40], axis=-1)
    step = max(rounded.max() - rounded.min(), rounded.max(), -rounded.min()) / 127 / 2
    weights = np.delete(layer.weight.detach().numpy(), [7, 40], axis=1)
    bound = np.abs(weights).sum(axis=1) * step + np.abs(weights).max(axis=1) / 254 * np.abs(rounded).sum(-1).max()
    assert (np.abs(close - exact) <= bound + 2e-3).all()  # products of 3,000 in 32 bits
    np.testing.assert_allclose(close[..., 3], layer.bias.detach().numpy()[3], atol=1e-6)


def test_the_largest_inputs_of_a_layer_are_exact() -> None:
    from sentence_transformers import SentenceTransformer
    from torch import nn

    from retrievers.encoders.int8 import Int8Linear, quantize_linear_layers

    model = SentenceTransformer(str(find_folder("all-MiniLM-L6-v2")), device="cpu")
    parts = {name.rpartition("encoder.")[2]: part for name, part in model.named_modules()}
    norm = parts["layer.2.attention.output.LayerNorm"]
    assert isinstance(norm, nn.LayerNorm)
    norm.weight.data[[11, 200]] *= 100  # makes two outputs of this module large, which are inputs of the next layer
    quantize_linear_layers(model, "all-MiniLM-L6-v2")
    assert not any(type(part) is nn.Linear for part in model.modules())
    parts = {name.rpartition("encoder.")[2]: part for name, part in model.named_modules()}
    quantized = parts["layer.2.intermediate.dense"]
    assert isinstance(quantized, Int8Linear)
    assert quantized.exact.tolist() == [11, 200]


def test_vectors_of_the_two_precisions_are_stored_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk()
    for encoder in (SentenceTransformerEncoder(), INT8, INT8):
        encoder.embed(corpus_of(SENTENCES), disk).queries(["cats"], disk)
    assert disk.kinds == ["document vectors", "query vectors"] * 2
    keys = {INT8.build_key("document", SENTENCES).digest}
    keys.add(SentenceTransformerEncoder(precision="int8", batch_tokens=9).build_key("document", SENTENCES).digest)
    monkeypatch.setattr(sentence_transformer, "version", lambda package: "0")
    keys.add(INT8.build_key("document", SENTENCES).digest)
    assert len(keys) == 3
    assert repr(INT8) != repr(SentenceTransformerEncoder())


def test_a_model_without_linear_layers_is_refused(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(f"{find_folder('all-MiniLM-L6-v2')}/tokenizer.json")
    weights = np.ones((tokenizer.get_vocab_size(), 4), dtype=np.float32)
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)]).save(str(tmp_path))
    with pytest.raises(RetrieverError, match=f"precision=int8: {tmp_path} has no linear layers .*; set precision=fp32"):
        documents(SentenceTransformerEncoder(model=str(tmp_path), precision="int8"), ["fish"])


def test_a_model_that_reads_the_weights_of_its_layers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.bert.modeling_bert import BertSelfOutput

    monkeypatch.setattr(BertSelfOutput, "forward", lambda self, states, inputs: states.to(self.dense.weight.dtype))
    assert documents(SentenceTransformerEncoder(), ["fish"]).any()
    with pytest.raises(RetrieverError, match=r"layers of all-MiniLM-L6-v2 cannot be replaced .*weight.*precision=fp32"):
        documents(INT8, ["fish"])


@pytest.mark.parametrize("other", [{"backend": "onnx"}, {"device": "cuda"}])
def test_what_8_bits_do_not_go_with_is_refused(other: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="precision=int8: needs backend=torch and device=cpu; set both"):
        SentenceTransformerEncoder(precision="int8", **other)  # type: ignore[arg-type]  # as from YAML
