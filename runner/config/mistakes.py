"""Explains mistakes in overrides in one line each, with a correction that can be pasted."""

from __future__ import annotations

import re
import shlex
import sys
from argparse import ArgumentError
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from hydra.core.config_search_path import SearchPathQuery
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from runner.config import CONF
from runner.config.features import list_features
from runner.config.hydra_internals import ConfigLoaderImpl, create_config_search_path, get_args_parser, iter_children
from runner.config.objects import ConfigError, near, suggestion
from runner.config.values import VOLATILE

COMMAND = "runner"
"""The first word of `sys.argv` while Hydra reads the words of this program."""

_OTHERWISE = {"analyzer": "for other languages, choose plain"}
"""What to choose, by group, if none of the other choices fits."""


def can_sweep(verb: str) -> bool:
    """Return whether a verb can sweep over several values of a setting: an evaluation, its plan, or added figures."""
    feature = list_features().get(verb)
    return verb in ("evaluate", "plan") or (feature is not None and bool(feature.figures))


def check_flags(words: Sequence[str]) -> None:
    """Raise `ConfigError` for an unknown flag, and for the one that reads a pickle, which can run any code."""
    parser = get_args_parser()
    for word in words:
        name = word.partition("=")[0]
        if len(name) > len("--") and "--experimental-rerun".startswith(name):
            raise ConfigError(f"{word}: not supported, as its file could run any code; run the command again instead")
    parser.exit_on_error = False
    try:
        _, unknown = parser.parse_known_args([word for word in words if word.startswith("-") or "=" not in word])
    except ArgumentError as error:
        raise ConfigError(f"{error}; see --help for all flags") from error
    for word in (word for word in unknown if word.startswith("-")):  # ~KEY after a flag is an override
        name, _, value = word.lstrip("-").partition("=")
        raise ConfigError(f"{word}: no such flag; write a setting without dashes: {name}={value or 'VALUE'}")


def check_added(verb: str, overrides: Sequence[str]) -> None:
    """Raise `ConfigError` for a setting added with `+` that is not used.

    An override may refer to the setting, as in `+root=/data dataset.path=${root}/x`.
    """
    added = [word.lstrip("+").partition("=")[0] for word in overrides if word.startswith("+")]
    for key in added:
        top = key.partition(".")[0]
        if top in ("hydra", "plugins", "trust") or any(
            re.search(rf"\$\{{{re.escape(top)}\b", word) for word in overrides
        ):
            continue
        loader, _ = _loader()
        if loader.repository.group_exists(key.partition("@")[0]):  # it adds a choice
            continue
        try:
            composed, _ = _compose_groups(verb, overrides)
        except (HydraException, OmegaConfBaseException):
            return  # explained when the whole config is composed
        if top not in composed:
            raise ConfigError(_describe_unknown_key(key, verb, overrides))


def check_plugins(word: str) -> None:
    """Raise `ConfigError` for `plugins=[...]` with a module that is not installed."""
    try:
        modules = OverridesParser.create().parse_overrides([word])[0].value()
    except HydraException:
        return  # explained when the whole config is composed
    for module in modules if isinstance(modules, list) else ():
        problem = _import_problem(module) if isinstance(module, str) and module else ""
        if problem:
            raise ConfigError(f"plugins: {module}: {problem}; install it, or run the command in its folder")


def _import_problem(module: str) -> str:
    """Return why a module cannot be imported, "" if it can; its parent packages are imported."""
    try:
        return "" if find_spec(module) else "no such module"
    except ModuleNotFoundError as error:
        return f"no such module ({error})"
    except Exception as error:  # a parent package may raise any error
        return f"cannot be imported ({type(error).__name__}: {' '.join(str(error).split())})"


def explain(error: Exception, verb: str, overrides: Sequence[str]) -> str:
    """Return one line about a failed composition: the key, its value, and how to correct it."""
    text = str(error)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options is not None:
        if (file := error.missing_cfg_file.removeprefix("experiment/")).endswith(".yaml"):
            return f"experiment={file}: no such file"
        group, _, choice = error.missing_cfg_file.rpartition("/")
        return _describe_unknown_choice(group, choice, error.options)
    if match := re.search(r"Could not load '([^/']+)/([^']+)'", text):
        known = _loader()[0].get_group_options(match[1])
        return _describe_unknown_choice(match[1], match[2], known)
    if match := re.search(r"Could not override '([^']+)'", text):
        return _describe_unknown_key(match[1], verb, overrides)
    if match := re.search(r"Ambiguous value for argument '(.+)'", text):
        key, _, values = match[1].partition("=")
        return f"{match[1]}: several values; {_suggest_several_values(key, values, verb, overrides)}"
    if match := re.search(r"Multiple values for (\S+)\. To override|^(\S+) appears more than once", text):
        return _describe_added_choice(match[1] or match[2], overrides)
    if text.startswith("Config group override must be"):
        return _describe_null_group(overrides)
    if match := re.search(r"Error merging override (.+)", text):
        reason = str(error.__cause__ or error.__context__ or "").partition("\n")[0]
        return f"{match[1]}: {reason or 'not a valid value for this setting'}"
    if isinstance(error, OverrideParseException):
        return f"{error.override}: {_suggest_quotes(error.override)}"
    return " ".join(text.split())


def _suggest_several_values(key: str, values: str, verb: str, overrides: Sequence[str]) -> str:
    """Return how to write several values: as a list if the setting is one, or as an axis of a sweep."""
    sweeps = can_sweep(verb) and key.partition(".")[0] not in (*VOLATILE, "hydra")
    if _is_list(key, verb, overrides, unset=not sweeps):
        return f"write a list as '{key}=[{values}]'"
    quoted = f"quote it if it is one value: {_quote_text(key, values)}"
    return f"add -m to sweep over them, or {quoted}" if sweeps else f"give one value, or {quoted}"


def _suggest_quotes(override: str) -> str:
    """Return how to write an override that cannot be parsed: with its value in quotes, inside those of the shell."""
    key, equals, value = override.partition("=")
    if not key.isascii() or (value.startswith("{") and not value.isascii()):
        return "cannot be parsed; names are ASCII on the command line, and texts in {} quoted; or set it in a YAML file"
    quoted = _quote_text(key, value)
    if value[:1] + value[-1:] == "[]":
        texts = (QuotedString(text.strip(" \"'"), Quote.double).with_quotes() for text in value[1:-1].split(","))
        quoted = shlex.quote(f"{key}=[{','.join(texts)}]")
    try:
        OverridesParser.create().parse_overrides(shlex.split(quoted))
    except HydraException:
        return "cannot be parsed; write a setting as KEY=VALUE" if equals else "not a setting; write KEY=VALUE"
    otherwise = "; or give the full path" if value.startswith("~") else ""
    return f"cannot be parsed; put the value in quotes of its own: {quoted}{otherwise}"


def _quote_text(key: str, value: str) -> str:
    """Return an override with a text as its value, as it is typed in a shell."""
    return shlex.quote(f"{key}={QuotedString(value, Quote.double).with_quotes()}")


def _describe_added_choice(group: str, overrides: Sequence[str]) -> str:
    """Return how to choose from a group that an override adds, although the command has it already."""
    word = next((word for word in overrides if word.startswith(f"+{group}=")), f"+{group}=NAME")
    return f"{word}: {group} exists already; write {_quote(word.lstrip('+'))}, without +"


def restore_typed(message: str, overrides: Sequence[str]) -> str:
    """Return a message with the values of overrides as they were typed: 1e3 instead of 1000.0."""
    for word in overrides:
        key, _, text = word.lstrip("+").partition("=")
        try:
            value = OverridesParser.create().parse_overrides([word])[0].value()
        except (HydraException, ValueError):
            continue
        if isinstance(value, float) and str(value) != text:
            before = rf"(?<![\w.]){re.escape(key)}=(\"?){re.escape(str(value))}(?![\w.])"
            message = re.sub(before, lambda match, new=f"{key}={{}}{text}": new.format(match[1]), message)  # type: ignore[misc]  # of a default argument
    return message


def _is_list(key: str, verb: str, overrides: Sequence[str], unset: bool) -> bool:
    """Return whether a setting is a list in the composed config, `unset` if it has no value."""
    try:
        composed, _ = _compose_groups(verb, overrides)
        if OmegaConf.is_missing(composed, key):
            return unset
        value = OmegaConf.select(composed, key, throw_on_resolution_failure=False)
    except (HydraException, OmegaConfBaseException, ValueError):
        return False
    return unset if value is None else isinstance(value, ListConfig)


def _compose_groups(verb: str, overrides: Sequence[str], without: str = "") -> tuple[DictConfig, list[str]]:
    """Return the config composed from the choices of groups, and these choices; the key `without` is left out."""
    loader, config_name = _loader()
    choices = [
        o.input_line or ""
        for o in OverridesParser.create().parse_overrides(list(overrides))
        if loader.repository.group_exists(o.key_or_group)
        and not o.is_sweep_override()
        and o.get_key_element().lstrip("+~") != without
    ]
    return loader.load_configuration(config_name or verb, choices, run_mode=RunMode.RUN), choices


def _describe_unknown_choice(group: str, choice: str, known: Sequence[str]) -> str:
    meant = suggestion(choice, known, f"{group}=")
    return "; ".join(filter(None, (f"{group}={choice}: no such choice", meant, _OTHERWISE.get(group))))


def _describe_null_group(overrides: Sequence[str]) -> str:
    loader, _ = _loader()
    for o in OverridesParser.create().parse_overrides(list(overrides)):
        if loader.repository.group_exists(o.key_or_group) and not o.is_delete() and o.value() is None:
            return f"{o.input_line}: no such choice; {suggestion('', loader.get_group_options(o.key_or_group))}"
    return "a group cannot be set to null"


def _describe_unknown_key(key: str, verb: str, overrides: Sequence[str]) -> str:
    """Return what is wrong with a key, with a correction."""
    loader, config_name = _loader()
    try:
        parsed = OverridesParser.create().parse_overrides(list(overrides))
        composed, choices = _compose_groups(verb, overrides, without=key)
    except (HydraException, OmegaConfBaseException, ValueError):
        return f"{key}: no such setting; see --help for the groups and --cfg job for every key"

    def list_settings(choice: str) -> set[str]:
        """Return the settings of another choice, composed alone or in the config; empty if it cannot be composed."""
        for name, words in ((None, [f"+{choice}"]), (config_name or verb, [*choices, choice])):
            with suppress(HydraException, OmegaConfBaseException, ValueError):
                return set(_settings(loader.load_configuration(name, words, RunMode.RUN)))
        return set()

    value = next(
        (o.input_line.partition("=")[2] for o in parsed if o.input_line and o.get_key_element().lstrip("+~") == key),
        "VALUE",
    )
    if group := next((o.get_key_element() for o in parsed if o.is_sweep_override() and _is_of(key, o)), None):
        return f"{key}: depends on {group}, which is swept over; write {_quote(f'++{key}={value}')}"
    if "@" in key and loader.repository.group_exists(key.partition("@")[0]):
        return f"{key}: no choice has been made here yet; write {_quote(f'+{key}={value}')}"
    chosen = {str(group): choice for group, choice in composed.hydra.runtime.choices.items()}
    groups = {group for group in chosen if not {"/", "@"}.intersection(group)}
    if key not in groups and loader.repository.group_exists(key):
        places = [group for group in chosen if group.startswith(f"{key}@")]
        there = f"did you mean {' or '.join(places)}?" if places else suggestion("", groups - {"hydra"})
        return f"{key}: {verb} has no such group here; {there}"
    known = {*map(str, composed), *groups} - {"hydra"}
    elsewhere = [path for path in _settings(composed) if path.rpartition(".")[2] == key.rpartition(".")[2]]
    if key.partition(".")[0] not in composed and elsewhere:
        return f"{key}: no such setting; {_suggest_paths(elsewhere)}"
    return f"{key}: {_describe_unknown_setting(key, composed, known, list_settings, value, elsewhere)}"


def _describe_unknown_setting(
    key: str,
    node: DictConfig,
    known: set[str],
    list_settings: Callable[[str], set[str]],
    value: str,
    elsewhere: Sequence[str],
) -> str:
    """Return what is wrong with a key: follow its parts to the first one that is not a known setting.

    `elsewhere` are the settings of the same name in other groups.
    """
    chosen, (name, *rest) = node.hydra.runtime.choices, key.split(".")
    while rest and isinstance(node.get(name), DictConfig):
        node = node[name]
        known, (name, *rest) = {*map(str, node)}, rest
    after = "".join(f".{part}" for part in rest)
    before = key.removesuffix(f"{name}{after}")
    if not known or (name in known and not rest):
        return f"to add a setting with a name of your own, write {_quote(f'+{key}={value}')}"
    if name in known:
        return f"no such setting; {key.removesuffix('.'.join(['', *rest]))} can only be set as a whole"
    parts = (part for part, own in iter_children(node) if isinstance(own, DictConfig) and name in own)
    if not rest and (part := next(parts, None)):
        return f"no such setting; did you mean {before}{part}.{name}?"
    place = before.rstrip(".") or key
    group = next((str(group) for group in chosen if place in (group, str(group).rpartition("@")[2])), "")
    if near(name, known) or not group:
        return f"no such setting; {suggestion(name, known, before, after)}"
    options = _loader()[0].get_group_options(group.partition("@")[0])
    others = [option for option in options if key in list_settings(f"{group}={option}")]
    if not others:
        return f"no such setting; {_suggest_paths(elsewhere) if elsewhere else suggestion(name, known, before)}"
    *first, last = others
    listed = " or ".join(filter(None, (", ".join(first), last)))
    has_no = "settings" if known == {"_target_"} else "such setting"
    return f"{group}={chosen[group]} has no {has_no}; choose {group}={listed}"


def _suggest_paths(paths: Sequence[str]) -> str:
    return f"did you mean {' or '.join(paths[:3])}?"


def _quote(override: str) -> str:
    """Return an override as it is typed in a shell."""
    return override if re.fullmatch(r"[\w+@./=:-]+", override) else f"'{override}'"


def _is_of(key: str, override: Override) -> bool:
    """Return whether a setting belongs to the group of an override."""
    return key.startswith(f"{override.get_key_element().lstrip('+')}.")


def _settings(node: DictConfig, path: str = "") -> Iterator[str]:
    """Yield the full keys of all settings of this program."""
    for name, child in iter_children(node):  # unresolved, as values may be missing
        if isinstance(child, DictConfig):
            yield from _settings(child, f"{path}{name}.")
        elif path or name not in ("hydra", "choices"):
            yield f"{path}{name}"


def _loader() -> tuple[ConfigLoaderImpl, str | None]:
    """Return a loader for the config folders of the command line, and its primary config (None if not given)."""
    words = sys.argv[1:] if sys.argv[0] == COMMAND else []  # ignore the arguments of another program
    flags, _ = get_args_parser().parse_known_args(words)
    search_path = create_config_search_path(str(CONF))
    if flags.config_dir:
        folder = f"file://{Path(flags.config_dir).resolve()}"
        search_path.prepend("command-line", folder, anchor=SearchPathQuery(provider="schema"))
    return ConfigLoaderImpl(search_path), flags.config_name
