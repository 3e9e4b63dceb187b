"""Search by vectors: dense, learned sparse and late interaction, exactly or through an index."""
