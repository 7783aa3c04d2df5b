"""Helpers of all stages: errors, atomic writes, workers, progress, Arrow, and text that is safe to print."""
