"""What each supported Python is tested with: `nox`, or `nox -s installed-3.13`. A Python that is missing is skipped."""

import nox

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


@nox.session(python=PYTHONS)
def installed(session: nox.Session) -> None:
    """The package as a user installs it, with the newest dependencies: the quickstart is evaluated."""
    session.install(".")
    with session.chdir(session.create_tmp()):
        session.run("rankledger", "--version")
        session.run("rankledger", "demo", "--no-tracking")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """All tests but those of tests/system, or those that are named: `nox -s tests-3.12 -- tests/metrics`."""
    session.install("--constraint", "constraints.txt", "--editable", ".[dev]")
    session.install("--constraint", "constraints.txt", "--no-deps", "beir")
    session.run("pytest", *(session.posargs or ("--numprocesses", "logical", "--maxprocesses", "8")))
