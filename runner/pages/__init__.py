"""What every report is made of: tables, numbers, sections, pages, the explorer and the console."""
