"""Every figure that a command logs, read from the database and compared with a value from outside the program."""
