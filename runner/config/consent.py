"""What the person at the keyboard lets records and config files from elsewhere do: the settings `trust` and `plugins`.

Both are read only from the command line (`runner.config.launch.order_overrides`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.config.objects import ConfigError, describe_choices

TRUSTED = {
    "plugins": "run code of installed plug-ins",
    "services": "open connections: to search services, databases, language models and sites with datasets",
    "models": "load pre-trained models, which may be downloaded",
    "files": "read and write files outside the working folder",
    "secrets": "use values of environment variables and other secrets in what is sent to an address",
}
"""What each word of `trust` allows."""


@dataclass(frozen=True)
class Consent:
    """What is allowed: the words of `trust`, and modules with plug-ins."""

    trust: Sequence[str] = ()
    plugins: Sequence[str] = ()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Consent:
        """Return the consent in a config; raises `ConfigError` for a word that is not in `TRUSTED`."""
        trust = config.get("trust") or []
        if not isinstance(trust, (list, tuple)):
            raise ConfigError(f"trust={json.dumps(trust)}: should be a list; write 'trust=[{trust}]'")
        for word in trust:
            if word not in TRUSTED:
                raise ConfigError(f"trust=[{word}]: no such kind of trust; {describe_choices(TRUSTED)}")
        return cls(tuple(trust), tuple(config.get("plugins") or ()))
