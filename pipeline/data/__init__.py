"""Files read, checked and joined by id: opened, parsed to rows, ordered, matched, and cut into blocks."""
