"""The report of one evaluation: its measures, why queries fail, a language model's grades, and what may help."""
