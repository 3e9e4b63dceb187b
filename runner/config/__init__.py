"""Configuration: the folder `conf/`, the start of Hydra, objects built from a config, and secret values."""

from pathlib import Path

CONF = next(
    folder
    for folder in (Path(__file__).parents[1] / "conf", Path(__file__).parents[2] / "conf")
    if (folder / "evaluate.yaml").is_file()
)
"""The folder of config files: inside an installed package, or next to it in a checkout."""


def help_of(verb: str) -> str:
    """Return the help text of a verb, with the choices of each config group."""
    groups = sorted(folder for folder in CONF.iterdir() if any(folder.glob("*.yaml")) and folder.name != "hydra")
    width = max(len(folder.name) for folder in groups)
    lines = [
        f"  {folder.name:{width}}  {', '.join(sorted(file.stem for file in folder.glob('[!_]*.yaml')))}"
        for folder in groups
    ]
    return (CONF / "help" / f"{verb}.txt").read_text().replace("$groups", "\n".join(lines))
