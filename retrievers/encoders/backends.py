"""Backends that run pre-trained models: PyTorch, or ONNX Runtime and OpenVINO through sentence-transformers.

A model is exported to the format of a backend once. The store keeps the export: a model folder, as a zip archive.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from importlib.metadata import version
from io import BytesIO, StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeVar
from zipfile import ZipFile

import numpy as np

from retrievers.encoders.pretrained import open_model
from retrievers.errors import RetrieverError
from retrievers.extras import MissingPackageError, check_installed, is_installed
from retrievers.store import Arrays, Key, Store
from retrievers.work import EXPORTED_MODEL

M = TypeVar("M")
Backend = Literal["auto", "torch", "onnx", "openvino"]
Precision = Literal["fp32", "bf16", "int8"]

RESULTS_VERSION = "backends 1"

_PACKAGES: Mapping[Backend, Mapping[str, str]] = {
    "openvino": {"openvino": "openvino", "optimum.intel": "optimum-intel", "nncf": "nncf"},
    "onnx": {"onnxruntime": "onnxruntime", "optimum.onnxruntime": "optimum-onnx"},
}
"""The modules that a backend needs, and the packages that have them."""

_NOISY = ("sentence_transformers", "transformers", "optimum", "nncf")
"""The loggers that advise on exports."""

_SAMPLE_TEXTS, _SAMPLE_CHARACTERS = 32, 1200

_SMOOTHING = 0.7
"""How much of the range of large inputs moves to the weights (SmoothQuant, https://arxiv.org/abs/2211.10438).

NNCF's default for transformers, 0.95, leaves the weights too coarse: the cosine of a short text was 0.96, now 0.99.
"""


def choose_backend(backend: Backend, precision: Precision, device: str | None) -> Backend:
    """Return the backend that runs a model; `auto` is OpenVINO on a CPU where that is installed, and torch otherwise.

    Only OpenVINO has other precisions than fp32. Raises `RetrieverError` for settings that do not go together, and
    `MissingPackageError` for a missing package.
    """
    on_cpu = device in (None, "cpu")
    if precision != "fp32" or backend == "openvino":
        if not on_cpu or backend in ("torch", "onnx"):
            setting = f"precision={precision}" if precision != "fp32" else "backend=openvino"
            raise RetrieverError(f"{setting}: needs backend=openvino and device=cpu; set both, or precision=fp32")
        for module, package in _PACKAGES["openvino"].items():
            check_installed(module, package, "openvino")
        return "openvino"
    if backend == "onnx" and not all(map(is_installed, _PACKAGES["onnx"])):
        raise MissingPackageError(
            "backend=onnx: needs packages that are not installed; run `pip install 'sentence-transformers[onnx]'`, or "
            "set backend=torch"
        )
    if backend == "auto":
        return "openvino" if on_cpu and all(map(is_installed, _PACKAGES["openvino"])) else "torch"
    return backend


def describe_backend(backend: Backend, precision: Precision) -> dict[str, object]:
    """Return what vectors depend on, besides the model: the backend, its precision, and its version if it rounds."""
    parts: dict[str, object] = {"backend": backend, "precision": precision}
    return parts if precision == "fp32" else {**parts, "openvino": version("openvino")}


def open_exported(
    library_class: Callable[..., M],
    model: str,
    revision: str | None,
    identity: str,
    backend: Backend,
    precision: Precision,
    store: Store,
) -> M:
    """Open the export of a model with a class of sentence-transformers; it is exported if the store lacks it.

    `identity` is that of the model. Raises `RetrieverError` if the backend cannot run the model.
    """
    is_quantized = precision == "int8"
    parts = {"model": identity, "class": library_class.__name__, "backend": backend, "quantized": is_quantized}
    versions = {package: version(package) for package in _PACKAGES[backend].values()}
    key = Key.of(EXPORTED_MODEL, __name__, **parts, **versions).with_check(_check_archive)
    archive = store.arrays(key, lambda: _export(library_class, model, revision, backend, is_quantized))["archive"]
    with TemporaryDirectory() as folder, ZipFile(BytesIO(archive.tobytes())) as files, _hide_advice():
        files.extractall(folder)
        return open_model(library_class, folder, None, "cpu", backend, _list_options(backend, precision))


def _list_options(backend: Backend, precision: Precision) -> dict[str, Any]:
    """Return the options to open an export with.

    By default, OpenVINO multiplies numbers of 16 bits (bf16) on processors with instructions for them.
    """
    import torch

    if backend == "onnx":
        return {}
    config = {"INFERENCE_NUM_THREADS": str(torch.get_num_threads())}  # as many as torch has in a worker of a sweep
    return {"ov_config": config | ({"INFERENCE_PRECISION_HINT": "f32"} if precision == "fp32" else {})}


def _export(
    library_class: Callable[..., Any], model: str, revision: str | None, backend: Backend, is_quantized: bool
) -> Arrays:
    """Return a zip archive with the files of an exported model."""
    with TemporaryDirectory() as name, _hide_advice():
        folder = Path(name)
        try:
            exported = open_model(library_class, model, revision, "cpu", backend, {"export": True})
            if is_quantized:
                _quantize(exported)
            exported.save_pretrained(name, create_model_card=False)
        except RetrieverError:
            raise
        except Exception as error:  # of the many libraries that export
            reason = str(error).partition("\n")[0]
            raise RetrieverError(
                f"backend={backend}: cannot run model={model} ({reason}); set backend=torch"
            ) from error
        content = BytesIO()
        with ZipFile(content, "w") as files:
            for path in sorted(folder.rglob("*")):
                files.write(path, path.relative_to(folder))
    arrays = {"archive": np.frombuffer(content.getvalue(), dtype=np.uint8)}
    try:
        _check_archive(arrays)
    except ValueError as error:
        raise RetrieverError(f"backend={backend}: cannot run model={model} ({error}); set backend=torch") from error
    return arrays


def _check_archive(arrays: Arrays) -> None:
    """Raise `ValueError` if a model in an archive names code other than that of sentence-transformers, to import it."""
    with ZipFile(BytesIO(arrays["archive"].tobytes())) as files:
        names = [name for name in files.namelist() if Path(name).name == "modules.json"]
        for module in [module for name in names for module in json.loads(files.read(name))]:
            if not str(module["type"]).startswith("sentence_transformers."):
                raise ValueError(f"its module {module['type']} is not one of sentence-transformers")


def _quantize(model: Any) -> None:  # noqa: ANN401 (any class of sentence-transformers)
    """Quantize the layers of an open model to 8 bits, with scales measured on prose of Python's documentation."""
    import nncf

    opened = model.transformers_model
    names = {name for put in opened.model.inputs for name in put.get_names()}
    inputs = [
        {name: np.asarray(values) for name, values in tokens.items() if name in names}
        for tokens in (
            model.tokenizer(text, return_tensors="np", truncation=True, max_length=model.max_seq_length)
            for text in _list_samples()
        )
    ]
    smoothing = nncf.AdvancedSmoothQuantParameters(matmul=_SMOOTHING)
    opened.model = nncf.quantize(
        opened.model,
        nncf.Dataset(inputs),
        subset_size=len(inputs),
        model_type=nncf.ModelType.TRANSFORMER,
        advanced_parameters=nncf.AdvancedQuantizationParameters(smooth_quant_alphas=smoothing),
    )


def _list_samples() -> list[str]:
    """Return texts of different lengths, the same for each version of Python that has these topics."""
    from pydoc_data.topics import topics

    texts = [" ".join(topics[name].split()) for name in sorted(topics)]
    return [text[: _SAMPLE_CHARACTERS * (1 + n % 4) // 4] for n, text in enumerate(texts[:_SAMPLE_TEXTS])]


@contextmanager
def _hide_advice() -> Iterator[None]:
    """Hide what libraries log, warn of and print while they export or open a model."""
    with ExitStack() as stack:
        with suppress(ImportError):  # it sets the level of its logger when it is imported
            import optimum.intel.openvino  # noqa: F401
        for logger in map(logging.getLogger, _NOISY):
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.ERROR)
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(redirect_stdout(StringIO()))
        yield
