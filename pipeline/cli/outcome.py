"""Evaluating as a command, and what it came to: on stdout, in the files that were asked for, and as an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from pipeline.cli.exits import exit_code_of, leave, notes_of
from pipeline.cli.printing import colour, print_json, print_lines, print_remark, print_text, width
from pipeline.tables import Evaluation

__all__ = ["evaluate_and_leave", "print_evaluation"]


def evaluate_and_leave(
    evaluate: Callable[..., Evaluation], config: str, *, no_tracking: bool, require_tracking: bool, **further: Any
) -> None:
    """Evaluate, tell what came of it, and exit by it.

    Args:
        evaluate: `evaluate` or `nightly` of the workflow.
        config: what it evaluates.
        no_tracking: whether MLflow is left alone.
        require_tracking: whether it must be told.
        further: the others of `options.evaluating`, and those of the command.
    """
    telling = {name: further.pop(name) for name in ("junit_file", "markdown_file", "as_json", "quiet")}
    try:
        evaluation = evaluate(config, tracking=not no_tracking, command=["rankledger", *sys.argv[1:]], **further)
    except (OSError, KeyboardInterrupt) as error:
        if not notes_of(error):
            error.add_note("nothing was recorded")
        raise
    _tell(evaluation, require_tracking=require_tracking, **telling)
    leave(exit_code_of(evaluation, require_tracking=require_tracking))


def _tell(
    evaluation: Evaluation,
    *,
    require_tracking: bool,
    junit_file: str | None,
    markdown_file: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write what the gates say where it was asked for, and into GitHub's summary of the job; and print everything."""
    from pipeline.report.files import write_reports
    from pipeline.report.text import NO_RECORD

    try:
        write_reports(
            evaluation.verdicts,
            name=evaluation.name,
            junit_file=junit_file,
            markdown_file=markdown_file,
            summary=os.environ.get("GITHUB_STEP_SUMMARY"),
        )
        print_evaluation(evaluation, as_json=as_json, quiet=quiet)
        if (
            require_tracking
            and evaluation.record
            and not (evaluation.store or evaluation.untracked or evaluation.unsaved)
        ):
            print_remark("not in MLflow: --no-tracking, or the config's `tracking`, says to leave it alone")
    except OSError as error:
        error.add_note(f"the record is complete: {evaluation.record}" if evaluation.record else NO_RECORD)
        raise


def print_evaluation(evaluation: Evaluation, *, as_json: bool, quiet: bool = False) -> None:
    """Print an evaluation on stdout, of which `quiet` leaves the record's path; what is worth knowing on stderr.

    With `quiet` that is, too, what failed: the exit code alone does not say what.
    """
    from pipeline.report.differences import leading
    from pipeline.report.remarks import failures
    from pipeline.report.text import as_data, closing, leaderboard
    from pipeline.report.verdicts import failing, table

    if as_json:
        print_json(as_data(evaluation))
    elif quiet:
        if evaluation.record:
            print_lines(str(evaluation.record))
        warnings = map(str, evaluation.data_warnings)
        for line in (*failures(evaluation.failures), *failing(evaluation.verdicts), *warnings):
            print_remark(line)
    else:
        print_text(leaderboard(evaluation, width=width(), colour=colour()))
        if evaluation.comparison_lines:
            lines, measures = evaluation.comparison_lines, evaluation.leading_difference
            print_text("\n" + leading(lines, measures, width=width(), colour=colour()))
        if evaluation.verdicts:
            print_text("\n" + table(evaluation.verdicts, width=width(), colour=colour()))
        print_lines(*closing(evaluation))
    for warning in evaluation.warnings:
        print_remark(warning)
    later = f"`{evaluation.delivery}` delivers the record"
    if evaluation.unsaved:
        print_remark(f"not kept: {evaluation.unsaved}; {later}")
    if evaluation.untracked:
        print_remark(f"not in MLflow: {evaluation.untracked}; {later}")
