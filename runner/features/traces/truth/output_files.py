"""Find the files that a task's prose asks the agent to write: a report, an answer, a module that does not exist yet.

Such a file is never evidence that the agent should find. Rules about words decide, sentence by sentence.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

_PATH = re.compile(
    r"(?<![\w@])(?:/|\./)?(?:[\w@.+-]+/)*[\w@+-][\w@.+-]*\.[A-Za-z][A-Za-z0-9]{0,9}(?![\w/]|(?<=\be\.g)|(?<=\bi\.e))"
)
_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})(?=/)")
_LONGEST_BLOCK = 20_000  # characters; a longer block is data, not prose
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+>|#]|\d+[.)]\s|```))")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")
_ITEM = re.compile(r"\s*(?:[-*+>|]|\d+[.)]\s|```)")
_LISTED = re.compile(rf"\s*(?:[-*+>|]|\d+[.)]|```\w*)[\W_]*?(?P<path>{_PATH.pattern})")
_HEADING = re.compile(r"\s*#+\s*(?P<title>.*)")
_OUTPUT_HEADING = re.compile(r"\b(?:outputs?|deliverables?|submission|expected (?:files|artifacts))\b", re.I)
_SUBJECTS = r"(?:your|the|a|an|all|any|each|every|it|them|findings|results|answers?)"
_WRITE = re.compile(
    r"\b(?:writ(?:e|es|ten|ing)|sav(?:e|es|ed|ing)|creat(?:e|es|ed|ing)|generat(?:e|es|ed|ing)|produc(?:e|es|ed|ing)"
    r"|outputs?|emit(?:ted)?|export(?:ed)?|dump(?:ed)?|submit(?:ted)?|deliver(?:ed|ables?)?|stored|placed|recorded"
    rf"|(?:store|place|put|record|document|report)(?=\s+{_SUBJECTS}\b))\b",
    re.I,
)
_DESTINATION = re.compile(
    r"\b(?:to|into|as|at|named|called|files?|paths?)\s*(?:is|are|the files?|a file|named)?[\W_]*$", re.I
)
_WITHIN = re.compile(r"\b(?:in|under|inside|within)\s*(?:the file|a file|a new file)?[\W_]*$", re.I)
_NOT_OBJECT = re.compile(
    r"\b(?:for|of|from|about|that|which|where|whose|in|on|with|using|against|to|by|based|like|cover\w*|after|before"
    r"|and (?:then )?(?:read|see|open|review|fix|modify|edit|update|change|use|run|inspect|check))\b",
    re.I,
)
_EDIT = re.compile(r"\b(?:fix|patch|change|edit|code|method|function|class|import|test)(?:es|s)?\b", re.I)
_LABEL = re.compile(
    r"\b(?:output|deliverable|answer|report|result|submission)s?(?: file| path| location)?\W*:[\W_]*$", re.I
)
_PROMISED = re.compile(
    r"^\W*\s(?:must|should|shall|will|needs? to|has to)\s+(?:be (?:written|created|saved|generated|produced|placed)\b"
    r"|(?:contain|include|have|exist|list|follow)\b)",
    re.I,
)
_CREATED = re.compile(r"\bbe (?:written|created|saved|generated|produced|placed)\b", re.I)
_REDIRECTED = re.compile(r"(?:(?<=[^-=<>\d&\s])\s*>{1,2}\s*|\btee\s+(?:-a\s+)?|\s--?o(?:ut(?:put)?)?[ =])[\"'`]?\S*$")
_ASSIGNED = re.compile(r"^\s*(?:export\s+|local\s+)?\w*(?:OUTPUT|REPORT|ANSWER|RESULT|SOLUTION|FINDINGS)\w*=\S*$", re.I)
_REPORTS = frozenset(
    (
        "md",
        "json",
        "jsonl",
        "txt",
        "csv",
        "tsv",
        "yaml",
        "yml",
        "html",
        "xml",
        "rst",
        "adoc",
        "patch",
        "diff",
        "log",
        "pdf",
    )
)
"""The extensions of files that hold an answer; other files are more often edited than created."""


def find_output_files(prose: str) -> Sequence[str]:
    """Return the distinct paths that prose or a script tells its reader to write, in their original spelling."""
    return tuple(dict.fromkeys(_iter_outputs(_VARIABLE.sub("", prose.replace("\\n", "\n")))))


def is_output(path: str, outputs: Collection[str]) -> bool:
    """Return whether a path is one of the output files: one of the two equals or ends in the other."""
    folded = _fold(path)
    return any(
        folded == other or folded.endswith(f"/{other}") or other.endswith(f"/{folded}") for other in map(_fold, outputs)
    )


def _fold(path: str) -> str:
    return path.removeprefix("./").lstrip("/").lower()


def _iter_outputs(prose: str) -> Iterator[str]:
    section = False  # under a heading such as "Deliverables"
    outer: int | None = None  # in a list of files to write, the indentation of the sentence before the list
    for block in _BLOCK.split(prose):
        if not block.strip() or len(block) > _LONGEST_BLOCK:
            continue
        if heading := _HEADING.match(block):
            section, outer = bool(_OUTPUT_HEADING.search(heading["title"].partition("\n")[0])), None
        indentation = len(block) - len(block.lstrip(" ")) if _ITEM.match(block) else -1
        if outer is not None and indentation <= outer:
            outer = None
        if (section or outer is not None) and (item := _LISTED.match(block)):
            yield item["path"]
        for line in block.splitlines():
            yield from _iter_redirects(line)
        sentences = _SENTENCE.split(" ".join(block.split()))
        for sentence in sentences:
            yield from _iter_sentence_paths(sentence)
        if outer is None and _announces(sentences[-1]):
            outer = indentation


def _announces(sentence: str) -> bool:
    """Return whether a sentence introduces a list of files to write."""
    writes = [*_WRITE.finditer(sentence)]
    return bool(writes) and sentence.rstrip("*_ ").endswith(":") and not _NOT_OBJECT.search(sentence, writes[-1].end())


def _iter_redirects(line: str) -> Iterator[str]:
    for path in _PATH.finditer(line):
        before = line[: path.start()]
        if _REDIRECTED.search(before) or _ASSIGNED.search(before.replace('"', "").replace("'", "")):
            yield path[0]


def _iter_sentence_paths(sentence: str) -> Iterator[str]:
    written_before = False
    end = 0
    for path in _PATH.finditer(sentence):
        before, after = sentence[: path.start()], sentence[path.end() :]
        is_report = path[0].rpartition(".")[2].lower() in _REPORTS
        between = sentence[end : path.start()]
        joined = written_before and bool(re.fullmatch(r"[\W_]*(?:and|or|plus|then)?[\W_]*", between))
        written_before = joined or _is_written(before, is_report) or _is_promised(after, is_report)
        end = path.end()
        if written_before:
            yield path[0]


def _is_written(before: str, is_report: bool) -> bool:
    """Return whether the words before a path in its sentence ask the reader to write it."""
    if _LABEL.search(before):
        return True
    writes = [*_WRITE.finditer(before)]
    if not writes:
        return False
    since = before[writes[-1].end() :]
    if not _NOT_OBJECT.search(_PATH.sub("", since)):
        return True
    if is_report:
        return bool(_DESTINATION.search(before) or _WITHIN.search(before))
    return bool(_DESTINATION.search(before)) and not _EDIT.search(since)


def _is_promised(after: str, is_report: bool) -> bool:
    promised = _PROMISED.match(after)
    return bool(promised and (is_report or _CREATED.search(promised[0])))
