"""What an object uses besides its settings and the texts that it is given.

A class declares it in `access`, without which a config cannot create it. A subclass does not inherit the declaration.
Records of results may create only classes that use nothing else, unless the person at the keyboard agrees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Need = Literal["services", "models"]


@dataclass(frozen=True)
class Access:
    """What a class uses: connections of its own (`services`), or pre-trained models, which may be downloaded.

    `names` are the settings that say which one. `paths` are settings that name files or folders, `code` those that name
    code to import, as `module:name`, and `secrets` those that send a secret to an address in the settings.
    `is_bundled` tells from the settings of an object that what it names comes with the program.
    """

    needs: Need | None = None
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    is_bundled: Callable[[Mapping[str, Any]], bool] | None = None


def find_access(kind: type) -> Access | None:
    """Return what a class declares about itself, None without a declaration of its own."""
    declared = vars(kind).get("access")
    return declared if isinstance(declared, Access) else None
