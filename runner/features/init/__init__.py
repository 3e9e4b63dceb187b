"""Write an experiment for a folder of documents, and for what is installed."""

from runner.config.features import Command, Document, Feature

FEATURE = Feature(
    Command(
        summary="write an experiment for a folder of documents",
        usage="FOLDER",
        settings={"": "runner.features.init.command.InitSettings"},
        exit_codes={1: "no questions were found, so nothing was written", 2: "invalid command, or the file exists"},
        argument="path",
        texts=["path", "questions", "output"],
        documents=[
            Document(
                "path documents words language reading questions file combinations seconds available missing",
                "`seconds` is the estimated time of the sweep, null if it is unknown; `missing` maps what is not "
                "installed to the command that adds it",
            )
        ],
    )
)
