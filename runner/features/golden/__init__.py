"""The golden report format: read reports as results, and convert results to reports in JSON."""

from runner.config.features import Feature

FEATURE = Feature()
