"""An installed package as targets and questions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.config.objects import ConfigError
from runner.features.mine.packages import MASK, Package, find_targets, mask_name, split_first_sentence

FILES = {
    "__init__.py": '''
        """A kit of tools for tests. It does this and that, and more than one would think it could do at all."""
        from collections import OrderedDict
        from pretendkit.shapes import Square
        from pretendkit._hidden import area, LIMIT
        __all__ = ["Square", "area", "gone"]
    ''',
    "_hidden.py": '''
        LIMIT = 3
        def area(side: int = 1) -> int:
            """Computes the area of one figure by its side.

            The side is a whole number of any size; what comes of it is a whole number as well, never below zero.
            """
            raise SystemExit("never called")
    ''',
    "shapes.py": '''
        """Shapes."""
        import sys
        def _private() -> None: ...
        class Square:
            """Square(side)

            A `Square` has four sides of one length. Others have sides that differ in length, or more of them, or less.
            """
            def grow(self, by: object = object()) -> None:
                """Grows."""
            @staticmethod
            def unit() -> "Square": ...
            def _inner(self) -> None: ...
        Quadrat = Square
    ''',
    "broken.py": 'print("noise"); raise RuntimeError("a library is missing")',
    "script.py": "raise SystemExit(3)",
    "tests/__init__.py": "raise AssertionError('left out')",
}


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have a package pretendkit, installed."""
    for name, content in FILES.items():
        path = tmp_path / "pretendkit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(line.removeprefix("        ") for line in content.splitlines()))
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "pretendkit"]:
        del sys.modules[name]


def test_one_object_is_one_target_with_all_its_names(capfd: pytest.CaptureFixture[str]) -> None:
    targets = find_targets("pretendkit", ["tests"], methods=True)
    assert {target.id: (target.kind, target.aliases) for target in targets.all} == {
        "pretendkit": ("MODULE", ()),
        "pretendkit.area": ("METHOD", ()),
        "pretendkit.shapes": ("MODULE", ()),
        "pretendkit.shapes.Square": ("CLASS", ("pretendkit.Square", "pretendkit.shapes.Quadrat")),
        "pretendkit.shapes.Square.grow": ("METHOD", ()),
        "pretendkit.shapes.Square.unit": ("METHOD", ()),
    }
    assert capfd.readouterr() == ("", "")


def test_modules_that_cannot_be_imported_are_skipped_with_a_note() -> None:
    notes = find_targets("pretendkit", ["tests"], methods=True).notes
    assert list(notes) == [
        "pretendkit.broken is skipped, because it cannot be imported (RuntimeError: a library is missing)",
        "pretendkit.script is skipped, because it cannot be imported (SystemExit: 3)",
    ]


def test_objects_that_raise_when_inspected_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "pretendkit/lazy.py").write_text(
        "class Lazy:\n"
        "    def __getattr__(self, name):\n"
        "        raise RuntimeError('no driver')\n"
        "    def __call__(self): ...\n"
        "class Card:\n"
        '    """A card. It has a driver that is not there, and a method all the same."""\n'
        "    driver = Lazy()\n"
        "    def play(self): ...\n"
        "card = Lazy()\n"
        "__all__ = ['Card', 'card']\n"
    )
    targets = find_targets("pretendkit", ["tests"], methods=True)
    assert {"pretendkit.lazy.Card", "pretendkit.lazy.Card.play"} <= {target.id for target in targets.all}
    assert "pretendkit.lazy.Card.driver" not in {target.id for target in targets.all}


def test_objects_that_hide_their_class_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "pretendkit/conf.py").write_text(
        "class _Later:\n"
        "    __class__ = property(lambda self: 1 / 0)\n"
        "    def __call__(self): ...\n"
        "class Reader:\n"
        "    settings = _Later()\n"
        "    def read(self): ...\n"
        "settings = _Later()\n"
        "__all__ = ['Reader', 'settings']\n"
    )
    ids = [target.id for target in find_targets("pretendkit", ["tests"], methods=True).all]
    assert [name for name in ids if name.startswith("pretendkit.conf.")] == [
        "pretendkit.conf.Reader",
        "pretendkit.conf.Reader.read",
    ]


def test_signatures_are_the_same_in_every_process() -> None:
    texts = {target.id: target.signature for target in find_targets("pretendkit", ["tests"], methods=True).all}
    assert texts["pretendkit.area"] == "def area(side: int = 1) -> int"
    assert texts["pretendkit.shapes.Square.grow"] == "def grow(self, by: object = <object object>) -> None"


def test_sets_in_a_signature_are_in_order(tmp_path: Path) -> None:
    (tmp_path / "pretendkit/sets.py").write_text(
        "def one(some: set = {'f', 'e', 'd', 'c', 'b', 'a'}, rest=frozenset('321'), no=set(), last: int = 1): ...\n"
    )
    texts = {target.id: target.signature for target in find_targets("pretendkit", ["tests"], methods=True).all}
    assert texts["pretendkit.sets.one"] == (
        "def one(some: set = {'a', 'b', 'c', 'd', 'e', 'f'}, rest=frozenset({'1', '2', '3'}), no=set(), last: int = 1)"
    )


def test_methods_are_targets_only_on_request() -> None:
    ids = [target.id for target in find_targets("pretendkit", ["tests"], methods=False).all]
    assert "pretendkit.shapes.Square" in ids
    assert "pretendkit.shapes.Square.grow" not in ids


def test_a_question_is_the_first_sentence_and_not_in_its_document() -> None:
    material = Package(package="pretendkit", exclude=["tests"]).load()
    questions = {case.names[0]: case.query for case in material.cases}
    assert questions == {
        "pretendkit": "A kit of tools for tests.",
        "pretendkit.area": f"Computes the {MASK} of one figure by its side.",
        "pretendkit.shapes.Square": f"A {MASK} has four sides of one length.",
    }
    for case in material.cases:
        (gold,) = material.targets.resolve(case.names[0]).targets
        assert case.query.split(MASK)[-1] not in material.targets.all[gold].text
        assert "derived" in case.metadata
    (position,) = material.targets.resolve("pretendkit.shapes.Square.grow").targets
    assert material.targets.all[position].docstring == "Grows."
    assert material.targets.notes[-1] == "pretendkit: of 6 targets, 1 have no docstring and 3 yield a question"


def test_the_seed_determines_the_questions() -> None:
    def draw(seed: int) -> list[str]:
        return [case.id for case in Package(package="pretendkit", exclude=["tests"], queries=2, seed=seed).load().cases]

    assert draw(0) == draw(0)
    assert len({tuple(draw(seed)) for seed in range(8)}) > 1


@pytest.mark.parametrize("package", ["no_such_package_at_all", "pretendkit.broken", "pretendkit.script"])
def test_a_package_that_cannot_be_imported_is_refused(package: str) -> None:
    with pytest.raises(ConfigError, match=rf"^source.package={package}: cannot be imported"):
        Package(package=package).load()


def test_a_package_without_questions_is_refused() -> None:
    with pytest.raises(ConfigError, match="none of its 6 docstrings can be turned into a question"):
        Package(package="pretendkit", exclude=["tests"], least_left=1_000).load()


@pytest.mark.parametrize(
    ("docstring", "sentence", "rest"),
    [
        ("", "", ""),
        ("Does it.", "Does it.", ""),
        ("Does it, e.g. now. And more.", "Does it, e.g. now.", "And more."),
        ("Does it in\ntwo lines\n\nMore.", "Does it in two lines", "More."),
        ("add(x1, x2,\n    out=None)\n\nAdds them. Slowly.", "Adds them.", "add(x1, x2,\n    out=None)\n\nSlowly."),
        ("Has version 1.2 of it. Yes.", "Has version 1.2 of it.", "Yes."),
    ],
)
def test_first_sentences(docstring: str, sentence: str, rest: str) -> None:
    assert split_first_sentence(docstring) == (sentence, rest)


@pytest.mark.parametrize(
    ("sentence", "name", "expected"),
    [
        ("Call `run()` or run().", "run", f"Call {MASK} or {MASK}."),
        ("Running a run.", "run", f"Running a {MASK}."),
        ("An Agent and its agents.", "agent", f"An {MASK} and its agents."),
    ],
)
def test_a_name_is_masked_in_any_case_and_quotes(sentence: str, name: str, expected: str) -> None:
    assert mask_name(sentence, name) == expected
