"""The prompts of judges, as text files."""

from pathlib import Path

FOLDER = Path(__file__).parent
