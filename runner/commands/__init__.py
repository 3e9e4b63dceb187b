"""The commands of the core; those of features are declared in the `__init__.py` of the feature.

The primary config of a command is `conf/NAME.yaml`, its help `help/NAME.txt`; what is the same for all is added.
"""

from pathlib import Path

from runner.config.features import Command, Document, FeatureError, list_features

CORE = {
    "evaluate": Command(
        summary="evaluate a retriever on a dataset, or every combination of a sweep",
        settings={"": "runner.commands.evaluate.EvaluationSettings", "sweep": "runner.sweep.settings.SweepSettings"},
        exit_codes={1: "an evaluation failed", 2: "invalid command"},
        documents=[
            Document("run report result", "run id, path of the HTML report, and the content of `result.json`"),
            Document(
                "run combinations finished interrupted leaderboards",
                "a leaderboard per dataset with its `rows`, best first, and `failures`",
                "for a sweep",
            ),
        ],
    ),
    "plan": Command(
        summary="show the work, time and cost of a sweep without running it",
        usage="[GROUP=CHOICE]",
        documents=[
            Document(
                "name datasets combinations finished to_do stages wall_seconds workers store calls race power "
                "bytes rough unknown",
                "the work by stage, with `to_do`, `wall_seconds`, `bytes` and the `power` of tests; "
                "for a search, only `name`, `combinations` and `power`",
            )
        ],
    ),
    "compare": Command(
        summary="compare results, test the differences, apply a gate (rules)",
        usage="baseline=RUN candidate=RUN",
        settings={"": "runner.commands.compare.CompareSettings"},
        exit_codes={
            1: "a rule of the gate is violated",
            2: "results are not comparable, or invalid command",
            3: "internal error",
            4: "the gate is undecided, and gate.undecided=fail",
        },
        documents=[
            Document(
                "baseline primary same notes statistics tests systems data verdicts measures "
                "no_result agreement steps bounds headroom by_type queries gate",
                "as in `comparison.json`: `gate.passed`, `gate.checks`, `measures`, `data`, changed `queries`",
            ),
            Document(
                "baseline candidates gate", "`gate.passed`, and `gate.checks` with each `look`", "for gate.locked"
            ),
        ],
    ),
    "promote": Command(
        summary="save a run as a named baseline for later comparisons",
        usage="run=RUN name=NAME",
        settings={"": "runner.commands.promote.PromoteSettings"},
        documents=[
            Document(
                "baseline name by at source run config_hash dataset_fingerprint git_commit primary mean low high "
                "earlier",
                "as in `promotion.json`, with the folder",
            )
        ],
    ),
    "reproduce": Command(
        summary="evaluate a cell of a table again, and show what changed",
        usage="FOLDER@CELL",
        settings={"": "runner.commands.reproduce.ReproductionSettings"},
        success="the values are equal",
        exit_codes={1: "they differ", 2: "invalid command, or the configuration cannot be evaluated again"},
        argument="cell",
        documents=[
            Document(
                "cell measure recorded value queries changed reproduced differences",
                "the recorded and the new value, and what differs",
            )
        ],
    ),
    "export": Command(
        summary="write a dataset in another format",
        usage="dataset=CHOICE format=beir output=FOLDER",
        settings={"": "runner.commands.export.ExportSettings"},
        documents=[Document("files settings notes", "the files, and the settings for reading them")],
    ),
    "ui": Command(
        summary="open the MLflow UI",
        settings={"": "runner.commands.ui.Address"},
        exit_codes={2: "invalid command, or port in use"},
        serves=True,
    ),
    "relocate": Command(
        summary="record where artifacts are that were moved without a database",
        settings={"relocate": "runner.commands.relocate.RelocationSettings"},
        documents=[
            Document(
                "before after runs absent applied missing",
                "how many runs are moved, or without `relocate.after`, the `missing` folders with their "
                "numbers of runs",
            )
        ],
    ),
    "new": Command(
        summary="create a project: configuration, dataset, plug-in, test, CI job",
        usage="FOLDER [template=NAME]",
        settings={"": "runner.commands.new.ProjectSettings"},
        argument="folder",
        documents=[Document("folder files", "the files of the project")],
    ),
}
"""The commands of the core, in the order of `--help`."""


def list_commands() -> dict[str, Command]:
    """Return the commands by name, those of the core first; raises `FeatureError` for an installed one."""
    texts = Path(__file__).parent / "help"
    core = {
        name: command._replace(module=f"{__name__}.{name}", help=texts / f"{name}.txt")
        for name, command in CORE.items()
    }
    own = {name: feature.command for name, feature in list_features().items() if feature.command is not None}
    for name in own.keys() & core.keys():
        raise FeatureError(f"{own[name].module}: the name {name} is that of a command; remove this feature")
    return core | own
