"""Explain why a measure differs between two results."""

from runner.config.features import Command, Document, Feature

FEATURE = Feature(
    Command(
        summary="split a difference into what settings and data contributed",
        usage="baseline=RUN candidate=RUN",
        settings={"": "runner.features.explain.command.ExplainSettings"},
        exit_codes={
            1: "a rule of the gate is violated",
            2: "the difference cannot be explained, or invalid command",
            3: "internal error",
            4: "the gate is undecided, and gate.undecided=fail",
        },
        documents=[
            Document(
                "baseline candidate primary verdict changed measures causes moved shares evaluations "
                "sampled_orders statistics notes gate",
                "as in `explanation.json`: the `terms` of each of the `measures`, `causes`, `moved` and the `gate`",
            )
        ],
    )
)
