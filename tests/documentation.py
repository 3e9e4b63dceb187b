"""Reads the pages of the documentation: their chapters, blocks, commands, files and tables of settings."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from runner.__main__ import main

ROOT = Path(__file__).parents[1]
PAGES = [
    path.relative_to(ROOT).as_posix() for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
]

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
MODULE = re.compile(r"# (\w+\.py)$", re.MULTILINE)
FILE = re.compile(r"^==> (\S+) <==\n(.*?)(?=^==> |\Z)", re.MULTILINE | re.DOTALL)
SHELLS = ("sh", "shell", "bash", "console", "")
SETTINGS = re.compile(r"^\| ((?:`\w+`(?:, )?)+) \| (required|`.*?`) \|", re.MULTILINE)

DIR = {  # the folder in BEIR's layout that the README calls DIR
    "DIR/corpus.jsonl": (
        '{"_id": "d1", "title": "Lighthouse", "text": "The lighthouse shines for ships at night."}\n'
        '{"_id": "d2", "title": "Ferry", "text": "Ferries leave for the islands every hour."}\n'
        '{"_id": "d3", "title": "", "text": "A museum of ships and ferries."}\n'
    ),
    "DIR/queries.jsonl": '{"_id": "q1", "text": "ships"}\n{"_id": "q2", "text": "islands ferry"}\n',
    "DIR/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td3\t1\nq2\td2\t1\n",
}


@cache
def page(name: str) -> str:
    """Return the text of a page."""
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def chapters(text: str) -> dict[str, str]:
    """Return the text of each chapter by its heading."""
    parts = (part.partition("\n") for part in re.split(r"^## ", text, flags=re.MULTILINE))
    return {heading: body for heading, _, body in parts}


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of a language, without the indentation that a list gives them."""
    return [textwrap.dedent(block) for _, name, block in FENCE.findall(text) if name == language]


@cache
def files(text: str) -> dict[str, str]:
    """Return the files that a text shows, with the modules, by their names."""
    modules = {match[1]: block for block in blocks(text, "python") if (match := MODULE.match(block))}
    return {name: content for block in blocks(text, "text") for name, content in FILE.findall(block)} | modules


def commands(chapter: str) -> list[str]:
    """Return the commands of this program in a chapter, as they are written."""
    text = "\n".join(textwrap.dedent(block) for _, language, block in FENCE.findall(chapter) if language in SHELLS)
    return [line for line in text.replace("\\\n", " ").splitlines() if line.startswith("python -m runner")]


def documented(chapter: str) -> dict[str, Any]:
    """Return the settings in a chapter's table, each with its default."""
    return {
        name: "???" if default == "required" else yaml.safe_load(default.strip("`").replace(r"\|", "|"))
        for names, default in SETTINGS.findall(chapter)
        for name in re.findall(r"\w+", names)
    }


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write files into a folder, by their names."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")


def run(command: str, *more: str) -> int:
    """Run a command as it is written, up to what a shell does after it."""
    words = shlex.split(command.removeprefix("python -m runner").partition("||")[0], comments=True)
    return main([*words, *more])
