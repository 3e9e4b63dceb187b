"""What is documented runs: commands, examples, settings with their defaults, links."""

from __future__ import annotations

import importlib
import inspect
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from _pytest.mark import ParameterSet

from retrievers.base import Corpus, Retriever
from runner.__main__ import main
from runner.tracking.settings import Tracking
from tests.config.files import load_settings
from tests.retrievers import test_contract as contract

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
MODULE = re.compile(r"# (\w+\.py)$", re.MULTILINE)
FILE = re.compile(r"^==> (\S+) <==\n(.*?)(?=^==> |\Z)", re.MULTILINE | re.DOTALL)
SHELLS = ("sh", "shell", "bash", "console", "")
SETTINGS = re.compile(r"^\| ((?:`\w+`(?:, )?)+) \| (required|`.*?`) \|", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")

DIR = {  # the folder in BEIR's layout that the README calls DIR
    "DIR/corpus.jsonl": (
        '{"_id": "d1", "title": "Lighthouse", "text": "The lighthouse shines for ships at night."}\n'
        '{"_id": "d2", "title": "Ferry", "text": "Ferries leave for the islands every hour."}\n'
        '{"_id": "d3", "title": "", "text": "A museum of ships and ferries."}\n'
    ),
    "DIR/queries.jsonl": '{"_id": "q1", "text": "ships"}\n{"_id": "q2", "text": "islands ferry"}\n',
    "DIR/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td3\t1\nq2\td2\t1\n",
}

EARLIER = {
    ("docs/mining.md", "Output"): "Benchmark definitions",
    ("docs/spans.md", "After edits"): "# Gold spans",
    ("docs/tutorials/own_data.md", "Check the data"): "Write the files",
    ("docs/tutorials/own_data.md", "Evaluate"): "Write the files",
}
"""Chapters whose commands read files that another chapter shows, or that its commands write."""

PAGES_OF_THEIR_OWN = {"docs/production.md": "tests/test_production.py"}
"""Pages whose commands run in another test."""

NOT_HERE = {
    r"runner (look|ui|serve)\b": "runs until it is stopped; tests/features and tests/test_ui.py start it",
    r"retriever=(http|golden_api)|retriever:http": "searches a service; tests/features/serve has one",
    r"retriever=(postgres|pgvector)|parts.lexical=postgres": "needs a server; tests/retrievers/engines starts one",
    r"(encoder|reranker)=api": "calls an API; tests/llm has stand-ins",
    r"\bllm=": "asks a language model; the tests of each verb have a fake one",
    r"-m retriever=reranked": "downloads a cross-encoder; tests/retrievers/composed/test_reranked.py has a small one",
    r"path/to/a/model": "needs a model; tests/retrievers have small ones",
    r"HOST|-m \.\.\.": "needs a cluster",
    r"s3://": "needs an object store; tests/store/test_contract.py has one",
    r"dataset=faq": "needs a plug-in: test_the_documented_format_is_read_from_outside",
    r"tracking.experiment=ci": "evaluates the dataset of the reader's repository",
}
"""Why some commands, by a pattern, cannot run here; `tests/test_documented_commands.py` composes them."""

SLOW = r"count=1000|dataset=synthetic dataset.path=queries.jsonl"
"""Commands that take minutes: they embed a thousand queries."""


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def chapters(text: str) -> dict[str, str]:
    """Return the text of each chapter by its heading."""
    parts = (part.partition("\n") for part in re.split(r"^## ", text, flags=re.MULTILINE))
    return {heading: body for heading, _, body in parts}


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of a language, without the indentation that a list gives them."""
    return [textwrap.dedent(block) for _, name, block in FENCE.findall(text) if name == language]


REPORTS = dict(FILE.findall("\n".join(blocks(chapters(page("docs/compare.md"))["Two reports"], "text"))))
PLACEHOLDERS = {  # files with the names that the pages use for a run, or for a folder of the reader
    **dict.fromkeys(("RUN", "3f2a9c01"), REPORTS["before.json"]),
    "81d0c7aa": REPORTS["after.json"],
    **{name.replace("DIR", "FOLDER"): content for name, content in DIR.items()},
    "FOLDER/queries.jsonl": (
        '{"_id": "q1", "text": "ships", "metadata": {"question_id": "a"}}\n'
        '{"_id": "q2", "text": "islands ferry", "metadata": {"question_id": "b"}}\n'
    ),
}


def commands(chapter: str) -> list[str]:
    """Return the commands of this program in a chapter, as they are written."""
    text = "\n".join(textwrap.dedent(block) for _, language, block in FENCE.findall(chapter) if language in SHELLS)
    return [line for line in text.replace("\\\n", " ").splitlines() if line.startswith("python -m runner")]


def why_not(command: str) -> str:
    """Return why a command cannot run here, "" if it can."""
    return next((reason for pattern, reason in NOT_HERE.items() if re.search(pattern, command)), "")


def chapters_with_commands() -> Iterator[ParameterSet]:
    """Yield the page, the heading and the commands to leave out of each chapter with some that can run here."""
    names = map(str, (path.relative_to(ROOT) for path in PAGES))
    for name in (name for name in names if name not in PAGES_OF_THEIR_OWN):
        for heading, chapter in chapters(page(name)).items():
            if not all(map(why_not, commands(chapter))):
                title = f"{name}: {heading.removeprefix('# ')}"
                yield pytest.param(name, heading, SLOW, id=title)
                if re.search(SLOW, chapter):
                    slow = pytest.mark.slow(reason="embeds a thousand queries")
                    yield pytest.param(name, heading, "(?!)", id=f"{title}, all", marks=slow)


def run_commands() -> set[str]:
    """Return the documented commands that a test of their chapter runs."""
    parameters = (case.values for case in chapters_with_commands() if not case.marks)
    chapter_commands = (
        (command, str(left_out))
        for name, heading, left_out in parameters
        for command in commands(chapters(page(str(name)))[str(heading)])
    )
    return {c.strip() for c, left_out in chapter_commands if not (why_not(c) or re.search(left_out, c))}


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")


def run(command: str, *more: str) -> int:
    """Run a command as it is written, up to what a shell does after it."""
    words = shlex.split(command.removeprefix("python -m runner").partition("||")[0], comments=True)
    return main([*words, *more])


@pytest.fixture
def here(tracking: Tracking, shared_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: it has a store of runs, the shared store of work, and the small dataset."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mlruns" / "cache").symlink_to(shared_store)
    write(tmp_path, DIR | PLACEHOLDERS)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    return tmp_path


@pytest.fixture
def working_directory_imported(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the working directory, whose modules are imported as `python -m` does."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(here)
    yield here
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(here)):
            del sys.modules[name]


@pytest.mark.usefixtures("warm_workers")
@pytest.mark.parametrize(("name", "heading", "left_out"), list(chapters_with_commands()))
def test_the_documented_commands_of_a_chapter_run_in_order(
    working_directory_imported: Path, name: str, heading: str, left_out: str
) -> None:
    here = working_directory_imported
    if "python -m runner cache" in chapters(page(name))[heading]:  # it removes entries
        (here / "mlruns" / "cache").unlink()
    for chapter in (chapters(page(name))[h] for h in (EARLIER.get((name, heading)), heading) if h is not None):
        files, code = dict(FILE.findall("\n".join(blocks(chapter, "text")))), blocks(chapter, "python")
        write(here, files | {match[1]: block for block in code if (match := MODULE.match(block))})
        for block in code if files else []:
            exec(block, {})  # makes files of those
        for command in commands(chapter):
            assert why_not(command) or re.search(left_out, command) or run(command) == 0, command


def test_the_documented_experiment_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (experiment,) = (block for block in blocks(page("README.md"), "yaml") if "sweep:" in block)
    found = re.search(r"^# (conf/\S+), run by: python -m runner (.+)$", experiment, re.MULTILINE)
    assert found is not None
    write(here, {found[1]: experiment})
    assert run(found[2], "--config-dir=conf", "dataset=beir", "dataset.path=DIR") == 0
    assert "combinations by" in capsys.readouterr().out


ADD = chapters(page("README.md"))["Add a retriever in three steps"]


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder with the README's retriever, as a module and its YAML, where modules are imported from."""
    folder = tmp_path_factory.mktemp("added")
    (code,), (config,) = blocks(ADD, "python"), blocks(ADD, "yaml")
    write(folder, {"your_module.py": code, "FOLDER/retriever/shortest.yaml": config})
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)  # as python -m does with the working directory
        yield folder
    sys.modules.pop("your_module", None)


def test_the_documented_retriever_is_run_from_outside(
    here: Path, added: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options, command = (re.search(pattern, ADD) for pattern in (r"`(--config-dir=.+?)`", r"`python -m runner (.+?)`"))
    assert options is not None
    assert command is not None
    assert run(f"{command[1]} {options[1]}".replace("FOLDER", str(added / "FOLDER"))) == 0
    assert "2 combinations" in capsys.readouterr().out


def checks() -> list[Callable[..., None]]:
    """Return what is checked of a retriever that is exact, whatever it takes for a word: as of the dense one."""
    tests = [value for name, value in vars(contract).items() if name.startswith("test_")]
    return [test for test in tests if any(p.id == "dense" for mark in test.pytestmark for p in mark.args[1])]


@pytest.mark.parametrize("check", checks())
@pytest.mark.usefixtures("added")
def test_the_documented_retriever_keeps_the_contract(check: Callable[..., None], harbour: Corpus) -> None:
    retriever: Retriever = importlib.import_module("your_module").Shortest()
    wanted = {"harbour": harbour} if "harbour" in inspect.signature(check).parameters else {}
    check(retriever=retriever, **wanted)


def test_the_documented_place_of_the_contract_exists() -> None:
    found = re.search(r"[Aa]dd\s+it\s+to `(\w+)` in\s+`(\S+)`", ADD)
    assert found is not None
    assert (ROOT / found[2]).samefile(contract.__file__)
    assert hasattr(contract, found[1])


FORMAT = chapters(page("docs/datasets.md"))["A custom format"]


@pytest.fixture
def formatted(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a working directory with the page's format, as a module and its YAML, and a file to read."""
    (code,), (config,), (files,) = (blocks(FORMAT, language) for language in ("python", "yaml", "text"))
    write(here, {"your_format.py": code, "FOLDER/dataset/faq.yaml": config, **dict(FILE.findall(files))})
    monkeypatch.syspath_prepend(here)
    yield here
    sys.modules.pop("your_format", None)


@pytest.mark.usefixtures("formatted")
@pytest.mark.parametrize(
    ("setting", "code", "told"),
    [
        ("", 0, "faq (test): 2 documents, 2 queries"),
        ("chunking=tokens chunking.size=4", 0, "2 documents in 4 chunks"),
        ("dataset.path=faqs.txt", 2, "dataset.path=faqs.txt: no such file or folder"),
    ],
)
def test_the_documented_format_is_read_from_outside(
    setting: str, code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (command,) = blocks(FORMAT, "console")
    assert run(command, *setting.split()) == code
    assert told in "".join(capsys.readouterr())


def documented(chapter: str) -> dict[str, Any]:
    """Return the settings in a chapter's table, each with its default."""
    return {
        name: "???" if default == "required" else yaml.safe_load(default.strip("`").replace(r"\|", "|"))
        for names, default in SETTINGS.findall(chapter)
        for name in re.findall(r"\w+", names)
    }


FORMATS = [path.stem for path in sorted((ROOT / "conf" / "dataset").glob("[!_]*.yaml"))]


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "golden"])  # the bundled golden_json
def test_every_setting_of_a_dataset_is_documented_with_its_default(name: str) -> None:
    config = load_settings(ROOT / "conf" / "dataset" / f"{name}.yaml")
    del config["_target_"]
    shared = documented(chapters(page("docs/datasets.md"))["Settings of every format"])
    texts = [text for path in PAGES for text in chapters(page(str(path))).values()]
    assert any(shared | documented(text) == config for text in texts)


def test_the_files_named_for_extensions_exist() -> None:
    named = re.findall(r"`((?:\w+/)+[\w.]*|\w+\.(?:md|toml))`", page("docs/extending.md"))
    assert len(named) > 40
    assert [name for name in named if "NAME" not in name and not (ROOT / name).exists()] == []


def test_the_names_that_extensions_change_are_in_their_files() -> None:
    text = " ".join(page("docs/extending.md").split())
    named = [
        (file, name)
        for file, inner in re.findall(r"`([\w/]+\.py)` \((`[^)]*)\)", text)
        for name in re.findall(r"`(\w+)`", inner)
    ]
    named += [(file, name) for name, file in re.findall(r"`(\w+)` (?:in|of) `([\w/]+\.py)`", text)]
    assert len(named) > 25
    assert [
        (file, name) for file, name in named if not re.search(rf"\b{name}\b", (ROOT / file).read_text(encoding="utf-8"))
    ] == []


@pytest.mark.parametrize("name", ["explain.md", "spans.md", "racing.md", "tables.md", "reliability.md"])
def test_a_page_of_a_method_has_all_parts_and_a_simulation_that_exists(name: str) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    parts = re.split(r"^(?:## ([A-Z]\w+)$|\*\*([A-Z]\w+)\.\*\*)", text, flags=re.MULTILINE)
    named = [
        (heading or label, content)
        for heading, label, content in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    ]
    assert {"Question", "Formula", "Source", "Assumptions", "Simulation"} <= {part for part, _ in named}
    modules = {
        module
        for part, content in named
        if part == "Simulation"
        for module in re.findall(r"python -m\s+(benchmarks\S+?)[`\s]", content)
    }
    assert modules
    assert all((ROOT / f"{module.replace('.', '/')}.py").is_file() for module in modules)


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    ("name", "target", "anchor"),
    [(str(path.relative_to(ROOT)), *link) for path in PAGES for link in LINK.findall(page(str(path)))],
)
def test_what_is_linked_exists(name: str, target: str, anchor: str) -> None:
    if not target.startswith(("http:", "https:")):
        path = (ROOT / name).parent / target if target else ROOT / name
        assert path.exists()
        assert not anchor or anchor in anchors(path)
