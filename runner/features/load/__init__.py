"""A load test: latency, failures and quality at rates of requests per second."""

from runner.config.features import Command, Document, Feature

FEATURE = Feature(
    Command(
        summary="measure latency and quality under load",
        usage="retriever=CHOICE dataset=CHOICE load.rates=[RATE,...]",
        settings={
            "": "runner.features.load.command.LoadCommandSettings",
            "load": "runner.features.load.settings.LoadSettings",
        },
        success="all rates were run",
        exit_codes={1: "stopped by a limit of the test", 2: "invalid command", 130: "interrupted"},
        documents=[
            Document(
                "run report target dataset split queries primary settings requests rates stopped saturation "
                "highest_kept_up",
                "the `rates`, each with its `latency`, failures and `quality`, and the `saturation` in answers per "
                "second",
            )
        ],
    ),
    sections={"sweep": "runner.features.load.sweep:iter_sweep_sections"},
    figures="runner.features.load.sweep:measure_under_load",
)
