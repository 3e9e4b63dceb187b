"""Features: each folder is a command with its settings, its own analysis and its report."""
