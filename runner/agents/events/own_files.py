"""Which of an agent's visits to files retrieve something: a file that the agent itself wrote was not found by it.

It knows nothing of gold, or of how a file is named.
"""

from __future__ import annotations


class OwnFiles:
    """Tells, visit by visit in their order, what is retrieved and what the agent had written itself."""

    def __init__(self) -> None:
        self._retrieved: set[str] = set()
        self._own: set[str] = set()

    def is_retrieval(self, file: str, category: str) -> bool:
        """Return whether a visit retrieves a file: it does not write it, nor did the agent before it ever saw it."""
        if file in self._own:
            return False
        if category == "file_write":
            self._own |= {file} - self._retrieved
            return False
        self._retrieved.add(file)
        return True
