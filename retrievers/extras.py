"""Packages that only an extra of retrieval-runner installs; a missing one is reported before any work.

The message names the command that adds the extra to this copy of the program: from the place that it was installed
from, which the installer has recorded (PEP 610), and with the tool that installed it.
"""

from __future__ import annotations

import json
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from retrievers.errors import RetrieverError

NAME = "retrieval-runner"

_TOOLS = {"uv-receipt.toml": "uv tool install", "pipx_metadata.json": "pipx install --force"}
"""Files that the environment of a tool has, and the command that installs into it."""


class MissingPackageError(RetrieverError):
    """A package that a setting needs is not installed."""


def is_installed(module: str) -> bool:
    """Return whether a module, or a part of one such as `optimum.intel`, can be imported."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # what it is a part of
        return False


def check_installed(module: str, package: str, extra: str) -> None:
    """Raise `MissingPackageError` with the command that installs a package, unless its module can be imported."""
    if not is_installed(module):
        raise MissingPackageError(f"needs {package}, which is not installed; run {write_install_command(extra)}")


def write_install_command(extra: str = "") -> str:
    """Return the command that installs this copy of the program again, with an extra, quoted for a shell."""
    record, installer = _read_record()
    pip = "uv pip install" if installer == "uv" else "pip install"
    tool = next((command for file, command in _TOOLS.items() if Path(sys.prefix, file).is_file()), pip)
    editable = "--editable " if record.get("dir_info", {}).get("editable") else ""
    return f"{tool} {editable}{shlex.quote(locate_source(extra))}"


def locate_source(extra: str = "") -> str:
    """Return what pip calls the place that this copy was installed from, with an extra: a folder or a requirement.

    Only a copy that was installed from an index has no place in its record: its name is enough.
    """
    record, _ = _read_record()
    url, extras = record.get("url", ""), f"[{extra}]" if extra else ""
    if "dir_info" in record:
        return url2pathname(urlsplit(url).path) + extras
    if "vcs_info" in record:
        url = f"{record['vcs_info']['vcs']}+{url}@{record['vcs_info']['commit_id']}"
    if "subdirectory" in record:
        url += f"#subdirectory={record['subdirectory']}"
    return f"{NAME}{extras} @ {url}" if url else f"{NAME}{extras}"


def _read_record() -> tuple[dict[str, Any], str]:
    """Return where this copy was installed from (PEP 610) and by what; a copy that was not is in the folder above."""
    try:
        installed = distribution(NAME)
    except PackageNotFoundError:
        return {"url": Path(__file__).resolve().parents[1].as_uri(), "dir_info": {"editable": True}}, ""
    record: dict[str, Any] = json.loads(installed.read_text("direct_url.json") or "{}")
    return record, (installed.read_text("INSTALLER") or "").strip()
