"""Write the recommended combination of a sweep as files: an experiment of it alone, and a script that searches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from retrievers.spellings import HIDDEN
from runner.config import SHARED_GROUPS
from runner.config.arguments import format_override
from runner.config.objects import ConfigError
from runner.config.values import VOLATILE
from runner.datasets.given import GivenDataset
from runner.evaluation.experiment import Experiment
from runner.sweep.compose import Composer

WINNER, SCRIPT = "winner.yaml", "use_winner.py"

CODE = '''"""Search as the winner of a sweep does, from the same working folder:  python use_winner.py "A question" """

import sys
from pathlib import Path

import runner

winner = runner.load_experiment(Path(__file__).with_name("winner.yaml"))
question = sys.argv[1] if len(sys.argv) > 1 else winner.dataset.queries.texts[0]
print(question)
for hit in winner.search(question, k=5):
    print(f"{hit.rank}. {hit.id} ({hit.score:.3f}): {' '.join(hit.text.split())[:100]}")
'''

_ABSENT = object()


def build_winner_files(experiment: Experiment, composer: Composer, title: str) -> dict[str, str]:
    """Return the experiment and the script by their names; none if files cannot say what the winner is.

    That is so if its dataset was made in Python, or if a setting is a secret or was removed.
    """
    if isinstance(experiment.source, GivenDataset):
        return {}
    try:
        choices, values = find_settings(experiment.config, composer)
    except (ConfigError, HydraException, OmegaConfBaseException):
        return {}
    if any(HIDDEN in str(value) or value is _ABSENT for _, value in values):
        return {}
    return {WINNER: _write(choices, values, title), SCRIPT: CODE}


Setting = tuple[tuple[str, ...], Any]
"""The path of a setting, and its value."""


def find_settings(config: Mapping[str, Any], composer: Composer) -> tuple[list[str], list[Setting]]:
    """Return the choices, as overrides, and the settings in which a config differs from the default ones.

    Other settings refer to those of shared groups, which therefore come first. Raises Hydra's errors and `ConfigError`.
    """
    changed = {group: choice for group, choice in config["choices"].items() if group != "experiment"}
    defaults = composer.compose([]).hydra.runtime.choices
    plain = {group: choice for group, choice in changed.items() if "@" not in group}
    words = [f"{group}={choice}" for group, choice in plain.items() if defaults.get(group) != choice]
    known = composer.compose(words).hydra.runtime.choices
    for group, choice in changed.items():
        if "@" in group and known.get(group) != choice:
            words.append(f"{'' if group in known else '+'}{group}={choice}")
    required = [key.split(".") for key in OmegaConf.missing_keys(composer.compose(words))]
    values: list[Setting] = [(tuple(path), _look_up(config, path)) for path in sorted(required)]
    groups = [group for group in (*SHARED_GROUPS, *config) if group in config and group not in (*VOLATILE, "choices")]
    for group in dict.fromkeys(groups):
        lines = [format_override(".".join(path), value) for path, value in values]
        now = composer.settle([*words, *lines]).public.get(group, _ABSENT)
        values += _iter_differences(now, config[group], (group,))
    return words, values


def _look_up(node: Any, path: Sequence[str]) -> Any:  # noqa: ANN401 (any value)
    for key in path:
        node = node.get(key, _ABSENT) if isinstance(node, Mapping) else _ABSENT
    return node


def _iter_differences(before: Any, after: Any, path: tuple[str, ...]) -> Iterator[Setting]:  # noqa: ANN401 (any nodes)
    """Yield each setting with another value than before; one that is absent now has the value `_ABSENT`."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in [*after, *(key for key in before if key not in after)]:
            yield from _iter_differences(before.get(key, _ABSENT), after.get(key, _ABSENT), (*path, str(key)))
    elif before != after:
        yield path, after


def _write(words: Sequence[str], values: Sequence[Setting], title: str) -> str:
    tree: dict[str, Any] = {}
    for (*parents, name), value in values:
        node = tree
        for key in parents:
            node = node.setdefault(key, {})
        node[name] = value
    defaults: list[Any] = []
    for word in sorted(words, key=lambda word: not word.startswith("+")):  # Hydra wants overrides last
        group, _, choice = word.lstrip("+").partition("=")
        defaults.append({f"{'' if word.startswith('+') else 'override '}/{group}": choice})
    content = ({"defaults": defaults} if defaults else {}) | tree
    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120) if content else ""
    return f"# @package _global_\n# {' '.join(title.split())}\n#   python -m runner experiment={WINNER}\n{text}"
