"""The page: one file of HTML with all that an evaluation says."""

from pipeline.report.page.rendering import html

__all__ = ["html"]
