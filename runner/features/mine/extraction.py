"""Extract cases from the entries of a suite: the question and the names that answer it. Each kind of suite is a class.

A kind takes all entries of a suite at once, because how specific a name is depends on the other entries.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Protocol, runtime_checkable

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from runner.datasets.files import SourceRecord
from runner.features.mine.base import Case
from runner.features.mine.code import Code, code_from_facts, parse_code
from runner.features.mine.names import add_parents, find_names, find_quoted_names
from runner.features.mine.snippets import find_section
from runner.features.mine.targets import Targets


@dataclass(frozen=True)
class CaseFiles:
    """The code that entries name by path, or recorded facts about it (`facts`, by path).

    A path is searched for in each of the `folders`. In the first, which has the suite's benchmark.yaml, its trailing
    parts are searched for too, because a suite that was moved still has its files next to it.
    """

    folders: Sequence[Path]
    facts: Mapping[str, Mapping[str, Any]]

    def code(self, path: str) -> Code | None:
        """Return the imports and uses of a file, None if there is no such file; raises `DatasetError`."""
        if file := self._find(path):
            return parse_code(file.read_text(encoding="utf-8", errors="replace"), str(file))
        return code_from_facts(self.facts[path], path) if path in self.facts else None

    def text(self, path: str) -> str | None:
        """Return the text of a file, None if there is no such file."""
        file = self._find(path)
        return file.read_text(encoding="utf-8", errors="replace") if file else None

    def _find(self, path: str) -> Path | None:
        parts = PurePosixPath(path).parts
        own, others = self.folders[:1], self.folders[1:]
        beside = [folder.joinpath(*parts[start:]) for folder in own for start in (0, *range(1, len(parts) - 1))]
        return next((file for file in (*beside, *(folder / path for folder in others)) if file.is_file()), None)


@dataclass(frozen=True)
class Suite:
    """The entries of a suite that are of one kind, and the code that they name."""

    name: str
    entries: Sequence[SourceRecord]
    files: CaseFiles


@runtime_checkable
class SuiteKind(Protocol):
    """A kind of suite: settings that turn its entries into cases."""

    def cases(self, suite: Suite, targets: Targets) -> Iterator[Case]:
        """Yield a case for each entry; raises `DatasetError` for an invalid entry."""
        ...


@settings(frozen=True, config={"extra": "forbid"})
class NamedAnswers:
    """Questions whose answers name their targets: `answers`, each with `fully_qualified_class_name`."""

    access: ClassVar[Access] = Access()

    def cases(self, suite: Suite, targets: Targets) -> Iterator[Case]:
        """Yield the `question` of each entry, with the names of all its answers."""
        for entry in suite.entries:
            answers = [SourceRecord(f"{entry.place}{entry.number}, answer ", *a) for a in _answers(entry)]
            yield Case(
                id=entry.identifier("id"),
                suite=suite.name,
                query=entry.text("question").strip(),
                names=tuple(name for answer in answers for name in _names(answer)),
                answers=tuple(answer.text("answer") for answer in answers if "answer" in answer.fields),
                metadata=_metadata(entry),
                nameless="its answers have no fully_qualified_class_name",
            )


@settings(frozen=True, config={"extra": "forbid"})
class Imports:
    """Code to write or fix: its targets are inferred from the imports of the correct code.

    Not every import is a target: some base classes are imported nearly everywhere. The weight of a name is the sum of
    `mention` if the task mentions it, `use` if the code calls it or derives from it, and `rarity` times its rarity
    among the cases of the suite, log(n / df) / log(n). The name with the largest weight is the primary one; others
    count if their weight is at least `threshold`.
    """

    access: ClassVar[Access] = Access()

    mention: float = Field(default=0.6, ge=0)
    use: float = Field(default=0.2, ge=0)
    rarity: float = Field(default=0.2, ge=0)
    threshold: float = Field(default=0.6, ge=0)

    def cases(self, suite: Suite, targets: Targets) -> Iterator[Case]:
        """Yield the `description` of each entry, else its `name`, with names from `fixed_file`, else `test_file`."""
        codes = [_code(entry, suite.files) for entry in suite.entries]
        inside = [[name for name in code.imports if _is_inside(name, targets)] if code else [] for code in codes]
        frequency = Counter(target for names in inside for target in {_identity(name, targets) for name in names})
        for entry, code, names in zip(suite.entries, codes, inside, strict=True):
            task = " ".join(str(entry.fields.get(field) or "") for field in ("description", "name"))
            weights = {}
            for name in names if code else []:
                rarity = math.log(len(codes) / frequency[_identity(name, targets)]) / math.log(max(len(codes), 2))
                mentioned, used = _mentions(task, name.rpartition(".")[2]), bool(code and code.uses(name))
                weights[name] = round(self.mention * mentioned + self.use * used + self.rarity * rarity, 6)
            ordered = sorted(weights, key=lambda name: (not targets.resolve(name).targets, -weights[name], name))
            yield Case(
                id=entry.identifier("id"),
                suite=suite.name,
                query=(entry.text("description") if entry.fields.get("description") else entry.text("name")).strip(),
                names=tuple(n for i, n in enumerate(ordered) if not i or weights[n] >= self.threshold),
                candidates=tuple(ordered),
                metadata=_metadata(entry) | {"gold_inferred": True, "specificity": {n: weights[n] for n in ordered}},
                nameless=_describe_foreign("its code imports", code.imports if code else ()),
                fault="" if code else "neither fixed_file nor test_file exists",
            )


@settings(frozen=True, config={"extra": "forbid"})
class Options:
    """Multiple choice: `options`, the `correct_answer` and an `explanation`.

    The names in the correct option come first, then those in the explanation; if neither names a target, the classes
    that the question names are used. A name is dotted, in CamelCase or has an underscore. The code of a question is its
    `code_snippet`, or a `section` of a `file` in its `code_snippet_ref`; if a question about code has no code, it has a
    fault.
    """

    access: ClassVar[Access] = Access()

    def cases(self, suite: Suite, targets: Targets) -> Iterator[Case]:
        """Yield the `question` of each entry, with its code and the names of the correct answers."""
        for entry in suite.entries:
            right, question = _right_option(entry), entry.text("question").strip()
            mentioned = find_names(f"{right}\n{entry.fields.get('explanation') or ''}")
            names = tuple(name for name in mentioned if _is_inside(name, targets))
            source: dict[str, Any] = {}
            is_answered = any(len(targets.resolve(name).targets) == 1 for name in names)
            if not is_answered and (classes := _classes(question, targets)):
                names, source = classes, {"gold_from": "question"}
            code, fault = _snippet(entry, suite.files)
            if not fault and not code and _ABOUT_CODE.search(question) and not _HAS_CODE.search(question):
                fault = "the question is about code, but has neither code_snippet nor code_snippet_ref"
            yield Case(
                id=entry.identifier("id"),
                suite=suite.name,
                query="\n\n".join(filter(None, (question, code))),
                names=names,
                answers=(right,),
                metadata=_metadata(entry) | {"gold_inferred": True} | source,
                nameless=_describe_foreign("its correct option and explanation name", mentioned),
                fault=fault,
            )


_ABOUT_CODE = re.compile(
    r"\b(?:following|above|below|given|provided|this)\s+(?:[\w-]+\s+){0,2}(?:code|snippet|script)\b"
    r"|\b(?:code|snippet|script)\s+(?:above|below|shown)\b",
    re.IGNORECASE,
)
_HAS_CODE = re.compile(r"```|\n(?: {4}|\t)\S|\n\s*(?:import|from|def|class|return)\s")


def _snippet(entry: SourceRecord, files: CaseFiles) -> tuple[str, str]:
    """Return the code of an entry, "" if it has none, and the fault if its code is missing, else ""."""
    if code := str(entry.fields.get("code_snippet") or "").strip():
        return code, ""
    reference = entry.fields.get("code_snippet_ref")
    if reference is None:
        return "", ""
    named = {"file": reference} if isinstance(reference, str) else reference
    if not isinstance(named, Mapping) or not isinstance(named.get("file"), str):
        raise entry.fault(
            f"'code_snippet_ref' is {reference!r:.60}; it must be a file, or an object with 'file' and 'section'"
        )
    path, section = named["file"], named.get("section")
    text = files.text(path)
    if text is None:
        return "", f"the code is missing: no file {path}"
    code = text.strip("\n") if section is None else find_section(text, str(section)) or ""
    return (code, "") if code.strip() else ("", f"the code is missing: no section {section} in {path}")


def _classes(question: str, targets: Targets) -> tuple[str, ...]:
    """Return the names in a question that match exactly one class."""
    names = dict.fromkeys([*add_parents(find_names(question)), *find_quoted_names(question)])
    resolved = {name: targets.resolve(name).targets for name in names}
    return tuple(name for name, places in resolved.items() if len(places) == 1 and targets.is_class(places[0]))


def _answers(entry: SourceRecord) -> Iterator[tuple[int, Mapping[str, Any]]]:
    answers = entry.value("answers")
    for number, answer in enumerate(answers if isinstance(answers, list) else [answers], start=1):
        if not isinstance(answer, dict):
            raise entry.fault(f"'answers' must be a list of objects; it contains {answer!r:.60}")
        yield number, answer


def _names(answer: SourceRecord) -> list[str]:
    names = answer.fields.get("fully_qualified_class_name") or []
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise answer.fault(f"'fully_qualified_class_name' is {names!r:.60}; it must be a name or a list of names")
    return listed


def _code(entry: SourceRecord, files: CaseFiles) -> Code | None:
    paths = [str(entry.fields[field]) for field in ("fixed_file", "test_file") if entry.fields.get(field)]
    return next((code for path in paths if (code := files.code(path))), None)


def _right_option(entry: SourceRecord) -> str:
    """Return the correct option, given by its letter, its number from 0, or its text."""
    options, right = entry.value("options"), entry.value("correct_answer")
    if isinstance(options, list):
        lettered = {chr(ord("A") + number): option for number, option in enumerate(options)}
        options = lettered | {str(number): option for number, option in enumerate(options)}
    if not isinstance(options, dict):
        raise entry.fault(
            f"'options' is {options!r:.60}; it must be an object that maps letters to options, or a list of options"
        )
    texts = {str(letter): str(option) for letter, option in options.items()}
    if str(right) in texts:
        return texts[str(right)]
    if str(right) in texts.values():
        return str(right)
    raise entry.fault(f"'correct_answer' is {right!r:.60}; it must be one of the options {', '.join(texts)}")


def _describe_foreign(source: str, names: Iterable[str]) -> str:
    """Return why a source of names gave none."""
    listed = ", ".join(names)
    return f"{source} none of the targets, only {listed}" if listed else f"{source} nothing"


def _is_inside(name: str, targets: Targets) -> bool:
    """Return whether a name is in the common package of the targets, or is a name of a target."""
    return bool(targets.root and f"{name}.".startswith(targets.root)) or targets.resolve(name).way != "unresolved"


def _identity(name: str, targets: Targets) -> object:
    """Return the targets of a name, else the name itself, so that two names of one target are equal."""
    return targets.resolve(name).targets or name


def _mentions(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _metadata(entry: SourceRecord) -> dict[str, Any]:
    return {name: entry.fields[name] for name in ("category", "benchmark_type") if name in entry.fields}
