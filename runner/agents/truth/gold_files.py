"""How files are named in the definition of a task: in JSON of many shapes, in patches, in prose.

It knows nothing of where the definition lies, nor which of its files is to be trusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from runner.agents.runs.records import text_within, within

_LONGEST_PATH = 1024  # a longer text is no path
_DEEPEST_LIST = 4  # lists of lists of files are few levels deep
_PATH_FIELDS = ("path", "file", "file_path", "canonical_path")

FIELDS: Sequence[Sequence[str]] = (
    ("files",),
    ("required_files",),
    ("file_references",),
    ("buggy_files",),
    ("entries", "steps"),
    ("fix_files",),
    ("expected_files", "expected_file"),
    ("canonical_path",),
)
"""The fields that name the gold, the surest first: the files are those of the first line that has any."""

SUFFICIENT = "sufficient_files"
"""The field with files of which any one is enough: alternatives, so that none of them is required."""

_OF_FILES = re.compile(r"(?:^|_)files?(?:_|$)")
_NOT_GOLD = ("context_files", "scoring_evidence", "repos", "repositories", SUFFICIENT)
"""What the agent was given, what a grader looks for, where repositories are cloned to, and alternatives."""

_FILE_NAME = re.compile(r"^[\w@./-](?:.*/)?[^/]*\.\w+$")
_LEFT_ALONE = re.compile(
    r"(?:^|_)(?:not|non|no|never|live|alive|unrelated|unaffected|irrelevant|untouched|unchanged|safe|valid|false_positives?"
    r"|distractors?|decoys?|traps?|red_herrings?|exclu(?:de|des|ded|sions?)|ignored?|avoid|forbidden|keep|preserved?"
    r"|outputs?|deliverables?)(?:_|$)",
    re.I,
)
"""Words in the name of a field that lists what the agent must leave alone, or is asked to write."""


@dataclass(frozen=True)
class GoldFile:
    """A file that is evidence for a task. `repo` is None where the definition names none apart from the path."""

    path: str
    repo: str | None = None


@dataclass(frozen=True)
class GoldSymbol:
    """A function, class or other name that is evidence, and the file where it is."""

    path: str
    name: str
    repo: str | None = None


@dataclass(frozen=True)
class GoldChunk:
    """The lines `start` to `end`, both counted from 1 and both within, of a file; `note` says what is there."""

    path: str
    start: int
    end: int
    note: str | None = None


@dataclass(frozen=True)
class Found:
    """The files that a source names, each once and in its order, and how many of its entries name none."""

    files: Sequence[GoldFile] = ()
    unusable: int = 0


def files_in(value: object) -> Found:
    """Return the files that a list of texts or objects, one of them, or an object from repository to list names."""
    entries = list(_entries(value, repo=None))
    files = tuple(dict.fromkeys(entry for entry in entries if entry))
    return Found(files, sum(entry is None for entry in entries))


def named_files(record: object) -> Found:
    """Return the files of a ground truth in JSON: a list, or an object with one of the `FIELDS`.

    Without any of these, they are the files of the records in its lists, whatever those are called, such as
    `dead_code[].file`; lists of what must be left alone do not count.
    """
    if isinstance(record, list):
        return files_in(record)
    for fields in FIELDS:
        found = files_in([within(record, name) for name in fields if within(record, name) is not None])
        if found.files:
            return found
    return Found(files_in([*_records_with_files(record)]).files)


def sufficient_files(record: object) -> Found:
    """Return the files of which any one is enough, as a ground truth in JSON lists them."""
    return files_in(within(record, SUFFICIENT) or [])


def _records_with_files(value: object, depth: int = 0) -> Iterator[object]:
    """Yield the records with the path of a file that stand in lists at any place of a ground truth."""
    if depth > _DEEPEST_LIST:
        return
    if isinstance(value, Mapping):
        for name, below in value.items():
            if isinstance(below, (list, Mapping)) and name not in _NOT_GOLD and not _LEFT_ALONE.search(name):
                yield from _records_with_files(below, depth + 1)
    elif isinstance(value, list):
        for entry in value:
            if isinstance(entry, Mapping) and _names_a_file(entry):
                yield entry
            elif isinstance(entry, (list, Mapping)):
                yield from _records_with_files(entry, depth + 1)


def _names_a_file(record: Mapping[str, object]) -> bool:
    """Return whether a record has the path of a file: `path` alone may also be a folder, or a place in a document."""
    path = _path_of(record)
    is_sure = any(isinstance(record.get(field), str) for field in _PATH_FIELDS if field != "path")
    return path is not None and (is_sure or _FILE_NAME.search(path) is not None)


def told_files(record: object) -> Found:
    """Return the files of an answer in JSON that has none of the `FIELDS` nor a list of records with files.

    They are in fields whose names speak of files, at the top or in the answer itself, or in the answer's prose.
    """
    answer = within(record, "ground_truth")
    found = files_in([*_speaking_of_files(record), *_speaking_of_files(answer)])
    likely = tuple(file for file in found.files if re.fullmatch(r"\S*[./]\S*", file.path))
    return Found(likely) if likely or not isinstance(answer, str) else files_in(paths_in(answer))


def _speaking_of_files(record: object) -> Iterator[object]:
    for name, value in record.items() if isinstance(record, Mapping) else ():
        if name in _NOT_GOLD or _LEFT_ALONE.search(name):
            continue
        is_entry = any(isinstance(within(value, field), str) for field in _PATH_FIELDS)
        if is_entry or (_OF_FILES.search(name) and isinstance(value, (str, list, dict))):
            yield value


def _entries(value: object, repo: str | None, depth: int = 0) -> Iterator[GoldFile | None]:
    if isinstance(value, list) and depth < _DEEPEST_LIST:
        for entry in value:
            yield from _entries(entry, repo, depth + 1)
    elif isinstance(value, Mapping) and value and all(isinstance(entry, list) for entry in value.values()):
        for name, entries in value.items():
            yield from _entries(entries, name, depth + 1)
    else:
        path = _path_of(value)
        yield GoldFile(path, text_within(value, "repo") or repo) if path else None


def _path_of(value: object) -> str | None:
    """Return the path of an entry. One that climbs is none: whatever it names lies in no repository."""
    if isinstance(value, Mapping):
        value = next((value[field] for field in _PATH_FIELDS if isinstance(value.get(field), str)), None)
    if not isinstance(value, str):
        return None
    path = value.strip()
    usable = path and len(path) <= _LONGEST_PATH and path.isprintable() and "://" not in path
    return path if usable and ".." not in re.split(r"[/\\]", path) else None


def symbols_in(value: object) -> Sequence[GoldSymbol]:
    """Return the symbols of a list of objects with a file and a symbol."""
    found: list[GoldSymbol] = []
    for entry in value if isinstance(value, list) else ():
        if (path := _path_of(entry)) and (name := text_within(entry, "symbol")):
            found.append(GoldSymbol(path, name, text_within(entry, "repo")))
    return tuple(dict.fromkeys(found))


def chunks_in(value: object) -> Sequence[GoldChunk]:
    """Return the line ranges of a list of objects with a file and lines; one with a single line is that line."""
    found: list[GoldChunk] = []
    for entry in value if isinstance(value, list) else ():
        start, end = within(entry, "line_start"), within(entry, "line_end")
        note = text_within(entry, "annotation") or text_within(entry, "defect_type")
        if chunk := chunk_of(entry, start, start if end is None else end, note):
            found.append(chunk)
    return tuple(dict.fromkeys(found))


def chunk_of(entry: object, start: object, end: object, note: str | None = None) -> GoldChunk | None:
    """Return a line range of the file that an entry names, None where it names none or its lines are no lines."""
    path = _path_of(entry)
    if not path or type(start) is not int or type(end) is not int or not 1 <= start <= end:
        return None
    return GoldChunk(path, start, end, note)


_GIT_HEADER = re.compile(r'^diff --git ("?)a/(.+?)\1 ("?)b/(.+?)\3$')
_SAME_PATH = re.compile(r"^diff --git a/(.+) b/\1$")
_OCTAL = re.compile(r"\\([0-7]{3})")


def patched_files(text: str) -> Found:
    """Return the files that the unified diffs in a text change, add or remove; both names of one that was renamed.

    A removed line that begins with two hyphens looks like a header: only a pair of --- and +++ lines is one.
    """
    paths: list[str] = []
    for line, following in pairwise([*text.splitlines(), ""]):
        if same := _SAME_PATH.match(line):
            paths.append(same[1])
        elif header := _GIT_HEADER.match(line):
            paths += [_unquoted(header[2]), _unquoted(header[4])]
        elif line.startswith("--- ") and following.startswith("+++ "):
            old, new = (_unquoted(name[4:].split("\t")[0].strip().strip('"')) for name in (line, following))
            prefixed = (old.startswith("a/") or old == "/dev/null") and (new.startswith("b/") or new == "/dev/null")
            paths += [name[2:] if prefixed else name for name in (old, new) if name != "/dev/null"]
    return files_in(paths)


def _unquoted(path: str) -> str:
    """Return a path as it is on disk: git writes bytes that are not ASCII as octal escapes."""
    if not _OCTAL.search(path):
        return path
    octets = _OCTAL.sub(lambda match: chr(int(match[1], 8) & 0xFF), path)
    try:
        return octets.encode("latin-1").decode()
    except UnicodeError:
        return path


_PATH = re.compile(
    r"(?<![\w./:@~-])(?P<root>/(?:workspace|repo_full|testbed|app)/)?"
    r"(?P<path>(?:[\w@+][\w@.+-]*/)+[\w@.+-]*\.[A-Za-z][A-Za-z0-9]{0,9})(?![\w/])"
)
_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})/")
_NO_PATHS = ("node_modules/", "path/to/", "github.com/")  # what is installed, placeholders, addresses


def paths_in(prose: str) -> list[str]:
    """Return what looks like the path of a file in prose or a script: folders, and a name with an extension.

    Absolute paths count where an agent's checkout lies, without that root; web addresses do not.
    """
    found = (match["path"] for match in _PATH.finditer(_VARIABLE.sub("", prose)))
    return list(dict.fromkeys(path for path in found if not any(part in path for part in _NO_PATHS)))
