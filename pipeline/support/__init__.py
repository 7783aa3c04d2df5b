"""What any stage may use: Arrow, atomic writes, workers, progress, and text that is safe to print."""
