"""Show what a sweep would compute and what it would cost; `runner.sweep.plan` does it for a sweep that is a dry run."""

from __future__ import annotations

from omegaconf import DictConfig

from runner.config.objects import ConfigError


def main(cfg: DictConfig) -> int:
    """Refuse a single evaluation, the only case in which Hydra calls this."""
    raise ConfigError(
        "hydra.mode: cannot be set, because plan always describes a sweep, even of one combination; remove hydra.mode"
    )
