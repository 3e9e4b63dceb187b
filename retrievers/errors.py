"""The error of retrievers."""

from __future__ import annotations


class RetrieverError(ValueError):
    """Settings or documents are invalid for a retriever."""
