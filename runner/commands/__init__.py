"""The commands. Those of the core are modules here; a feature has its own in `runner/features/NAME/command.py`.

The primary config of a command is `conf/NAME.yaml`.
"""

import pkgutil

from runner import features


def list_commands() -> dict[str, str]:
    """Return the module of each command by the name of the command; nothing is imported."""
    core = {module.name: f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)}
    rooms = [(room.name, f"{features.__path__[0]}/{room.name}") for room in pkgutil.iter_modules(features.__path__)]
    own = {name for name, folder in rooms if any(part.name == "command" for part in pkgutil.iter_modules([folder]))}
    return core | {name: f"{features.__name__}.{name}.command" for name in sorted(own)}
