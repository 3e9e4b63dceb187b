"""Inspect the quality of a dataset."""

from runner.config.features import Command, Document, Feature

FEATURE = Feature(
    Command(
        summary="check the quality of a dataset",
        usage="dataset=CHOICE",
        settings={"": "runner.features.inspect.command.InspectSettings"},
        documents=[
            Document(
                "version dataset reading samples counts grades types distributions retrievers depth cutoff lacking "
                "reliability findings",
                "as in `inspection.json`: `findings`, worst first",
            )
        ],
    )
)
