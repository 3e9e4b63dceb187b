from __future__ import annotations

from pathlib import Path

import pytest

from runner.llm.prompts import load_prompt


def test_a_gap_is_filled_with_any_text(tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    file.write_text("$$5 for $query? $more")
    assert load_prompt(file, ("query",), ("more",)).fill(query="$more", more="$") == "$5 for $more? $"


@pytest.mark.parametrize("text", ["no gap", "$query $other", "$query 5$"])
def test_a_prompt_with_other_gaps_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text(text)
    with pytest.raises(
        ValueError, match=r"prompt\.txt: a prompt must contain \$query \(optional: \$more\) and no other placeholders"
    ):
        load_prompt("bundled:prompt.txt", ("query",), ("more",), tmp_path)
