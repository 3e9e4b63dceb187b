"""What config files from elsewhere may set; each file here is that of a stranger, next to the working folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.__main__ import main
from runner.config.composing import compose_config
from runner.config.objects import ConfigError

CODE = "{_target_: pathlib.Path.touch, self: {_target_: pathlib.Path, _args_: [TOUCHED]}}"
"""A node that creates a file when Hydra instantiates it."""

HANDLER = "{version: 1, handlers: {a: {'()': pathlib.Path.touch, self: TOUCHED}}, root: {handlers: [a]}}"

EXPERIMENT = "experiment/mine.yaml"
GLOBAL = "# @package _global_\n"
SWEEP = f"{GLOBAL}hydra: {{mode: MULTIRUN}}\n"


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, which is empty."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def write(files: dict[str, str], folder: str = "../friend") -> None:
    """Write config files to the folder of a stranger."""
    for name, text in files.items():
        file = Path(folder, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def read_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the message of a command that is refused with one line, without its first word."""
    assert main(words) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert not [file for file in Path().rglob("*") if file.name in ("TOUCHED", "mlruns")]
    return line.removeprefix("error: ")


CONFIGURE: list[tuple[dict[str, str], list[str], str]] = [
    ({EXPERIMENT: f"{GLOBAL}hydra: {{callbacks: {{a: {CODE}}}}}"}, [], "hydra.callbacks.a"),
    ({EXPERIMENT: f'{GLOBAL}hydra: {{callbacks: {{"a\\nb": {CODE}}}}}'}, [], "hydra.callbacks.a b"),
    ({EXPERIMENT: f"# @package hydra.callbacks\na: {CODE}"}, [], "hydra.callbacks.a"),
    ({EXPERIMENT: f"{GLOBAL}x: {{a: {CODE}}}\nhydra: {{callbacks: '${{x}}'}}"}, [], "hydra.callbacks"),
    ({EXPERIMENT: f"{GLOBAL}x: {{callbacks: {{a: {CODE}}}}}\nhydra: ${{x}}"}, [], "hydra"),
    ({EXPERIMENT: f"{GLOBAL}hydra: {{job_logging: {HANDLER}}}"}, [], "hydra.job_logging"),
    ({EXPERIMENT: f"{GLOBAL}hydra: {{hydra_logging: {HANDLER}}}"}, [], "hydra.hydra_logging"),
    ({EXPERIMENT: f"{GLOBAL}hydra: {{sweeper: {CODE}}}"}, [], "hydra.sweeper"),
    ({EXPERIMENT: f"{GLOBAL}hydra: {{launcher: {{_target_: hydra_plugins.x.L}}}}"}, [], "hydra.launcher"),
    ({EXPERIMENT: f"{GLOBAL}hydra: {{job: {{env_set: {{PATH: /evil}}}}}}"}, [], "hydra.job.env_set.PATH"),
    ({EXPERIMENT: f"{GLOBAL}hydra: {{job: {{chdir: true}}}}"}, [], "hydra.job.chdir"),
    ({EXPERIMENT: f"{GLOBAL}hydra: {{run: {{dir: /evil}}}}"}, [], "hydra.run.dir"),
    ({EXPERIMENT: f"{GLOBAL}hydra: {{sweep: {{dir: /evil}}}}"}, [], "hydra.sweep.dir"),
    ({EXPERIMENT: f"{GLOBAL}hydra: {{overrides: {{task: ['+a=1']}}}}"}, [], "hydra.overrides.task"),
    ({EXPERIMENT: f"{GLOBAL}hydra: {{output_subdir: x}}"}, [], "hydra.output_subdir"),
    ({EXPERIMENT: f"{GLOBAL}hydra: {{searchpath: ['pkg://evil']}}"}, [], "hydra.searchpath"),
    ({EXPERIMENT: f"{GLOBAL}defaults: [override /hydra/sweeper: basic]"}, [], "hydra/sweeper=basic"),
    (
        {EXPERIMENT: f"{GLOBAL}defaults: [override /hydra/launcher: submitit_local]"},
        [],
        "hydra/launcher=submitit_local",
    ),
    ({EXPERIMENT: f"{GLOBAL}defaults: [/retriever@hydra.callbacks.a: bm25]"}, [], "hydra.callbacks.a"),
    (
        {EXPERIMENT: f"{GLOBAL}defaults: [/x/y@hydra.callbacks.a]", "x/y.yaml": CODE},
        [],
        "hydra.callbacks.a",
    ),
    ({"hydra/job_logging/mine.yaml": HANDLER}, ["hydra/job_logging=mine"], "hydra.job_logging"),
    ({"retriever/mine.yaml": f"# @package hydra.callbacks\na: {CODE}"}, ["retriever=mine"], "hydra.callbacks.a"),
    ({"own.yaml": f"defaults: [evaluate, _self_]\nhydra: {{callbacks: {{a: {CODE}}}}}"}, ["-cn=own"], "hydra.c"),
    ({"own.yaml": "defaults: [evaluate]\nhydra: {searchpath: ['pkg://x']}"}, ["-cn=own"], "hydra.searchpath"),
    ({"../mine.yaml": f"{GLOBAL}hydra: {{callbacks: {{a: {CODE}}}}}"}, ["experiment=../../mine"], "hydra.c"),
    ({EXPERIMENT: f"{SWEEP}sweep: {{backend: dask, address: 'tcp://evil:1'}}"}, [], "sweep.address"),
    ({EXPERIMENT: f"{SWEEP}sweep: {{backend: slurm, slurm: {{setup: [id]}}}}"}, [], "sweep.slurm.setup"),
    ({EXPERIMENT: f"{GLOBAL}x: {{path: /evil}}\nstore: ${{x}}"}, [], "store"),
    (
        {EXPERIMENT: f"{GLOBAL}hydra: {{mode: MULTIRUN, sweeper: {{params: {{+hydra.job.env_set.A: b}}}}}}"},
        ["hydra/sweeper=basic"],
        "hydra.job.env_set.A",
    ),
]  # fmt: skip
"""Files that configure Hydra or run code, the words that choose them, and the setting that the message names."""


@pytest.mark.parametrize(
    ("verb", "files", "words", "named"),
    [
        *([[], *case] for case in CONFIGURE),
        *([verb, *case] for verb in (["plan"], ["--cfg", "job"]) for case in CONFIGURE[::9]),
    ],
)
def test_a_file_from_elsewhere_cannot_configure_hydra_or_run_code(
    verb: list[str], files: dict[str, str], words: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(files)
    preset = ["experiment=mine"] if EXPERIMENT in files else []
    message = read_error([*verb, "--config-dir=../friend", *preset, *words], capsys)
    assert message.startswith("../") and f": {named}" in message
    assert message.endswith("only the command line and the config of your own project can set it; set it on the "
                            "command line, or remove it")  # fmt: skip


@pytest.mark.parametrize("content", ["store: {path: /evil}", "hydra: {run: {dir: /evil}}"])
def test_a_preset_named_by_its_file_is_from_elsewhere_in_the_working_folder_too(
    content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write({"mine.yaml": f"{GLOBAL}{content}"}, "presets")
    message = read_error(["experiment=presets/mine.yaml"], capsys)
    assert message.startswith("presets/mine.yaml: ")


@pytest.mark.parametrize(
    ("files", "words", "named"),
    [
        ({EXPERIMENT: f"{GLOBAL}store: {{path: ../cache}}"}, [], "store.path=../cache"),
        ({EXPERIMENT: f"{GLOBAL}store: {{copies: ~/x}}"}, [], "store.copies=~/x"),
        ({EXPERIMENT: f"{GLOBAL}store: {{path: 's3://evil/x'}}"}, [], "store.path=s3://evil/x"),
        ({EXPERIMENT: f"{GLOBAL}x: /evil\nstore: {{path: '${{x}}'}}"}, [], "store.path=${x}"),
        ({EXPERIMENT: f"{GLOBAL}tracking: {{uri: 'http://evil'}}"}, [], "tracking.uri=http://evil"),
        ({"tracking/mine.yaml": "defaults: [default]\nuri: databricks"}, ["tracking=mine"], "tracking.uri=databricks"),
        ({EXPERIMENT: f"{GLOBAL}tracking: {{uri: 'sqlite:////x'}}"}, [], "tracking.uri=sqlite:////x"),
        ({EXPERIMENT: f"{GLOBAL}tracking: {{artifacts: /evil}}"}, [], "tracking.artifacts=/evil"),
        ({EXPERIMENT: f"{SWEEP}sweep: {{output: /evil}}"}, [], "sweep.output=/evil"),
        ({EXPERIMENT: f"{GLOBAL}junit: ../evil.xml"}, [], "junit=../evil.xml"),
        (
            {EXPERIMENT: f"{GLOBAL}defaults: [override /llm: openai]\nllm: {{ledger: /evil}}"},
            [],
            "llm.ledger=/evil",
        ),
    ],
)  # fmt: skip
def test_a_file_from_elsewhere_cannot_write_outside_the_working_folder(
    files: dict[str, str], words: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(files)
    preset = ["experiment=mine"] if EXPERIMENT in files else []
    message = read_error(["--config-dir=../friend", *preset, *words], capsys)
    assert f": {named}: a config file from elsewhere set it, and it is not in the working folder; set it on " in message
    assert message.endswith("or allow it with 'trust=[files]'")


@pytest.mark.parametrize(
    ("files", "words", "named"),
    [
        ({"retriever/mine.yaml": "defaults: [bm25]\nk1: ${oc.env:KEY}"}, ["retriever=mine"], "retriever.k1=${oc.env"),
        ({EXPERIMENT: f"{GLOBAL}x: $\nretriever: {{k1: '${{oc.decode:\"${{x}}{{a}}\"}}'}}"}, [], "retriever.k1="),
        ({EXPERIMENT: f"{GLOBAL}x: oc.env\nretriever: {{k1: '${{${{x}}:KEY}}'}}"}, [], "retriever.k1=${${x}"),
        ({EXPERIMENT: f"{SWEEP}sweep: {{union: [{{retriever.k1: ['${{x}}{{oc.env:KEY}}']}}]}}"}, [], "sweep.union"),
        (
            {EXPERIMENT: f"{GLOBAL}defaults: [override /llm: azure]\nllm: {{base_url: 'http://evil', model: m}}"},
            [],
            "llm.base_url=http://evil",
        ),
        (
            {"llm/mine.yaml": "_target_: runner.llm.providers.Azure\nbase_url: http://evil\nmodel: m"},
            ["llm=mine"],
            "llm.base_url=http://evil",
        ),
        (
            {EXPERIMENT: f"{SWEEP}sweep: {{union: {{a: {{llm: azure, llm.base_url: ['http://evil']}}}}}}"},
            [],
            "sweep.union.a.llm.base_url=",
        ),
        ({"llm/mine.yaml": "defaults: [openai]\napi_key_env: KEY"}, ["llm=mine"], "llm.api_key_env=KEY"),
        (
            {"retriever/mine.yaml": "defaults: [http]\nsecret_headers: {A: KEY}"},
            ["retriever=mine"],
            "retriever.secret_headers.A=KEY",
        ),
        ({"retriever/mine.yaml": "defaults: [pgvector]\ndsn: host=evil"}, ["retriever=mine"], "retriever.dsn=host"),
        ({EXPERIMENT: f"{GLOBAL}public_environment: [KEY]"}, [], "public_environment=['KEY']"),
    ],
)  # fmt: skip
def test_a_file_from_elsewhere_cannot_read_a_secret_or_have_one_sent_to_its_address(
    files: dict[str, str],
    words: list[str],
    named: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEY", "s3cr3t-token")
    write(files)
    preset = ["experiment=mine"] if EXPERIMENT in files else []
    message = read_error(["--config-dir=../friend", *preset, *words], capsys)
    assert f": {named}" in message and "s3cr3t-token" not in message
    assert message.endswith("or allow it with 'trust=[secrets]'")


REFERENCES = {
    "a key": ("http://evil/${llm.api_key}", "+llm.api_key=typed-s3cr3t"),
    "a relative reference": ("http://evil/${..llm.api_key}", "+llm.api_key=typed-s3cr3t"),
    "brackets": ("http://evil/${llm[api_key]}", "+llm.api_key=typed-s3cr3t"),
    "a resolver": ("http://evil/${oc.select:llm.api_key}", "+llm.api_key=typed-s3cr3t"),
    "a password in an address": ("http://evil/${tracking.uri}", "tracking.uri='postgresql://me:typed-s3cr3t@db/x'"),
    "words of libpq": ("http://evil/${x}", "+x='host=db password=typed-s3cr3t'"),
    "an address of a database": ("http://evil/${x.dsn}", "+x.dsn='host=typed-s3cr3t'"),
    "another setting of the file": ("http://evil/${retriever.index}", "+llm.api_key=typed-s3cr3t"),
    "a variable": ("http://evil/${retriever.index}", "+llm.api_key='${oc.env:KEY}'"),
}


@pytest.mark.parametrize(("address", "word"), REFERENCES.values(), ids=REFERENCES)
def test_a_file_from_elsewhere_cannot_refer_to_a_secret(
    address: str, word: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "typed-s3cr3t")
    index = "'${llm.api_key}'" if "retriever.index" in address else "x"
    preset = f"{GLOBAL}defaults: [override /retriever: http]\n"
    write({EXPERIMENT: f"{preset}retriever: {{base_url: '{address}', index: {index}}}"})
    message = read_error(["--config-dir=../friend", "experiment=mine", word], capsys)
    assert "and it refers to a secret; set it on the command line, or allow it with 'trust=[secrets]'" in message
    assert "typed-s3cr3t" not in message


@pytest.mark.parametrize("word", ["+retriever.headers.X-Api-Key=typed-s3cr3t", "+retriever.headers.A='${oc.env:KEY}'"])
def test_a_typed_secret_is_not_sent_to_an_address_in_a_file_from_elsewhere(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write({EXPERIMENT: f"{GLOBAL}defaults: [override /retriever: http]\nretriever: {{base_url: 'http://127.0.0.1:1'}}"})
    message = read_error(["--config-dir=../friend", "experiment=mine", word], capsys)
    assert "retriever.base_url=http://127.0.0.1:1" in message
    assert message.endswith("an address that a secret would be sent to; set it on the command line, or allow it with "
                            "'trust=[secrets]'")  # fmt: skip


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("defaults: [override /retriever: http]\nretriever: {base_url: 'http://evil'}", "retriever.base_url"),
        ("defaults: [override /retriever: http]\nretriever: {base_url: 'http://127.0.0.1@evil'}", "retriever.base_url"),
        ("x: 'http://evil'\ndefaults: [override /retriever: http]\nretriever: {base_url: '${x}'}", "retriever.base"),
        ("defaults: [override /retriever: http]\nhydra: {mode: MULTIRUN}\n"
         "sweep: {union: {a: {retriever.base_url: ['http://evil']}}}", "sweep.union.a.retriever.base_url"),
    ],
)  # fmt: skip
def test_a_file_from_elsewhere_cannot_send_texts_to_its_address(
    text: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write({EXPERIMENT: f"{GLOBAL}{text}"})
    words = ["--config-dir=../friend", "experiment=mine"]
    message = read_error(words, capsys)
    assert named in message
    assert "trust=[se" in message
    if "sweep" not in text:
        assert "is an address that texts would be sent to" in message
        assert main([*words, "trust=[services]", "--cfg", "job"]) == 0


BEIR = "_target_: runner.datasets.beir.Beir\nname: mine\nsplit: test\n"


@pytest.mark.parametrize(
    ("text", "group", "named"),
    [
        ("dataset: {path: 's3://evil/x'}", "", "dataset.path=s3://evil/x"),
        ("dataset: {path: 'https://evil/x'}", "", "dataset.path=https://evil/x"),
        ("dataset: {path: 'hf://evil/x'}", "", "dataset.path=hf://evil/x"),
        ("a: 's3:'\nb: //evil\ndataset: {path: '${a}${b}'}", "", "dataset.path=${a}${b}"),
        ("dataset: {extra_qrels: [mine.tsv, 'gs://evil/q']}", "", "dataset.extra_qrels=['mine.tsv', 'gs://evil/q']"),
        ("defaults: [override /dataset: mine]", f"{BEIR}path: s3://evil/x", "dataset.path=s3://evil/x"),
        ("defaults: [override /dataset: mined]\ndataset: {path: m, corpus: {_target_: runner.datasets.beir.Beir, "
         "path: 's3://evil/x'}}", "", "dataset.corpus.path=s3://evil/x"),
    ],
)  # fmt: skip
def test_a_file_from_elsewhere_cannot_read_data_from_its_address(
    text: str, group: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The object store would get requests with the credentials of the user."""
    write({EXPERIMENT: f"{GLOBAL}{text}", "dataset/mine.yaml": group or BEIR})
    words = ["--config-dir=../friend", "experiment=mine"]
    message = read_error(words, capsys)
    assert message.endswith(
        f"{named}: a config file from elsewhere set it, and it is an address that data would be read from with your "
        "credentials; set it on the command line, or allow it with 'trust=[services]'"
    )
    assert main([*words, "trust=[services]", "--cfg", "job"]) == 0
    assert main(["--config-dir=../friend", "experiment=mine", f"{named.partition('=')[0]}=mine", "--cfg", "job"]) == 0


FREE = f"""{GLOBAL}defaults: [override /hydra/sweeper: optuna, override /llm: openai]
hydra: {{mode: MULTIRUN, sweeper: {{n_trials: 3, seed: 4, params: {{retriever.k1: 'interval(0.5,1.5)'}}}}}}
llm: {{base_url: 'http://127.0.0.1:1/v1', model: m}}
store: {{path: own/cache}}
sweep: {{output: reports}}
tracking: {{uri: sqlite:///own/mlflow.db}}
retriever: {{b: '${{sweep.race_margin}}'}}
"""


def test_a_file_from_elsewhere_can_say_what_is_swept(capsys: pytest.CaptureFixture[str]) -> None:
    write({EXPERIMENT: FREE})
    assert main(["--config-dir=../friend", "experiment=mine", "--cfg", "all"]) == 0
    composed = capsys.readouterr().out
    for line in ("n_trials: 3", "retriever.k1: interval(0.5,1.5)", "path: own/cache", "uri: sqlite:///own/mlflow.db"):
        assert line in composed


@pytest.mark.parametrize(
    ("text", "word", "shown"),
    [
        ("store: {path: /evil}", "store.path=mine", "path: mine"),
        ("store: {path: ../far}", "trust=[files]", "path: ../far"),
        ("retriever: {k1: '${oc.env:KEY}'}", "trust=[secrets]", "k1: ${oc.env:KEY}"),
        ("hydra: {output_subdir: x}", "hydra.output_subdir=y", "output_subdir: 'y'"),
    ],
)
def test_the_command_line_decides_what_files_from_elsewhere_may_do(
    text: str, word: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write({EXPERIMENT: f"{GLOBAL}{text}"})
    assert main(["--config-dir=../friend", "experiment=mine", word, "--cfg", "all"]) == 0
    assert shown in capsys.readouterr().out


def test_a_file_cannot_trust_itself(capsys: pytest.CaptureFixture[str]) -> None:
    write({EXPERIMENT: f"{GLOBAL}trust: [files]\nstore: {{path: /evil}}"})
    assert "trust" in read_error(["--config-dir=../friend", "experiment=mine"], capsys)


def test_the_project_of_the_working_folder_may_set_everything(capsys: pytest.CaptureFixture[str]) -> None:
    write({"conf/experiment/mine.yaml": f"{GLOBAL}store: {{path: ../far}}\nhydra: {{output_subdir: x}}"}, ".")
    words = ["experiment=mine", "--cfg", "all"]
    assert "store.path=../far" in read_error(["--config-dir=conf", "experiment=mine", "hydra.output_subdir=x"], capsys)
    Path("pyproject.toml").write_text('[tool.retrieval-runner]\nconf = "conf"\n')
    for flags in ([], ["--config-dir=conf"]):
        assert main([*flags, *words]) == 0
        composed = capsys.readouterr().out
        assert "path: ../far" in composed and "output_subdir: x" in composed


def test_files_from_a_search_path_are_limited_in_python() -> None:
    write({EXPERIMENT: f"{GLOBAL}store: {{path: /evil}}"})
    path = f"hydra.searchpath=['file://{Path('../friend').resolve()}']"
    with pytest.raises(ConfigError, match=r"store\.path=/evil"):
        compose_config("evaluate", [path, "experiment=mine"])


def test_a_launcher_that_composes_elsewhere_needs_files_of_your_own(capsys: pytest.CaptureFixture[str]) -> None:
    write({"retriever/mine.yaml": "defaults: [bm25]"})
    words = ["-m", "--config-dir=../friend", "hydra/sweeper=basic", "hydra/launcher=submitit_local", "retriever=mine"]
    assert read_error(words, capsys).startswith("hydra/launcher: hydra_plugins.hydra_submitit_launcher.")


@pytest.mark.parametrize("flag", ["--experimental-rerun=x", "--exp=x", "--e"])
def test_a_pickled_config_is_never_run(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_error([flag], capsys) == (
        f"{flag}: not supported, as its file could run any code; run the command again instead"
    )
