"""Judge a published number without data."""

from runner.config.features import Command, Document, Feature

FEATURE = Feature(
    Command(
        summary="judge a published number: interval, smallest p, queries needed",
        usage="n=QUERIES value=MEAN [baseline=MEAN]",
        settings={"": "runner.features.audit.command.AuditSettings"},
        success="the difference can be significant, or there is no baseline",
        exit_codes={1: "the difference cannot be significant", 2: "invalid command"},
        documents=[
            Document(
                "queries measure value baseline alpha systems level intervals difference fewest smallest_p enough "
                "assumptions detectable possible",
                "the `intervals` of the value, the difference, and its p-value by each of the `assumptions`",
            )
        ],
    )
)
