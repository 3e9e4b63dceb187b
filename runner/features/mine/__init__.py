"""Mine queries from benchmark definitions: extract, resolve, find hard negatives, check, save."""

from runner.config.features import Command, Document, Feature

FEATURE = Feature(
    Command(
        summary="build a dataset from the definitions of benchmarks or a package",
        usage="source=CHOICE output=FILE",
        settings={"": "runner.features.mine.command.MineSettings"},
        exit_codes={1: "no query is left", 2: "invalid command"},
        documents=[Document("run dataset summary", "run id, path, and the content of the summary")],
    )
)
