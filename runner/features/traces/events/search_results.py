"""Parse the files in tool results, complete or truncated: of searches, listings, diffs and file readers.

Servers answer in JSON (`blocks[].file`), Markdown (headers of repository, dash, path) and links
(`/repository@revision/-/blob/path`), local tools in lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import unquote

import orjson

from runner.features.traces.truth.paths import LONGEST, File, has_spaces, looks_like_file

_APPENDIX = re.compile(r"(?:\A|\n)\[(?:stdout\]\n|stderr\]\n|metadata\] \{|error\] tool reported failure)")
_ERROR = re.compile(
    r"""\A[^\w#/*;%-]*(?:error"?[:\ ] | failed\ to\b | cannot\b | could\ not\b | unable\ to\b | ENOENT | EISDIR
      | no\ such\ file | (?:the\ )?(?:file|path|repo(?:sitory)?|directory|revision)\b[^\n]{0,200}?
        \b(?:not\ found|not\ exist|exceeds|too\ large|is\ a\ directory))""",
    re.IGNORECASE | re.VERBOSE,
)
_LONGEST_ERROR = 2000
_REFUSED = re.compile(r"<tool_use_error>|ERROR: Cannot execute")
_FAILED = re.compile(r'\[error\] tool reported failure|"isError": ?true')
_NOTHING = re.compile(r'\bno (?:results|matches|files)\b|"blocks\W+\[\]', re.IGNORECASE)
_MISSING = re.compile(r"(?: for reading)?: (?:No such file or directory|Is a directory|Permission denied)")
_NOT_OPENED = re.compile(  # by a script, in Python or in JavaScript
    r"(?:No such file or directory: |Is a directory: |Permission denied: |no such file or directory, \w+ )'([^'\n]+)'"
)
_HARNESS = re.compile(r"\AExit code \d+(?:\n|\Z)|\A\((?:Bash|Command) completed with no output\)\Z")
_BEFORE_NAME = re.compile(r"[\s'\"‘’:]")
_LINK = (  # bounded, to avoid quadratic time
    r"https?://[^/\s\"]{1,200}/(?P<repo>[^\s\"@]{1,200}?)(?:@[^\s/\"]{1,200})?/-/blob/(?P<path>[^\s\"'<>()\[\]\\]{1,1000})"
)
_HEADER_OR_LINK = re.compile(
    rf"""(?:^|")\#\ (?P<named>[\w.@-]+(?:/[\w.@-]+)+)\ [–—]\ (?P<title>[^\n"]+) | {_LINK}""", re.MULTILINE | re.VERBOSE
)
_FIELD = re.compile(r'(?<!\\)(\\*+)"(?:file|path)\1"\s*:\s*\1"([^"\\\n]+)\1"')
_OPENED = re.compile(  # at the start, or within the first texts of truncated JSON
    rf"""\A(?:\{{[^\n]{{0,300}}?)?
        (?:URL:\ {_LINK} | (?:Here's\ the\ )?result\ of\ running\ `cat\ -n`\ on\ (?P<file>\S+?):(?:\n|\\n))""",
    re.VERBOSE,
)
_ESCAPED = re.compile(r'(?<!\\)\\++(u2013|["n/t])')
_PLAIN = {"u2013": "–", "n": "\n", "t": "\t"}
_FIRST_WORD = re.compile(r"[^\s:]++")
_NUMBERED = re.compile(r"([^:]++):\d+:")
_LINE_NUMBER = re.compile(r":\d+[:-]")
_LINE_NUMBER_AROUND = re.compile(r"-\d+-")
_DIFF = re.compile(
    r"""^(?:diff\ --git\ a/\S+\ b/(\S+) | \+\+\+\ b/(\S+) | ---\ a/(\S+) | \*\*\*\ (?:Update|Add|Delete)\ File:\ (.+)
      | \ (?!\.\.\.)([^\s{}]+)\s+\|\s+(?:\d+\ [+-]+|Bin\ .*))$  # of `--stat`, unless cut short or renamed""",
    re.MULTILINE | re.VERBOSE,
)
_FILES = ("file", "path", "newPath", "filePath")
_LISTS = ("files", "filenames", "paths")

LineParser = Callable[[str], Iterable[str]]
"""Parses the lines of a text without JSON, Markdown or links."""


def strip_appendix(result: str) -> str:
    """Return the text that the agent saw, without the text that the harness appends to it."""
    appendix = _APPENDIX.search(result)
    return result[: appendix.start()] if appendix else result


def extract_output(text: str) -> str:
    """Return the output of a command: some harnesses wrap it in JSON, or print an exit code above it."""
    decoded = _decode(text)
    outputs = [decoded.get(name) for name in ("output", "stdout")] if isinstance(decoded, dict) else []
    return _HARNESS.sub("", next((output for output in outputs if isinstance(output, str)), text))


def is_refused(result: str) -> bool:
    """Return whether the harness refused to make the call."""
    return _REFUSED.match(result) is not None


def is_failure(result: str) -> bool:
    """Return whether a result is an error rather than content; content may mention errors too, but is longer."""
    failed = (len(result) <= _LONGEST_ERROR and _ERROR.match(result[:300])) or _FAILED.search(result[-200:])
    return is_refused(result) or bool(failed)


def is_nothing(text: str) -> bool:
    """Return whether a search reports no results."""
    return not text.strip() or (len(text) < 400 and _NOTHING.search(text) is not None)


def find_missing(text: str) -> set[str]:
    """Return the paths that programs report as missing, as folders, or as not permitted."""
    names = (text[max(0, hit.start() - LONGEST) : hit.start()].rstrip("'\"’") for hit in _MISSING.finditer(text))
    return {*(_BEFORE_NAME.split(name)[-1] for name in names), *_NOT_OPENED.findall(text)}


def find_opened(text: str) -> File | None:
    """Return the file that the result of a file reader names; None if it names none.

    Some traces pair the arguments of one call with the result of another; the agent saw the result.
    """
    stack: list[object] = [text]
    while stack:  # {"content": "...", "url": "..."}, possibly encoded as text
        value = stack.pop()
        if isinstance(value, Mapping):
            if isinstance(url := value.get("url"), str) and (link := re.match(_LINK, url)):
                return _parse_link(link)
            stack += [value.get("structuredContent"), value.get("content"), value.get("text")]
        elif isinstance(value, list):
            stack += value[:1]
        elif isinstance(value, str):
            if (hit := _OPENED.search(value[:2000])) and hit.end() < len(value):
                return File(hit["file"]) if hit["file"] else _parse_link(hit)
            stack.append(_decode(value))
    return None


def parse_results(text: str, parse_lines: LineParser) -> list[File]:
    """Return the distinct files in the result of a search, in its order, without folders."""
    files: list[File] = []
    stack: list[tuple[object, str | None]] = [(text, None)]
    while stack:
        value, repo = stack.pop()
        if isinstance(value, str):
            if (decoded := _decode(value)) is not None:
                stack.append((decoded, repo))
            else:
                files += find_named(value) or [File(path, repo) for path in parse_lines(value)]
        elif isinstance(value, Mapping):
            names = (value.get(key) for key in ("repo", "repository"))
            repo = next((name for name in names if isinstance(name, str)), repo)
            files += _list_files(value, repo)
            parts = [part for key, part in value.items() if isinstance(part, list | dict) or key == "text"]
            stack += [(part, repo) for part in reversed(parts)]
        elif isinstance(value, list):
            stack += [(part, repo) for part in reversed(value) if isinstance(part, list | dict)]
    return list(dict.fromkeys(files))


def find_named(text: str) -> list[File]:
    """Return the files named by Markdown headers, by links, and by the fields of truncated JSON."""
    cut = text.lstrip()[:1] in ("{", "[")
    plain = _ESCAPED.sub(lambda escape: _PLAIN.get(escape[1], escape[1]), text) if cut else text
    dashed = "\u2013" in plain or "\u2014" in plain
    files = [
        File(hit["title"].strip(), hit["named"]) if hit["title"] else _parse_link(hit)
        for hit in (_HEADER_OR_LINK.finditer(plain) if dashed or "/-/blob/" in plain else ())  # rare in large texts
        if not (cut and hit.end() == len(plain))  # a truncated path
    ]
    if cut:
        fields = _FIELD.findall(text)
        outer = min((escape for escape, _ in fields), key=len, default="")  # the text of a file is escaped more deeply
        linked = {file.path for file in files}  # the last result may be truncated before its link
        named = [path for escape, path in fields if escape == outer and path not in linked and not path.endswith("/")]
        files += [File(path) for path in named if not files or looks_like_file(path)]
    return list(dict.fromkeys(files))


def parse_matches(text: str) -> Iterator[str]:
    """Yield the distinct files of `path:line:text`, `path-line-text`, `path:text` and bare paths, as from grep."""
    known: set[str] = set()
    for line in text.splitlines():
        numbered = _NUMBERED.match(line)
        whole = numbered[1] if numbered else line
        if whole not in known and (numbered or line.startswith(("/", "./"))) and has_spaces(whole):
            known.add(whole)
            yield whole
            continue
        word = _FIRST_WORD.match(line)
        if not word or word.end() > LONGEST:
            continue
        path = _LINE_NUMBER_AROUND.split(word[0])[0]
        named = "/" in path and (path != word[0] or line[word.end() :].startswith(":"))
        if (named or word[0] == line or _LINE_NUMBER.match(line, word.end())) and path not in known:
            known.add(path)
            if looks_like_file(path) and not path.startswith("//"):
                yield path


def parse_diff(text: str) -> Iterator[str]:
    """Yield the files of a diff or patch, without the prefixes `a/` and `b/`."""
    for match in _DIFF.finditer(text):
        yield next(path for path in match.groups() if path)


def _decode(text: str) -> object:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value: object = orjson.loads(text)
    except ValueError:  # truncated, or not JSON
        return None
    return value


def _list_files(record: Mapping[str, object], repo: str | None) -> list[File]:
    if record.get("isDirectory") is True or record.get("type") in ("directory", "tree", "repo"):
        return []
    path = next((value for key in _FILES if isinstance(value := record.get(key), str)), "")
    sure = isinstance(record.get("file"), str) or record.get("isDirectory") is False
    files = [File(path, repo)] if path and (sure or looks_like_file(path)) else []
    for key in _LISTS:
        if isinstance(paths := record.get(key), list):
            files += [File(path, repo) for path in paths if isinstance(path, str) and not path.endswith("/")]
    return files


def _parse_link(link: re.Match[str]) -> File:
    return File(re.split(r"[?#]", unquote(link["path"]))[0].rstrip(".,;:"), link["repo"])
