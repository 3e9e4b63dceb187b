"""Files of runs of agents."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.strategies.json_values import json_values
from tests.strategies.texts import TEXTS

RUN_NAMES = st.text("aB./\\ \0é~\n", min_size=1, max_size=300)
"""Names of tasks and configurations, many of which cannot be names of files."""

FIELDS = (
    "verifier_result rewards reward scores task_score passed all_passed status tool_usage cost_usd agent_result "
    "n_input_tokens n_output_tokens agent_info name version model timing agent agent_execution started_at finished_at"
)
OUTCOME_JSON = json_values(texts=TEXTS | st.datetimes().map(str), keys=st.sampled_from(FIELDS.split()))
"""Values with the fields of records of outcomes."""
