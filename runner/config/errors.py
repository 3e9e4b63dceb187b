"""The error of a setting; what computes results raises it without importing how settings become objects."""


class ConfigError(ValueError):
    """A setting is unknown, missing, or has an invalid value."""
