"""What an agent should have found, from the definition of its task, and which path means which of those files."""
