"""What is under way and how far it is: told by whoever does it, shown on stderr where somebody looks.

Shown is what takes over a second, on a terminal alone: pipes and logs get none of it, nor does a second's work.
"""

from pipeline.progress.stages import Stage, aside, each, quiet, say, stage, work

__all__ = ["Stage", "aside", "each", "quiet", "say", "stage", "work"]
