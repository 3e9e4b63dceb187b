"""Record where the artifacts of logged runs are now, if they were moved without their database."""

from __future__ import annotations

from collections.abc import Mapping

from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from runner.config.objects import ConfigError, build, build_settings
from runner.config.values import resolve_config, without_secrets
from runner.pages import console
from runner.tracking.logged import local_path
from runner.tracking.relocation import find_moves, list_missing, write_moves
from runner.tracking.settings import Tracking


@settings(frozen=True, config={"extra": "forbid"})
class RelocationSettings:
    """Where artifacts were and are, and whether to record it: see `conf/relocate.yaml`."""

    before: str | None = Field(default=None, min_length=1)
    after: str | None = Field(default=None, min_length=1)
    apply: bool = False


def main(cfg: DictConfig) -> int:
    """List missing folders of artifacts, or record where they are now; raises `ConfigError`."""
    config = resolve_config(cfg)
    own = build_settings(RelocationSettings, config["relocate"], "relocate")
    tracking = build(config["tracking"], "tracking")
    if own.after is None and (own.before is not None or own.apply):
        raise ConfigError("relocate.after=FOLDER is missing: the folder where the artifacts are now")
    missing = {} if own.before else {str(place): runs for place, runs in list_missing(tracking).items()}
    if own.after is None or not (own.before or missing):
        return _show_missing(tracking, missing)
    before, after = own.before or _choose_only(missing), own.after
    if (folder := local_path(after)) is not None and not folder.is_dir():
        raise ConfigError(f"relocate.after={after}: there is no such folder")
    moves, absent = find_moves(tracking, before, after)
    if own.apply:
        write_moves(tracking, moves)
    runs = sum(table == "runs" for table, _, _ in moves)
    console.document(
        lambda: {"before": before, "after": after, "runs": runs, "absent": absent, "applied": own.apply, "missing": {}}
    )
    action = "recorded" if own.apply else "not changed yet; add relocate.apply=true"
    console.line(f"{without_secrets(tracking.uri)}: {runs:,} runs from {before} to {after}: {action}")
    if absent:
        console.line(f"{absent:,} other runs from {before} have no folder in {after} and stay as they are")
    return 0


def _show_missing(tracking: Tracking, missing: Mapping[str, int]) -> int:
    console.document(
        lambda: {"before": None, "after": None, "runs": 0, "absent": 0, "applied": False, "missing": missing}
    )
    if not missing:
        console.line(f"{without_secrets(tracking.uri)}: all folders of artifacts on this machine exist")
    for place, runs in missing.items():
        console.line(f"{place}: does not exist, and has the artifacts of {runs:,} runs; if it was moved, add")
        console.line(f"  relocate.before={place} relocate.after=FOLDER")
    return 0


def _choose_only(missing: Mapping[str, int]) -> str:
    """Return the folder of artifacts that does not exist; raises `ConfigError` unless it is the only one."""
    if len(missing) > 1:
        places = ", ".join(missing)
        raise ConfigError(f"relocate.before=FOLDER is missing: where the artifacts were; missing folders: {places}")
    return next(iter(missing))
