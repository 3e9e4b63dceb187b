"""An installed package as a source: its public modules, classes, functions and methods are the targets.

They are imported, for only then is it known which names are one object; nothing of them is called. A question is the
first sentence of a docstring, which the document then does not have: derived, not asked by anyone.
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
from typing import Any

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from runner.config.objects import ConfigError
from runner.generation.mining.base import Case, Material
from runner.generation.mining.targets import Target, Targets

MASK = "\N{HORIZONTAL ELLIPSIS}"
"""What stands in a question where its answer was named."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class Package:
    """The package to walk, and how many questions to draw, with `seed`, from those that its docstrings give.

    A question has at least `least_words` words, and its document as many left as `least_left` says. Modules one of
    whose parts is in `exclude`, or begins with an underscore, are left out; `methods` are targets too, or not.
    """

    package: str
    queries: int = Field(default=300, ge=1)
    methods: bool = True
    least_words: int = Field(default=4, ge=1)
    least_left: int = Field(default=12, ge=0)
    exclude: list[str] = Field(default_factory=list)
    seed: int = Field(default=0, ge=0)

    def load(self) -> Material:
        """Walk the package; raises `ConfigError` where it cannot be imported or says nothing."""
        targets = targets_of(self.package, self.exclude, self.methods)
        asked = {position: parts for position, target in enumerate(targets.all) if (parts := self._parts(target))}
        if not asked:
            raise ConfigError(f"source.package={self.package}: none of its {len(targets)} docstrings gives a question")
        drawn = np.random.default_rng(self.seed).permutation(list(asked))[: self.queries].tolist()
        chosen = {position: asked[position] for position in sorted(drawn)}
        left = [replace(t, docstring=chosen[i][1]) if i in chosen else t for i, t in enumerate(targets.all)]
        bare = sum(not target.docstring for target in targets.all)
        told = f"{self.package}: of {len(targets):,} targets {bare:,} have no docstring, {len(asked):,} give a question"
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
        return Material(Targets(left, (*targets.notes, told)), cases)

    def _parts(self, target: Target) -> tuple[str, str] | None:
        """Return the question that a docstring gives, and what is left of it, if both are long enough."""
        sentence, left = first_sentence(target.docstring)
        question = masked(sentence, target.name)
        enough = len(re.findall(r"\w+", question)) >= self.least_words
        return (question, left) if enough and len(re.findall(r"\w+", left)) >= self.least_left else None


_SIGNATURE = re.compile(r"\A[\w.]+\s*\([^)]*\).*?(?:\n\s*\n|\Z)", re.DOTALL)
_SENTENCE = re.compile(r"(.+?[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bcf\.)(?<!\bvs\.)(?=\s|\Z)", re.DOTALL)


def first_sentence(docstring: str) -> tuple[str, str]:
    """Return the first sentence of a docstring in one line, after a signature if there is one, and all the rest."""
    signature = _SIGNATURE.match(docstring)
    start = signature.end() if signature else 0
    paragraph = docstring[start:].partition("\n\n")[0]
    found = _SENTENCE.match(paragraph)
    sentence = found[1] if found else paragraph
    rest = docstring[start + len(sentence) :].strip()
    return " ".join(sentence.split()), f"{docstring[:start]}{rest}".strip()


def masked(sentence: str, name: str) -> str:
    """Return a sentence without a name, in whatever letters and quotes it is written."""
    return re.sub(rf"[`'\"]*(?<!\w){re.escape(name)}(?!\w)(?:\(\))?[`'\"]*", MASK, sentence, flags=re.IGNORECASE)


def targets_of(package: str, exclude: Sequence[str], methods: bool, setting: str = "source.package=") -> Targets:
    """Return the public modules, classes, functions and methods of a package; raises `ConfigError`.

    One object is one target, called as it is where it was defined if that is public, else by its shortest name; its
    other names are aliases. An error begins with the setting that ends with the package.
    """
    walk = _Walk(package, frozenset(exclude))
    try:
        with warnings.catch_warnings():  # of what is old, when it is looked at
            warnings.simplefilter("ignore")
            walk.visit(_imported(package))
    except (Exception, SystemExit) as error:  # a script that ends the process when imported is no reason to end
        raise ConfigError(f"{setting}{package}: cannot be imported ({_told(error)}); is it installed?") from error
    named = [(_called(thing, names), thing, names) for thing, names in walk.found.values()]
    if methods:
        known = {id(thing) for _, thing, _ in named}
        named += [own for name, thing, _ in named if inspect.isclass(thing) for own in _methods(name, thing, known)]
    targets = {name: _target(name, thing, names) for name, thing, names in sorted(named, key=lambda each: each[0])}
    return Targets(list(targets.values()), walk.faults)


@dataclass
class _Walk:
    """Goes through the public modules of a package and remembers each object with all its names."""

    package: str
    exclude: frozenset[str]
    found: dict[int, tuple[Any, list[str]]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def visit(self, module: ModuleType) -> None:
        self.found.setdefault(id(module), (module, []))[1].append(module.__name__)
        exported = {name for name in getattr(module, "__all__", ()) if isinstance(name, str)}
        for name in sorted(exported | {name for name in vars(module) if not name.startswith("_")}):
            thing = self._member(module, name, name in exported)
            if thing is not None:
                self.found.setdefault(id(thing), (thing, []))[1].append(f"{module.__name__}.{name}")
        for info in sorted(pkgutil.iter_modules(getattr(module, "__path__", ())), key=lambda info: info.name):
            if info.name.startswith("_") or info.name in self.exclude:
                continue
            try:
                self.visit(_imported(f"{module.__name__}.{info.name}"))
            except (Exception, SystemExit) as error:
                self.faults.append(f"{module.__name__}.{info.name} is left out: it cannot be imported ({_told(error)})")

    def _member(self, module: ModuleType, name: str, exported: bool) -> Any:  # noqa: ANN401 (any object)
        """Return what a public name of a module is, if it is of this package, else None."""
        thing = _read(module, name)
        if not callable(thing) or _is_hidden(thing) or inspect.ismodule(thing):
            return None  # or it is exported, and not there
        home = _read(thing, "__module__")
        if isinstance(home, str):
            of_it = home == self.package or home.startswith(f"{self.package}.")
            return thing if of_it and (exported or inspect.isclass(thing) or inspect.isroutine(thing)) else None
        return thing if exported else None  # made by C code that does not say where


def _imported(name: str) -> ModuleType:
    """Import a module, without what it may say meanwhile."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return importlib.import_module(name)


def _read(thing: object, name: str, default: object = None) -> Any:  # noqa: ANN401 (any object)
    """Return an attribute, or a default where there is none: to look for it may run code that fails in its own way."""
    try:
        return getattr(thing, name, default)
    except Exception:
        return default


def _is_hidden(thing: object) -> bool:
    """Tell whether an object does not say what it is, such as settings that stand for others until there are any."""
    return _read(thing, "__class__") is None


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


def _called(thing: object, names: Sequence[str]) -> str:
    """Return the name under which an object was defined, if that is one of its names, else the shortest."""
    defined = f"{_read(thing, '__module__')}.{_read(thing, '__qualname__')}"
    return defined if defined in names else min(names, key=lambda name: (name.count("."), name))


def _methods(owner: str, thing: type, known: set[int]) -> Iterator[tuple[str, Any, list[str]]]:
    """Yield the public methods that a class has of its own, each object once."""
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
    if not isinstance(docstring, str) or docstring == type(thing).__doc__:  # an instance has its class's
        docstring = ""
    aliases = tuple(sorted(set(names) - {called}))
    return Target(called, kind, _signature(called, thing), inspect.cleandoc(docstring), aliases=aliases)


def _signature(called: str, thing: Any) -> str:  # noqa: ANN401 (any object)
    """Return how an object is called, as far as that is known, without what differs from one process to the next."""
    if inspect.ismodule(thing):
        return ""
    try:
        signature = inspect.signature(thing)
        ordered = [p.replace(default=_in_order(p.default)) for p in signature.parameters.values()]
        parameters = re.sub(r" at 0x[0-9a-f]+", "", str(signature.replace(parameters=ordered)))
    except Exception:  # written in C, or by someone who redefined what a signature is
        return ""
    return f"{'class' if inspect.isclass(thing) else 'def'} {called.rpartition('.')[2]}{parameters}"


def _in_order(default: object) -> object:
    """Return what is written as a default value is, but with the elements of a set in order."""
    if not isinstance(default, (set, frozenset)) or not default:
        return default
    elements = f"{{{', '.join(sorted(map(repr, default)))}}}"
    return _Written(elements if isinstance(default, set) else f"frozenset({elements})")


@dataclass(frozen=True)
class _Written:
    """A value as it is written."""

    text: str

    def __repr__(self) -> str:
        return self.text
