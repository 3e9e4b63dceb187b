"""Format filters for search engines: the values of `{filter}` in a request.

A form only writes the conditions. Some engines cannot apply all of them, such as a range of text, and reply with an
error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from retrievers.choices import OneOf
from retrievers.filters import Condition, Filter, Scalar

CONTINUING: frozenset[str] = frozenset(("vespa", "weaviate"))
"""Forms that are appended to the text of a query; they are empty for a query without a filter."""

Conditions = Sequence[Condition]


def format_filter(own: Filter | None, form: str, names: Mapping[str, str]) -> Any:  # noqa: ANN401 (any JSON)
    """Return a filter in the form of an engine; `names` are the engine's names of fields that it names differently.

    Without a filter, return None, or "" in a form that continues a text.
    """
    if own is None:
        return "" if form in CONTINUING else None
    return FORMS[form]([replace(c, field=names.get(c.field, c.field)) for c in own.conditions])


def _format_json(conditions: Conditions) -> object:
    return {condition.field: condition.format() for condition in conditions}


def _format_chroma(conditions: Conditions) -> object:
    """Return `where` (Chroma, "Metadata Filtering"), in which an object has one comparison."""
    comparisons = [
        {c.field: comparison} for c in conditions for comparison in _compare(c, "$gte", "$lte", "$in", "$eq")
    ]
    return comparisons[0] if len(comparisons) == 1 else {"$and": comparisons}


def _format_elasticsearch(conditions: Conditions) -> object:
    """Return the clauses of `bool.filter` (Elasticsearch and OpenSearch, "Boolean query")."""

    def format_clause(c: Condition) -> object:
        if c.values:
            return {"term": {c.field: c.values[0]}} if len(c.values) == 1 else {"terms": {c.field: list(c.values)}}
        return {"range": {c.field: _format_ends(c)}}

    return [format_clause(condition) for condition in conditions]


def _format_haystack(conditions: Conditions) -> object:
    """Return `filters` of Haystack 2 ("Metadata Filtering"), whose fields begin with `meta.`."""
    comparisons = [
        {"field": f"meta.{c.field}", "operator": operator, "value": value}
        for c in conditions
        for comparison in _compare(c, ">=", "<=", "in", "==")
        for operator, value in comparison.items()
    ]
    return {"operator": "AND", "conditions": comparisons}


def _format_qdrant(conditions: Conditions) -> object:
    """Return `filter` (Qdrant, "Filtering"); it matches text, integers and booleans, and compares other numbers."""

    def match(name: str, value: Scalar) -> dict[str, object]:
        if isinstance(value, float):
            return {"key": name, "range": {"gte": value, "lte": value}}
        return {"key": name, "match": {"value": value}}

    def format_condition(c: Condition) -> dict[str, object]:
        if not c.values:
            return {"key": c.field, "range": _format_ends(c)}
        if len(c.values) == 1:
            return match(c.field, c.values[0])
        if c.kind == "boolean" or any(isinstance(value, float) for value in c.values):
            return {"should": [match(c.field, value) for value in c.values]}
        return {"key": c.field, "match": {"any": list(c.values)}}

    return {"must": [format_condition(condition) for condition in conditions]}


def _format_solr(conditions: Conditions) -> object:
    """Return the queries of `filter` (Solr, "JSON Request API"), in the syntax of its standard query parser."""

    def format_query(c: Condition) -> str:
        if c.values:
            return f"{c.field}:({' OR '.join(map(json.dumps, map(str, map(_format_boolean, c.values))))})"
        start, end = ("*" if value is None else json.dumps(value) for value in (c.start, c.end))
        return f"{c.field}:[{start} TO {end}]"

    return [format_query(condition) for condition in conditions]


def _format_typesense(conditions: Conditions) -> object:
    """Return `filter_by` (Typesense, "Filter parameters"), in which backticks enclose text."""

    def write(value: Scalar) -> str:
        return f"`{value}`" if isinstance(value, str) else json.dumps(value)

    def format_condition(c: Condition) -> str:
        if c.values:
            return f"{c.field}:=[{','.join(map(write, c.values))}]"
        return " && ".join(f"{c.field}:{sign}{write(value)}" for sign, value in _list_ends(c, ">=", "<="))

    return " && ".join(map(format_condition, conditions))


def _format_vespa(conditions: Conditions) -> object:
    """Return conditions of YQL that follow others (Vespa, "YQL Query Language Reference").

    Text and integers are compared by `in`, which does not affect the ranking; it does not accept other numbers.
    """

    def write(value: Scalar) -> str:
        is_long = isinstance(value, int) and not -(2**31) <= value < 2**31
        return json.dumps(value, ensure_ascii=False) + ("L" if is_long else "")

    def format_condition(c: Condition) -> str:
        if not c.values:
            return " and ".join(f"{c.field} {sign} {write(value)}" for sign, value in _list_ends(c, ">=", "<="))
        if c.kind == "boolean" or any(isinstance(value, float) for value in c.values):
            return f"({' or '.join(f'{c.field} = {write(value)}' for value in c.values)})"
        return f"{c.field} in ({', '.join(map(write, c.values))})"

    return "".join(f" and {format_condition(condition)}" for condition in conditions)


def _format_weaviate(conditions: Conditions) -> object:
    """Return the argument `where` of GraphQL, which follows others (Weaviate, "Conditional filters").

    Sets are written with Or: `ContainsAny` fails on shards of other nodes in some versions (weaviate#3559).
    """

    def combine(operator: str, operands: Sequence[str]) -> str:
        if len(operands) == 1:
            return operands[0]
        return f"{{operator: {operator}, operands: [{', '.join(operands)}]}}"

    def list_operands(c: Condition) -> list[str]:
        name = _name_weaviate_type(c)

        def compare(operator: str, value: Scalar) -> str:
            path = json.dumps([c.field], ensure_ascii=False)
            return f"{{path: {path}, operator: {operator}, {name}: {json.dumps(value, ensure_ascii=False)}}}"

        ends = _list_ends(c, "GreaterThanEqual", "LessThanEqual")
        return [compare(*end) for end in ends] or [combine("Or", [compare("Equal", value) for value in c.values])]

    return f", where: {combine('And', [operand for c in conditions for operand in list_operands(c)])}"


def _name_weaviate_type(c: Condition) -> str:
    if c.kind == "number":
        values = (*c.values, c.start, c.end)
        return "valueNumber" if any(isinstance(value, float) for value in values) else "valueInt"
    return "valueBoolean" if c.kind == "boolean" else "valueText"


def _build_expressions(conjunction: str, membership: str) -> Callable[[Conditions], object]:
    """Return a formatter for a language of expressions, such as `year >= 2000 and language in ["de", "fr"]`."""

    def format_condition(c: Condition) -> str:
        parts: Sequence[tuple[str, object]] = _list_ends(c, ">=", "<=") or [(membership, list(c.values))]
        texts = (f"{c.field} {operator} {json.dumps(value, ensure_ascii=False)}" for operator, value in parts)
        return f" {conjunction} ".join(texts)

    return lambda conditions: f" {conjunction} ".join(map(format_condition, conditions))


def _list_ends(c: Condition, start: str, end: str) -> list[tuple[str, Scalar]]:
    return [(name, value) for name, value in ((start, c.start), (end, c.end)) if value is not None]


def _format_ends(c: Condition) -> dict[str, Scalar]:
    return dict(_list_ends(c, "gte", "lte"))


def _compare(c: Condition, start: str, end: str, among: str, equal: str) -> list[dict[str, object]]:
    """Return the comparisons of a condition, each an operator and a value."""
    if not c.values:
        return [{name: value} for name, value in _list_ends(c, start, end)]
    return [{equal: c.values[0]} if len(c.values) == 1 else {among: list(c.values)}]


def _format_boolean(value: Scalar) -> Scalar:
    return json.dumps(value) if isinstance(value, bool) else value


FORMS: Mapping[str, Callable[[Conditions], object]] = {
    "json": _format_json,
    "chroma": _format_chroma,
    "elasticsearch": _format_elasticsearch,
    "haystack": _format_haystack,
    "meilisearch": _build_expressions("AND", "IN"),
    "milvus": _build_expressions("and", "in"),
    "qdrant": _format_qdrant,
    "solr": _format_solr,
    "typesense": _format_typesense,
    "vespa": _format_vespa,
    "weaviate": _format_weaviate,
}
"""How conditions are written, by form. json is the form of datasets (`retrievers.filters.parse_filter`)."""

FilterForm = Annotated[str, OneOf(dict.fromkeys(FORMS, ""))]
