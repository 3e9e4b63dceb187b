"""The page on security is current: its table is that of the classes, and the tests that it names exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_type_hints

import pytest
import yaml

from release.security import list_classes, list_names, render_page
from retrievers.access import Access, find_access
from runner.config import CONF
from runner.config.consent import TRUSTED
from runner.config.objects import ConfigError, build

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
TESTS = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
TELLING = re.compile(
    r"(^|_)(path|file|folder|url|dsn|uri|ledger|factory|tokenizer)$|^(corpus|documents|qrels|items|topics|queries)$"
)
"""Names of settings that are likely to name a file, an address or code."""

PLAIN = {
    "retrievers.lexical.sqlite_fts.SqliteFts": {"tokenizer"},  # one of three
    "retrievers.services.http_api.Http": {
        "search_path",
        "items_path",
        "health_path",
        "document_path",
    },  # below base_url
    "runner.llm.embedding.ApiEncoder": {"path"},  # below base_url
    "runner.llm.reranking.ApiReranker": {"path"},  # below base_url
    "runner.features.mine.packages.Package": {"queries"},  # a number
}
"""Settings with such names that name neither."""


def test_the_table_is_that_of_the_classes() -> None:
    assert render_page(PAGE) == PAGE, "run `make docs`, or `python -m release.security docs/security.md`"


def test_each_statement_has_a_test() -> None:
    assert len(TESTS) > 15
    missing = [f"{file}::{name}" for file, name in TESTS if f"def {name}(" not in (ROOT / file).read_text("utf-8")]
    assert not missing


def test_every_word_of_trust_is_explained() -> None:
    table = PAGE.partition("## Extending trust")[2].partition("\n\n`'plugins")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(TRUSTED)


def test_every_choice_declares_its_access() -> None:
    declared = {name for name, _ in list_classes()}
    for file in CONF.rglob("*.yaml"):
        targets = set(re.findall(r"_target_: *([\w.]+)", yaml.dump(yaml.safe_load(file.read_text(encoding="utf-8")))))
        assert {target for target in targets if not target.startswith("hydra")} <= declared, file


def test_a_config_cannot_create_a_class_without_declared_access() -> None:
    declared = {name for name, _ in list_classes()}
    others = [name for name in list_names() if name not in declared and name.startswith("runner.")]
    assert len(others) > 300
    for name in others[::10]:
        with pytest.raises(ConfigError, match="a config cannot create this class"):
            build({"_target_": name}, "retriever")


def test_a_setting_that_may_name_a_file_an_address_or_code_is_declared() -> None:
    for name, kind in list_classes():
        access = find_access(kind) or Access()
        declared = {*access.names, *access.paths, *access.code, *access.secrets, *PLAIN.get(name, ())}
        assert {setting for setting in get_type_hints(kind) if TELLING.search(setting)} <= declared, name


def test_no_part_of_a_class_uses_more_without_being_named() -> None:
    """A mapping without a class becomes an object by the type of its setting, so that must use nothing itself."""
    for name, kind in list_classes():
        for setting, hint in get_type_hints(kind).items():
            parts = [part for part in (hint, *getattr(hint, "__args__", ())) if isinstance(part, type)]
            uses = [find_access(part) for part in parts if part is not kind]
            assert all(access in (None, Access()) for access in uses), (name, setting)
