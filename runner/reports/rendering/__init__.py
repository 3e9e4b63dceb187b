"""What every report is made of: numbers and texts, tables of values, Markdown, HTML pages and plots."""
