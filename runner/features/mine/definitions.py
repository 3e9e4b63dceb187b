"""Read benchmark definitions: a folder with a subfolder per suite, and a file of the targets of answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from runner.config.addresses import LocalPath
from runner.config.objects import ConfigError, describe_choices
from runner.datasets import files
from runner.datasets.base import DatasetError
from runner.datasets.files import SourceRecord
from runner.features.mine.base import Case, MiningInput
from runner.features.mine.extraction import CaseFiles, Suite, SuiteKind
from runner.features.mine.packages import find_targets
from runner.features.mine.targets import Targets, read_targets, read_yaml

PACKAGE = "package:"
"""The prefix of targets that are an installed package instead of a file."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Definitions:
    """Suites in the folder `definitions`, each a subfolder with a benchmark.yaml that has entries under `benchmarks`.

    `targets` is a YAML file, or `package:NAME` for an installed package. `kinds` maps the `benchmark_type` of an entry,
    or the name of its suite, to a kind. `suites` selects suites; null selects all. Code that entries name by path is
    searched for in the suite's folder, in `definitions` and in the folders above. `imports` is a JSON file of facts
    about missing code, by case and file; null means SUITE_imports.json in `definitions` or in the folder above.
    """

    access: ClassVar[Access] = Access(paths=("definitions", "targets"))

    definitions: LocalPath
    targets: LocalPath
    kinds: Mapping[str, SuiteKind]
    suites: list[str] | None = None
    imports: LocalPath | None = None
    exclude: list[str] = Field(default_factory=list)

    def load(self) -> MiningInput:
        """Load all suites; raises `DatasetError`, or `ConfigError` for a setting."""
        folder = Path(self.definitions).expanduser()
        if not folder.is_dir():
            raise ConfigError(f"source.definitions={self.definitions}: no such folder")
        files_of_suites = {file.parent.name: file for file in sorted(folder.glob("*/benchmark.y*ml"))}
        if not files_of_suites:
            raise ConfigError(f"source.definitions={self.definitions}: the folder contains no */benchmark.yaml")
        for suite in self.suites or []:
            if suite not in files_of_suites:
                raise ConfigError(f"source.suites={suite}: no such suite; {describe_choices(files_of_suites)}")
        entries = {suite: _load_entries(files_of_suites[suite]) for suite in self.suites or files_of_suites}
        if not any(entries.values()):
            raise ConfigError(f"source.definitions={self.definitions}: no suite has entries under 'benchmarks'")
        targets = self._load_targets()
        cases = [case for suite, own in entries.items() for case in self._cases(suite, own, targets, folder)]
        _check_ids(cases)
        return MiningInput(targets, cases)

    def _load_targets(self) -> Targets:
        if self.targets.startswith(PACKAGE):
            name = self.targets.removeprefix(PACKAGE)
            return find_targets(name, self.exclude, methods=True, setting=f"source.targets={PACKAGE}")
        path = Path(self.targets).expanduser()
        if not path.is_file():
            raise ConfigError(
                f"source.targets={self.targets}: no such file; for an installed package, write package:NAME"
            )
        return read_targets(path)

    def _cases(self, suite: str, entries: list[SourceRecord], targets: Targets, folder: Path) -> Iterator[Case]:
        code = CaseFiles([folder / suite, folder, *folder.resolve().parents], self._load_facts(suite, folder))
        by_kind: dict[str, list[SourceRecord]] = {}
        for entry in entries:
            kind = str(entry.fields.get("benchmark_type") or suite)
            by_kind.setdefault(kind if kind in self.kinds else suite, []).append(entry)
        for kind, own in by_kind.items():
            if kind in self.kinds:
                yield from self.kinds[kind].cases(Suite(suite, own, code), targets)
            else:
                fault = (
                    f"unknown kind of suite; the known kinds are {', '.join(self.kinds)}; add this one under "
                    "source.kinds"
                )
                yield from (Case(entry.identifier("id"), suite, str(entry.fields), fault=fault) for entry in own)

    def _load_facts(self, suite: str, folder: Path) -> dict[str, dict[str, Any]]:
        """Return the recorded facts about missing code, by its path."""
        usual = (place / f"{suite}_imports.json" for place in (folder, folder.resolve().parent))
        path = Path(self.imports).expanduser() if self.imports else next((p for p in usual if p.is_file()), None)
        if path is None:
            return {}
        if not path.is_file():
            raise ConfigError(f"source.imports={self.imports}: no such file")
        content = files.json_content(path)
        try:
            return {str(facts["path"]): facts for case in content.values() for facts in case.values()}  # type: ignore[attr-defined]  # what is no mapping raises
        except (AttributeError, KeyError, TypeError) as error:
            raise DatasetError(
                f"{path}: expected an object that maps cases to files, each with a 'path' ({error})"
            ) from None


def _load_entries(path: Path) -> list[SourceRecord]:
    content = read_yaml(path)
    entries = content.get("benchmarks") if isinstance(content, dict) else None
    if entries is None:
        raise DatasetError(f"{path}: the key 'benchmarks' with the list of entries is missing")
    if not isinstance(entries, list):
        raise DatasetError(f"{path}: 'benchmarks' is not a list of entries")
    return files.json_objects(path, "entry", entries)


def _check_ids(cases: list[Case]) -> None:
    seen: dict[str, str] = {}
    for case in cases:
        if case.id in seen:
            raise DatasetError(
                f"the id {case.id!r} occurs more than once, in {seen[case.id]} and {case.suite}; ids must be unique"
            )
        seen[case.id] = case.suite
