"""Judge a published number without data."""

from __future__ import annotations

from dataclasses import asdict

from omegaconf import DictConfig
from pydantic import Field, field_validator
from pydantic.dataclasses import dataclass as settings

from runner.config.objects import ConfigError, build_settings
from runner.config.values import resolve_config
from runner.features.audit.audit import AuditError, audit_value
from runner.features.audit.report import assumptions_table, describe_difference, describe_value
from runner.metrics.measures import parse_primary
from runner.pages import console


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class AuditSettings:
    """The numbers to judge: see `conf/audit.yaml`."""

    n: int = Field(ge=2)
    value: float
    baseline: float | None = None
    measure: str = "nDCG@10"
    sd: float | None = Field(default=None, gt=0)
    alpha: float = Field(default=0.05, gt=0, lt=1)
    systems: int = Field(default=1, ge=1)

    @field_validator("value", "baseline")
    @classmethod
    def _check_mean(cls, mean: float | None) -> float | None:
        if mean is not None and not 0 <= mean <= 1:
            hint = f"; did you mean {mean / 100:g}?" if 1 < mean <= 100 else ""
            raise ValueError(f"should be from 0 to 1{hint}")
        return mean

    @field_validator("measure")
    @classmethod
    def _parse_measure(cls, measure: str) -> str:
        return str(parse_primary(measure))


def main(cfg: DictConfig) -> int:
    """Show the audit; return 1 if the difference cannot be significant."""
    own = build_settings(AuditSettings, resolve_config(cfg))
    try:
        audit = audit_value(own.n, own.value, own.baseline, own.measure, own.sd, own.alpha, own.systems)
    except AuditError as error:
        raise ConfigError(str(error)) from None
    console.document(lambda: asdict(audit))
    console.paragraph(describe_value(audit))
    console.show_table(assumptions_table(audit))
    for sentence in describe_difference(audit):
        console.paragraph(sentence)
    return 0 if audit.possible else 1
