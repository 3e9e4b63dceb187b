"""Ways to turn text into vectors, one room for each. They know nothing of how vectors are searched."""
