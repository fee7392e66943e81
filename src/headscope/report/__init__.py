"""Results put into words and tables for people: the terminal and self-contained pages."""
