"""Watch the quality of production over time: windows of traffic become runs in MLflow, and falls raise an alarm."""

from runner.config.features import Command, Document, Feature

FEATURE = Feature(
    Command(
        summary="raise an alarm when the quality of production falls",
        usage="traffic.path=TRACES dataset=CHOICE dataset.path=JUDGED",
        settings={"": "runner.features.monitor.settings.MonitorSettings"},
        success="no alarm in the newest window",
        exit_codes={1: "the newest window raises an alarm", 2: "invalid command", 3: "internal error"},
        documents=[
            Document(
                "measure reading windows watched alarms fall drift",
                "figures of each window, the evidence that a measure has fallen, and what fell",
            )
        ],
    ),
    pages="runner.features.monitor.history:list_pages",
)
