"""Tools for tests of other projects: an assertion against a baseline, as a fixture of pytest."""
