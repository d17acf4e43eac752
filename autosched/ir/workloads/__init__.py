"""Built-in programs, written in the language itself. The files are parsed, never imported."""
