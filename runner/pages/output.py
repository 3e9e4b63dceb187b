"""Write reports into the folder that the setting `output` names; errors are reported in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from retrievers.files import replace_texts
from runner.config.objects import ConfigError


@contextmanager
def writing_to(output: str) -> Iterator[Path]:
    """Create the folder that `output` names, for the block to write into; raises `ConfigError`."""
    folder = Path(output).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
    except FileExistsError:
        raise ConfigError(f"output={output}: expected a folder, found a file") from None
    except OSError as error:
        raise ConfigError(f"output={output}: cannot be written ({error.strerror})") from None


def create_folder(output: str) -> Path:
    """Create and return the folder that `output` names, for commands that write to it later; raises `ConfigError`."""
    with writing_to(output) as folder:
        return folder


def write_texts(folder: Path, texts: Mapping[str, str]) -> str:
    """Write the text of each file into a folder, each file atomically, and return a line that names the files."""
    replace_texts(folder, texts)
    return f"written: {', '.join(str(folder / name) for name in texts)}"
