"""Parse the names of files in the definition of a task: in JSON of many shapes, in patches, in prose.

Which of the files to trust is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from runner.features.traces.runs.records import get_nested, get_text

_LONGEST_PATH = 1024  # a longer text is not a path
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
    ("spans",),
)
"""The fields that name the gold, the most reliable first: the first line with any files gives all of them."""

SUFFICIENT = "sufficient_files"
"""The field with alternatives: any one of these files is enough, so none of them is required."""

_OF_FILES = re.compile(r"(?:^|_)files?(?:_|$)")
_NOT_GOLD = ("context_files", "scoring_evidence", "repos", "repositories", SUFFICIENT)
"""Files given to the agent, texts that a grader looks for, repositories to clone, and alternatives."""

_FILE_NAME = re.compile(r"^[\w@./-](?:.*/)?[^/]*\.\w+$")
_LEFT_ALONE = re.compile(
    r"(?:^|_)(?:not|non|no|never|live|alive|unrelated|unaffected|irrelevant|untouched|unchanged|safe|valid|false_positives?"
    r"|distractors?|decoys?|traps?|red_herrings?|exclu(?:de|des|ded|sions?)|ignored?|avoid|forbidden|keep|preserved?"
    r"|outputs?|deliverables?)(?:_|$)",
    re.I,
)
"""Words in the names of fields that list what the agent must leave alone, or is asked to write."""


@dataclass(frozen=True)
class GoldFile:
    """A file that is evidence for a task. `repo` is None if the definition gives none apart from the path."""

    path: str
    repo: str | None = None


@dataclass(frozen=True)
class GoldSymbol:
    """A function, class or other symbol that is evidence, and its file."""

    path: str
    name: str
    repo: str | None = None


@dataclass(frozen=True)
class GoldChunk:
    """The lines `start` to `end` of a file, counted from 1, both included; `note` describes them."""

    path: str
    start: int
    end: int
    note: str | None = None


@dataclass(frozen=True)
class GoldFiles:
    """The distinct files that a source names, in order, and how many of its entries name none."""

    files: Sequence[GoldFile] = ()
    unusable: int = 0


def parse_files(value: object) -> GoldFiles:
    """Return the files of a list of strings or objects, a single one, or an object from repository to list."""
    entries = list(_iter_entries(value, repo=None))
    files = tuple(dict.fromkeys(entry for entry in entries if entry))
    return GoldFiles(files, sum(entry is None for entry in entries))


def parse_gold(record: object) -> GoldFiles:
    """Return the files of a ground truth in JSON: a list, or an object with one of the `FIELDS`.

    Without any of these, the files are those of the records in any of its lists, such as `dead_code[].file`; lists of
    what must be left alone do not count.
    """
    if isinstance(record, list):
        return parse_files(record)
    for fields in FIELDS:
        gold = parse_files([get_nested(record, name) for name in fields if get_nested(record, name) is not None])
        if gold.files:
            return gold
    return GoldFiles(parse_files([*_iter_records(record)]).files)


def parse_alternatives(record: object) -> GoldFiles:
    """Return the alternatives of a ground truth in JSON: files of which any one is enough."""
    return parse_files(get_nested(record, SUFFICIENT) or [])


def _iter_records(value: object, depth: int = 0) -> Iterator[object]:
    """Yield the records with a file's path from lists anywhere in a ground truth."""
    if depth > _DEEPEST_LIST:
        return
    if isinstance(value, Mapping):
        for name, below in value.items():
            if isinstance(below, (list, Mapping)) and name not in _NOT_GOLD and not _LEFT_ALONE.search(name):
                yield from _iter_records(below, depth + 1)
    elif isinstance(value, list):
        for entry in value:
            if isinstance(entry, Mapping) and _names_file(entry):
                yield entry
            elif isinstance(entry, (list, Mapping)):
                yield from _iter_records(entry, depth + 1)


def _names_file(record: Mapping[str, object]) -> bool:
    """Return whether a record has a file's path: `path` alone may also mean a folder, or a place in a document."""
    path = _find_path(record)
    is_sure = any(isinstance(record.get(field), str) for field in _PATH_FIELDS if field != "path")
    return path is not None and (is_sure or _FILE_NAME.search(path) is not None)


def parse_answer(record: object) -> GoldFiles:
    """Return the files of an answer in JSON that has neither any of the `FIELDS` nor lists of records with files.

    They are in fields named after files, at the top level or in the answer itself, or in the prose of the answer.
    """
    answer = get_nested(record, "ground_truth")
    gold = parse_files([*_iter_file_fields(record), *_iter_file_fields(answer)])
    likely = tuple(file for file in gold.files if re.fullmatch(r"\S*[./]\S*", file.path))
    return GoldFiles(likely) if likely or not isinstance(answer, str) else parse_files(find_paths(answer))


def _iter_file_fields(record: object) -> Iterator[object]:
    for name, value in record.items() if isinstance(record, Mapping) else ():
        if name in _NOT_GOLD or _LEFT_ALONE.search(name):
            continue
        is_entry = any(isinstance(get_nested(value, field), str) for field in _PATH_FIELDS)
        if is_entry or (_OF_FILES.search(name) and isinstance(value, (str, list, dict))):
            yield value


def _iter_entries(value: object, repo: str | None, depth: int = 0) -> Iterator[GoldFile | None]:
    if isinstance(value, list) and depth < _DEEPEST_LIST:
        for entry in value:
            yield from _iter_entries(entry, repo, depth + 1)
    elif isinstance(value, Mapping) and value and all(isinstance(entry, list) for entry in value.values()):
        for name, entries in value.items():
            yield from _iter_entries(entries, name, depth + 1)
    else:
        path = _find_path(value)
        yield GoldFile(path, get_text(value, "repo") or repo) if path else None


def _find_path(value: object) -> str | None:
    """Return the path of an entry, None for one with `..`, which lies outside any repository."""
    if isinstance(value, Mapping):
        value = next((value[field] for field in _PATH_FIELDS if isinstance(value.get(field), str)), None)
    if not isinstance(value, str):
        return None
    path = value.strip()
    usable = path and len(path) <= _LONGEST_PATH and path.isprintable() and "://" not in path
    return path if usable and ".." not in re.split(r"[/\\]", path) else None


def parse_symbols(value: object) -> Sequence[GoldSymbol]:
    """Return the symbols of a list of objects with a file and a symbol."""
    symbols: list[GoldSymbol] = []
    for entry in value if isinstance(value, list) else ():
        if (path := _find_path(entry)) and (name := get_text(entry, "symbol")):
            symbols.append(GoldSymbol(path, name, get_text(entry, "repo")))
    return tuple(dict.fromkeys(symbols))


def parse_chunks(value: object) -> Sequence[GoldChunk]:
    """Return the line ranges of a list of objects with a file and lines; an object may have a single line.

    A gold span has `lines`, the first and the last, as in `dataset.gold=spans`.
    """
    chunks: list[GoldChunk] = []
    for entry in value if isinstance(value, list) else ():
        start, end = get_nested(entry, "line_start"), get_nested(entry, "line_end")
        lines = get_nested(entry, "lines")
        if start is None and isinstance(lines, list) and len(lines) == 2:
            start, end = lines
        note = get_text(entry, "annotation") or get_text(entry, "defect_type")
        if chunk := parse_chunk(entry, start, start if end is None else end, note):
            chunks.append(chunk)
    return tuple(dict.fromkeys(chunks))


def parse_chunk(entry: object, start: object, end: object, note: str | None = None) -> GoldChunk | None:
    """Return a line range of the file that an entry names, None without a file or valid lines."""
    path = _find_path(entry)
    if not path or type(start) is not int or type(end) is not int or not 1 <= start <= end:
        return None
    return GoldChunk(path, start, end, note)


_GIT_HEADER = re.compile(r'^diff --git ("?)a/(.+?)\1 ("?)b/(.+?)\3$')
_SAME_PATH = re.compile(r"^diff --git a/(.+) b/\1$")
_OCTAL = re.compile(r"\\([0-7]{3})")


def parse_patch(text: str) -> GoldFiles:
    """Return the files that the unified diffs in a text change, add or remove; for a renamed file, both names.

    A removed line that starts with two hyphens looks like a header, so only a pair of --- and +++ lines counts as one.
    """
    paths: list[str] = []
    for line, following in pairwise([*text.splitlines(), ""]):
        if same := _SAME_PATH.match(line):
            paths.append(same[1])
        elif header := _GIT_HEADER.match(line):
            paths += [_unquote(header[2]), _unquote(header[4])]
        elif line.startswith("--- ") and following.startswith("+++ "):
            old, new = (_unquote(name[4:].split("\t")[0].strip().strip('"')) for name in (line, following))
            prefixed = (old.startswith("a/") or old == "/dev/null") and (new.startswith("b/") or new == "/dev/null")
            paths += [name[2:] if prefixed else name for name in (old, new) if name != "/dev/null"]
    return parse_files(paths)


def _unquote(path: str) -> str:
    """Return the path on disk: git escapes bytes that are not ASCII as octal numbers."""
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
_NO_PATHS = ("node_modules/", "path/to/", "github.com/")  # dependencies, placeholders, addresses


def find_paths(prose: str) -> list[str]:
    """Return the texts in prose or a script that look like paths of files: folders, and a name with an extension.

    Absolute paths count within the usual roots of checkouts, without that root; web addresses do not.
    """
    paths = (match["path"] for match in _PATH.finditer(_VARIABLE.sub("", prose)))
    return list(dict.fromkeys(path for path in paths if not any(part in path for part in _NO_PATHS)))
