"""Identify the code that decides what settings do, for the keys of a store.

The modules of this program declare a version of their results, so that they can be moved and rewritten. The code of
plug-ins is hashed; their modules are not imported, only their sources are read.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, resolve_name
from pathlib import Path

from retrievers.source import read_source

_INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Names of folders in which libraries are installed, whether a user's own, the system's or those of Bazel."""

_PROGRAM = frozenset({"retrievers", "runner"})
"""The packages of this program."""

_read = cache(read_source)


@cache
def hash_code(module: str) -> str:
    """Return a hash of a module's code, "" for one without a file; comments, docstrings and formatting do not count."""
    file, _ = _place_of(module)
    return _read(file).digest if file else ""


def is_own(module: str) -> bool:
    """Return whether a module belongs to this program."""
    return module.partition(".")[0] in _PROGRAM


@cache
def modules_behind(module: str, is_leaf: Callable[[str], bool] = is_own) -> frozenset[str]:
    """Return a module and all modules that it imports, directly or indirectly, without libraries.

    What a leaf imports is left out; by default, the modules of this program are leaves. The result has the modules of
    the module's own package and any others that are not installed as libraries, with the packages that contain them.
    Imports within functions count; imports only for type checkers and imports by computed names do not.
    """
    package = module.partition(".")[0]
    behind, todo = {module}, [module]
    while todo:
        for name in _imports(todo.pop()) - behind:
            if name.partition(".")[0] == package or is_own(name) or not _is_library(name):
                behind.add(name)
                todo += [] if is_leaf(name) else [name]
    return frozenset(behind)


@cache
def _imports(module: str) -> frozenset[str]:
    """Return the modules, of those with a file, that a module imports: its packages and those in its statements."""
    file, folders = _place_of(module)
    package = module if folders else module.rpartition(".")[0]
    names = {module.rsplit(".", depth)[0] for depth in range(1, module.count(".") + 1)}
    for statement in _read(file).imports if file else ():
        with suppress(ImportError):  # a relative import beyond the top package, which would fail at run time
            origin = resolve_name(statement.origin, package)
            names.add(origin)
            if _place_of(origin)[1]:
                names.update(f"{origin}.{name}" for name in statement.names)
    return frozenset(name for name in names if _place_of(name)[0] is not None)


def _place_of(module: str) -> tuple[Path | None, Sequence[str]]:
    """Return the file of a module, None without one, and the folders of its modules if it is a package."""
    if (loaded := sys.modules.get(module)) is not None:
        file = getattr(loaded, "__file__", None)
        return Path(file) if file else None, list(getattr(loaded, "__path__", ()))
    parent = module.rpartition(".")[0]
    folders = _place_of(parent)[1] if parent else []
    if parent and not folders:
        return None, []
    # Only the last part of the name is used: for a full name, a namespace package would look for its parent among the
    # loaded modules.
    spec = PathFinder.find_spec(module.rpartition(".")[2], folders) if parent else find_spec(module)
    if spec is None:
        return None, []
    return Path(spec.origin) if spec.has_location and spec.origin else None, list(spec.submodule_search_locations or ())


@cache
def _is_library(module: str) -> bool:
    """Return whether a module is installed or part of Python, as opposed to under development by the user."""
    if module == "__main__" or module.partition(".")[0] in sys.stdlib_module_names:
        return True
    file, _ = _place_of(module)
    if file is None or not _INSTALLED.isdisjoint(file.parts) or any(map(file.is_relative_to, _library_places())):
        return True
    depth = module.count(".") + (file.stem == "__init__")
    return _has_distributions(file.parents[min(depth, len(file.parents) - 1)])


@cache
def _has_distributions(folder: Path) -> bool:
    """Return whether pip installed into a folder, judged by the metadata that it leaves there."""
    return next(folder.glob("*.dist-info"), None) is not None


@cache
def _library_places() -> frozenset[str]:
    paths = sysconfig.get_paths()
    return frozenset(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def code_of(*made_by: object) -> dict[str, str]:
    """Return what identifies the code that decides the results of modules, given by name, and of settings, by module.

    A module of this program is identified by its `RESULTS_VERSION`, and left out if it declares none. For another one,
    the code of all that is behind it is hashed (`modules_behind`). Settings stand for the modules of their class, of
    the classes that it inherits from, and of the settings within them.
    """
    modules = {name for name in made_by if isinstance(name, str)}
    todo = [settings for settings in made_by if not isinstance(settings, str)]
    while todo:
        value = todo.pop()
        if is_dataclass(value):
            kind: type = type(value)
            modules |= {kind.__module__, *(base.__module__ for base in kind.__mro__ if is_own(base.__module__))}
            todo += [getattr(value, field.name) for field in fields(value)]
        elif isinstance(value, Mapping):
            todo += value.values()
        elif isinstance(value, (list, tuple)):
            todo += value
    behind: set[str] = set().union(*({name} if is_own(name) else modules_behind(name) for name in modules))
    code = {name: find_version(name) if is_own(name) else hash_code(name) for name in sorted(behind)}
    return {name: identity for name, identity in code.items() if identity is not None}


@cache
def find_version(module: str) -> str | None:
    """Return the version of its results that a module of this program declares, None if it declares none."""
    version: str | None = getattr(import_module(module), "RESULTS_VERSION", None)
    return version
