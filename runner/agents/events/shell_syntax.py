"""What simple commands a shell command is made of: their words, the files they are redirected to, what joins them.

Quotes, braces, here-documents, keywords, variables that are set to plain words and loops over these are understood. It
knows nothing of what programs do.
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
_HERE = re.compile(r"""(?<!<)<<-?[ \t]*['"\\]?([^\W\d]\w*)""")  # a number is shifted by
_ASSIGNMENT = re.compile(r"(\w+)\+?=(.*)", re.DOTALL)
_NUMBER = re.compile(r"[\d.]+[smhd]?")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_NOT_A_VALUE = re.compile(r"[$*?\[\]{}`]")  # what a shell makes something else of
_BRACES = re.compile(r"\{([^{},'\"$]*(?:,[^{},'\"$]*)+)\}")
_NOT_BRACED = re.compile(r"""[{}'"\\$`]""")
_KEYWORDS = frozenset(("if", "then", "elif", "else", "while", "until", "do", "time", "!", "{"))
_WRAPPERS = frozenset(("sudo", "command", "exec", "env", "nice", "nohup", "timeout", "stdbuf", "builtin"))
_MOST_TURNS = 100  # of a loop; of one within another fewer, and at last none
_LONGEST = 2**17  # characters of a command: Linux hands a program no longer argument (MAX_ARG_STRLEN)


@dataclass(frozen=True)
class Simple:
    """One simple command: the operator before it, its words, the files that it reads and writes, what it is given.

    `given` is a here-document, `piped` tells that another command reads what it prints, and `level` counts the
    parentheses around it.
    """

    operator: str
    words: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    given: str = ""
    piped: bool = False
    level: int = 0


def commands(command: str) -> Iterator[Simple]:
    """Yield the simple commands of a command, in the order in which they run, each from its program's name on.

    Those of a loop come once for each turn. What is beyond the longest command that there may be is left out.
    """
    text, given = _without_here_documents(command[:_LONGEST].replace("\\\n", ""))
    simples = list(_simple(text, given))
    following = [simple.operator for simple in simples[1:]] + [""]
    marked = [
        replace(simple, piped=after.startswith("|") and after != "||")
        for simple, after in zip(simples, following, strict=True)
    ]
    return _run(marked, {})


def _run(simples: Sequence[Simple], values: Mapping[str, str], most: int = _MOST_TURNS) -> Iterator[Simple]:
    place = 0
    while place < len(simples):
        simple = simples[place]
        words = [_filled(word, values) for word in _unwrapped(simple.words)]
        place += 1
        if len(words) > 3 and words[0] == "for" and words[2] == "in":
            end, turns = _end(simples, place), words[3 : 3 + most]
            for value in turns:
                known = {name: each for name, each in values.items() if name != words[1]}
                yield from _run(simples[place:end], known | _value(words[1], value), most // max(2, len(turns)))
            place = end
        else:
            set_here = [each for word in simple.words if not words and (each := _ASSIGNMENT.fullmatch(word))]
            for each in set_here:
                values = {**values, **_value(each[1], _filled(each[2], values))}
            reads, writes = ([_filled(file, values) for file in files] for files in (simple.reads, simple.writes))
            yield replace(simple, words=words, reads=reads, writes=writes)


def _end(simples: Sequence[Simple], place: int) -> int:
    """Return where the loop ends whose body follows."""
    depth = 0
    for at in range(place, len(simples)):
        first = simples[at].words[:1]
        depth += (first == ["do"]) - (first == ["done"])
        if depth == 0 and first == ["done"]:
            return at
    return len(simples)


def _value(name: str, value: str) -> dict[str, str]:
    return {} if _NOT_A_VALUE.search(value) else {name: value}


def _filled(word: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda each: values.get(each[1] or each[2], each[0]), word) if "$" in word else word


def _simple(command: str, given: list[tuple[str, str]]) -> Iterator[Simple]:
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
            word = _PIECE.sub(lambda piece: piece[1] or _escaped(piece[2]) or piece[3] or "", text)
            if not redirect:
                current.words.extend(_braced(text) or [word])
            elif redirect in (">", ">>", ">|", "1>", "1>>", "&>", "&>>"):  # where errors go is no file that is written
                current.writes.append(word)
            elif redirect == "<":
                current.reads.append(word)
            elif redirect in ("<<", "<<-") and given and given[0][0] == word:
                current = replace(current, given=given.pop(0)[1])
            redirect = ""
    yield current


def _braced(word: str) -> list[str]:
    """Return the words that a shell makes of one with braces (`src/{a,b}.py`); none of any other, or of very many."""
    parts = _BRACES.split(word)
    choices = [part.split(",") if place % 2 else [part] for place, part in enumerate(parts)]
    if len(parts) == 1 or prod(map(len, choices)) > _MOST_TURNS or _NOT_BRACED.search("".join(parts)):
        return []
    return ["".join(chosen) for chosen in product(*choices)]


def _escaped(text: str | None) -> str:
    return re.sub(r'\\([$`"\\\n])', r"\1", text or "")


def _without_here_documents(command: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a command without its here-documents, and these, each with the word that ends it."""
    kept: list[str] = []
    found: list[tuple[str, list[str]]] = []
    until: list[int] = []
    for line in command.split("\n"):
        if not until:
            kept.append(line)
            until = list(range(len(found), len(found) + len(words := _HERE.findall(line))))
            found += [(word, []) for word in words]
        elif line.strip() == found[until[0]][0]:
            until = until[1:]
        else:
            found[until[0]][1].append(line)
    return "\n".join(kept), [(word, "\n".join(lines)) for word, lines in found]


def _unwrapped(words: Sequence[str]) -> list[str]:
    """Return the words from a program's name on: without keywords, assignments, and programs that run another."""
    wrapped = False
    for place, word in enumerate(words):
        if word in _WRAPPERS:
            wrapped = True
        elif word not in _KEYWORDS and not _ASSIGNMENT.fullmatch(word):
            option = word.startswith("-") or _NUMBER.fullmatch(word) is not None
            if not (wrapped and option):
                return list(words[place:])
    return []
