"""Tools for a release: generated pages of the documentation, a review of licences, and a check of the packages."""
