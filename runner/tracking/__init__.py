"""The only door to MLflow: where runs are kept, what is logged of a result, and what it is called there."""
