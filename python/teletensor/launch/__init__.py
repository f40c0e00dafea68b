"""``teletensor launch``: starts one process per rank on one or several hosts, as torchrun does. See docs/launch.md.

Modules: `options` (the command line), `rendezvous` (the launchers' store), `membership` (rounds and failures), `ranks`
(processes), `logs` (their output), `launcher` (one node), `hosts` and `remote` (--hosts), and `cluster` (ranks that
Slurm or MPI starts). None of them needs an engine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

from .options import OptionError, add_arguments, check


def run(args: argparse.Namespace) -> int:
    """Runs the command of parsed arguments and returns its exit code."""
    try:
        options = check(args, sys.executable, os.environ)
    except OptionError as e:
        print(f"teletensor launch: {e}", file=sys.stderr)
        return 2
    from .logs import Output

    output = Output.standard()
    if options.hosts:
        from . import hosts

        return asyncio.run(hosts.run(options, output))
    from .launcher import Launcher

    return asyncio.run(Launcher(options, output).run())


def main(argv: list[str] | None = None) -> int:
    """Runs ``teletensor launch`` with the arguments, which do not include the name of the command."""
    parser = argparse.ArgumentParser(
        prog="teletensor launch", allow_abbrev=False, description="Starts one process per rank."
    )
    add_arguments(parser)
    return run(parser.parse_args(argv))
