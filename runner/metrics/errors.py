"""The error of a measure that is unknown or cannot be computed."""


class MeasureError(ValueError):
    """A measure is unknown, is written wrongly, or cannot be computed here."""
