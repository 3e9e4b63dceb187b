"""What simple commands a shell command is made of: their words, the files they are redirected to, what joins them.

Quotes, here-documents, keywords and loops over plain words are understood. It knows nothing of what programs do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

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
_HERE = re.compile(r"""(?<!<)<<-?[ \t]*['"\\]?(\w+)""")
_ASSIGNMENT = re.compile(r"\w+\+?=.*", re.DOTALL)
_NUMBER = re.compile(r"[\d.]+[smhd]?")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_KEYWORDS = frozenset(("if", "then", "elif", "else", "while", "until", "do", "time", "!", "{"))
_WRAPPERS = frozenset(("sudo", "command", "exec", "env", "nice", "nohup", "timeout", "stdbuf", "builtin"))
_MOST_TURNS = 100  # of a loop


@dataclass
class Simple:
    """One simple command: its words, the files that it writes, and the operator before it."""

    operator: str
    words: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)


def commands(command: str) -> Iterator[Simple]:
    """Yield the simple commands of a command, in its order, each from its program's name on.

    One that has the variable of a loop comes once for each turn.
    """
    loops: dict[str, Sequence[str]] = {}
    for simple in _simple(_without_here_documents(command.replace("\\\n", ""))):
        words = _unwrapped(simple.words)
        if len(words) > 3 and words[0] == "for" and words[2] == "in":
            loops[words[1]] = words[3 : 3 + _MOST_TURNS]
        for turn in _turns(words, loops):
            yield Simple(simple.operator, turn, simple.writes)


def _simple(command: str) -> Iterator[Simple]:
    current, redirect = Simple(""), ""
    for token in _TOKEN.finditer(command):
        text = token[0]
        if token.lastgroup == "operator":
            yield current
            current, redirect = Simple(text), ""
        elif token.lastgroup == "redirect":
            redirect = text
        elif token.lastgroup in ("word", "rest"):
            word = _PIECE.sub(lambda piece: piece[1] or _escaped(piece[2]) or piece[3] or "", text)
            if redirect:  # neither what is read nor where errors go is a file that is written
                if redirect in (">", ">>", ">|", "1>", "1>>", "&>", "&>>"):
                    current.writes.append(word)
                redirect = ""
            else:
                current.words.append(word)
    yield current


def _escaped(text: str | None) -> str:
    return re.sub(r'\\([$`"\\\n])', r"\1", text or "")


def _without_here_documents(command: str) -> str:
    kept: list[str] = []
    until: list[str] = []
    for line in command.split("\n"):
        if until:
            until = until[1:] if line.strip() == until[0] else until
        else:
            kept.append(line)
            until = [document[1] for document in _HERE.finditer(line)]
    return "\n".join(kept)


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


def _turns(words: list[str], loops: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the words of each turn of the loops whose variables they have; themselves alone where they have none."""
    turns = [words]
    used = {each[1] or each[2] for word in words for each in _VARIABLE.finditer(word)}
    for name in sorted(used & loops.keys()):
        of = re.compile(rf"\$(?:\{{{name}\}}|{name}\b)")
        values = [value.replace("\\", r"\\") for value in loops[name]]  # so that none is a pattern's reference
        more = ([of.sub(value, word) for word in turn] for turn in turns for value in values)
        turns = list(islice(more, _MOST_TURNS))
    return turns
