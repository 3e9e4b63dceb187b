"""Targets: the classes, functions and modules of a program that correct answers name, each a document.

Names are resolved exactly, never guessed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from retrievers.base import Corpus
from runner.config.yaml_files import YamlError, parse_yaml
from runner.datasets import files
from runner.datasets.base import DatasetError

Way = Literal["exact", "alias", "name", "ambiguous", "unresolved"]
"""How a name was resolved: by a target's id, an alias, or a last name that only one target has; or not at all."""


_CLASS, _MODULE = "CLASS", "MODULE"


@dataclass(frozen=True)
class Target:
    """A document: `id` is its full name, `name` the last part of it, `kind` its type, `text` its content.

    Without a docstring, the text is name and signature only; no description is invented.
    """

    id: str
    kind: str
    signature: str = ""
    docstring: str = ""
    members: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the last part of the id."""
        return self.id.rpartition(".")[2]

    @property
    def text(self) -> str:
        """Return the full name, the signature, the docstring, and the descriptions of its members."""
        return "\n\n".join(filter(None, ("\n".join(filter(None, (self.id, self.signature))), self.about)))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the id and the aliases."""
        return self.id, *self.aliases

    @property
    def is_name_only(self) -> bool:
        """Return whether the document says nothing beyond the name."""
        return not (self.signature or self.about)

    @property
    def about(self) -> str:
        """Return the docstring and the descriptions of its members."""
        return "\n\n".join(filter(None, (self.docstring, self.members)))


@dataclass(frozen=True)
class Resolution:
    """The result of resolving a name: the positions of one target, of several if it is ambiguous, or of none."""

    name: str
    way: Way
    targets: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Targets:
    """All targets, with unique ids, and notes for the user about their source."""

    all: Sequence[Target]
    notes: Sequence[str] = field(default=())

    def __len__(self) -> int:
        return len(self.all)

    @cached_property
    def corpus(self) -> Corpus:
        """Return the targets as documents, their names as titles."""
        return Corpus(
            ids=[target.id for target in self.all],
            texts=[target.text for target in self.all],
            titles=[target.name for target in self.all],
            metadata=[
                {"type": target.kind, "aliases": list(target.aliases), "docstring": bool(target.docstring)}
                for target in self.all
            ],
        )

    @cached_property
    def root(self) -> str:
        """Return the common package of all targets with a final dot, "" if they have none."""
        names = [target.id.split(".")[:-1] for target in self.all]
        same = takewhile(lambda parts: len(set(parts)) == 1, zip(*names, strict=False))
        return "".join(f"{parts[0]}." for parts in same)

    def resolve(self, name: str) -> Resolution:
        """Resolve a name: as an id, else as an alias, else as a last name that only one target has.

        A single word in lower case may be a parameter, so it never matches the last name of a module. The last name of
        a full name only counts within the common package of the targets: the same name in another package is another
        object.
        """
        if name in self._ids:
            return Resolution(name, "exact", (self._ids[name],))
        if name in self._aliases:
            return _one_of("alias", name, self._aliases[name])
        if "." in name and not name.startswith(self.root):
            return Resolution(name, "unresolved")
        named = self._names.get(name.rpartition(".")[2], [])
        if "." not in name and name == name.lower():
            named = [position for position in named if not self._is_module(position)]
        return _one_of("name", name, named)

    def find_relatives(self, position: int) -> frozenset[int]:
        """Return the targets that contain a target or are its members, at any depth."""
        names = self.all[position].names
        around = (self.resolve(outer) for name in names for outer in _list_outer(name))
        return frozenset(
            [
                *(place for outer in around if outer.way in ("exact", "alias") for place in outer.targets),
                *(place for name in names for place in self._members.get(name, ())),
            ]
        )

    def is_class(self, position: int) -> bool:
        """Return whether a target is a class, by its kind or, without one, by the spelling of its name."""
        target = self.all[position]
        return target.kind.upper() == _CLASS if target.kind else target.name[:1].isupper()

    def _is_module(self, position: int) -> bool:
        target = self.all[position]
        return target.kind.upper() == _MODULE or (target.name == target.name.lower() and target.id in self._parents)

    @cached_property
    def _parents(self) -> frozenset[str]:
        """Return the names of everything that contains a target."""
        return frozenset(target.id.rpartition(".")[0] for target in self.all)

    @cached_property
    def _members(self) -> Mapping[str, Sequence[int]]:
        """Return the positions of everything that is within a name, at any depth."""
        every = ((i, name) for i, target in enumerate(self.all) for name in target.names)
        return _positions((outer, i) for i, name in every for outer in _list_outer(name))

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {target.id: position for position, target in enumerate(self.all)}

    @cached_property
    def _aliases(self) -> Mapping[str, Sequence[int]]:
        return _positions((alias, i) for i, target in enumerate(self.all) for alias in target.aliases)

    @cached_property
    def _names(self) -> Mapping[str, Sequence[int]]:
        every = ((i, name) for i, target in enumerate(self.all) for name in target.names)
        return _positions((name.rpartition(".")[2], i) for i, name in every)


def _list_outer(name: str) -> list[str]:
    """Return the names that contain a full name: of `a.b.C`, `a` and `a.b`."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def _positions(pairs: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    positions: defaultdict[str, dict[int, None]] = defaultdict(dict)
    for name, position in pairs:
        positions[name][position] = None
    return {name: list(own) for name, own in positions.items()}


def _one_of(way: Way, name: str, positions: Sequence[int]) -> Resolution:
    if len(positions) == 1:
        return Resolution(name, way, tuple(positions))
    return Resolution(name, "ambiguous" if positions else "unresolved", tuple(positions))


def read_targets(path: Path) -> Targets:
    """Read targets from a YAML or JSON file: a list, or one under `targets`; raises `DatasetError`.

    Targets with the same id or alias are merged: the first one wins, and the others fill its empty fields.
    """
    content = read_yaml(path)
    listed = content.get("targets") if isinstance(content, dict) else content
    if not isinstance(listed, list) or not listed:
        raise DatasetError(f"{path}: expected a list of targets, at the top level or under 'targets'")
    by_id: dict[str, Target] = {}
    for record in files.json_objects(path, "target", listed):
        target = _target(record)
        known = by_id.get(target.id)
        by_id[target.id] = _merge(known, target) if known else target
    for target in list(by_id.values()):
        for twin in (by_id.pop(alias) for alias in target.aliases if alias != target.id and alias in by_id):
            by_id[target.id] = _merge(by_id.get(target.id, target), twin)
    repeats = len(listed) - len(by_id)
    notes = (
        [f"{path}: merged {repeats:,} of {len(listed):,} targets that share an id or alias with another"]
        if repeats
        else []
    )
    return Targets(list(by_id.values()), notes)


def read_yaml(path: Path) -> Any:  # noqa: ANN401 (whatever the file holds)
    """Return the content of a YAML file; raises `DatasetError` with the line and column of an error."""
    with files.open_file(path) as file:
        content = file.read()
    try:
        return parse_yaml(content, str(path))
    except YamlError as error:
        raise DatasetError(str(error)) from None


def _target(record: files.SourceRecord) -> Target:
    fields = record.fields
    signatures = (_text(fields, name) for name in ("signature", "constructor_signature"))
    members = (member for name in ("properties", "methods") for member in _list_in(record, name))
    return Target(
        id=record.identifier("id", "fqn"),
        kind=_text(fields, "type"),
        signature="\n".join(filter(None, signatures)),
        docstring=_text(fields, "docstring"),
        members="\n".join(map(_member, members)),
        aliases=tuple(map(str, _list_in(record, "aliases"))),
    )


def _list_in(record: files.SourceRecord, name: str) -> list[Any]:
    listed = record.fields.get(name) or []
    if not isinstance(listed, list):
        raise record.fault(f"{name!r} is {listed!r:.60}; it must be a list")
    return listed


def _text(fields: Mapping[str, Any], name: str) -> str:
    return str(fields.get(name) or "").strip()


def _member(member: Any) -> str:  # noqa: ANN401 (whatever the file holds)
    """Return the signature of a member and the first line of its docstring."""
    if not isinstance(member, dict):
        return str(member)
    summary = _text(member, "docstring").partition("\n")[0]
    return " ".join(filter(None, (_text(member, "signature"), summary)))


def _merge(known: Target, other: Target) -> Target:
    return replace(
        known,
        signature=known.signature or other.signature,
        docstring=known.docstring or other.docstring,
        members=known.members or other.members,
        aliases=tuple(dict.fromkeys((*known.aliases, *other.aliases))),
    )
