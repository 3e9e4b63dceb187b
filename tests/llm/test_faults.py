from __future__ import annotations

import time
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.services.retry import LONGEST_BACKOFF_S
from runner.llm.faults import Fault, draw_wait, fault_of


class StatusError(Exception):
    """An error as both SDKs make it of a status."""

    def __init__(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"Error code: {status}")
        self.status_code, self.body, self.response = status, body, SimpleNamespace(headers=headers or {})


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": formatdate(time.time() - 60, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_the_time_to_wait_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert fault_of(StatusError(429, None, headers)).after_s == seconds


def test_a_date_to_wait_for_is_read_against_the_clock() -> None:
    after_s = fault_of(StatusError(503, None, {"retry-after": formatdate(time.time() + 600, usegmt=True)})).after_s
    assert after_s is not None and 300 < after_s <= 600


@pytest.mark.parametrize(
    ("status", "body", "kind", "again", "final"),
    [
        (408, None, "timeout", True, False),
        (409, None, "conflict", True, False),
        (429, {"error": {"code": "insufficient_quota", "message": "You exceeded your quota"}}, "quota", False, True),
        (429, {"code": "insufficient_quota", "message": "You exceeded your quota"}, "quota", False, True),
        (400, {"code": "content_filter", "message": "The prompt was filtered"}, "refusal", False, False),
        (413, "<html>too large</html>", "request", False, False),
        (529, {"error": {"message": "Overloaded", "type": "overloaded_error"}}, "server", True, False),
        (502, ["odd"], "server", True, False),
    ],
)
def test_an_error_status_decides_the_kind_of_fault_and_whether_to_retry(
    status: int, body: Any, kind: str, again: bool, final: bool
) -> None:
    fault = fault_of(StatusError(status, body))
    assert (fault.kind, fault.again, fault.final) == (kind, again, final)
    assert str(fault).startswith(f"{status}: ")


def test_a_question_that_cannot_be_encoded_is_not_sent_again() -> None:
    with pytest.raises(UnicodeEncodeError) as caught:
        "\ud800".encode()
    assert (fault_of(caught.value).kind, fault_of(caught.value).again) == ("request", False)


@given(st.integers(0, 50), st.floats(0.001, 10), st.floats(0, 100), st.text(max_size=5))
def test_the_wait_grows_has_an_end_and_grants_what_the_server_wants(
    attempt: int, first_s: float, after_s: float, seed: str
) -> None:
    step = min(first_s * 2**attempt, LONGEST_BACKOFF_S)
    waited = draw_wait(Fault("server", ""), attempt, first_s, seed)
    assert step / 2 <= waited <= step
    assert waited == draw_wait(Fault("server", ""), attempt, first_s, seed)
    assert draw_wait(Fault("server", "", after_s=after_s), attempt, first_s, seed) == after_s + waited


def test_those_who_were_refused_together_do_not_come_back_together() -> None:
    assert len({draw_wait(Fault("server", ""), 0, 1.0, str(seed)) for seed in range(20)}) == 20
