"""The table of a paper, and the cells with the commands that reproduce them."""

from runner.config.features import Command, Document, Feature

FEATURE = Feature(
    Command(
        summary="write a table for a paper, with significance tests",
        usage="sweeps=[RUN,...] output=FOLDER",
        settings={"": "runner.features.table.command.PaperSettings"},
        texts=["baseline"],
        documents=[
            Document(
                "systems datasets measures baseline statistics notes cells across",
                "as in `cells.json`: `cells`, each with its statistics and `command`",
            )
        ],
    )
)
