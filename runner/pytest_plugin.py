"""The pytest plug-in: a fixture with the assertion that a result is not worse than a baseline.

pytest imports this module in every session, so it imports the program only when a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture(name="assert_no_regression", scope="session")
def provide_assertion() -> Callable[..., None]:
    """Return `runner.testing.regression.assert_no_regression`, which raises `AssertionError` unless a gate passes."""
    from runner.testing.regression import assert_no_regression

    return assert_no_regression
