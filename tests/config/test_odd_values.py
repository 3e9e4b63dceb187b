"""Values that no setting can have end every command with one line, or are used; none ends with a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from runner.__main__ import main
from runner.commands import list_commands
from runner.config import CONF
from tests.features.look.stores import DATA, write_dataset

VERBS = [name for name, command in list_commands().items() if not command.serves]
VALUES = {
    "NUL": "'a\0b'",
    "a lone surrogate": "'\ud800'",
    "5,000 digits": "9" * 5000,
    "beyond 64 bits": str(2**70),
    "NaN": "nan",
    "a folder": "data",
}


def list_settings(verb: str) -> list[str]:
    """Return the first and the last single value among a verb's own settings."""
    config = yaml.safe_load((CONF / f"{verb}.yaml").read_text(encoding="utf-8"))
    plain = [name for name, value in config.items() if name != "defaults" and not isinstance(value, dict)]
    return [*dict.fromkeys((*plain[:1], *plain[-1:]))]


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("verb", VERBS)
def test_a_value_that_a_setting_cannot_have_is_answered_in_a_line(
    verb: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_dataset(Path("data"))
    has_dataset = verb in ("evaluate", "plan", "inspect", "export")
    dataset = [word for word in DATA if word.startswith("dataset")] if has_dataset else []
    for setting in list_settings(verb):
        words = [verb, *dataset, "tracking=none", f"{setting}={value}"]
        assert main(words) in (0, 1, 2)
        assert "Traceback" not in capsys.readouterr().err
