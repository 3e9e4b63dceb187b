"""Recorded configs as a stranger may write them: classes, factories, arguments, addresses, paths and references."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

from hypothesis import strategies as st

from release.security import list_classes

OTHERS = [
    "os.system",
    "subprocess.Popen",
    "builtins.exec",
    "site.addsitedir",
    "evil.Evil",
    "torch.hub.load",
    "runner.system.environment.subprocess.Popen",
    "retrievers.encoders.backends.TemporaryDirectory",
    "runner.store.disk.DiskStore",
    "runner.features.judge.desk.journal.AssessorJournal",
    "runner.tracking.background.BackgroundTracker",
    "runner.__main__.main",
    "BM25",
    "..",
]
"""Names in `_target_` of what is not a choice of any group."""

FACTORIES = [
    "evil:build",
    "runner.system.environment:subprocess.getoutput",
    "runner.system.environment:subprocess.Popen",
    "retrievers.encoders.backends:warnings.sys.exit",
    "subprocess:getoutput",
    "os:system",
    "importlib:import_module",
    "site:addsitedir",
    "stranger.hubconf:build",
    "evil",
    ":",
]
PATHS = [
    "/etc/passwd",
    "../elsewhere/secret.jsonl",
    "../elsewhere",
    "link/secret.jsonl",
    "link",
    "folder",
    "~",
    "/dev/zero",
    "data",
    "data/corpus.jsonl",
    "data/../../elsewhere/*",
    "bundled:../../../../etc/passwd",
    "bundled:queries.json",
    "file:///etc/passwd",
    "/proc/self/environ",
    "\0",
]
ADDRESSES = [
    "http://127.0.0.1:9",
    "http://elsewhere.invalid/v1",
    "s3://elsewhere/data",
    "memory://elsewhere/data",
    "postgresql://elsewhere.invalid/x",
    "hf://theirs/data",
    "sqlite:////etc/passwd",
]
REFERENCES = [
    "${oc.env:HUSH}",
    "http://elsewhere.invalid/${oc.env:HUSH}",
    "${oc.env:NOT_SET,/etc/passwd}",
    "${oc.decode:${oc.env:HUSH}}",
    "${oc.decode:'{_target_: evil.Evil, x: ${oc.env:HUSH}}'}",
    "${hydra:runtime.cwd}",
    "${retriever}",
]

texts = st.sampled_from([*FACTORIES, *PATHS, *ADDRESSES, *REFERENCES, "id > PWNED", "***", "nDCG@10", "en", ""])
scalars = texts | st.integers(-1, 300) | st.booleans() | st.none() | st.just({"cmd": "id > PWNED"}) | st.just(["id"])


@cache
def list_parameters(target: str) -> list[str]:
    """Return the settings of a class that a config can create."""
    return list(inspect.signature(dict(list_classes())[target]).parameters)


@st.composite
def nodes(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    """Return a node that names a class, with values for what it requires and for some other settings."""
    known = [name for name, _ in list_classes()]
    target = draw(st.sampled_from(known) | st.sampled_from(OTHERS))
    values: st.SearchStrategy[Any] = scalars if depth == 0 else scalars | nodes(depth - 1)
    if target not in known:
        return {"_target_": target, "args": draw(values)}
    parameters = inspect.signature(dict(list_classes())[target]).parameters.values()
    required = [p.name for p in parameters if p.default is p.empty]
    names = [*required, *draw(st.lists(st.sampled_from(list_parameters(target) or ["x"]), max_size=3))]
    return {"_target_": target, **{name: draw(values) for name in names}}


@st.composite
def hostile_configs(draw: st.DrawFn, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recorded config with other parts, and with other values in the parts that are left."""
    changed: dict[str, Any] = {key: dict(part) if isinstance(part, Mapping) else part for key, part in config.items()}
    kinds = draw(st.sets(st.sampled_from(["retriever", "inner", "dataset", "value", "measures"]), min_size=1))
    if "retriever" in kinds:
        changed["retriever"] = draw(nodes())
    if "inner" in kinds:
        changed["retriever"] = {**changed["retriever"], draw(st.sampled_from(["analyzer", "base", "x"])): draw(nodes())}
    if "dataset" in kinds:
        changed["dataset"] = {
            **draw(nodes(0)),
            "chunking": draw(nodes(0) | st.just(changed["dataset"].get("chunking"))),
        }
    if "value" in kinds:
        part = changed[draw(st.sampled_from(["retriever", "dataset"]))]
        part[draw(st.sampled_from(sorted(part)))] = draw(scalars)
    if "measures" in kinds:
        part = changed[draw(st.sampled_from(["metrics", "statistics"]))]
        part[draw(st.sampled_from(sorted(part)))] = draw(scalars | nodes(0))
    if draw(st.booleans()):
        changed |= {"trust": ["plugins", "services", "models", "files", "secrets"], "plugins": ["os", "evil"]}
    return changed
