"""Adds up JUnit reports: prints `N passed, N failed, N skipped`. Fails if no test ran or any failed.

    count_tests.py FOLDER             the tests of all reports in the folder
    count_tests.py --failed REPORT    the node ids of the failed tests of one of pytest's reports, one per line
    count_tests.py --slowest FOLDER   the fifty slowest tests of the folder's reports, with their seconds

A test that failed in NAME.xml and passed in NAME.repeated.xml counts as passed, and is listed.
"""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


def outcomes(report: Path) -> list[tuple[tuple[str, str], str]]:
    """Class and name of each test of a report, and its outcome."""
    found = []
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        # CTest reports a GoogleTest binary as one test; the binary's own report has the cases.
        own = report.parent / "gtest" / f"{case.get('name')}.xml"
        if kinds & {"failure", "error"} or case.get("status") == "fail":
            outcome = FAILED
        elif report.name == "ctest.xml" and own.exists():
            continue
        elif "skipped" in kinds or case.get("status") in ("disabled", "notrun"):
            outcome = SKIPPED
        else:
            outcome = PASSED
        found.append(((case.get("classname", ""), case.get("name", "")), outcome))
    return found


def node_id(classname: str, name: str) -> str:
    """pytest's id of a test: the file, classes and the name."""
    parts = classname.split(".")
    files = (n for n in range(len(parts), 0, -1) if Path(*parts[:n]).with_suffix(".py").is_file())
    n = next(files, len(parts))
    return "::".join([str(Path(*parts[:n]).with_suffix(".py")), *parts[n:], name])


def count(folder: Path) -> tuple[dict[str, int], list[str]]:
    """The number of tests by outcome, and the tests that passed only when they were repeated."""
    total, flaky = dict.fromkeys((PASSED, FAILED, SKIPPED), 0), []
    for report in sorted(folder.rglob("*.xml")):
        if report.name.endswith(".repeated.xml"):
            continue
        repeated = report.with_suffix(".repeated.xml")
        again = dict(outcomes(repeated)) if repeated.exists() else {}
        for test, outcome in outcomes(report):
            if outcome == FAILED and again.get(test) == PASSED:
                flaky.append(node_id(*test))
                outcome = PASSED
            total[outcome] += 1
    return total, flaky


def slowest(folder: Path, number: int = 50) -> list[tuple[float, str]]:
    """The seconds and names of the slowest tests. Of C++, the test is a program."""
    found = []
    for report in folder.glob("*.xml"):
        for case in ElementTree.parse(report).iter("testcase"):
            classname, name = case.get("classname", ""), case.get("name", "")
            is_program = report.name == "ctest.xml"
            test = f"{name} (C++)" if is_program else f"{node_id(classname, name) if classname else name} ({report.stem})"
            found.append((float(case.get("time", 0)), test))
    return sorted(found, reverse=True)[:number]


if __name__ == "__main__":
    if sys.argv[1] == "--slowest":
        print(*(f"{seconds:7.1f} {test}" for seconds, test in slowest(Path(sys.argv[2]))), sep="\n")
        sys.exit()
    if sys.argv[1] == "--failed":
        print(*(node_id(*test) for test, outcome in outcomes(Path(sys.argv[2])) if outcome == FAILED), sep="\n")
        sys.exit()
    total, flaky = count(Path(sys.argv[1]))
    for test in flaky:
        print(f"failed beside other tests, and passed when it was repeated alone: {test}")
    print(", ".join(f"{number} {outcome}" for outcome, number in total.items()))
    sys.exit(total[FAILED] > 0 or total[PASSED] == 0)
