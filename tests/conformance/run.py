"""`python -m tests.conformance.run [--suites FOLDER] [--only NAME]`: runs third-party suites and tabulates the
results.

Updates their rows of docs/conformance.md. Exits with 1 if a test fails without a listed reason.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from . import sections
from .environment import BUILD, ROOT, interpreter, version_of
from .outcome import Outcome, read, read_op_db
from .suites import SUITES, Suite

PAGE = ROOT / "docs/conformance.md"
HEADER = """# Results of third-party test suites

`make conformance SUITES=folder` runs the suites against a daemon and writes this page. einops, opt_einsum and TensorLy
come from PyPI and test teletensor through their PyTorch backends (`import teletensor.as_torch`). The suite of the array
API standard is a checkout of `data-apis/array-api-tests`, with its submodule, in the folder. For `op_db`, PyTorch's own
operator samples, the table counts comparisons of values, dtypes, derivatives, variants and errors with PyTorch's. The
suites themselves skip tests of other libraries' backends, of revision 2025.12 of the standard, and flaky tests.

| suite | version | passed | failed | skipped | why |
|---|---|---|---|---|---|
"""


def run(suite: Suite, suites: Path | None) -> Outcome:
    """Runs a suite in a temporary folder, with a private engine."""
    if suite.module:
        report = BUILD / "op_db.json"
        report.unlink(missing_ok=True)
        subprocess.run([sys.executable, "-m", suite.module, "--json", str(report), *suite.arguments], cwd=ROOT)
        return read_op_db(suite.name, report) if report.exists() else Outcome(suite.name, "", missing="no table was written")
    folder = suites / suite.folder if suites and suite.project else None
    if suite.project and (folder is None or not (folder / suite.needs).is_dir()):
        return Outcome(suite.name, "", missing=_how_to_get(suite))
    version = version_of(suite.package) if suite.package else _version_of_checkout(folder)
    environment = {**os.environ, **suite.environment, "TELETENSOR_DAEMON": str(BUILD / "bin/teletensord")}
    environment.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.xml")
        command = [interpreter(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", str(report)]
        log = BUILD / f"conformance-{suite.name.split()[0]}.log"
        with log.open("w") as output:
            arguments = [*command, *suite.arguments]
            subprocess.run(arguments, cwd=folder or scratch, env=environment, stdout=output, stderr=output)
        if not report.exists():
            return Outcome(suite.name, version, missing=f"pytest did not run: {log.relative_to(ROOT)}")
        return read(suite.name, version, report)


def _how_to_get(suite: Suite) -> str:
    return (
        f"not run: SUITES must name a folder that holds {suite.folder}, a checkout of {suite.project} with submodules"
    )


def _version_of_checkout(folder: Path) -> str:
    command = ["git", "-C", str(folder), "describe", "--tags", "--always"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"


def row(outcome: Outcome) -> list[str]:
    """The suite's row of the table."""
    if outcome.missing:
        return [outcome.suite, outcome.version, "", "", "", outcome.missing]
    why = [f"{count}: {reason or 'not explained'}" for reason, count in sorted(outcome.reasons().items())]
    failed = len(outcome.failures) + outcome.on_purpose.total()
    counts = [str(outcome.passed), str(failed), str(outcome.skipped)]
    return [outcome.suite, outcome.version, *counts, "; ".join(why)]


def write(page: Path, outcomes: list[Outcome]) -> None:
    """The page with the rows of the suites that ran; rows of other suites, and the page's other sections, are kept."""
    if not page.exists():
        page.write_text("")
    rows = [f"| {' | '.join(row(outcome))} |" for outcome in outcomes if not outcome.missing]
    sections.write(page, HEADER, rows, [suite.name for suite in SUITES])


def main() -> int:
    """Runs the selected suites; returns 1 if a failure is not explained."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", type=Path, help="folder with checkouts of suites that are not on PyPI")
    parser.add_argument("--only", choices=[suite.name for suite in SUITES], help="run only this suite")
    options = parser.parse_args()
    chosen = [suite for suite in SUITES if options.only in (None, suite.name)]
    table = Table("suite", "version", "passed", "failed", "skipped", "why", title="conformance")
    outcomes = []
    for suite in chosen:
        outcomes.append(run(suite, options.suites.resolve() if options.suites else None))
        table.add_row(*row(outcomes[-1]))
    Console().print(table)
    for outcome in outcomes:
        for test in outcome.unexplained():
            print(f"not explained: {test}: {outcome.failures[test]}")
    write(PAGE, outcomes)
    return int(any(outcome.unexplained() for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
