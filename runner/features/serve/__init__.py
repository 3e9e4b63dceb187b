"""A search API over HTTP, with the routes that `retriever=http/runner` queries."""

from runner.config.features import Command, Feature

FEATURE = Feature(
    Command(
        summary="serve any retriever behind an HTTP search API",
        usage="[GROUP=CHOICE]",
        settings={"": "runner.features.serve.command.ServeSettings"},
        success="stopped",
        exit_codes={2: "invalid command, or port in use"},
        serves=True,
    )
)
