"""Names follow the vocabulary: verbs for functions, one meaning for each word, one class for each name."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("runner", "retrievers", "hydra_plugins")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

# fmt: off
IRREGULAR = {
    "begun", "bought", "broken", "brought", "built", "caught", "chosen", "done", "drawn", "eaten", "fallen", "felt",
    "found", "given", "gone", "got", "grown", "heard", "held", "kept", "known", "laid", "led", "left", "lent",
    "lost", "made", "meant", "met", "paid", "said", "seen", "sent", "shown", "sold", "spent", "spoken", "spun",
    "stood", "taken", "thought", "told", "understood", "won", "worn", "written",
}
# fmt: on
NOT_PARTICIPLES = {"embed", "exceed", "feed", "need", "proceed", "seed", "speed"}
VAGUE = {"asked", "each", "found", "how", "said", "told"}
"""Identifiers that say nothing about what they hold."""


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def is_participle(name: str) -> bool:
    word = name.strip("_").partition("_")[0]
    return word in IRREGULAR or (word.endswith("ed") and word not in NOT_PARTICIPLES)


def is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether the function reads as a value: `property`, `cached_property` or a setter."""
    names = (ast.unparse(decorator).rpartition(".")[2] for decorator in function.decorator_list)
    return any(name in {"property", "cached_property", "setter"} for name in names)


def misnamed(path: Path) -> Iterator[str]:
    """Yield the functions named by a participle, and the vague identifiers, each with its line."""
    for node in ast.walk(parse(path)):
        name = None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.strip("_") in VAGUE or (is_participle(node.name) and not is_property(node)):
                name = node.name
        elif isinstance(node, ast.arg) and node.arg.strip("_") in VAGUE:
            name = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id.strip("_") in VAGUE:
            name = node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr.strip("_") in VAGUE:
            name = node.attr
        if name:
            yield f"{path.relative_to(ROOT)}:{node.lineno} {name}"  # type: ignore[attr-defined]  # all four have lines


def test_a_function_is_a_verb_phrase_and_an_identifier_names_its_value() -> None:
    assert [line for path in FILES for line in misnamed(path)] == []


def test_a_class_name_occurs_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in FILES:
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


TERM = re.compile(r"^\| (?!word \||---)(.+?) \| (.+?) \|$", re.MULTILINE)


def terms(page: str) -> list[tuple[str, str]]:
    return TERM.findall((ROOT / page).read_text(encoding="utf-8").partition("| word | meaning |")[2])


def test_each_word_of_the_vocabulary_is_explained_once_and_used() -> None:
    words = [word for entry, _ in terms("docs/vocabulary.md") for word in entry.replace("`", "").split(", ")]
    assert len(words) == len(set(words))
    pages = [page for page in (ROOT / "docs").glob("*.md") if page.name != "vocabulary.md"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in (*FILES, *pages))
    for word in words:
        pattern = rf"def _?{word[:-1]}(_\w|\()" if word.endswith("_") else rf"\b{word}(s|es)?\b"
        assert re.search(pattern, text, re.IGNORECASE), word
