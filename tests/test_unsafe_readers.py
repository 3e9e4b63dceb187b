"""Nothing that lies on a disk or comes over a network is read by a function that can run code from it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

IN_MEMORY = {
    "runner/config/hydra_internals.py": "pickles of this process, to copy what Hydra composed",
    "runner/evaluation/result.py": "a part of a pickle that a worker of this process sent through its pipe",
    "runner/testing/stores.py": "a pickle of a shelf of this process, read back at once",
}
"""The files that may call `pickle.loads`, with the reason."""

UNSAFE = {
    "load",
    "loads",
    "load_all",
    "unsafe_load",
    "full_load",
    "Unpickler",
    "read_pickle",
    "open",
    "deserialize_index",
    "read_index",
}
MODULES = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "joblib",
    "marshal",
    "shelve",
    "torch",
    "yaml",
    "pd",
    "pandas",
    "np",
    "faiss",
}


def _is_safe(call: ast.Call, module: str, name: str) -> bool:
    options = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    if module == "np":
        return name != "load" or options.get("allow_pickle") == "False"
    if module == "torch":
        return name != "load" or options.get("weights_only") == "True"
    if module == "yaml":
        return options.get("Loader") in ("_loader", "yaml.SafeLoader", "yaml.CSafeLoader")
    return module in ("pd", "pandas") and name != "read_pickle"


def _list_unsafe(source: str) -> Iterator[str]:
    """Yield the calls in a module that can run code from what they read, and imports of such functions by name."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            module, name = node.func.value.id, node.func.attr
            if module in MODULES and name in UNSAFE and not _is_safe(node, module, name):
                yield f"{module}.{name}"
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES - {"np"}:
            yield from (f"{node.module}.{each.name}" for each in node.names if each.name in UNSAFE)
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False":
            yield "allow_pickle"


def test_no_file_is_read_by_a_function_that_can_run_code() -> None:
    calls = {}
    for folder in ("runner", "retrievers", "hydra_plugins", "release"):
        for file in (ROOT / folder).rglob("*.py"):
            if listed := set(_list_unsafe(file.read_text(encoding="utf-8"))):
                calls[file.relative_to(ROOT).as_posix()] = listed
    assert calls == {file: {"pickle.loads"} for file in IN_MEMORY}


def test_the_search_for_such_functions_knows_each_of_them() -> None:
    unsafe = [
        "pickle.load(file)", "pickle.loads(raw)", "pickle.Unpickler(file)", "np.load(file)", "torch.load(file)",
        "np.load(file, allow_pickle=True)", "torch.load(file, weights_only=False)", "yaml.load(text, yaml.Loader)",
        "yaml.unsafe_load(text)", "joblib.load(file)", "marshal.loads(raw)", "shelve.open(file)",
        "pd.read_pickle(file)", "from pickle import loads", "np.savez(file, allow_pickle=flag)",
    ]  # fmt: skip
    safe = [
        "np.load(file, allow_pickle=False)",
        "torch.load(file, weights_only=True)",
        "yaml.safe_load(text)",
        "json.loads(raw)",
    ]
    assert [source for source in unsafe if not list(_list_unsafe(source))] == []
    assert [source for source in safe if list(_list_unsafe(source))] == []
