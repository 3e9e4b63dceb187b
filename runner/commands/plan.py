"""Say what a sweep would do and what it would cost. A sweep that is a dry run says it: see `runner.sweep.plan`."""

from __future__ import annotations

from omegaconf import DictConfig


def main(cfg: DictConfig) -> int:
    """Refuse to be one evaluation, which is what Hydra calls this for; a plan is of a sweep, if only of one."""
    from runner.config.objects import ConfigError

    raise ConfigError("hydra.mode: a plan is of a sweep, where one combination is a sweep as well; leave it out")
