"""What an agent's retrieval was worth: on one task, over many, and beside another configuration."""
