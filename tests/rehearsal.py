"""A small sweep, run when this module is imported: a process that is forked afterwards need not load what it loaded.

It leaves modules, compiled functions, hashes of code and compositions of Hydra's behind. Only the server of
`tests/warm.py` imports it.
"""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import runner
from runner.tracking import background

with ExitStack() as stack:
    stack.enter_context(chdir(stack.enter_context(TemporaryDirectory())))
    output = stack.enter_context(Path(os.devnull).open("w"))
    stack.enter_context(redirect_stdout(output))
    stack.enter_context(redirect_stderr(output))
    runner.run_sweep("retriever=bm25", "retriever.k1=0.6,0.9", "tracking.background=false")
    background._trackers.clear()

# A fork has the main thread alone; the one that touches locks is started again in it.
assert {thread.name for thread in threading.enumerate()} <= {"MainThread", "locks"}
