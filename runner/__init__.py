"""Experiments on text retrieval: datasets, measures, sweeps, tracking, reports.

    import runner
    from retrievers import BM25

    data = runner.load_dataset("beir", path="scifact", split="test")
    result = runner.evaluate(BM25(k1=0.9), data)

The names below are loaded on first use and typed in `__init__.pyi`. If they were imported here, the key of every cached
result would depend on the code of all of them.
"""

import importlib

_PLACES = {
    "Dataset": "datasets.dataset",
    "compare": "api.comparison",
    "evaluate": "api.evaluation",
    "explain": "api.explanation",
    "load_dataset": "api.data",
    "load_experiment": "api.experiment",
    "run_sweep": "api.sweep",
}

__all__ = ["Dataset", "compare", "evaluate", "explain", "load_dataset", "load_experiment", "run_sweep"]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
