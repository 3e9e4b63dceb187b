"""JUnit XML, which CI systems show as tests: suites of cases that passed, failed, raised an error or were skipped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from retrievers.files import replace_texts
from runner.config.objects import ConfigError

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot contain."""

_ELEMENTS = {"failed": "failure", "error": "error", "skipped": "skipped"}


@dataclass(frozen=True)
class JUnitCase:
    """A case of a suite: its group and name, how it ended, a line on that, and how long it took."""

    group: str
    name: str
    outcome: Literal["passed", "failed", "error", "skipped"] = "passed"
    message: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class JUnitSuite:
    """Cases under a name."""

    name: str
    cases: Sequence[JUnitCase]


def render_junit(suites: Sequence[JUnitSuite]) -> str:
    """Return suites as an XML document; characters that XML cannot contain are replaced."""
    root = ElementTree.Element("testsuites", _count([case for suite in suites for case in suite.cases]))
    for suite in suites:
        node = ElementTree.SubElement(root, "testsuite", {"name": _clean(suite.name), **_count(suite.cases)})
        for case in suite.cases:
            of_case = {"classname": _clean(case.group), "name": _clean(case.name), "time": f"{case.seconds:.6f}"}
            test = ElementTree.SubElement(node, "testcase", of_case)
            if case.outcome != "passed":
                ElementTree.SubElement(test, _ELEMENTS[case.outcome], {"message": _clean(case.message)})
            elif case.message:
                ElementTree.SubElement(test, "system-out").text = _clean(case.message)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def write_junit(text: str, file: Path) -> None:
    """Write a document into the file that the setting `junit` names; raises `ConfigError`."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        target = file.resolve()  # a link, such as /dev/stdout, stays
        replace_texts(target.parent, {target.name: text})
    except OSError as error:
        raise ConfigError(f"junit={file}: cannot be written ({error.strerror})") from None


def _count(cases: Sequence[JUnitCase]) -> dict[str, str]:
    """Return the counts of cases by outcome and their time, as attributes."""
    outcomes = [case.outcome for case in cases]
    return {
        "tests": str(len(cases)),
        "failures": str(outcomes.count("failed")),
        "errors": str(outcomes.count("error")),
        "skipped": str(outcomes.count("skipped")),
        "time": f"{sum(case.seconds for case in cases):.6f}",
    }


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
