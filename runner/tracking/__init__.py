"""The only package that uses MLflow: where runs are stored, what is logged of a result, and under which names."""
