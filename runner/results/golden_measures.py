"""The measures of a golden report."""

from __future__ import annotations

from runner.metrics.settings import MetricSettings

UNREAD = {
    "Judged": "a report has no judgments of irrelevant items",
    "Bpref": "a report has no judgments of irrelevant items",
    "Rprec": "a report may list fewer items than a query has gold",
}
"""The measures that are not computed from a report, and why."""

MEASURES = tuple(name for name in MetricSettings().measures if name not in UNREAD)
"""The measures of a report, without those of other results that `UNREAD` names."""
