"""Input files: opened, parsed to rows, ordered, joined by id, and cut into blocks."""
