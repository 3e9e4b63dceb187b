"""Measure what agents retrieve: recorded traces become retrieval events, and events become measures."""

from runner.config.features import Command, Document, Feature

FEATURE = Feature(
    Command(
        summary="measure what coding agents retrieved, from their traces",
        usage="path=DIR [tasks=DIR] output=DIR",
        settings={"": "runner.features.traces.settings.TraceSettings"},
        exit_codes={1: "a run failed (the report names it)", 2: "invalid command"},
        documents=[
            Document(
                "report summary",
                "path of the HTML report, and the content of the summary; with `file=FILE`, the events of the trace",
            )
        ],
    )
)
