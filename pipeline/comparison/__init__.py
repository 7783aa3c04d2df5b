"""What moved, from numbers that were read: which queries, which documents in them, and what a change is due to."""
