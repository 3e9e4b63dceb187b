"""Configuration: where `conf/` is, how Hydra is started, how a config becomes objects, and what of it is secret."""

from pathlib import Path

CONF = next(
    folder
    for folder in (Path(__file__).parents[1] / "conf", Path(__file__).parents[2] / "conf")
    if (folder / "evaluate.yaml").is_file()
)
"""The folder of configs: inside an installed package, or beside it in a checkout."""


def help_of(verb: str) -> str:
    """Return the text that explains a verb, with the choices of each config group as they are."""
    groups = sorted(folder for folder in CONF.iterdir() if any(folder.glob("*.yaml")) and folder.name != "hydra")
    width = max(len(folder.name) for folder in groups)
    listed = [
        f"  {folder.name:{width}}  {', '.join(sorted(file.stem for file in folder.glob('*.yaml')))}"
        for folder in groups
    ]
    return (CONF / "help" / f"{verb}.txt").read_text().replace("$groups", "\n".join(listed))
