from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from runner.__main__ import _take_verb, main
from runner.config.composing import compose_config
from runner.config.mistakes import check_flags
from tests.config.files import list_names
from tests.config.test_yaml_files import BOMB

ANALYZERS, DATASETS, RETRIEVERS = map(list_names, ("analyzer", "dataset", "retriever"))


def name_others(group: str) -> str:
    """Return the choices of a group except none, as a message lists them."""
    *others, last = (name for name in list_names(group) if name != "none")
    return f"{', '.join(others)} or {last}"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_error(arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a mistake is told in, which is one line."""
    assert main(arguments.split()) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line.removeprefix("error: ")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("dataset=null", f"dataset=null: no such choice; choose {DATASETS[0]}, {DATASETS[1]}"),
        ("-m retriever=null,bm25", f"retriever=null: no such choice; choose {RETRIEVERS[0]}, {RETRIEVERS[1]}"),
        ("~retriever", "retriever: is required"),
        (
            "retriever=http/runner retriever.search_type=x",
            "retriever.search_type: no such setting; did you mean retriever.parameters.search_type?",
        ),
        ("~metrics", "metrics: is required"),
        ("-m retriever.k1=1,2 --cfg job", "Only one of --run, --multirun, --cfg"),
        ("--resolve", "The --resolve flag"),
        ("retreiver=bm25", "retreiver: no such setting; did you mean retriever?"),
        ("metrcs.k_values=[1]", "metrcs.k_values: no such setting; did you mean metrics.k_values?"),
        ("k1=2", "k1: no such setting; did you mean retriever.k1?"),
        ("metrics.alpha=0.01", "metrics.alpha: no such setting; did you mean statistics.alpha?"),
        ("traces path=x metrics.test=t", "metrics.test: no such setting; did you mean statistics.test?"),
        ("metrics.resamples=9", "metrics.resamples: no such setting; did you mean sweep.resamples?"),
        ("compare runs.alpha=0.1", "runs.alpha: no such setting; did you mean statistics.alpha or gate.alpha?"),
        ("statistics.alpa=0.1", "statistics.alpa: no such setting; did you mean statistics.alpha?"),
        ("statistics=t", 'statistics="t": a group of settings, not a value; set statistics.test'),
        ("plan metric.depth=2", "metric.depth: no such setting; did you mean metrics.depth?"),
        (
            "foo=1 bar=2",
            "foo: no such setting; choose analyzer, chunking, dataset, encoder, experiment, grading, junit, llm, "
            "metrics, plugins, public_environment, report, reranker, retriever, statistics, store, sweep, tracking or "
            "trust",
        ),
        ("gate=none", "gate: evaluate has no such group here; choose analyzer, chunking, dataset"),
        ("compare gat=none", "gat: no such setting; did you mean gate?"),
        ("compare metrics=default", "metrics: compare has no such group here; did you mean metrics@runs?"),
        ("retriever=reranked reranker=lm", "reranker=lm: "),
        (
            "retriever=hybrid retriever.parts.lexcal.k1=2",
            "retriever.parts.lexcal.k1: no such setting; did you mean retriever.parts.lexical.k1?",
        ),
        ("+experiment=tour", "+experiment=tour: experiment exists already; write experiment=tour, without +"),
        ("+retriever=bm25", "+retriever=bm25: retriever exists already; write retriever=bm25, without +"),
        ("dataset.name=1e3", "dataset.name=1e3: should be text; write 'dataset.name=\"1e3\"'"),
        ("retriever.b=1e1", "retriever.b=1e1: should be less than or equal to 1"),
        (
            "-m retriever.k1=1,2 retriever.k1=3,4",
            "retriever.k1=3,4: retriever.k1 is already given by retriever.k1=1,2; write all values once",
        ),
        (
            "-m hydra/launcher=submitit_slurm retriever.k1=1,2",
            "hydra/launcher=submitit_slurm: only used with hydra/sweeper=basic",
        ),
        (
            "hydra/launcher=submitit_slurm",
            "hydra/launcher=submitit_slurm: only used by a sweep; add -m hydra/sweeper=basic",
        ),
        ("retriever.k1.x=2", "retriever.k1.x: no such setting; retriever.k1 can only be set as a whole"),
        (
            "retriever@retriever.parts.words=bm25",
            (
                "retriever@retriever.parts.words: no choice has been made here yet; write "
                "+retriever@retriever.parts.words=bm25"
            ),
        ),
        ("retriever.k1=0.9,1.2", "retriever.k1=0.9,1.2: several values; add -m to sweep over them"),
        ("mine source.package=json,csv", "source.package=json,csv: several values; write a list as"),
        ("-m mine output=a,b", "-m: mine cannot run a sweep"),
        ("--multirun compare baseline=a,b", "-m: compare cannot run a sweep"),
        ("hydra.mode=MULTIRUN export output=a", "-m: export cannot run a sweep"),
        (
            "-m chunking=headings,tokens chunking.size=9",
            "chunking.size: depends on chunking, which is swept over; write ++chunking.size=9",
        ),
        ("export output=", "output=: should not be empty"),
        ("inspect output=", "output=: should not be empty"),
        ("-m retriever.k1=range(1,0)", "retriever.k1=range(1,0): an axis needs at least one value"),
        ("-m experiment=tour,bm25_grid", "experiment=tour,bm25_grid: an axis cannot have several experiments"),
        ("-m store.path=a,b", "store.path=a,b: store applies to the whole sweep"),
        (
            "export output=~/x",
            "output=~/x: cannot be parsed; put the value in quotes of its own: 'output=\"~/x\"'; or give the full path",
        ),
        ("plugins=mine", 'plugins="mine": should be a list of modules; write plugins=[mine]'),
        ("tracking.uri=ftp://me:hush@host", "tracking.uri=ftp://me:***@host: not the address"),
        (
            "chunking.size=9",
            f"chunking.size: chunking=none has no settings; choose chunking={name_others('chunking')}",
        ),
        ("llm.model=x", f"llm.model: llm=none has no settings; choose llm={name_others('llm')}"),
        ("retriever.alpha=0.3", "retriever.alpha: retriever=bm25 has no such setting; choose retriever=hybrid"),
        ("retriever.zzz=3", "retriever.zzz: no such setting; choose analyzer, b"),
        (
            "retriever=hybrid retriever.parts.semantic.k1=2",
            "retriever.parts.semantic.k1: retriever@retriever.parts.semantic=dense has no such setting; choose",
        ),
        ("analyzer=maltese", f"analyzer=maltese: no such choice; choose {ANALYZERS[0]}, {ANALYZERS[1]}"),
        ("analyzer=germn", "analyzer=germn: no such choice; did you mean analyzer=german?"),
        ("--retriever=bm25", "--retriever=bm25: no such flag; write a setting without dashes: retriever=bm25"),
        ("--retriever bm25", "--retriever: no such flag; write a setting without dashes: retriever=VALUE"),
        ("--cfg foo", "argument --cfg/-c: invalid choice: 'foo'"),
        ("help", "help: no such command; write --help"),
        ("evaluat", "evaluat: no such command; did you mean evaluate?"),
        ("+foo=1", "foo: no such setting; choose analyzer"),
        ("++foo.bar=1", "foo.bar: no such setting; choose analyzer"),
        ("+gate.max_errors=1", "gate.max_errors: no such setting; choose analyzer"),
        ("+generator.n=1", "generator.n: no such setting; choose analyzer"),
        ("-m +k1=1,2", "k1: no such setting; did you mean retriever.k1?"),
        ("compare +foo=1", "foo: no such setting; choose"),
        ("plugins=[nonexistent]", "plugins: nonexistent: no such module; install it"),
        ("traces plugins=[json,nonexistent.part]", "plugins: nonexistent.part: no such module"),
        ("retriever.k1=1 --cfg job evaluat", "evaluat: no such command"),
    ],
)
def test_a_mistake_is_reported_in_one_line(arguments: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_error(arguments, capsys).startswith(line)


@pytest.mark.parametrize(
    "name", ["café (1)", "epoch=3", "a(b)", "a[1]", "a{x}", "a;b", "a#b", "a&b", "~x", "it's", 'a"b', "a\\'"]
)
def test_a_value_that_cannot_be_parsed_is_shown_in_quotes_that_work(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["dataset=beir", f"dataset.path=X/{name}"]
    assert main(words) == 2
    message = capsys.readouterr().err
    if "cannot be parsed" in message:
        (shown,) = shlex.split(message.rpartition(" of its own: ")[2])
        assert main([words[0], shown]) == 2
        message = capsys.readouterr().err
    assert message == f"error: dataset.path=X/{name}: no such file or folder\n"


@pytest.mark.parametrize("word", ["dataset.query_text=問題", 'dataset.query_text="問題"', "dataset.query_text='問題'"])
def test_letters_of_any_script_need_no_quotes(word: str) -> None:
    config, _ = compose_config("evaluate", ["dataset=csv", "dataset.queries=${oc.env:HOME}/Bücher/x.csv", word])
    assert config.dataset.query_text == "問題"
    assert config.dataset.queries.endswith("/Bücher/x.csv")


def test_letters_of_any_script_work_in_lists_mappings_and_sweeps(capsys: pytest.CaptureFixture[str]) -> None:
    config, _ = compose_config("evaluate", ["dataset=csv", "dataset.document_text=[題名, 本文,text]"])
    assert config.dataset.document_text == ["題名", "本文", "text"]
    config, _ = compose_config("table", [r"+names={k1\=0.9: Größe,k: a,l:種 類}"])
    assert config.names == {"k1=0.9": "Größe", "k": "a", "l": "種 類"}
    assert main(["plan", "-m", "dataset=beir", "dataset.path=Bücher,ポスト"]) == 2
    assert "dataset.path=Bücher: no such file or folder" in capsys.readouterr().err


def test_the_form_of_texts_in_a_list_and_of_names_that_cannot_be_quoted_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = read_error("dataset=csv dataset.document_text=[本文(1),text]", capsys)
    (shown,) = shlex.split(line.rpartition(" of its own: ")[2])
    config, _ = compose_config("evaluate", ["dataset=csv", shown])
    assert config.dataset.document_text == ["本文(1)", "text"]
    for word in ("dataset.種類=a", "dataset.query_text={種類:a}"):
        assert "names are ASCII on the command line" in read_error(f"dataset=csv {word}", capsys)


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (
            "dataset=beir dataset.path=a,b",
            "add -m to sweep over them, or quote it if it is one value: 'dataset.path=\"a,b\"'",
        ),
        (
            "retriever.k1=0.6,0.9",
            "add -m to sweep over them, or quote it if it is one value: 'retriever.k1=\"0.6,0.9\"'",
        ),
        ("metrics.k_values=1,5", "write a list as 'metrics.k_values=[1,5]'"),
        ("sweep.zip=a,b", "write a list as 'sweep.zip=[a,b]'"),
    ],
)
def test_several_values_are_suggested_as_a_list_only_where_the_setting_is_one(
    arguments: str, suggestion: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read_error(arguments, capsys).rstrip().endswith(f"several values; {suggestion}")


@pytest.mark.parametrize("words", [["~a", "-m", "~b"], ["-m", "~a"], ["~a", "--cfg", "job", "~b=1"]])
def test_deletions_before_and_after_a_flag_are_not_flags(words: list[str]) -> None:
    check_flags(words)


def test_an_unknown_language_suggests_the_plain_analyzer(capsys: pytest.CaptureFixture[str]) -> None:
    assert read_error("analyzer=maltese", capsys).endswith("; for other languages, choose plain")


def test_choices_of_a_folder_from_elsewhere_are_known(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (elsewhere / "retriever").mkdir()
    (elsewhere / "retriever" / "mine.yaml").write_text("_target_: mine.Mine\nmost_words: 1\n")
    line = read_error("--config-dir=. retriever=mine retriever.most_wrds=2", capsys)
    assert line.startswith("retriever.most_wrds: no such setting; did you mean retriever.most_words?")


PLUGINS = "plugins: [fractions]\n"
PARAMS = "hydra: {mode: MULTIRUN, sweeper: {params: {metrics.depth: '100,200'}}}\n"
INJECTED = PARAMS.replace("{mode", "{overrides: {task: ['++plugins=[fractions]']}, mode")


@pytest.mark.parametrize(
    ("preset", "sweeper"), [(PLUGINS, ""), (PLUGINS + PARAMS, " -m hydra/sweeper=basic"), (INJECTED, "")]
)
def test_a_file_cannot_name_plugins(
    preset: str, sweeper: str, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for group, text in (
        ("retriever", "_target_: fractions.Fraction\n"),
        ("experiment", f"# @package _global_\n{preset}"),
    ):
        (elsewhere / group).mkdir()
        (elsewhere / group / "mine.yaml").write_text(text)
    arguments = f"--config-dir=. experiment=mine retriever=mine{sweeper}"
    (elsewhere / "pyproject.toml").write_text('[tool.retrieval-runner]\nconf = "."\n')
    assert "a config can only create classes of this program" in read_error(arguments, capsys)
    assert read_error(f"{arguments} plugins=[fractions]", capsys).startswith(
        "retriever: expected a Retriever, found Fraction"
    )


def test_only_the_command_line_sets_trust(elsewhere: Path) -> None:
    (elsewhere / "conf" / "experiment").mkdir(parents=True)
    (elsewhere / "conf" / "experiment" / "mine.yaml").write_text("# @package _global_\ntrust: [services]\n")
    (elsewhere / "pyproject.toml").write_text('[tool.retrieval-runner]\nconf = "conf"\n')
    for words, trust in (([], []), (["trust=[files]"], ["files"])):
        config, _ = compose_config("evaluate", ["experiment=mine", *words])
        assert config.trust == trust


@pytest.mark.parametrize(
    ("arguments", "verb", "rest"),
    [
        ("", "evaluate", ""),
        ("-m evaluate retriever.k1=1,2", "evaluate", "-m retriever.k1=1,2"),
        ("retriever=bm25 ~x +y=1 ui", "ui", "retriever=bm25 ~x +y=1"),
        ("--cfg job ui", "ui", "--cfg job"),
        ("--cfg job -cn ui --package x", "evaluate", "--cfg job -cn ui --package x"),
    ],
)
def test_the_verb_may_stand_anywhere(arguments: str, verb: str, rest: str) -> None:
    words = arguments.split()
    assert _take_verb(words) == verb
    assert words == rest.split()


def test_an_added_setting_that_another_refers_to_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    line = read_error("+root=/nowhere dataset=beir dataset.path=${root}/x", capsys)
    assert line.startswith("dataset.path=/nowhere/x: no such file or folder")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("_target_: a\nk: [1\nb: 2\n", ":3:2: invalid YAML"),
        ("_target_: a\n_target_: b\n", ":2:1: invalid YAML (found duplicate key _target_"),
        ("k: 'caf\xe9'\n", ": not UTF-8 text; save it as UTF-8"),
        ("k: &k [*k]\n", ":1: invalid YAML (an alias refers to a node that contains it"),
        (BOMB, ": the aliases expand to more than 100,000 values; write the values out"),
    ],
)
@pytest.mark.parametrize("sweep", ["", "-m retriever.k1=1,2 "])
def test_broken_yaml_is_one_line_with_its_place(
    content: str, problem: str, sweep: str, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (elsewhere / "retriever").mkdir()
    (elsewhere / "retriever" / "mine.yaml").write_text(content, encoding="latin-1")
    line = read_error(f"{sweep}--config-dir=. retriever=mine", capsys)
    assert line.startswith(f"retriever/mine.yaml{problem}")


@pytest.mark.parametrize(
    ("verb", "preset", "problem"),
    [
        ("", "swep: {seed: 1}\n", "swep: no such setting; did you mean sweep? (analyzer, "),
        ("", "root: x\nmetrics: {depth: 200}\n", "root: no such setting; choose analyzer, "),
        ("synthesize ", "selecton: {mode: single}\n", "selecton: no such setting; did you mean selection? (analyzer, "),
    ],
)
def test_a_preset_has_only_settings_that_its_verb_knows(
    verb: str, preset: str, problem: str, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (elsewhere / "experiment").mkdir()
    (elsewhere / "experiment" / "mine.yaml").write_text(f"# @package _global_\n{preset}")
    assert read_error(f"{verb}--config-dir=. experiment=mine", capsys).startswith(f"experiment/mine.yaml: {problem}")


def test_a_preset_may_define_a_key_that_it_refers_to(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (elsewhere / "experiment").mkdir()
    (elsewhere / "experiment" / "mine.yaml").write_text(
        "# @package _global_\ndefaults: [override /dataset: beir]\nroot: /nowhere\ndataset: {path: '${root}/x'}\n"
    )
    assert read_error("--config-dir=. experiment=mine", capsys).startswith(
        "dataset.path=/nowhere/x: no such file or folder"
    )


@pytest.mark.parametrize("value", ["[" * 3000 + "]" * 3000, "{a:" * 500 + "1" + "}" * 500])
@pytest.mark.parametrize("verb", ["evaluate", "synthesize"])
def test_a_setting_that_is_nested_too_deeply_is_named(
    verb: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([verb, f"+x={value}"]) == 2
    assert capsys.readouterr().err == "error: +x: lists or mappings are nested too deeply; remove levels\n"


@pytest.mark.parametrize("digits", [30, 5000])
def test_a_number_beyond_64_bits_is_named(
    digits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["synthesize", f"count={'9' * digits}"]) == 2
    assert capsys.readouterr().err == "error: count: the number has more than 64 bits; set a smaller one\n"
