"""The routes of `look`: the list of runs, and for each choice of runs a page, its newer data and texts, and apps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from runner.config.features import list_features, load_function
from runner.config.objects import ConfigError
from runner.config.values import without_secrets
from runner.datasets.base import DatasetError
from runner.evaluation.result import ResultError
from runner.features.look.listing import render_list, render_message
from runner.features.look.pages import PageBuilder
from runner.features.look.results import StoredResults
from runner.features.look.shown import ShownRuns, list_shown, resolve_runs
from runner.pages.explorer.page import LIVE_POLICY
from runner.tracking.logged import Run
from runner.web.guard import LoopbackAccess, LoopbackGuard
from runner.web.server import STYLE

MISTAKES = (ConfigError, DatasetError, ResultError)
"""Errors that a page reports in one line."""


Apps: TypeAlias = Mapping[str, Callable[[Sequence[Run]], ASGIApp]]
"""The applications that features add for a choice of runs, by path."""


@contextmanager
def open_apps(config: Mapping[str, Any], results: StoredResults, access: LoopbackAccess) -> Iterator[Apps]:
    """Open the applications that features declare, until the block ends."""
    with ExitStack() as stack:
        places = {path: place for feature in list_features().values() for path, place in feature.apps.items()}
        yield {
            path: stack.enter_context(load_function(place)(config, results.runs, results.consent, access))
            for path, place in places.items()
        }


def create_look_app(
    builder: PageBuilder, apps: Apps, first: ShownRuns, baselines: Path, access: LoopbackAccess
) -> Starlette:
    """Return the application for browsers that have access; it shows `first` at its root."""
    pages = _LookPages(builder, first, baselines)
    routes = [
        Route("/", pages.show_first),
        Route("/runs", pages.show_list),
        Route("/style.css", pages.send_style),
        Route("/pages/{title}", pages.show_added),
        Route("/show", pages.choose),
        Route("/show/{key}/", pages.show_page),
        Route("/show/{key}/state", pages.send_state),
        Route("/show/{key}/texts", pages.send_texts),
        *(Mount(f"/show/{{key}}/{path}", app=partial(pages.run_app, open_app)) for path, open_app in apps.items()),
    ]
    return Starlette(routes=routes, middleware=[Middleware(LoopbackGuard, access=access)])


class _LookPages:
    """What each route does; whatever reads runs does so in a thread."""

    def __init__(self, builder: PageBuilder, first: ShownRuns, baselines: Path) -> None:
        self._builder, self._first, self._baselines = builder, first, baselines

    def show_first(self, request: Request) -> Response:
        return RedirectResponse(f"show/{self._first.key}/", 303)

    def show_list(self, request: Request) -> Response:
        runs = self._builder.results.runs
        return HTMLResponse(render_list(list_shown(runs), self._first.key, list(self._list_pages())))

    async def show_added(self, request: Request) -> Response:
        """Show a page that a feature adds."""

        def build_page() -> Response:
            title = request.path_params["title"]
            build = self._list_pages().get(title)
            if build is None:
                return RedirectResponse("/runs", 303)
            return HTMLResponse(build(), headers={"content-security-policy": LIVE_POLICY})

        return await _answer(build_page, as_page=True)

    def choose(self, request: Request) -> Response:
        """Lead from the form of the list to the page of the chosen runs."""
        runs = request.query_params.getlist("run")
        return RedirectResponse(f"show/{quote(','.join(runs))}/" if runs else "runs", 303)

    def send_style(self, request: Request) -> Response:
        return FileResponse(STYLE)

    async def show_page(self, request: Request) -> Response:
        def build_page() -> Response:
            html = self._builder.build(self._resolve(request), _read_board(request)).html
            return HTMLResponse(html, headers={"content-security-policy": LIVE_POLICY})

        return await _answer(build_page, as_page=True)

    async def send_state(self, request: Request) -> Response:
        return await _answer(lambda: JSONResponse(self._builder.read_state(self._resolve(request)).to_dict()))

    async def send_texts(self, request: Request) -> Response:
        query = request.query_params.get("query", "")

        def read_texts() -> Response:
            texts = self._builder.read_texts(self._resolve(request), query, _read_board(request))
            return JSONResponse({name: asdict(text) for name, text in texts.items()})

        return await _answer(read_texts)

    async def run_app(
        self, open_app: Callable[[Sequence[Run]], ASGIApp], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Pass a request on to the application for some runs, which is opened by the first request."""
        request = Request(scope)
        try:
            app: ASGIApp = await run_in_threadpool(lambda: open_app(self._resolve(request).runs))
        except MISTAKES as error:
            app = HTMLResponse(render_message("This tab cannot be opened", _explain(error)), 409)
        await app(scope, receive, send)

    def _list_pages(self) -> dict[str, Callable[[], str]]:
        """Return the pages that features add, by title."""
        runs, places = self._builder.results.runs, (f.pages for f in list_features().values() if f.pages)
        return {title: build for p in places for title, build in load_function(p)(runs, self._baselines).items()}

    def _resolve(self, request: Request) -> ShownRuns:
        return resolve_runs(request.path_params["key"].split(","), self._builder.results.runs)


async def _answer(respond: Callable[[], Response], as_page: bool = False) -> Response:
    """Return a response, or in one line why there is none."""
    try:
        return await run_in_threadpool(respond)
    except MISTAKES as error:
        if as_page:
            return HTMLResponse(render_message("The page cannot be shown", _explain(error)), 409)
        return PlainTextResponse(f"{_explain(error)}\n", 409)


def _read_board(request: Request) -> int:
    """Return the number of the dataset of a sweep that an address names, by default that of the first."""
    board = request.query_params.get("board", "0")
    return int(board) if board.isascii() and board.isdecimal() and len(board) < 6 else 0


def _explain(error: Exception) -> str:
    return without_secrets(str(error))
