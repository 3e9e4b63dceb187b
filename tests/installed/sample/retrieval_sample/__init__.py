"""A feature of another package: a command, a retriever and a section of reports."""

from runner.config.features import Command, Document, Feature

FEATURE = Feature(
    Command(
        summary="count the words of a text",
        usage="TEXT",
        settings={"": "retrieval_sample.command.WordsSettings"},
        exit_codes={1: "there are fewer words than expected", 2: "invalid command"},
        argument="text",
        documents=[Document("words", "the number of words")],
    ),
    sections={
        "evaluation": "retrieval_sample.sections:iter_sections",
        "sweep": "retrieval_sample.sections:iter_sweep_sections",
    },
)
