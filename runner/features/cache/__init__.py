"""List, verify and prune the entries of the store."""

from runner.config.features import Command, Document, Feature

FEATURE = Feature(
    Command(
        summary="list, prune and verify the cache",
        exit_codes={1: "an entry is damaged or cannot be removed", 2: "invalid command"},
        documents=[
            Document(
                "store bytes entries unlogged orphans",
                "the entries, results waiting to be logged, and artifacts without a run",
            )
        ],
    )
)
