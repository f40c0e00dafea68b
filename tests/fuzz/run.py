"""Runs every fuzz target for some time, one per core in parallel, and prints a summary.

Usage: ``python -m tests.fuzz.run --seconds 20 [--only NAME]``; ``make fuzz`` first builds the targets with libFuzzer
and sanitizers. ``--release`` (``make fuzz-release``, used by CI) runs the targets of the ordinary build: random
mutations of the kept inputs and seeds, without coverage or sanitizers, but also without a second build. Kept inputs
(``tests/fuzz/corpus/NAME``) run first, in every run. New inputs that reach new code are stored in
``build-fuzz/corpus``. A failing input is written to ``build-fuzz/findings``: minimise it, fix the fault, and move it
to ``tests/fuzz/corpus/NAME``, where the ordinary test suite runs it too.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "build-fuzz"
SEEDED = ("frame_fuzz", "program_fuzz")  # their seeds are recorded from the operators' samples
# Targets in Python.
MODULES = tuple(f"tests.fuzz.{name}" for name in ("load_fuzz", "onnx_fuzz", "pt2_fuzz", "api_fuzz", "library_fuzz", "sizes_fuzz"))


@dataclass
class Outcome:
    """The result of a target's run."""

    name: str
    inputs: int
    seconds: float
    coverage: str
    findings: list[Path]
    output: str

    @property
    def ok(self) -> bool:
        """Whether the target ran without findings."""
        return not self.findings and self.inputs > 0


def make_seeds() -> Path:
    """The folder with the frames of the operators' samples; records them if it is empty."""
    folder = FOLDER / "seeds"
    if not folder.exists() or not any(folder.iterdir()):
        subprocess.run([sys.executable, "-m", "tests.fuzz.seeds", str(folder)], cwd=ROOT, check=True)
    return folder


def run_libfuzzer(target: Path, seconds: int, seeds: Path) -> Outcome:
    """Runs a libFuzzer program for `seconds`, after its kept inputs and seeds."""
    name = target.name
    corpus, findings = FOLDER / "corpus" / name, FOLDER / "findings" / name
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    before = set(findings.iterdir())
    kept = ROOT / "tests/fuzz/corpus" / name
    folders = [str(f) for f in (corpus, kept, seeds if name in SEEDED else None) if f is not None and f.exists()]
    command = [str(target), f"-max_total_time={seconds}", "-timeout=30", "-rss_limit_mb=4096", "-print_final_stats=1",
               "-close_fd_mask=1", "-detect_leaks=0", f"-artifact_prefix={findings}/", *folders]
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1", "OMP_NUM_THREADS": "1"}
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
    inputs = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
    coverage = re.findall(r"cov: (\d+)", done.stderr)
    found = sorted(set(findings.iterdir()) - before)
    if done.returncode != 0 and not found:
        found = [findings / "no input was written; see the output"]
    return Outcome(name, int(inputs[1]) if inputs else 0, time.monotonic() - began, coverage[-1] if coverage else "",
                   found, done.stderr)


def run_release(target: Path, seconds: int, seeds: Path, seed: int) -> Outcome:
    """Runs the same target of the ordinary build (tests/fuzz/replay.cc)."""
    kept = ROOT / "tests/fuzz/corpus" / target.name
    folders = [str(f) for f in (kept, seeds if target.name in SEEDED else None) if f is not None and f.exists()]
    began = time.monotonic()
    command = [str(target), "--seconds", str(seconds), "--seed", str(seed), *folders]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    inputs = re.findall(r"(\d+) inputs", done.stdout)
    found = [target] if done.returncode != 0 else []
    output = f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return Outcome(target.name, int(inputs[-1]) if inputs else 0, time.monotonic() - began, "", found, output)


def run_python(module: str, seconds: int) -> Outcome:
    """Runs a Python fuzzer, whose last line has `N inputs`."""
    name = module.rsplit(".", 1)[-1]
    findings = FOLDER / "findings" / name
    findings.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", module, "--seconds", str(seconds), "--findings", str(findings)],
                          cwd=ROOT, capture_output=True, text=True, errors="replace")
    inputs = re.findall(r"(\d+) (?:inputs|calls)", done.stdout)
    found = [findings] if done.returncode != 0 else []
    return Outcome(name, int(inputs[-1]) if inputs else 0, time.monotonic() - began, "", found,
                   done.stdout + done.stderr)


def show(outcomes: list[Outcome], console: Console) -> None:
    """Prints a table of the runs, and the reports of the findings."""
    table = Table("target", "inputs", "per second", "coverage", "findings")
    for o in outcomes:
        table.add_row(o.name, f"{o.inputs:,}", f"{o.inputs / max(o.seconds, 1e-9):,.0f}", o.coverage,
                      "none" if o.ok else f"[red]{', '.join(f.name for f in o.findings) or 'did not run'}[/red]")
    console.print(table)
    for o in outcomes:
        if not o.ok:
            console.print(f"[red]{o.name}[/red]")
            console.print(o.output[-6000:], markup=False, highlight=False)
    total, failed = sum(o.inputs for o in outcomes), sum(not o.ok for o in outcomes)
    console.print(f"fuzz: {len(outcomes)} targets, {total:,} inputs, {failed} with findings")


def main() -> int:
    """Runs the targets; returns 1 if there are findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="seconds per target (default: 60)")
    parser.add_argument("--only", default="", help="run the targets whose name contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of parallel targets (default: one per core)")
    parser.add_argument("--seed", type=int, default=1, help="seed of --release runs, for reproduction (default: 1)")
    parser.add_argument("--release", action="store_true", help="run the targets of the ordinary build, without libFuzzer")
    args = parser.parse_args()
    console = Console()
    seeds = make_seeds()
    built = ROOT / "build/tests" if args.release else ROOT / "build-asan/fuzz"
    targets = sorted(t for t in built.iterdir() if t.name.endswith("_fuzz") and args.only in t.name)
    modules = [m for m in MODULES if args.only in m]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    outcomes = []
    with Progress(*columns, console=console) as progress, ThreadPoolExecutor(args.jobs) as pool:
        task = progress.add_task(f"fuzzing, {args.seconds} s each", total=len(targets) + len(modules))
        if args.release:
            runs = [pool.submit(run_release, t, args.seconds, seeds, args.seed) for t in targets]
        else:
            runs = [pool.submit(run_libfuzzer, t, args.seconds, seeds) for t in targets]
        runs += [pool.submit(run_python, m, args.seconds) for m in modules]
        for run in runs:
            outcomes.append(run.result())
            progress.advance(task)
    show(outcomes, console)
    return int(not outcomes or any(not o.ok for o in outcomes))


if __name__ == "__main__":
    sys.exit(main())
