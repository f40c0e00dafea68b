"""`python -m tests.conformance.distributed [--only REGEX]`: runs PyTorch's tests of torch.distributed, writes a page.

Each test runs in the first setup in which it is not skipped: on CPU ranks, then on simulated GPUs. Results are kept in
build/distributed-cases.json, so that `--only` replaces those of some tests. Exits with 1 if a failure has no reason in
reasons.yaml.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import yaml
from rich.console import Console

from benchmarks.peers import interpreter

from .ranks import BUILD, ROOT, Ranks, Setup

SETUPS = (Setup("gloo", 4, False), Setup("gloo", 4, True), Setup("nccl", 4, True))
RESULTS = BUILD / "distributed-cases.json"
LOG = BUILD / "distributed-cases.log"
PAGE = ROOT / "docs/distributed-checklist.md"
REASONS = Path(__file__).with_name("reasons.yaml")
FILE = "testing/_internal/distributed/distributed_test.py"
STATES = ("passed", "differs", "not run", "failed")
HEADER = """# PyTorch's tests of torch.distributed

{summary}

`make dist-cases` writes this page. It runs the tests of PyTorch {version}, which it installs into `.venv-peers`, in
`torch/{file}`, with teletensor in PyTorch's place.

Each test runs in the first of these setups in which the file does not skip it: {setups}. Simulated
GPUs are those of our own tests (`tests/cuda/simulated`).

- *differs*: the test requires behaviour that differs on purpose.
- *not run*: the test requires what is named, or the file skips it for the reason that is named.
- The tests are unchanged, except that tests that also record a profile do not check its events, that lists of
  objects to send have no objects of classes, and that files may contain objects of the tests' own modules.
- A group's timeout is 20 s instead of 60 s, and `torch.backends.cudnn.flags`, which teletensor lacks, has no effect.
- PyTorch skips tests of groups on fewer than 8 ranks, tests of collectives that only its MPI backend has on the CPU, and
  some that are flaky on Linux; here they run.

| test | result | reason, or setup |
|---|---|---|
"""


def installed() -> tuple[Path, str]:
    """PyTorch's file and version."""
    code = "import os, torch; print(os.path.dirname(torch.__file__)); print(torch.__version__)"
    command = [interpreter(), "-c", code]
    folder, version = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return Path(folder, FILE), version.split("+")[0]


def run(file: Path, chosen: str, limit: float, console: Console) -> dict[str, dict]:
    """The results of the tests whose names match."""
    results: dict[str, dict] = {}
    progress = Console(width=400) if not console.is_terminal else console
    todo: list[list[str]] | None = None
    for setup in SETUPS:
        ranks = Ranks(setup, file, LOG)
        try:
            if todo is None:
                todo = [test for test in ranks.names() if re.search(chosen, ".".join(test))]
            for number, (cls, name) in enumerate(todo):
                result = {**ranks.run(cls, name, limit), "setup": setup.label}
                results[f"{cls}.{name}"] = result
                line = f"{setup.backend} {number + 1}/{len(todo)} {result['state']} {name} {result['reason'][:200]}"
                progress.print(line, markup=False, highlight=False)
        finally:
            ranks.stop()
        todo = [test for test in todo if results[".".join(test)]["state"] == "skipped"]
    return results


def judge(name: str, result: dict, reasons: list[dict]) -> tuple[str, str]:
    """The state of a test in the table, and the reason or the setup."""
    if result["state"] == "passed":
        return "passed", result["setup"]
    if result["state"] == "skipped":
        why = f"skipped by the file: {result['reason']}"
    elif result["state"] == "absent":
        why = f"uses {result['reason']}"
    else:
        why = result["reason"]
    for entry in reasons:
        if re.search(entry["test"], name) and re.search(entry.get("saying", ""), why):
            return entry.get("result", "differs"), entry["why"]
    return ("failed" if result["state"] == "failed" else "not run"), why


def page(results: dict[str, dict], version: str) -> tuple[str, Counter]:
    """The page, and the number of tests by state."""
    reasons = yaml.safe_load(REASONS.read_text()) or []
    rows = {name: judge(name, result, reasons) for name, result in results.items()}
    counts = Counter(state for state, _ in rows.values())
    summary = f"{len(rows)} tests: " + ", ".join(f"{counts[state]} {state}" for state in STATES) + "."
    setups = "; ".join(setup.label for setup in SETUPS)
    text = HEADER.format(file=FILE, version=version, setups=setups, summary=summary)
    for name, (state, why) in sorted(rows.items()):
        why = re.sub(r"\S*site-packages/", "", " ".join(why.split()))[:300].replace("|", "\\|").replace("<", "\\<")
        text += f"| {name.removeprefix('DistributedTest.')} | {state} | {why} |\n"
    return text, counts


def main() -> int:
    """Runs the tests and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="regular expression for names of tests; the other results are kept")
    parser.add_argument("--limit", type=float, default=30, help="seconds per test")
    parser.add_argument("--page-only", action="store_true", help="write the page from the last results")
    options = parser.parse_args()
    file, version = installed()
    keeps = options.only is not None or options.page_only
    results = json.loads(RESULTS.read_text()) if keeps and RESULTS.exists() else {}
    if not options.page_only:
        LOG.unlink(missing_ok=True)
        results |= run(file, options.only or "", options.limit, Console())
        RESULTS.write_text(json.dumps(results, indent=1))
    text, counts = page(results, version)
    PAGE.write_text(text)
    print(f"{PAGE.relative_to(ROOT)}: {dict(counts)}")
    return int(counts["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
