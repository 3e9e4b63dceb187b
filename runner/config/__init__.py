"""Configuration: where `conf/` is, how Hydra is started, how a config becomes objects, and what of it is secret."""
