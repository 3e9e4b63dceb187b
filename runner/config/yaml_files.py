"""Reads YAML from outside this program; errors name the place, and aliases cannot exhaust memory."""

from __future__ import annotations

from typing import Any

import yaml

LARGEST_EXPANSION = 100_000
"""The largest number of values that aliases may add to a file."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast; not in every build of PyYAML
_TEXT_TAGS = {"tag:yaml.org,2002:null", "tag:yaml.org,2002:merge"}


def _construct_mapping(loader: Any, node: yaml.MappingNode, deep: bool = False) -> Any:  # noqa: ANN401 (any content)
    """Return a mapping; raises if a key occurs twice, of which YAML would silently drop the first."""
    keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
    for position, key in enumerate(keys):
        if key in keys[:position]:
            mark = node.value[position][0].start_mark
            raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} occurs twice", mark)
    return _Loader.construct_mapping(loader, node, deep)


_TextLoader: Any = type(
    "_TextLoader",
    (_Loader,),
    {
        "yaml_implicit_resolvers": {
            first: [own for own in resolvers if own[0] in _TEXT_TAGS]
            for first, resolvers in _Loader.yaml_implicit_resolvers.items()
        },
        "construct_mapping": _construct_mapping,
    },
)
"""Leaves plain scalars as texts, except null."""


class YamlError(ValueError):
    """A file is not valid YAML, or its aliases expand to more values than are allowed."""


def parse_yaml(content: bytes | str, place: str) -> Any:  # noqa: ANN401 (any content)
    """Return the content of YAML; raises `YamlError` with place, line and column."""
    return _parse(content, place, _Loader)


def parse_yaml_texts(content: bytes | str, place: str) -> Any:  # noqa: ANN401 (any content)
    """Return the content of YAML in which numbers, dates and booleans stay the texts that they are written as.

    YAML reads the ids 007 and 1:30 as the numbers 7 and 90. Raises `YamlError` with place, line and column.
    """
    return _parse(content, place, _TextLoader)


def _parse(content: bytes | str, place: str, loader_type: Any) -> Any:  # noqa: ANN401 (any content; PyYAML's loaders)
    loader = None
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
        loader = loader_type(text)
        node = loader.get_single_node()
        _check_aliases(node, text, place)
        return None if node is None else loader.construct_document(node)
    except (yaml.YAMLError, UnicodeError) as error:
        raise YamlError(describe(error, place)) from None
    except RecursionError:
        raise YamlError(f"{place}: invalid YAML (nested too deeply)") from None
    finally:
        if loader is not None:
            loader.dispose()


def describe(error: Exception, place: str) -> str:
    """Return a description of an error of PyYAML in one line: place, line and column from 1, and problem."""
    if isinstance(error, UnicodeError):
        return f"{place}: not UTF-8 text; save it as UTF-8"
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        return f"{place}{where}: invalid YAML ({error.problem or error.context})"
    return f"{place}: invalid YAML ({' '.join(str(error).split())})"


def _check_aliases(root: yaml.Node | None, text: str, place: str) -> None:
    """Raise `YamlError` for aliases that expand to too many values or contain themselves."""
    if root is None or "*" not in text:
        return
    sizes: dict[int, int] = {}
    expanded = _size(root, sizes, place)
    if expanded - len(sizes) > LARGEST_EXPANSION:
        raise YamlError(f"{place}: the aliases expand to more than {LARGEST_EXPANSION:,} values; write the values out")


def _size(node: yaml.Node, sizes: dict[int, int], place: str) -> int:
    """Return the number of values that a node expands to; `sizes` has that of each node, 0 while it is incomplete."""
    if id(node) in sizes:
        if not sizes[id(node)]:
            line = node.start_mark.line + 1
            raise YamlError(f"{place}:{line}: invalid YAML (an alias refers to a node that contains it)")
        return sizes[id(node)]
    sizes[id(node)] = 0
    if isinstance(node, yaml.MappingNode):
        children = [part for pair in node.value for part in pair]
    else:
        children = node.value if isinstance(node, yaml.SequenceNode) else []
    sizes[id(node)] = 1 + sum(_size(child, sizes, place) for child in children)
    return sizes[id(node)]
