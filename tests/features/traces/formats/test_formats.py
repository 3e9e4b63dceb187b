"""What holds for every format: how it is known, and that damage is named, never an error."""

from __future__ import annotations

import gzip
import json
import random
import re
import tracemalloc
from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.features.traces.evaluation import Reading, read_events
from runner.features.traces.formats import FORMATS, Format, read_trace
from runner.features.traces.formats.recording import Recording
from runner.features.traces.runs.tasks import Tasks
from runner.features.traces.trace import ToolCall, Trace
from tests.features.traces.formats.written import (
    ALL,
    DOCUMENTS,
    FORMAT_OF,
    TRANSCRIPT,
    WRITTEN,
    answer,
    assistant,
    atif,
    call,
    lines,
    result,
    seen,
    step,
    trace_of,
    use,
)
from tests.strategies.json_values import json_values
from tests.strategies.settings import at_most

ROOT = Path(__file__).parents[4]
KINDS = sorted(ALL)
EACH_KIND = settings(max_examples=at_most(30))
"""How many examples a test of each kind of trace draws for one of them."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


def is_sound(trace: Trace[ToolCall]) -> bool:
    """Say whether a trace is as every trace is, and can be written as JSON."""
    json.dumps([[step.id, step.seen.name, step.seen.arguments, step.seen.result] for step in trace.steps]).encode()
    assert [step.index for step in trace.steps] == list(range(len(trace.steps)))
    assert all(times > 0 for times in trace.losses.values())
    return True


def test_every_format_has_traces_on_which_it_is_tested() -> None:
    assert set(WRITTEN) == set(FORMATS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_tools_of_every_format_are_known_and_the_files_that_they_read(folder: Path, kind: str) -> None:
    (folder / "tools").write_bytes(ALL[kind])
    events = read_events(folder / "tools", Reading(), Tasks())["events"]
    assert any(event["tool_category"] == "file_read" and event["target_files"] for event in events)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_documented_with_the_names_of_its_files(name: str) -> None:
    (row,) = re.findall(rf"^\| {re.escape(name)}\b.*", (ROOT / "docs" / "traces.md").read_text("utf-8"), re.MULTILINE)
    assert all(f"`{file}`" in row for file in (*FORMATS[name].names, *FORMATS[name].sessions))
    assert name in (ROOT / "runner" / "features" / "traces" / "help.txt").read_text("utf-8")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_format_is_known_by_its_content_whatever_the_file_is_called(folder: Path, kind: str, packed: bool) -> None:
    trace = trace_of(folder, ALL[kind], "agent.bin", packed=packed)
    assert trace.source == FORMATS[FORMAT_OF[kind]].source
    assert len(trace.steps) >= 2
    assert not trace.losses


def test_a_trace_that_quotes_another_format_is_of_its_own(folder: Path) -> None:
    quoted = step(call("a", "Read"), results=[{"source_call_id": "a", "content": TRANSCRIPT.decode() * 20}])
    assert trace_of(folder, atif(quoted)).source == "trajectory"


def test_a_format_is_known_though_a_long_prompt_comes_first(folder: Path) -> None:
    prompt = json.dumps({"type": "user", "message": {"role": "user", "content": "x" * 600_000}}).encode()
    assert len(trace_of(folder, prompt + b"\n" + TRANSCRIPT).steps) == 4


@pytest.mark.parametrize(("content", "loss"), [(b"", "empty files"), (b"hello\n" * 50, "files of an unknown format")])
def test_a_file_of_no_format_has_no_source_and_says_why(folder: Path, content: bytes, loss: str) -> None:
    trace = trace_of(folder, content)
    assert trace.source is None
    assert trace.losses == {loss: 1}


def test_a_file_that_cannot_be_opened_has_no_source_and_says_why(folder: Path) -> None:
    assert read_trace(folder / "absent", seen).losses == {"files that cannot be opened (No such file or directory)": 1}
    assert read_trace(folder, seen).losses == {"files that cannot be opened (Is a directory)": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_that_was_cut_off_or_damaged_gives_what_can_be_unpacked(folder: Path, kind: str) -> None:
    noise = random.Random(0).randbytes(30_000).hex().encode()  # so that the archive is long enough to be cut
    whole = gzip.compress(ALL[kind] + (b"\n" if kind in DOCUMENTS else b"") + noise)
    (folder / "cut.gz").write_bytes(whole[:-5000])
    trace = read_trace(folder / "cut.gz", seen)
    assert len(trace.steps) >= 2
    assert any(loss.startswith("files that cannot be read completely") for loss in trace.losses)


@pytest.mark.parametrize("kind", KINDS)
@EACH_KIND
@given(data=st.data())
def test_a_trace_cut_at_any_byte_is_read_up_to_the_cut(folder: Path, kind: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(ALL[kind])))
    trace = trace_of(folder, ALL[kind][:cut])
    whole = trace_of(folder, ALL[kind])
    assert is_sound(trace)
    assert [step.id for step in trace.steps] == [step.id for step in whole.steps[: len(trace.steps)]]
    if kind in DOCUMENTS:  # lines may be cut between two of them, which nobody can tell
        assert bool(trace.losses) == (cut < len(ALL[kind]))


@pytest.mark.parametrize("kind", KINDS)
@EACH_KIND
@given(places=st.lists(st.tuples(st.integers(0, 5000), st.binary(min_size=1, max_size=5)), max_size=5))
def test_bytes_inserted_anywhere_are_no_error(folder: Path, kind: str, places: list[tuple[int, bytes]]) -> None:
    content = ALL[kind]
    for place, inserted in places:
        content = content[: place % len(content)] + inserted + content[place % len(content) :]
    assert is_sound(trace_of(folder, content))


@pytest.mark.parametrize("kind", KINDS)
@EACH_KIND
@given(shuffling=st.randoms(use_true_random=False), repeated=st.booleans())
def test_shuffled_and_repeated_lines_give_each_call_at_most_once(
    folder: Path, kind: str, shuffling: random.Random, repeated: bool
) -> None:
    several = ALL[kind].splitlines(keepends=True) * (1 + repeated)
    shuffling.shuffle(several)
    trace = trace_of(folder, b"".join(several))
    assert is_sound(trace)
    ids = [step.id for step in trace.steps if step.id]
    assert kind in DOCUMENTS or len(ids) == len(set(ids))


@pytest.mark.parametrize("kind", sorted(ALL.keys() - DOCUMENTS))
def test_repeating_every_line_changes_nothing_but_the_losses(folder: Path, kind: str) -> None:
    doubled = b"".join(line * 2 for line in ALL[kind].splitlines(keepends=True))
    once, twice = trace_of(folder, ALL[kind]), trace_of(folder, doubled)
    assert twice.steps == once.steps
    assert twice.total_tokens == once.total_tokens
    assert twice.losses


@pytest.mark.parametrize("kind", KINDS)
@EACH_KIND
@given(value=json_values(numbers=st.integers()), data=st.data())
def test_any_value_anywhere_in_a_trace_is_read_without_an_error(
    folder: Path, kind: str, value: object, data: st.DataObject
) -> None:
    parts = [json.loads(ALL[kind])] if kind in DOCUMENTS else [json.loads(line) for line in ALL[kind].splitlines()]
    where: Any = parts
    while True:  # walk down to a random place, and put the value there
        key = data.draw(st.sampled_from(sorted(where) if isinstance(where, dict) else range(len(where))))
        if not where[key] or not isinstance(where[key], dict | list) or data.draw(st.integers(0, 4)) == 0:
            break
        where = where[key]
    where[key] = value
    content = b"\n".join(json.dumps(part).encode() for part in parts)
    assert is_sound(trace_of(folder, content))


@pytest.mark.parametrize("kind", ["trajectory", "transcript"])
def test_memory_holds_a_few_results_however_many_there_are(folder: Path, kind: str) -> None:
    with (folder / "large").open("wb") as file:
        text = "x" * 100_000
        if kind == "trajectory":
            file.write(b'{"schema_version": "ATIF-v1.5", "steps": [{}')
            for i in range(200):
                one = step(call(f"c{i}", "Read"), results=[answer(f"c{i}", text)])
                file.write(b"," + json.dumps(one).encode())
            file.write(b"]}")
        else:
            for i in range(200):
                file.write(lines(assistant(use(f"c{i}", "Read")), result(f"c{i}", text)))
    tracemalloc.start()
    trace = read_trace(folder / "large", lambda call: len(call.result or ""))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [step.seen for step in trace.steps] == [100_000] * 200
    assert peak < 4_000_000 < (folder / "large").stat().st_size / 4


def test_a_format_of_one_s_own_is_a_function_and_a_line(folder: Path) -> None:
    def read_log(file: BufferedReader, recording: Recording[Any]) -> None:
        for line in file:
            name, _, path = line.decode("utf-8", "replace").strip().partition(": ")
            recording.add_result(recording.add_call(None, name, {"path": path}), "")

    formats: Mapping[str, Format] = {**FORMATS, "Log": Format("transcript", rb"^opened: ", read_log)}
    (folder / "agent.log").write_bytes(b"opened: a.py\nopened: b.py\n")
    trace = read_trace(folder / "agent.log", seen, formats)
    assert [(step.seen.name, step.seen.arguments["path"]) for step in trace.steps] == [
        ("opened", "a.py"),
        ("opened", "b.py"),
    ]


def _real(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.rglob("*") if path.name in ("trajectory.json", "agent_trace.jsonl", "agent_stdout.log")
    )


def test_every_real_trace_is_read(real_traces: Path) -> None:
    traces = {path: read_trace(path, seen) for path in _real(real_traces)}
    assert len(traces) == 45
    for path, trace in traces.items():
        assert is_sound(trace), path
        assert trace.source is not None, path
        assert not any("unknown format" in loss or "not JSON" in loss for loss in trace.losses), path


def test_no_call_of_a_real_trace_is_overlooked(real_traces: Path) -> None:
    transcripts = [read_trace(path, seen) for path in sorted(real_traces.glob("runs/**/agent_stdout.log"))]
    sessions = [read_trace(path, seen) for path in sorted(real_traces.glob("runs/**/agent_trace.jsonl"))]
    assert sum(len(trace.steps) for trace in transcripts) == 313
    assert sum(step.subagent for trace in transcripts for step in trace.steps) == 113
    assert sum(len(trace.steps) for trace in sessions) == 200
    assert sum(step.seen.name == "Bash" for trace in transcripts for step in trace.steps) > 100


def test_a_real_message_s_usage_counts_once(real_traces: Path) -> None:
    for path in sorted(real_traces.glob("runs/**/agent_trace.jsonl")):
        usage: dict[str, int] = {}
        for line in path.read_bytes().splitlines():
            message = json.loads(line).get("message") or {}
            if "usage" in message:
                parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
                usage[message["id"]] = sum(message["usage"].get(part) or 0 for part in parts)
        assert read_trace(path, seen).total_tokens == sum(usage.values())


@settings(max_examples=at_most(15))
@given(data=st.data())
def test_a_real_trace_that_is_cut_damaged_or_shuffled_is_read_without_an_error(
    real_traces: Path, folder: Path, data: st.DataObject
) -> None:
    content = data.draw(st.sampled_from(_real(real_traces)).map(Path.read_bytes))
    cut = content[: data.draw(st.integers(0, len(content)))]
    assert is_sound(trace_of(folder, cut))
    place = data.draw(st.integers(0, len(content)))
    assert is_sound(trace_of(folder, content[:place] + data.draw(st.binary(max_size=9)) + content[place:]))
    several = content.splitlines(keepends=True)
    data.draw(st.randoms(use_true_random=False)).shuffle(several)
    assert is_sound(trace_of(folder, b"".join(several)))
