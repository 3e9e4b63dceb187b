"""One session of judging by hand: open the journal, serve the desk on loopback, and write the grades when it stops."""

from __future__ import annotations

import getpass
from pathlib import Path

from runner.config.objects import ConfigError
from runner.features.judge.assessors import compare_assessors
from runner.features.judge.desk.app import create_desk_app
from runner.features.judge.desk.desk import Desk, DeskSettings
from runner.features.judge.desk.export import QRELS, format_setting, write_grades
from runner.features.judge.desk.journal import AssessorJournal, load_journals
from runner.features.judge.desk.pairs import DeskPool
from runner.pages import console
from runner.web.guard import LOOPBACK, LoopbackAccess
from runner.web.server import bind_socket, format_address, serve


def judge_by_hand(pool: DeskPool, settings: DeskSettings, folder: Path, assessor: str | None, port: int) -> None:
    """Serve the desk of an assessor until Ctrl-C; None: the login name. Raises `ConfigError`."""
    journals = folder / "journals"
    own = AssessorJournal(journals, find_assessor(assessor), pool.greatest)
    with own as journal, bind_socket(LOOPBACK, port) as listener:
        desk = Desk(pool, journal, settings)
        progress = desk.view().progress
        access = LoopbackAccess(format_address(listener))
        opened = f"desk of {journal.assessor}: {progress.decided:,} of {progress.total:,} pairs are judged"
        app = create_desk_app(desk, folder, access)
        serve(app, listener, lambda: console.announce(f"{opened}; open {access.url}  (press Ctrl-C to stop)"))
    report_grades(pool, folder)


def report_grades(pool: DeskPool, folder: Path) -> None:
    """Write the final grades, and show how far assessors agree and how an evaluation uses the grades."""
    assessments = load_journals(folder / "journals", pool.greatest)
    for line in (line for own in assessments.values() for line in own.damaged):
        console.note(f"skipped: {line}")
    finals = write_grades(folder, assessments, pool.query_texts)
    agreement = compare_assessors({name: own.grades for name, own in assessments.items()})
    override = format_setting(folder, pool.extra_qrels)
    if agreement.alpha is not None:
        console.line(f"Krippendorff's alpha over {agreement.items:,} pairs with several grades: {agreement.alpha:.3f}")
    console.line(f"written: {folder / QRELS} ({len(finals):,} grades)")
    if finals:
        console.line(f"use them with: {override}")
    console.document(
        lambda: {
            "judgments": str(folder / QRELS),
            "grades": len(finals),
            "assessors": list(assessments),
            "alpha": agreement.alpha,
            "override": override,
        }
    )


def find_assessor(name: str | None) -> str:
    """Return the name of an assessor, None for the login name; raises `ConfigError` if the account has none."""
    if name is not None:
        return name
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise ConfigError("assessor: this account has no login name; set assessor=NAME") from None
