"""Show what a sweep would compute and what it would cost; `runner.sweep.plan` does this for a sweep with `dry_run`."""

from __future__ import annotations

from omegaconf import DictConfig

from runner.config.objects import ConfigError


def main(cfg: DictConfig) -> int:
    """Raise `ConfigError` for a single evaluation, the only case in which Hydra calls this function."""
    raise ConfigError(
        "hydra.mode: cannot be set, because plan always describes a sweep, even of one combination; remove hydra.mode"
    )
