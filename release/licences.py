"""List the licences of all dependencies, read from their metadata: `python -m release.licences FILE` writes the page.

A licence is an SPDX expression. Older packages state it in free text or by a classifier, which `SPELLINGS` translates.
For packages that do not state a licence, `STATED_ELSEWHERE` has what a person read in their licence files.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from importlib.metadata import PackageNotFoundError
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]

ALLOWED = frozenset({
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0",
    "CNRI-Python", "ISC", "MIT", "MIT-0", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Zlib",
})  # fmt: skip
"""Licences that only require notices and, for MPL-2.0, the publication of changes to the package's own files."""

ALLOWED_FOR_DEVELOPMENT = ALLOWED | {"LGPL-3.0-only"}
"""Licences of packages that only tests use or that users choose to install; this program includes neither."""

LIBERAL_PARTS = ("development", "postgres")
"""The parts that may have packages under these licences; `postgres` needs psycopg, a driver under the LGPL."""

SPELLINGS: Mapping[str, str] = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2.0": "Apache-2.0",
    "apache 2.0 license": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "apache2.0": "Apache-2.0",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "isc license": "ISC",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
}

STATED_ELSEWHERE: Mapping[str, str] = {
    "adlfs": "BSD-3-Clause",
    "antlr4-python3-runtime": "BSD-3-Clause",
    "colorama": "BSD-3-Clause",
    "cycler": "BSD-3-Clause",
    "gitdb": "BSD-3-Clause",
    "huey": "MIT",
    "isodate": "BSD-3-Clause",
    "itsdangerous": "BSD-3-Clause",
    "jinja2": "BSD-3-Clause",
    "kiwisolver": "BSD-3-Clause",
    "lz4": "BSD-3-Clause",
    "matplotlib": "PSF-2.0",
    "mlflow-skinny": "Apache-2.0",
    "mlflow-tracing": "Apache-2.0",
    "mpmath": "BSD-3-Clause",
    "numba": "BSD-2-Clause",
    "omegaconf": "BSD-3-Clause",
    "partd": "BSD-3-Clause",
    "pyasn1-modules": "BSD-2-Clause",
    "pystemmer": "MIT AND BSD-3-Clause",
    "python-dateutil": "Apache-2.0 OR BSD-3-Clause",
    "s3fs": "BSD-3-Clause",
    "scipy": "BSD-3-Clause",
    "skops": "MIT",
    "sqlparse": "BSD-3-Clause",
    "sympy": "BSD-3-Clause",
    "zict": "BSD-3-Clause",
}
"""The licences, from their licence files, of packages whose metadata state no licence or only "BSD"."""

VENDOR = re.compile(r"nvidia-.+|cuda-.+")
"""Proprietary libraries that PyTorch's CUDA build installs, under the vendor's terms; this program needs none."""


@dataclass(frozen=True)
class Dependency:
    """An installed package: its licence as an SPDX expression, "" if unknown, and the part that requires it."""

    name: str
    licence: str
    part: str

    @property
    def is_allowed(self) -> bool:
        """Return whether every licence in the expression is allowed."""
        allowed = ALLOWED_FOR_DEVELOPMENT if self.part in LIBERAL_PARTS else ALLOWED
        return _split(self.licence) <= allowed


def list_dependencies() -> list[Dependency]:
    """Return the installed packages, without this one, pip and vendor libraries, by part and name."""
    parts = _find_parts()
    order = list(read_parts())
    installed = {canonicalize_name(package.name): package for package in metadata.distributions()}
    others = {"retrieval-runner", "pip", "setuptools", "wheel"}
    packages = [
        Dependency(package.name, read_licence(package), parts.get(name, "development"))
        for name, package in installed.items()
        if name not in others and not VENDOR.fullmatch(name)
    ]
    return sorted(packages, key=lambda package: (order.index(package.part), package.name.lower()))


def read_licence(package: metadata.Distribution) -> str:
    """Return a package's licence as an SPDX expression, or in the package's own words if these are unknown."""
    fields = package.metadata
    if expression := fields.get("License-Expression"):
        return str(expression)
    if known := STATED_ELSEWHERE.get(canonicalize_name(package.name)):
        return known
    text = str(fields.get("License") or "").partition("\n")[0].strip()
    classifiers = [line.rpartition(" :: ")[2] for line in fields.get_all("Classifier") or () if "License ::" in line]
    named = [SPELLINGS.get(words.lower(), words) for words in (text, *classifiers)]
    return next((name for name in named if _split(name) <= ALLOWED_FOR_DEVELOPMENT), named[0])


def _split(expression: str) -> set[str]:
    """Return the licences that an SPDX expression names."""
    return set(re.split(r"\s+(?:AND|OR)\s+", re.sub(r"[()]", "", expression)))


def read_parts() -> dict[str, list[str]]:
    """Return the requirements of each part that can be installed, in the order of the page."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras, development = project["project"]["optional-dependencies"], project["dependency-groups"]["dev"]
    parts = {"core": project["project"]["dependencies"], **extras, "development": development}
    del parts["all"]  # has what the others have
    return parts


def _find_parts() -> dict[str, str]:
    """Return the first part that requires each package, directly or indirectly."""
    parts: dict[str, str] = {}
    for part, requirements in read_parts().items():
        todo = [Requirement(text) for text in requirements]
        seen: set[tuple[str, str]] = set()
        while todo:
            requirement = todo.pop()
            name = canonicalize_name(requirement.name)
            for extra in ("", *requirement.extras):
                if (name, extra) not in seen:
                    seen.add((name, extra))
                    parts.setdefault(name, part)
                    todo += _iter_requirements(name, extra)
    return parts


def _iter_requirements(name: str, extra: str) -> Iterator[Requirement]:
    try:
        texts: Iterable[str] = metadata.requires(name) or ()
    except PackageNotFoundError:  # for another platform or version of Python
        return
    for requirement in map(Requirement, texts):
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def render_page() -> str:
    """Return the page of licences, in Markdown."""
    lines = [
        "# Licences", "",
        "retrieval-runner is licensed under Apache-2.0 (see [LICENSE](../LICENSE)). It contains vega, vega-lite and",
        "vega-embed (BSD-3-Clause), with their licences, in `runner/pages/explorer/static/vendor`. All other",
        "dependencies are installed by `pip`. The tables list the packages that `requirements.lock`",
        "installs, with the licence that each package states. A package is listed under the first part of the program",
        "that needs it. `make docs` writes this page. A test rejects all licences except those listed in",
        "`release/licences.py`: permissive licences, MPL-2.0, and LGPL-3.0 for packages that only tests use and for",
        "the driver of the `postgres` extra.", "",
        "The CUDA build of PyTorch also installs NVIDIA's proprietary libraries, under NVIDIA's terms; the CPU build",
        "does not.",
    ]  # fmt: skip
    dependencies = list_dependencies()
    locked = list_locked()
    for part in read_parts():
        rows = [d for d in dependencies if d.part == part and canonicalize_name(d.name) in locked]
        if rows:
            heading = f"The `{part}` extra" if part not in ("core", "development") else part.capitalize()
            lines += ["", f"## {heading}", "", "| package | licence |", "|---|---|"]
            lines += [f"| {row.name} | {row.licence} |" for row in rows]
    return "\n".join(lines) + "\n"


def list_locked() -> dict[str, str]:
    """Return the versions of the packages in requirements.lock, by canonical name."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [line.split(" ")[0].partition("==") for line in lines if "==" in line]
    return {canonicalize_name(name): version for name, _, version in pins}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render_page(), encoding="utf-8")
