"""The command line as these tests call it."""

from tests.support.commands import run_cli

__all__ = ["run_cli"]
