"""Write the traces of an MLflow server as JSON lines: `python -m runner.tracking.traces http://SERVER`.

A reader of traces runs it as a process of its own, so that only this room loads MLflow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from runner.config.objects import ConfigError
from runner.tracking.opening import WRITING, explain_errors, patience, set_up_mlflow
from runner.tracking.settings import Tracking

_PAGE = 100
"""The number of traces in one request."""


def iter_traces(address: str) -> Iterator[dict[str, Any]]:
    """Yield the traces of all experiments of a tracking server, as MLflow writes them; raises `ConfigError`."""
    tracking = Tracking(address)
    set_up_mlflow()
    with explain_errors(tracking, "traces cannot be read"), patience(WRITING):
        from mlflow.tracking import MlflowClient

        client = MlflowClient(tracking.uri)
        for experiment in _iter_pages(lambda token: client.search_experiments(page_token=token)):
            places = [experiment.experiment_id]
            for trace in _iter_pages(
                lambda token, places=places: client.search_traces(  # type: ignore[misc]  # bound at once
                    locations=places, max_results=_PAGE, page_token=token
                )
            ):
                yield trace.to_dict()


def _iter_pages(fetch: Callable[[str | None], Any]) -> Iterator[Any]:
    token = None
    while True:
        page = fetch(token)
        yield from page
        if not (token := page.token):
            return


def main(address: str) -> None:
    """Write a line for each trace, and one for an error."""
    try:
        for trace in iter_traces(address):
            sys.stdout.buffer.write(orjson.dumps(trace, default=str, option=orjson.OPT_APPEND_NEWLINE))
    except ConfigError as error:
        sys.stdout.buffer.write(orjson.dumps({"error": str(error).removeprefix("tracking.uri=")}))


if __name__ == "__main__":
    main(sys.argv[1])
