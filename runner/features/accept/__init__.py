"""Accept or reject a configuration block by block: search only until a gate is decided."""

from runner.config.features import Command, Document, Feature

FEATURE = Feature(
    Command(
        summary="search a configuration block by block, until a gate is decided",
        usage="baseline=RUN [GROUP=CHOICE]",
        settings={
            "": "runner.features.accept.command.AcceptSettings",
            "accept": "runner.features.accept.acceptance.Blocks",
        },
        exit_codes={
            1: "a rule of the gate is violated",
            2: "the baseline is not comparable, a search failed, or invalid command",
            3: "internal error",
            4: "the gate is undecided, and gate.undecided=fail",
        },
        documents=[
            Document(
                "sequential baseline candidate primary gate statistics of searched blocks saved queries",
                "`gate.verdict`, `gate.rules` with intervals that hold at any time, and the searched `queries`",
            )
        ],
    )
)
