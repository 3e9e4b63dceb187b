"""Tools for tests of other projects: checks of retrievers, dataset formats, features and stores, and of a baseline."""
