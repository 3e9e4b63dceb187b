"""What a release needs: the review of licences, and the check of the packages that are published."""
