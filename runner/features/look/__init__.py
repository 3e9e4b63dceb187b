"""The server of `look`: the pages of stored runs, newer data while a sweep is running, and whole texts.

It renders the pages that reports have as files, and serves the `apps` of other features. It only reads runs.
"""

from runner.config.features import Command, Feature

FEATURE = Feature(
    Command(
        summary="explore sweeps and evaluations in the browser",
        usage="[run=RUN,RUN | sweep=NAME]",
        settings={"": "runner.features.look.command.LookSettings"},
        exit_codes={2: "invalid command, no such run, or port in use"},
        texts=["sweep"],
        lists=["run"],
        serves=True,
    )
)
