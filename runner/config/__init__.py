"""Configuration: the folder `conf/`, the start of Hydra, objects built from a config, and secret values."""

from contextlib import suppress
from pathlib import Path

from runner.config.projects import find_project_config, list_plugins

CONF = next(
    folder
    for folder in (Path(__file__).parents[1] / "conf", Path(__file__).parents[2] / "conf")
    if (folder / "evaluate.yaml").is_file()
)
"""The folder of config files: inside an installed package, or next to it in a checkout."""

SHARED_GROUPS = ("analyzer", "chunking", "encoder", "llm", "reranker")
"""Groups chosen once for all parts that do not set their own."""


def help_of(verb: str) -> str:
    """Return the help text of a verb, with the plug-ins and the choices of each config group, including a project's."""
    groups = sorted(folder for folder in CONF.iterdir() if any(folder.glob("*.yaml")) and folder.name != "hydra")
    width = max(len(folder.name) for folder in groups)
    project = None
    with suppress(ValueError):  # reported when a verb is run
        project = find_project_config(Path.cwd())
    lines = []
    for folder in groups:
        own = (project / folder.name).glob("[!_]*.yaml") if project else ()
        lines.append(
            f"  {folder.name:{width}}  {', '.join(sorted(file.stem for file in (*folder.glob('[!_]*.yaml'), *own)))}"
        )
    if plugins := list_plugins():
        lines += ["", "Plug-ins", *(f"  {name:{width}}  {module}" for name, module in plugins.items())]
    return (CONF / "help" / f"{verb}.txt").read_text(encoding="utf-8").replace("$groups", "\n".join(lines))
