"""What each supported Python is tested with: `nox`, or `nox -s installed-3.13`. A Python that is missing is skipped."""

import nox

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


@nox.session(python=PYTHONS)
def installed(session: nox.Session) -> None:
    """Evaluate the quickstart with the package as a user installs it, and ask for help with the oldest click, too."""
    session.install(".")
    with session.chdir(session.create_tmp()):
        session.run("rankledger", "--version")
        session.run("rankledger", "demo", "--no-tracking")
        session.install("click==8.1.0")  # the oldest version that pyproject.toml allows
        session.run("rankledger")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """All tests but those of tests/system, or those that are named: `nox -s tests-3.12 -- tests/metrics`."""
    session.install("--constraint", "constraints.txt", "--editable", ".[dev]")
    session.install("--constraint", "constraints.txt", "--no-deps", "beir")
    session.run("pytest", *(session.posargs or ("--numprocesses", "logical", "--maxprocesses", "8")))
