"""Draw a golden set from traffic: queries of users that stand for all of them, without personal data."""
