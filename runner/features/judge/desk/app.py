"""The routes of the desk: judging, differences between assessors, and export.

A decision is a form, so that the desk works without JavaScript; the reply to it is a redirect to the next pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import cast, get_args
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from runner.config.arguments import arguments
from runner.config.objects import ConfigError
from runner.datasets.base import DatasetError
from runner.datasets.export_formats import Format, RatingsFormat
from runner.features.judge.assessors import compare_assessors
from runner.features.judge.desk.desk import Desk, DeskError
from runner.features.judge.desk.export import QRELS, export_dataset, format_setting, write_grades
from runner.features.judge.desk.journal import Action
from runner.features.judge.desk.pages import TEMPLATES, render_page
from runner.web.guard import LoopbackAccess, LoopbackGuard
from runner.web.server import STYLE

LONGEST_FORM = 1 << 16
"""The most bytes of a form."""

MORE = 20
"""By how many pairs the goal is raised on demand."""

FORMATS: tuple[Format, ...] = ("beir", "trec", "jsonl", *get_args(RatingsFormat))


def create_desk_app(desk: Desk, folder: Path, access: LoopbackAccess) -> Starlette:
    """Return the desk as an ASGI application for browsers that have access; exports go to a folder."""
    pages = _DeskPages(desk, folder)
    routes = [
        Route("/", pages.show_pair),
        Route("/judge", pages.decide, methods=["POST"]),
        Route("/differences", pages.show_differences),
        Route("/settle", pages.settle, methods=["POST"]),
        Route("/export", pages.show_export),
        Route("/export", pages.export, methods=["POST"]),
        *(Route(f"/{file.name}", partial(_send_file, file)) for file in (STYLE, TEMPLATES / "desk.js")),
    ]
    return Starlette(routes=routes, middleware=[Middleware(LoopbackGuard, access=access)])


class _DeskPages:
    """What each route does."""

    def __init__(self, desk: Desk, folder: Path) -> None:
        self._desk, self._folder = desk, folder

    def show_pair(self, request: Request, message: str = "") -> Response:
        return self._show("judge", view=self._desk.view(), more=MORE, message=message or _describe_damaged(self._desk))

    async def decide(self, request: Request) -> Response:
        return await _change(request, self._write_decision, "./", self.show_pair)

    def show_differences(self, request: Request, message: str = "") -> Response:
        disputes = self._desk.list_disputes()
        pool = self._desk.pool
        pair = pool.read_pair(pool.places[disputes[0].pair]) if disputes else None
        agreement = compare_assessors({name: own.grades for name, own in self._desk.assessments.items()})
        dispute = disputes[0] if disputes else None
        shown = {"dispute": dispute, "pair": pair, "left": len(disputes), "agreement": agreement}
        return self._show("differences", message=message, **shown)

    async def settle(self, request: Request) -> Response:
        return await _change(request, self._write_settled, "differences", self.show_differences)

    def show_export(self, request: Request) -> Response:
        return self._show("export", formats=FORMATS, written=None, problem="")

    async def export(self, request: Request) -> Response:
        form = await _read_form(request)
        return await run_in_threadpool(self._write_export, form.get("format", "qrels"))

    def _write_decision(self, form: Mapping[str, str]) -> None:
        word, pair, note = form.get("decision", ""), _read_pair(form), form.get("note")
        if word == "undo":
            self._desk.undo()
        elif word == "more":
            self._desk.extend_goal(MORE)
        elif word in ("skip", "unsure", "note"):
            self._desk.decide(cast("Action", word), pair, note=note)
        else:
            self._desk.decide("grade", pair, _parse_grade(word), note)

    def _write_settled(self, form: Mapping[str, str]) -> None:
        if form.get("decision") == "undo":
            self._desk.undo()
        else:
            self._desk.decide("settle", _read_pair(form), _parse_grade(form.get("decision", "")))

    def _write_export(self, choice: str) -> Response:
        written, problem = None, ""
        if choice not in ("qrels", *FORMATS):
            return PlainTextResponse(f"Nothing was written: no such format; choose qrels, {', '.join(FORMATS)}.\n", 400)
        try:
            finals = write_grades(self._folder, self._desk.assessments, self._desk.pool.query_texts)
            files, override = [self._folder / QRELS], format_setting(self._folder, self._desk.pool.extra_qrels)
            if choice in FORMATS:
                exported = export_dataset(self._desk.pool, finals, choice, self._folder / choice)
                files, override = list(exported.files), arguments(exported.settings)
            written = {"files": files, "override": override, "grades": len(finals)}
        except (DatasetError, OSError) as error:
            problem = f"Not written: {error}"
        return self._show("export", formats=FORMATS, written=written, problem=problem)

    def _show(self, page: str, **values: object) -> HTMLResponse:
        desk = self._desk
        shared = {"assessor": desk.journal.assessor, "greatest": desk.pool.greatest}
        disputes = len(desk.list_disputes())
        return HTMLResponse(
            render_page(f"{page}.jinja", current=page.capitalize(), disputes=disputes, **shared, **values)
        )


async def _change(
    request: Request,
    write: Callable[[Mapping[str, str]], None],
    next_page: str,
    show: Callable[[Request, str], Response],
) -> Response:
    """Change the journal by a form, and return a redirect, or why nothing was saved, above the present page."""
    form = await _read_form(request)
    try:
        await run_in_threadpool(write, form)
    except (DeskError, ConfigError) as error:
        message, status = f"Nothing was saved: {error}.", 409
    except OSError as error:
        message, status = f"Nothing was saved: the journal cannot be written ({error}).", 507
    else:
        return RedirectResponse(next_page, 303)
    if "text/html" not in request.headers.get("accept", ""):  # the script of the page shows the message
        return PlainTextResponse(message, status)
    page = await run_in_threadpool(show, request, message)
    page.status_code = status
    return page


async def _read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form, none if it is too large; its pair is then unknown, so nothing is saved."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_FORM:
            return {}
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[-1] for name, values in fields.items()}


def _describe_damaged(desk: Desk) -> str:
    """Return which lines of journals are skipped, the first one with what is wrong; "" for none."""
    damaged = desk.list_damaged()
    more = f" (and {len(damaged) - 1:,} more)" if len(damaged) > 1 else ""
    return f"Skipped: {damaged[0]}{more}" if damaged else ""


def _read_pair(form: Mapping[str, str]) -> tuple[str, str]:
    return form.get("query_id", ""), form.get("document_id", "")


def _parse_grade(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) < 3):
        raise DeskError(f"the decision {word[:20]!r} does not exist")
    return int(word)


def _send_file(path: Path, request: Request) -> Response:
    return FileResponse(path)
