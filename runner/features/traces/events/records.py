"""The retrieval events of one run as typed records: JSON objects whose keys and types pydantic checks.

The schema is version 1.1: it extends the published evaluation of retrieval by code agents (CodeScaleBench, "Retrieval
Evaluation Specification", version 1.0) by optional fields. `json_schema` generates it from the records.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Annotated, Literal, NotRequired

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError, WithJsonSchema, with_config
from typing_extensions import TypedDict

from runner.config.objects import ConfigError
from runner.features.traces.events.tools import Category
from runner.features.traces.trace import TraceSource
from runner.features.traces.truth.ground_truth import Confidence

SCHEMA_VERSION = "1.1"

_RECORD = ConfigDict(extra="forbid", strict=True)
_MAX_MESSAGE = 300  # characters of an error


def _check_moment(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("the time has no time zone")
    return text


Moment = Annotated[str, AfterValidator(_check_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time in ISO 8601 with a time zone."""

Line = Annotated[int, Field(ge=1)]


@with_config(_RECORD)
class ProvenanceRecord(TypedDict):
    """The run that the events come from."""

    run_id: str
    task_name: str
    config_name: str
    benchmark: str
    batch_timestamp: NotRequired[str | None]
    trial_name: NotRequired[str | None]
    model: NotRequired[str | None]


@with_config(_RECORD)
class CoverageRecord(TypedDict):
    """How much could be read of the trace and of the definition of its task."""

    has_trajectory: bool
    has_transcript: bool
    has_ground_truth: bool
    has_chunk_ground_truth: NotRequired[bool]
    trace_source: TraceSource | None
    degraded_reason: str | None
    ground_truth_source: NotRequired[str | None]
    ground_truth_confidence: NotRequired[Confidence | None]
    ground_truth_problems: NotRequired[
        Annotated[list[str], Field(description="Parts of the task's definition that could not be used.")]
    ]


@with_config(_RECORD)
class SymbolRecord(TypedDict):
    """A symbol that is evidence for the task."""

    file: str
    symbol: str
    repo: NotRequired[str | None]


@with_config(_RECORD)
class ChunkRecord(TypedDict):
    """Lines of a file that are evidence for the task, both ends included."""

    file: str
    line_start: Line
    line_end: Line
    annotation: NotRequired[str | None]


@with_config(_RECORD)
class LinesRecord(TypedDict):
    """Lines of a file that an event showed, both ends included; a `line_end` of null is the end of the file."""

    file: str
    line_start: Line
    line_end: Line | None


@with_config(_RECORD)
class TruthRecord(TypedDict):
    """What the agent should find and change."""

    files: list[str]
    matches: NotRequired[
        Annotated[
            dict[str, str],
            Field(description="For each target file of the event, the file as named in the ground truth."),
        ]
    ]
    symbols: NotRequired[list[SymbolRecord]]
    chunks: NotRequired[list[ChunkRecord]]
    expected_edit_files: NotRequired[
        Annotated[list[str], Field(description="Files to change, if a reliable source names them.")]
    ]


@with_config(_RECORD)
class EventRecord(TypedDict):
    """A tool call that concerns files; a shell command that reads and writes is two events of one step."""

    step_index: Annotated[int, Field(ge=0)]
    timestamp: Moment | None
    tool_name: str
    tool_category: Category
    is_mcp: bool
    target_files: list[str]
    hits_ground_truth: NotRequired[bool]
    matched_ground_truth_files: NotRequired[list[str]]
    is_subagent: NotRequired[bool]
    cumulative_tokens: NotRequired[int | None]
    elapsed_seconds: NotRequired[float | None]
    original_paths: NotRequired[
        Annotated[list[str], Field(description="The paths as recorded, in the order of target_files, if any differs.")]
    ]
    target_lines: NotRequired[
        Annotated[
            list[LinesRecord], Field(description="The lines that a reader showed, for files where they are known.")
        ]
    ]
    arguments: NotRequired[dict[str, object]]
    target_symbols: NotRequired[list[str]]
    inferred: NotRequired[
        Annotated[
            Literal["shell"],
            Field(description="Where target_files and tool_category come from if no argument names the files."),
        ]
    ]


@with_config(_RECORD)
class EventSummary(TypedDict, total=False):
    """Counts over the events of a run."""

    total_events: int
    mcp_events: int
    local_events: int
    unique_files_accessed: int
    ground_truth_files_hit: int
    ground_truth_files_total: int
    first_ground_truth_hit_step: int | None
    events_by_category: dict[str, int]


@with_config(_RECORD)
class EventHeader(TypedDict):
    """A document of retrieval events without the events."""

    schema_version: Annotated[str, Field(pattern=r"^1\.[0-9]+$")]
    generated_at: Moment
    provenance: ProvenanceRecord
    coverage: CoverageRecord
    ground_truth: TruthRecord


@with_config(_RECORD)
class EventDocument(EventHeader):
    """What an agent retrieved in one run of a task, and what it should have retrieved."""

    events: list[EventRecord]
    summary: NotRequired[EventSummary]


def json_schema() -> dict[str, object]:
    """Return the JSON schema of a document of events."""
    return _adapter().json_schema()


def check_document(value: object, place: str = "events", extended: bool = False) -> EventDocument:
    """Return a JSON value as a document of events, with its keys in the order of the records.

    `extended` accepts unknown fields. Raises `ConfigError`, which names the first invalid place.
    """
    try:
        return _adapter().validate_python(value, extra="allow" if extended else None)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = "/".join(map(str, first["loc"])) or "the document"
        raise ConfigError(f"{place}: {where}: {first['msg'][:_MAX_MESSAGE]}") from None


@cache
def _adapter() -> TypeAdapter[EventDocument]:
    return TypeAdapter(EventDocument)
