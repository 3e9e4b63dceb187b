"""Tools for tests of other projects: checks of retrievers, dataset formats and features, and of a baseline."""
