"""Decide which of an agent's visits to files retrieve something: a file that it wrote itself does not count."""

from __future__ import annotations


class OwnFiles:
    """Distinguishes, visit by visit, retrieved files from files that the agent wrote itself."""

    def __init__(self) -> None:
        self._retrieved: set[str] = set()
        self._own: set[str] = set()

    def is_retrieval(self, file: str, category: str) -> bool:
        """Return whether a visit retrieves a file: neither it nor a visit before the first retrieval writes it."""
        if file in self._own:
            return False
        if category == "file_write":
            self._own |= {file} - self._retrieved
            return False
        self._retrieved.add(file)
        return True
