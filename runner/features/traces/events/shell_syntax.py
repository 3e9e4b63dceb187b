"""Parse a shell command into simple commands: their words, their redirections, and the operators between them.

It understands quotes, braces, here-documents, keywords, variables set to plain words, and loops over these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

_TOKEN = re.compile(
    r"""(?P<gap>[ \t\r]++)
      | (?P<comment>\#[^\n]*)
      | (?P<redirect>\d*(?:&>>?|>>|>\||>&|<<<|<<-?|<&|<>|>|<)|&>>?)
      | (?P<operator>\|\||\|&?|&&|;;?|&|\n|[()])
      | (?P<word>(?:[^\s'"\\|&;()<>]|\\.|'[^']*'|"(?:[^"\\]|\\.)*+")++)
      | (?P<rest>.)""",
    re.VERBOSE | re.DOTALL,
)
_PIECE = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*+)"|\\(.)""", re.DOTALL)
_HERE = re.compile(r"""(?<!<)<<-?[ \t]*['"\\]?([^\W\d]\w*)""")  # a number would be a shift in arithmetic
_ASSIGNMENT = re.compile(r"(\w+)\+?=(.*)", re.DOTALL)
_NUMBER = re.compile(r"[\d.]+[smhd]?")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_NOT_A_VALUE = re.compile(r"[$*?\[\]{}`]")  # characters that a shell expands
_BRACES = re.compile(r"\{([^{},'\"$]*(?:,[^{},'\"$]*)+)\}")
_NOT_BRACED = re.compile(r"""[{}'"\\$`]""")
_KEYWORDS = frozenset(("if", "then", "elif", "else", "while", "until", "do", "time", "!", "{"))
_WRAPPERS = frozenset(("sudo", "command", "exec", "env", "nice", "nohup", "timeout", "stdbuf", "builtin"))
_MAX_TURNS = 100  # iterations of a loop; nested loops have fewer
_LONGEST = 2**17  # characters of a command: the longest argument of a program on Linux (MAX_ARG_STRLEN)


@dataclass(frozen=True)
class Simple:
    """One simple command: the operator before it, its words, and the files that it reads and writes.

    `given` is its here-document; with `piped`, another command reads its output; `level` is the number of enclosing
    parentheses.
    """

    operator: str
    words: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    given: str = ""
    piped: bool = False
    level: int = 0


def parse_command(command: str) -> Iterator[Simple]:
    """Yield the simple commands of a command in the order in which they run, each from its program's name onwards.

    The commands of a loop occur once per iteration. Anything beyond the length that a shell accepts is ignored.
    """
    text, given = _extract_here_documents(command[:_LONGEST].replace("\\\n", ""))
    simples = list(_split_simple(text, given))
    following = [simple.operator for simple in simples[1:]] + [""]
    marked = [
        replace(simple, piped=after.startswith("|") and after != "||")
        for simple, after in zip(simples, following, strict=True)
    ]
    return _expand(marked, {})


def _expand(simples: Sequence[Simple], values: Mapping[str, str], turns_left: int = _MAX_TURNS) -> Iterator[Simple]:
    place = 0
    while place < len(simples):
        simple = simples[place]
        words = [_substitute(word, values) for word in _unwrap(simple.words)]
        place += 1
        if len(words) > 3 and words[0] == "for" and words[2] == "in":
            end, turns = _find_end(simples, place), words[3 : 3 + turns_left]
            for turn in turns:
                known = {name: value for name, value in values.items() if name != words[1]}
                inner = turns_left // max(2, len(turns))
                yield from _expand(simples[place:end], known | _assign(words[1], turn), inner)
            place = end
        else:
            assignments = [hit for word in simple.words if not words and (hit := _ASSIGNMENT.fullmatch(word))]
            for assignment in assignments:
                values = {**values, **_assign(assignment[1], _substitute(assignment[2], values))}
            reads, writes = ([_substitute(file, values) for file in files] for files in (simple.reads, simple.writes))
            yield replace(simple, words=words, reads=reads, writes=writes)


def _find_end(simples: Sequence[Simple], place: int) -> int:
    """Return the position of the end of a loop, given the start of its body."""
    depth = 0
    for at in range(place, len(simples)):
        first = simples[at].words[:1]
        depth += (first == ["do"]) - (first == ["done"])
        if depth == 0 and first == ["done"]:
            return at
    return len(simples)


def _assign(name: str, value: str) -> dict[str, str]:
    return {} if _NOT_A_VALUE.search(value) else {name: value}


def _substitute(word: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda name: values.get(name[1] or name[2], name[0]), word) if "$" in word else word


def _split_simple(command: str, given: list[tuple[str, str]]) -> Iterator[Simple]:
    current, redirect, level = Simple(""), "", 0
    for token in _TOKEN.finditer(command):
        text = token[0]
        if token.lastgroup == "operator":
            yield current
            level = max(0, level + (text == "(") - (text == ")"))
            current, redirect = Simple(text, level=level), ""
        elif token.lastgroup == "redirect":
            redirect = text
        elif token.lastgroup in ("word", "rest"):
            word = _PIECE.sub(lambda piece: piece[1] or _unescape(piece[2]) or piece[3] or "", text)
            if not redirect:
                current.words.extend(_expand_braces(text) or [word])
            elif redirect in (">", ">>", ">|", "1>", "1>>", "&>", "&>>"):  # redirected errors do not count
                current.writes.append(word)
            elif redirect == "<":
                current.reads.append(word)
            elif redirect in ("<<", "<<-") and given and given[0][0] == word:
                current = replace(current, given=given.pop(0)[1])
            redirect = ""
    yield current


def _expand_braces(word: str) -> list[str]:
    """Return the expansion of a word with braces (`src/{a,b}.py`); empty for other words and for very long ones."""
    parts = _BRACES.split(word)
    choices = [part.split(",") if place % 2 else [part] for place, part in enumerate(parts)]
    if len(parts) == 1 or prod(map(len, choices)) > _MAX_TURNS or _NOT_BRACED.search("".join(parts)):
        return []
    return ["".join(chosen) for chosen in product(*choices)]


def _unescape(text: str | None) -> str:
    return re.sub(r'\\([$`"\\\n])', r"\1", text or "")


def _extract_here_documents(command: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a command without its here-documents, and the here-documents, each with its delimiter."""
    rest: list[str] = []
    documents: list[tuple[str, list[str]]] = []
    until: list[int] = []
    for line in command.split("\n"):
        if not until:
            rest.append(line)
            until = list(range(len(documents), len(documents) + len(words := _HERE.findall(line))))
            documents += [(word, []) for word in words]
        elif line.strip() == documents[until[0]][0]:
            until = until[1:]
        else:
            documents[until[0]][1].append(line)
    return "\n".join(rest), [(word, "\n".join(lines)) for word, lines in documents]


def _unwrap(words: Sequence[str]) -> list[str]:
    """Return the words from a program's name onwards, without keywords, assignments, and programs that run another."""
    wrapped = False
    for place, word in enumerate(words):
        if word in _WRAPPERS:
            wrapped = True
        elif word not in _KEYWORDS and not _ASSIGNMENT.fullmatch(word):
            option = word.startswith("-") or _NUMBER.fullmatch(word) is not None
            if not (wrapped and option):
                return list(words[place:])
    return []
