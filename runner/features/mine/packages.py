"""Read an installed package: its public modules, classes, functions and methods are the targets.

They are imported, which is the only way to see which names are the same object; nothing is called. A question is the
first sentence of a docstring, which is removed from the document.
"""

from __future__ import annotations

import importlib
import inspect
import io
import pkgutil
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.excerpts import shorten_text
from runner.config.objects import ConfigError
from runner.features.mine.base import Case, MiningInput
from runner.features.mine.targets import Target, Targets

MASK = "\N{HORIZONTAL ELLIPSIS}"
"""Replaces the name of the answer in a question."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class Package:
    """The package to walk, and the number of questions to draw, with `seed`, from its docstrings.

    A question has at least `least_words` words, and the rest of its document has at least `least_left`. Modules with a
    part of their name that is in `exclude` or starts with an underscore are left out; `methods` decides whether methods
    are targets.
    """

    access: ClassVar[Access] = Access(code=("package",))

    package: str
    queries: int = Field(default=300, ge=1)
    methods: bool = True
    least_words: int = Field(default=4, ge=1)
    least_left: int = Field(default=12, ge=0)
    exclude: list[str] = Field(default_factory=list)
    seed: int = Field(default=0, ge=0)

    def load(self) -> MiningInput:
        """Walk the package; raises `ConfigError` if it cannot be imported or has no usable docstring."""
        targets = find_targets(self.package, self.exclude, self.methods)
        questions = {position: parts for position, target in enumerate(targets.all) if (parts := self._parts(target))}
        if not questions:
            raise ConfigError(
                f"source.package={self.package}: none of its {len(targets)} docstrings can be turned into a question"
            )
        drawn = np.random.default_rng(self.seed).permutation(list(questions))[: self.queries].tolist()
        chosen = {position: questions[position] for position in sorted(drawn)}
        left = [replace(t, docstring=chosen[i][1]) if i in chosen else t for i, t in enumerate(targets.all)]
        bare = sum(not target.docstring for target in targets.all)
        counts = f"of {len(targets):,} targets, {bare:,} have no docstring and {len(questions):,} yield a question"
        cases = [
            Case(
                id=f"{self.package}:{targets.all[position].id}",
                suite=self.package,
                query=question,
                names=(targets.all[position].id,),
                metadata={"derived": "the first sentence of the docstring, with the name masked"},
            )
            for position, (question, _) in chosen.items()
        ]
        return MiningInput(Targets(left, (*targets.notes, f"{self.package}: {counts}")), cases)

    def _parts(self, target: Target) -> tuple[str, str] | None:
        """Return the question and the rest of a docstring, if both are long enough."""
        sentence, left = split_first_sentence(target.docstring)
        question = mask_name(sentence, target.name)
        enough = len(re.findall(r"\w+", question)) >= self.least_words
        return (question, left) if enough and len(re.findall(r"\w+", left)) >= self.least_left else None


_SIGNATURE = re.compile(r"\A[\w.]+\s*\([^)]*\).*?(?:\n\s*\n|\Z)", re.DOTALL)
_SENTENCE = re.compile(r"(.+?[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bcf\.)(?<!\bvs\.)(?=\s|\Z)", re.DOTALL)


def split_first_sentence(docstring: str) -> tuple[str, str]:
    """Return the first sentence of a docstring on one line, without a leading signature, and the rest."""
    signature = _SIGNATURE.match(docstring)
    start = signature.end() if signature else 0
    paragraph = docstring[start:].partition("\n\n")[0]
    match = _SENTENCE.match(paragraph)
    sentence = match[1] if match else paragraph
    rest = docstring[start + len(sentence) :].strip()
    return " ".join(sentence.split()), f"{docstring[:start]}{rest}".strip()


def mask_name(sentence: str, name: str) -> str:
    """Return a sentence with a name masked, in any case and with any quotation marks."""
    return re.sub(rf"[`'\"]*(?<!\w){re.escape(name)}(?!\w)(?:\(\))?[`'\"]*", MASK, sentence, flags=re.IGNORECASE)


def find_targets(package: str, exclude: Sequence[str], methods: bool, setting: str = "source.package=") -> Targets:
    """Return the public modules, classes, functions and methods of a package; raises `ConfigError`.

    An object is one target. Its id is the name under which it was defined if that is public, else its shortest name;
    its other names are aliases. An error message starts with `setting`.
    """
    walk = _Walk(package, frozenset(exclude))
    try:
        with warnings.catch_warnings():  # old attributes warn when read
            warnings.simplefilter("ignore")
            walk.visit(_import_quietly(package))
    except (Exception, SystemExit) as error:  # some scripts exit when imported
        raise ConfigError(f"{setting}{package}: cannot be imported ({_describe(error)}); install it") from error
    named = [(_select_name(thing, names), thing, names) for thing, names in walk.objects.values()]
    if methods:
        known = {id(thing) for _, thing, _ in named}
        named += [own for name, thing, _ in named if inspect.isclass(thing) for own in _methods(name, thing, known)]
    targets = {name: _target(name, thing, names) for name, thing, names in sorted(named, key=lambda row: row[0])}
    return Targets(list(targets.values()), walk.faults)


@dataclass
class _Walk:
    """Visits the public modules of a package and collects each object with all its names."""

    package: str
    exclude: frozenset[str]
    objects: dict[int, tuple[Any, list[str]]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def visit(self, module: ModuleType) -> None:
        self.objects.setdefault(id(module), (module, []))[1].append(module.__name__)
        exported = {name for name in getattr(module, "__all__", ()) if isinstance(name, str)}
        for name in sorted(exported | {name for name in vars(module) if not name.startswith("_")}):
            thing = self._member(module, name, name in exported)
            if thing is not None:
                self.objects.setdefault(id(thing), (thing, []))[1].append(f"{module.__name__}.{name}")
        for info in sorted(pkgutil.iter_modules(getattr(module, "__path__", ())), key=lambda info: info.name):
            if info.name.startswith("_") or info.name in self.exclude:
                continue
            try:
                self.visit(_import_quietly(f"{module.__name__}.{info.name}"))
            except (Exception, SystemExit) as error:
                reason = f"it cannot be imported ({_describe(error)})"
                self.faults.append(f"{module.__name__}.{info.name} is skipped, because {reason}")

    def _member(self, module: ModuleType, name: str, exported: bool) -> Any:  # noqa: ANN401 (any object)
        """Return the object of a public name of a module if it belongs to this package, else None."""
        thing = _read(module, name)
        if not callable(thing) or _is_hidden(thing) or inspect.ismodule(thing):
            return None  # or an exported name that does not exist
        home = _read(thing, "__module__")
        if isinstance(home, str):
            of_it = home == self.package or home.startswith(f"{self.package}.")
            return thing if of_it and (exported or inspect.isclass(thing) or inspect.isroutine(thing)) else None
        return thing if exported else None  # C code need not name a module


def _import_quietly(name: str) -> ModuleType:
    """Import a module and drop its output."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return importlib.import_module(name)


def _read(thing: object, name: str, default: object = None) -> Any:  # noqa: ANN401 (any object)
    """Return an attribute, or a default if it does not exist or reading it raises any error."""
    try:
        return getattr(thing, name, default)
    except Exception:
        return default


def _is_hidden(thing: object) -> bool:
    """Return whether an object hides its class, as lazy settings do before they are configured."""
    return _read(thing, "__class__") is None


def _describe(error: BaseException) -> str:
    return shorten_text(f"{type(error).__name__}: {error}", 200)


def _select_name(thing: object, names: Sequence[str]) -> str:
    """Return the name under which an object was defined, if it is one of its names, else the shortest."""
    defined = f"{_read(thing, '__module__')}.{_read(thing, '__qualname__')}"
    return defined if defined in names else min(names, key=lambda name: (name.count("."), name))


def _methods(owner: str, thing: type, known: set[int]) -> Iterator[tuple[str, Any, list[str]]]:
    """Yield the public methods that a class defines itself, each object once."""
    for name, member in sorted(vars(thing).items()):
        method = _read(member, "__func__", member)
        if name.startswith("_") or _is_hidden(method):
            continue
        if inspect.isroutine(method) and id(method) not in known:
            known.add(id(method))
            yield f"{owner}.{name}", method, [f"{owner}.{name}"]


def _target(called: str, thing: Any, names: Sequence[str]) -> Target:  # noqa: ANN401 (any object)
    kind = "MODULE" if inspect.ismodule(thing) else "CLASS" if inspect.isclass(thing) else "METHOD"
    docstring = _read(thing, "__doc__")
    if not isinstance(docstring, str) or docstring == type(thing).__doc__:  # an instance inherits that of its class
        docstring = ""
    aliases = tuple(sorted(set(names) - {called}))
    return Target(called, kind, _signature(called, thing), inspect.cleandoc(docstring), aliases=aliases)


def _signature(called: str, thing: Any) -> str:  # noqa: ANN401 (any object)
    """Return the signature of an object, "" if it is unknown, without parts that differ between processes."""
    if inspect.ismodule(thing):
        return ""
    try:
        signature = inspect.signature(thing)
        ordered = [p.replace(default=_sort_set(p.default)) for p in signature.parameters.values()]
        parameters = re.sub(r" at 0x[0-9a-f]+", "", str(signature.replace(parameters=ordered)))
    except Exception:  # written in C, or with a custom signature
        return ""
    return f"{'class' if inspect.isclass(thing) else 'def'} {called.rpartition('.')[2]}{parameters}"


def _sort_set(default: object) -> object:
    """Return a default value with a repr in which the elements of a set are sorted."""
    if not isinstance(default, (set, frozenset)) or not default:
        return default
    elements = f"{{{', '.join(sorted(map(repr, default)))}}}"
    return _Literal(elements if isinstance(default, set) else f"frozenset({elements})")


@dataclass(frozen=True)
class _Literal:
    """A value with a given repr."""

    text: str

    def __repr__(self) -> str:
        return self.text
