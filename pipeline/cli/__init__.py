"""The command line: parse, call one function of the pipeline, print, return.

A module per command, called as the command is; `group` lists them, `options` has what several share, `entry` runs
them. Results go to stdout, progress and remarks to stderr. What is heavy is imported by the
command that needs it.
"""

from pipeline.cli.entry import main
from pipeline.cli.group import cli

__all__ = ["cli", "main"]
