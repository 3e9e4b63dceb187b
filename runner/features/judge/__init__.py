"""Judge queries and documents, by people or by a language model."""
