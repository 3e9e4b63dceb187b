"""Read what an agent should have found, from the definition of its task, and match paths with those files."""
