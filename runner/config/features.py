"""What a command and a feature declare about themselves, and where features are found.

A feature is a package that declares `FEATURE`: a folder of `runner/features`, or a module that an installed package
names in the entry-point group `retrieval_runner.features`. Its `__init__.py` imports nothing but this module, since
`--help` reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

from runner.config import CONF
from runner.config.projects import FEATURES, list_entry_points

OWN = "runner.features"
"""The package whose folders are the program's own features."""


class FeatureError(ValueError):
    """An installed feature cannot be imported, or declares none."""


class Document(NamedTuple):
    """What `--json` prints: the keys of the document, separated by spaces, what it holds, and in which case."""

    keys: str
    content: str
    case: str = ""


class Command(NamedTuple):
    """A command: its help, documentation, completion and exit codes are derived from this value.

    `usage` are the words that it needs. `settings` maps a key of `conf/NAME.yaml` ("" for the file) to the class of its
    settings. `exit_codes` explain the codes beside 0 for success; one that has 3 returns it for a crash, since its 1 is
    the verdict of a gate. A word without `=` sets `argument`. The values of `texts` are taken as they are typed;
    those of `lists` are separated by commas. A command that `serves` runs until it is stopped, and has no document.
    `module` has the function `main`, and `help` the text; both are set where the command is found.
    """

    summary: str
    usage: str = ""
    settings: Mapping[str, str] = {}
    success: str = "success"
    exit_codes: Mapping[int, str] = {2: "invalid command"}
    argument: str = ""
    texts: Sequence[str] = ()
    lists: Sequence[str] = ()
    serves: bool = False
    documents: Sequence[Document] = ()
    module: str = ""
    help: Path = Path()


class Feature(NamedTuple):
    """A feature: its command, the functions that add sections to reports, and those that add to `look`.

    A function is named as `module:function`. The one for `evaluation` takes a `Result`, the one for `sweep` a
    `Leaderboard` and its results; both yield `ReportSection`s. `apps` are by their path below the page of a choice of
    runs: the function takes the settings of `look`, the runs, consent and access, and returns a context manager, whose
    value is called with a choice of runs and returns their ASGI application. `pages` names the function that takes all
    runs (`Runs`) and the folder of baselines, and returns further pages of `look` by title, each as a function that
    returns its HTML. `figures` adds figures to an evaluation whose config has settings under the feature's name: the
    function takes the `Experiment` and the `Bench`, and returns them by name. `folder` is set where the feature is
    found; its `conf/` is searched for config files.
    """

    command: Command | None = None
    sections: Mapping[Literal["evaluation", "sweep"], str] = {}
    apps: Mapping[str, str] = {}
    pages: str = ""
    figures: str = ""
    folder: Path = Path()


@cache
def list_features() -> dict[str, Feature]:
    """Return the features by name, those of the program first; raises `FeatureError`."""
    spec = find_spec(OWN)
    places = (spec.submodule_search_locations if spec else None) or ()
    rooms = sorted(file.parent.name for place in places for file in Path(place).glob("*/__init__.py"))
    own = {room: f"{OWN}.{room}" for room in rooms}
    installed = list_entry_points(FEATURES)
    for name in own.keys() & installed.keys():
        raise FeatureError(f"{installed[name]}: the name {name} is that of a feature of the program; remove it")
    return {name: _read(name, module) for name, module in (own | installed).items()}


def list_conf_folders() -> list[Path]:
    """Return the folders of config files: that of the program, and those of installed features that have one."""
    installed = (list_features()[name].folder / "conf" for name in list_entry_points(FEATURES))
    return [CONF, *(folder for folder in installed if folder.is_dir())]


def load_function(place: str) -> Callable[..., Any]:
    """Return the function that a feature names as `module:function`."""
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def _read(name: str, module: str) -> Feature:
    try:
        package = import_module(module)
        feature: object = package.FEATURE
        file = package.__file__
    except Exception as error:
        raise FeatureError(f"the installed feature {name} ({module}) cannot be read: {error}; remove it") from error
    if not isinstance(feature, Feature) or file is None:
        raise FeatureError(
            f"the installed feature {name} ({module}) declares no FEATURE of the type Feature; remove it"
        )
    folder = Path(file).parent
    command = feature.command
    if command is not None:
        command = command._replace(module=f"{module}.command", help=folder / "help.txt")
    return feature._replace(command=command, folder=folder)
