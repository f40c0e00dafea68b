"""Adds up JUnit reports: prints `N passed, N failed, N skipped`. Fails if no test ran or any failed."""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def count(folder: Path) -> tuple[int, int, int]:
    """Returns the numbers of passed, failed and skipped tests over all reports in the folder."""
    passed = failed = skipped = 0
    for report in folder.rglob("*.xml"):
        for case in ElementTree.parse(report).iter("testcase"):
            kinds = {child.tag for child in case}
            # CTest reports a GoogleTest binary as one test; the binary's own report has the cases.
            own = folder / "gtest" / f"{case.get('name')}.xml"
            if report.name == "ctest.xml" and own.exists() and not kinds & {"failure", "error"}:
                continue
            if kinds & {"failure", "error"} or case.get("status") == "fail":
                failed += 1
            elif "skipped" in kinds or case.get("status") in ("disabled", "notrun"):
                skipped += 1
            else:
                passed += 1
    return passed, failed, skipped


if __name__ == "__main__":
    passed, failed, skipped = count(Path(sys.argv[1]))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(failed > 0 or passed == 0)
