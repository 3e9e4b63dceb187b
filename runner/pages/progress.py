"""Shows on standard error how far long work is: live on a terminal or in a notebook, elsewhere by few lines."""

from __future__ import annotations

import logging
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table as Grid
from rich.text import Text

from runner.config.environment import hide_values
from runner.pages import notebook_progress as notebook
from runner.pages import numbers
from runner.pages.terminal import open_console

FIRST_S, EVERY_S, SILENT_S = 10.0, 60.0, 300.0
"""Where there is no terminal: the seconds before the first line, between two lines that report something new, such as
another quarter of the work, and between any two lines."""

LONG_S = 300.0
"""The expected time left, in seconds, from which a line says how to see what takes it."""

PLAN = "what takes this time: python -m runner plan, with the same settings"
"""How to see what takes a long time."""

COUNT = re.compile(r"([\d,]+) of ([\d,]+)")
"""The progress of a stage."""

RECENT = 20
"""The number of last combinations whose pace predicts the time left."""

OWN_ESTIMATE = re.compile(r", about \d")
"""What a stage says that estimates its own time. The pace of earlier combinations does not include such a stage."""

ENOUGH = 0.2
"""The share of all combinations that suffices for a prediction where there are fewer: the first may be untypical."""


class Progress:
    """Shows on standard error how many of `total` items are done, and what is logged meanwhile.

    Live on a terminal, elsewhere a line at each quarter of the work, or after a long silence. It is a context manager;
    `advance` and `note` are called inside. `before` is the number of combinations finished earlier, `best` describes
    the best of them. `what` names the items if they are not combinations.
    """

    def __init__(
        self,
        total: int,
        before: int = 0,
        best: str = "",
        clock: Callable[[], float] = time.monotonic,
        what: str = "",
    ) -> None:
        self._what = f" {what}" if what else ""
        self._total, self._before, self._clock, self._start = total, before, clock, clock()
        self._done = self._failed = 0
        self._best, self._hinted = best, False
        self._finished = deque[float](maxlen=RECENT + 1)
        self._screen = _Screen(self._draw, self._plain, self._find_milestone, clock, lambda: (self._done, self._total))

    def __enter__(self) -> Self:
        """Start to show progress and log messages."""
        self._screen.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        """Stop, and print one line on how the work ended, if there was any."""
        ending = "done" if self._done == self._total else "stopped after"
        took = _roughly(self._clock() - self._start)
        before = [f"{self._before:,} were already finished"] if self._before else []
        line = "; ".join([f"{ending} {self._counts()} in {took}", *before, *self._leader()])
        if not self._screen.stop(line, counted=bool(self._total)) and self._total:
            self._screen.print(line)

    def advance(self, failed: bool = False, best: str | None = None) -> None:
        """Count one more item; `best` describes the new best combination, if it changed."""
        self._done += 1
        self._failed += failed
        self._best = self._best if best is None else best
        self._screen.stage = ""
        self._finished.append(self._clock())
        if self._done < self._total:
            self._screen.update()

    def end_early(self) -> None:
        """Set the total to the number done, when fewer items exist than were requested."""
        self._total = self._done

    def note(self, text: str) -> None:
        """Show the current stage of the work."""
        self._screen.note(text)

    def remaining(self) -> float | None:
        """Estimate the seconds left from the pace of the last combinations; None before enough are done.

        The first combination is left out: it does the work that the others share.
        """
        if len(self._finished) < 2 or self._done < min(RECENT, ENOUGH * self._total):
            return None
        pace = (self._finished[-1] - self._finished[0]) / (len(self._finished) - 1)
        since = min(self._clock() - self._finished[-1], pace)  # of the combination that is running
        return pace * (self._total - self._done) - since

    def _find_milestone(self) -> tuple[int, bool]:
        """Return the quarter of the work that is done, and whether the time left is known to be long."""
        return 4 * self._done // max(self._total, 1), bool(self._hint())

    def _counts(self) -> str:
        failed = f", {self._failed:,} failed" if self._failed else ""
        return f"{self._done:,} of {self._total:,}{self._what}{failed}"

    def _so_far(self) -> str:
        left = None if any(map(OWN_ESTIMATE.search, self._screen.stages())) else self.remaining()
        about = f", about {_roughly(left)} left" if left and left >= 0.5 else ""
        return f"{self._counts()}, {_roughly(self._clock() - self._start)} elapsed{about}"

    def _leader(self) -> list[str]:
        return [f"best: {self._best}"] if self._best else []

    def _hint(self) -> list[str]:
        """Return how to see what takes a long time, if combinations will."""
        is_long = not self._what and (self.remaining() or 0.0) >= LONG_S
        return [PLAN] if is_long and not self._hinted else []

    def _plain(self) -> str:
        hint = self._hint()
        self._hinted = self._hinted or bool(hint)
        return "; ".join([self._so_far(), *self._leader(), *self._screen.stages(), *hint])

    def _draw(self) -> RenderableType:
        bar = Grid.grid(padding=(0, 1))
        bar.add_row(self._screen.spinner, ProgressBar(self._total, self._done, width=24), self._so_far())
        return Group(bar, *map(_indent, [*self._leader(), *self._screen.stages(), *self._hint()]))


class Status:
    """Shows on standard error how long a piece of work has been running, and what it logs.

    Live on a terminal, elsewhere a line at each new stage and quarter of a stage, or after a long silence. It is a
    context manager; at its end the display disappears.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock, self._start = name, clock, clock()
        self._screen = _Screen(self._draw, self._plain, self._find_milestone, clock)

    def __enter__(self) -> Self:
        """Start to show progress and log messages."""
        self._screen.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        """Stop showing progress and log messages."""
        self._screen.stop(f"{self._name}: {_roughly(self._clock() - self._start)}", counted=False)

    def note(self, text: str) -> None:
        """Show the current stage of the work."""
        self._screen.note(text)

    def _find_milestone(self) -> tuple[str, int]:
        """Return the stage, and the quarter of it that is done."""
        stage = "".join(self._screen.stages())
        count = COUNT.search(stage)
        done, total = (int(number.replace(",", "")) for number in count.groups()) if count else (0, 1)
        return re.sub(r"\d.*", "", stage), 4 * done // max(total, 1)

    def _plain(self) -> str:
        passed = f"{self._name}, {_roughly(self._clock() - self._start)} elapsed"
        return ": ".join([passed, *self._screen.stages()])

    def _draw(self) -> RenderableType:
        first = Grid.grid(padding=(0, 1))
        first.add_row(self._screen.spinner, f"{self._name}, {_roughly(self._clock() - self._start)}")
        return Group(first, *map(_indent, self._screen.stages()))


class _Screen:
    """Draws on a terminal or in a notebook between `start` and `stop`; elsewhere prints a line now and then.

    `milestone` returns what a line would report as new once it changes, such as the quarter of the work. `count`
    returns the number of items done and the total. Log messages become notes, and warnings permanent lines.
    """

    def __init__(
        self,
        draw: Callable[[], RenderableType],
        plain: Callable[[], str],
        milestone: Callable[[], object],
        clock: Callable[[], float],
        count: Callable[[], tuple[int, int]] = lambda: (0, 0),
    ) -> None:
        self._draw, self._plain, self._clock, self._spoken = draw, plain, clock, clock()
        self._milestone, self._reported = milestone, object()
        self._is_silent = True
        self._console, self._count = open_console(stderr=True), count
        self._live: Live | None = None
        self._bar: notebook.ProgressBar | None = None
        self._ticking = threading.Thread(target=self._tick, daemon=True)
        self._turn, self._stopped = threading.Lock(), threading.Event()
        self._notes = _Notes(self.note, self.print)
        self.spinner, self.stage = Spinner("dots"), ""

    def start(self) -> None:
        """Start to draw and to forward log messages."""
        self._notes.start()
        self._bar = notebook.open_bar(self._plain(), *self._count())
        is_terminal = self._console.is_terminal and not self._console.is_dumb_terminal
        if self._bar is None and is_terminal:  # Jupyter sets FORCE_COLOR, which makes its streams look like one
            self._live = Live(
                get_renderable=self._draw,
                console=self._console,
                transient=True,
                refresh_per_second=5,
                redirect_stdout=sys.stdout.isatty(),
            )
            self._live.start()
        else:
            self._ticking.start()

    def stop(self, ending: str, counted: bool) -> bool:
        """Remove what was drawn, and forward no more log messages; return whether a notebook shows the ending."""
        if self._live is not None:
            self._live.stop()
        else:
            self._stopped.set()
            self._ticking.join()
        if self._bar is not None:
            self._bar.close(ending, counted)
        self._notes.stop()
        return self._bar is not None

    def note(self, text: str) -> None:
        """Show the current stage of the work."""
        self.stage = text
        self.update()

    def stages(self) -> list[str]:
        """Return the current stage, if it is known."""
        return [self.stage] if self.stage else []

    def print(self, text: str) -> None:
        """Print a permanent line."""
        self._console.print(Text(text), soft_wrap=True)

    def update(self) -> None:
        """Print the line if there is something new to say, or update the bar of a notebook; a terminal does itself."""
        if self._live is not None:
            return
        with self._turn:
            now, milestone = self._clock(), self._milestone()
            wait = EVERY_S if milestone != self._reported else SILENT_S
            wait = notebook.EVERY_S if self._bar is not None else FIRST_S if self._is_silent else wait
            due = now - self._spoken >= wait
            if due:
                self._spoken, self._reported, self._is_silent = now, milestone, False
        if due and self._bar is not None:
            self._bar.draw(self._plain(), *self._count())
        elif due:
            self.print(self._plain())

    def _tick(self) -> None:
        """Print the line during long stages that report nothing."""
        while not self._stopped.wait(FIRST_S):
            self.update()


class _Notes(logging.Handler):
    """Forwards log messages between `start` and `stop`: warnings as permanent lines, others as the current stage."""

    def __init__(self, note: Callable[[str], None], say: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._note, self._say = note, say
        self._levels: dict[logging.Logger, int] = {}

    def start(self) -> None:
        for logger in map(logging.getLogger, ("retrievers", "runner.datasets", "runner.store")):
            self._levels[logger] = logger.level
            logger.addHandler(self)
            logger.setLevel(logging.INFO)

    def stop(self) -> None:
        for logger, level in self._levels.items():
            logger.removeHandler(self)
            logger.setLevel(level)

    def emit(self, record: logging.LogRecord) -> None:
        (self._say if record.levelno >= logging.WARNING else self._note)(hide_values(record.getMessage()))


def _indent(text: str) -> Text:
    return Text(f"  {text}", no_wrap=True, overflow="ellipsis")


def _roughly(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 59.5 else numbers.duration(seconds)
