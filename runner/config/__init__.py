"""Configuration: the folder `conf/`, the start of Hydra, objects built from a config, and secret values."""

from pathlib import Path

CONF = next(
    folder
    for folder in (Path(__file__).parents[1] / "conf", Path(__file__).parents[2] / "conf")
    if (folder / "evaluate.yaml").is_file()
)
"""The folder of config files: inside an installed package, or next to it in a checkout."""

SHARED_GROUPS = ("analyzer", "chunking", "encoder", "llm", "reranker")
"""Groups chosen once for all parts that do not set their own."""
