"""Judge queries and documents, by people or by a language model."""

from runner.config.features import Command, Document, Feature

FEATURE = Feature(
    Command(
        summary="let people or a language model grade documents not judged yet",
        usage="run=RUN llm=CHOICE",
        settings={"": "runner.features.judge.command.JudgeSettings"},
        documents=[
            Document(
                "run judgments measure standings summary", "scores `before` and `after`, and the counts of verdicts"
            )
        ],
    ),
    apps={"desk": "runner.features.judge.desk.apps:open_desks"},
)
