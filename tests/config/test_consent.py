"""Records of results are data: what they may do besides computing is on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.config.consent import Consent, NotAllowedError, restore_values
from runner.config.objects import ConfigError

BM25 = {"_target_": "retrievers.lexical.bm25.BM25", "analyzer": {"_target_": "retrievers.lexical.analyzer.Analyzer"}}
HTTP = {"_target_": "retrievers.services.http_api.Http", "base_url": "http://elsewhere.test"}
LLM = {"_target_": "runner.llm.providers.OpenAI", "model": "m"}
MODEL = {"_target_": "retrievers.encoders.sentence_transformer.SentenceTransformerEncoder", "model": "theirs/model"}
FACTORY = {"_target_": "retrievers.runs.existing.ExistingRetriever", "factory": "my_rag:build"}
HUB = {"_target_": "runner.datasets.hf.HuggingFace", "name": "theirs/data"}
POSTGRES = {"_target_": "retrievers.engines.postgres.Postgres"}


def beir(path: str, **others: object) -> dict[str, object]:
    return {"_target_": "runner.datasets.beir.Beir", "path": path, **others}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, with `data` in it and `elsewhere` beside it."""
    folder = tmp_path / "here"
    (folder / "data").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.jsonl").write_text("{}\n")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    ("trust", "message"),
    [
        ("files", r"^trust=\"files\": should be a list; write 'trust=\[files\]'$"),
        (["file"], r"^trust=\[file\]: no such kind of trust; choose plugins, services, models, files or secrets$"),
        ([1], r"^trust=\[1\]: no such kind of trust"),
    ],
)
def test_trust_is_a_list_of_known_words(trust: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Consent.of({"trust": trust})
    assert Consent.of({"trust": ["files"], "plugins": ["mine"]}) == Consent(("files",), ("mine",))


@pytest.mark.parametrize(
    ("node", "setting", "wish"),
    [
        (HTTP, "trust=[services]", "open a connection (Http, http://elsewhere.test)"),
        ({**BM25, "base": [{"part": HTTP}]}, "trust=[services]", "open a connection"),
        ({**HTTP, "secret_headers": {"X-Key": "HOME"}}, "trust=[services,secrets]", "send a secret"),
        (LLM, "trust=[services]", "open a connection (OpenAI, m)"),
        ({**LLM, "base_url": "http://elsewhere.test"}, "trust=[services,secrets]", "and to send a secret"),
        ({**LLM, "api_key_env": "AWS_SECRET_ACCESS_KEY"}, "trust=[services,secrets]", "(AWS_SECRET_ACCESS_KEY)"),
        ({**LLM, "ledger": "../llm.db"}, "trust=[services,files]", "outside the working folder (../llm.db)"),
        (POSTGRES, "trust=[services]", "open a connection (Postgres, its own address)"),
        ({**POSTGRES, "dsn": "postgresql://elsewhere"}, "trust=[services,secrets]", "send a secret"),
        (MODEL, "trust=[models]", "load a model (SentenceTransformerEncoder, theirs/model)"),
        (HUB, "trust=[services]", "open a connection (HuggingFace, theirs/data)"),
        (FACTORY, "plugins=[my_rag]", "run code of a plug-in (my_rag:build)"),
        ({"_target_": "os.system", "command": "id"}, "plugins=[os]", "run code of a plug-in (os.system)"),
        (beir("/srv/data"), "trust=[files]", "read a file outside the working folder (/srv/data)"),
        (beir("s3://bucket/data"), "trust=[services]", "open a connection (s3://bucket/data)"),
        (beir("${oc.env:HOME}"), "trust=[files]", "read a file outside"),
        (
            {"_target_": "retrievers.composed.fusion.Hybrid", "weights_file": "/srv/w.csv"},
            "trust=[files]",
            "(/srv/w.csv)",
        ),
    ],
)
def test_a_record_does_only_what_the_command_line_allows(node: object, setting: str, wish: str) -> None:
    with pytest.raises(NotAllowedError) as refusal:
        restore_values({"part": node}, Consent())
    message = str(refusal.value)
    assert message.endswith(f"; if you trust it, add '{setting}'")
    assert wish in message
    assert "\n" not in message
    key, _, words = setting.strip("]").partition("=[")
    assert restore_values({"part": node}, Consent.of({key: words.split(",")}))["part"].keys() == node.keys()  # type: ignore[attr-defined]  # a mapping


def test_a_record_of_computations_in_the_working_folder_needs_no_consent() -> None:
    recorded = {"retriever": BM25, "dataset": beir("data", queries="dev/queries.jsonl", documents=None)}
    assert restore_values(recorded, Consent()) == recorded
    golden = {"_target_": "runner.datasets.golden_json.GoldenJson", "path": "bundled:queries.json"}
    assert restore_values({"dataset": golden}, Consent()) == {"dataset": golden}


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "data/../../elsewhere",
        "~",
        "~nobody_of_this_name/data",
        "link",
        "folder",
        "data/table.jsonl",
        "*/../../elsewhere/*",
        "wild/*.jsonl",
        "bundled:../../../../etc/passwd",
        "data\0",
        "loop",
    ],
)
def test_a_path_in_a_record_does_not_leave_the_working_folder(here: Path, path: str) -> None:
    secret = here.parent / "elsewhere" / "secret.jsonl"
    (here / "link").symlink_to(here.parent / "elsewhere")
    (here / "loop").symlink_to(here / "loop")
    for folder, name in (("folder", "corpus.jsonl"), ("data", "table.jsonl.chunks.jsonl"), ("wild", "x.jsonl")):
        (here / folder).mkdir(exist_ok=True)
        (here / folder / name).symlink_to(secret)
    for node in (beir(path), beir("data", spans=path), beir("data", extra_qrels=["data/a.tsv", path])):
        with pytest.raises(NotAllowedError, match=r"'trust=\[files\]'$"):
            restore_values({"dataset": node}, Consent())


def test_a_path_in_the_folder_of_a_dataset_stays_in_the_working_folder(here: Path) -> None:
    (here / "data" / "deep").symlink_to(here.parent / "elsewhere")
    with pytest.raises(NotAllowedError, match=r"\(deep/secret\.jsonl\); .*'trust=\[files\]'$"):
        restore_values({"dataset": beir("data/x/..", queries="deep/secret.jsonl")}, Consent())


@pytest.mark.parametrize("consent", [Consent(), Consent(("services",))])
def test_a_variable_is_not_sent_to_an_address_of_the_record(monkeypatch: pytest.MonkeyPatch, consent: Consent) -> None:
    monkeypatch.setenv("HUSH", "s3cret")
    recorded = {"retriever": HTTP, "dataset": beir("data/${oc.env:HUSH}")}
    with pytest.raises(NotAllowedError, match=r"secrets\]'$") as refusal:
        restore_values(recorded, consent)
    assert "s3cret" not in str(refusal.value)
    restored = restore_values(recorded, Consent(("services", "secrets")))
    assert restored["dataset"]["path"] == "data/s3cret"


@pytest.mark.parametrize(
    "text",
    [
        "${oc.env:HUSH}${retriever}",
        "${oc.env:${oc.env:HUSH}}",
        "${oc.decode:'{_target_: os.system, x: ${oc.env:HUSH}}'}",
        "${hydra:runtime.cwd}${oc.env:HUSH}",
        "${oc.create:${oc.env:HUSH}}",
    ],
)
def test_a_record_refers_only_to_variables(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("HUSH", "s3cret")
    with pytest.raises(ConfigError, match=r"^part\.k1=.*a record may refer only to environment variables$"):
        restore_values({"part": {**BM25, "k1": text}}, Consent())
    assert restore_values({"part": "${oc.decode:${oc.env:HUSH}}"}, Consent()) == {"part": "s3cret"}
    monkeypatch.setenv("HUSH", "{_target_: os.system}")
    with pytest.raises(ConfigError, match=r"^part=.*: should be a value, not a group of settings$"):
        restore_values({"part": "${oc.decode:${oc.env:HUSH}}"}, Consent())


def test_an_installed_plugin_needs_consent_in_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.config.objects.list_plugins", lambda: {"mine": "mine"})
    node = {"part": {"_target_": "mine.Retriever"}}
    with pytest.raises(NotAllowedError, match=r"^part\._target_: .*'trust=\[plugins\]'$"):
        restore_values(node, Consent())
    assert restore_values(node, Consent(("plugins",))) == restore_values(node, Consent((), ("mine",))) == node
