"""Which files a tool's result shows: what searches, listings, diffs and readers of files print, whole or cut short.

Servers answer in JSON (`blocks[].file`), in Markdown (headers of repository, dash, path) and with links
(`/repository@revision/-/blob/path`), local tools in lines. It knows nothing of what was asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import orjson

from runner.agents.truth.paths import LONGEST, File, has_spaces, looks_like_file

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
_LINK = (  # bounded, so that the time which text takes does not grow with its square
    r"https?://[^/\s\"]{1,200}/(?P<repo>[^\s\"@]{1,200}?)(?:@[^\s/\"]{1,200})?/-/blob/(?P<path>[^\s\"'<>()\[\]\\]{1,1000})"
)
_TOLD = re.compile(
    rf"""(?:^|")\#\ (?P<named>[\w.@-]+(?:/[\w.@-]+)+)\ [–—]\ (?P<title>[^\n"]+) | {_LINK}""", re.MULTILINE | re.VERBOSE
)
_FIELD = re.compile(r'(?<!\\)(\\*+)"(?:file|path)\1"\s*:\s*\1"([^"\\\n]+)\1"')
_OPENED = re.compile(  # at the start, or within the first texts of JSON that was cut short
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

Lines = Callable[[str], Iterable[str]]
"""What reads the lines of a text that is no JSON, Markdown or link."""


def shown(result: str) -> str:
    """Return the text that an agent was shown, without what a harness appends to it."""
    appendix = _APPENDIX.search(result)
    return result[: appendix.start()] if appendix else result


def printed(text: str) -> str:
    """Return what a command printed: some harnesses put it into JSON beside its exit code, or that above it."""
    decoded = _decoded(text)
    outputs = [decoded.get(name) for name in ("output", "stdout")] if isinstance(decoded, dict) else []
    return _HARNESS.sub("", next((output for output in outputs if isinstance(output, str)), text))


def is_refused(result: str) -> bool:
    """Tell whether a harness did not make the call at all."""
    return _REFUSED.match(result) is not None


def is_failure(result: str) -> bool:
    """Tell whether a result is an error in place of content, which may speak of errors too, but is longer."""
    told = (len(result) <= _LONGEST_ERROR and _ERROR.match(result[:300])) or _FAILED.search(result[-200:])
    return is_refused(result) or bool(told)


def is_nothing(text: str) -> bool:
    """Tell whether a search says that it found nothing."""
    return not text.strip() or (len(text) < 400 and _NOTHING.search(text) is not None)


def missing(text: str) -> set[str]:
    """Return the paths that programs say do not exist, are folders, or may not be read."""
    names = (text[max(0, said.start() - LONGEST) : said.start()].rstrip("'\"’") for said in _MISSING.finditer(text))
    return {*(_BEFORE_NAME.split(name)[-1] for name in names), *_NOT_OPENED.findall(text)}


def opened(text: str) -> File | None:
    """Return the file that a reader's result says it is of; None where it does not say.

    Some traces have the arguments of a call beside the result of another: then it is the result that was seen.
    """
    stack: list[Any] = [text]
    while stack:  # {"content": "...", "url": "..."}, which may be wrapped as text
        value = stack.pop()
        if isinstance(value, Mapping):
            if isinstance(url := value.get("url"), str) and (link := re.match(_LINK, url)):
                return _linked(link)
            stack += [value.get("structuredContent"), value.get("content"), value.get("text")]
        elif isinstance(value, list):
            stack += value[:1]
        elif isinstance(value, str):
            if (said := _OPENED.search(value[:2000])) and said.end() < len(value):
                return File(said["file"]) if said["file"] else _linked(said)
            stack.append(_decoded(value))
    return None


def found(text: str, lines: Lines) -> list[File]:
    """Return the files that a search's result shows, in its order, each once; folders are left out."""
    files: list[File] = []
    stack: list[tuple[Any, str | None]] = [(text, None)]
    while stack:
        value, repo = stack.pop()
        if isinstance(value, str):
            if (decoded := _decoded(value)) is not None:
                stack.append((decoded, repo))
            else:
                files += told(value) or [File(path, repo) for path in lines(value)]
        elif isinstance(value, Mapping):
            repo = next((value[key] for key in ("repo", "repository") if isinstance(value.get(key), str)), repo)
            files += _named(value, repo)
            parts = [part for key, part in value.items() if isinstance(part, list | dict) or key == "text"]
            stack += [(part, repo) for part in reversed(parts)]
        elif isinstance(value, list):
            stack += [(part, repo) for part in reversed(value) if isinstance(part, list | dict)]
    return list(dict.fromkeys(files))


def told(text: str) -> list[File]:
    """Return the files that Markdown headers and links name, and the fields of JSON that was cut short."""
    cut = text.lstrip()[:1] in ("{", "[")
    plain = _ESCAPED.sub(lambda escape: _PLAIN.get(escape[1], escape[1]), text) if cut else text
    dashed = "\u2013" in plain or "\u2014" in plain
    files = [
        File(each["title"].strip(), each["named"]) if each["title"] else _linked(each)
        for each in (_TOLD.finditer(plain) if dashed or "/-/blob/" in plain else ())  # a large text seldom has either
        if not (cut and each.end() == len(plain))  # half a path
    ]
    if cut:
        fields = _FIELD.findall(text)
        outer = min((escape for escape, _ in fields), key=len, default="")  # what is within a file's text is deeper
        linked = {file.path for file in files}  # the last result may be cut before its link
        named = [path for escape, path in fields if escape == outer and path not in linked and not path.endswith("/")]
        files += [File(path) for path in named if not files or looks_like_file(path)]
    return list(dict.fromkeys(files))


def matching(text: str) -> Iterator[str]:
    """Yield the files of `path:line:text`, `path-line-text`, `path:text` and bare paths, as grep prints them; once."""
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


def changed(text: str) -> Iterator[str]:
    """Yield the files of a diff or patch, without the `a/` and `b/` that a diff puts before them."""
    for match in _DIFF.finditer(text):
        yield next(path for path in match.groups() if path)


def _decoded(text: str) -> Any:  # noqa: ANN401 (any JSON)
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return orjson.loads(text)
    except ValueError:  # cut short, or no JSON
        return None


def _named(record: Mapping[str, Any], repo: str | None) -> list[File]:
    if record.get("isDirectory") is True or record.get("type") in ("directory", "tree", "repo"):
        return []
    path = next((record[key] for key in _FILES if isinstance(record.get(key), str)), "")
    sure = isinstance(record.get("file"), str) or record.get("isDirectory") is False
    files = [File(path, repo)] if path and (sure or looks_like_file(path)) else []
    for key in _LISTS:
        if isinstance(record.get(key), list):
            files += [File(path, repo) for path in record[key] if isinstance(path, str) and not path.endswith("/")]
    return files


def _linked(link: re.Match[str]) -> File:
    return File(re.split(r"[?#]", unquote(link["path"]))[0].rstrip(".,;:"), link["repo"])
