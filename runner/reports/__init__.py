"""What becomes of results, a room for what is reported each, of one verb's few tables a module, and the console.

How numbers, tables, Markdown, pages and plots are made, whatever they tell, is in `rendering`.
"""
