"""``teletensor launch``: starts one process per rank on one or several hosts, as torchrun does. See docs/launch.md.

Modules: `options` (the command line), `rendezvous` (the launchers' store), `membership` (rounds and failures), `ranks`
(processes), `function` (ranks that call a function), `logs` (their output), `launcher` (one node), `execution` (a run of
one node from a program), `hosts` and `remote` (--hosts), and `cluster` (ranks that Slurm or MPI starts). None of them
needs an engine.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping

from .options import OptionError, add_arguments, check


def run(args: argparse.Namespace) -> int:
    """Runs the command of parsed arguments and returns its exit code."""
    try:
        options = check(args, sys.executable, os.environ)
    except OptionError as e:
        print(f"teletensor launch: {e}", file=sys.stderr)
        return 2
    if options.hosts:
        import asyncio  # slow to import, and not needed by the modules of one node that are imported first

        from . import hosts
        from .logs import Output

        return asyncio.run(hosts.run(options, Output.standard()))
    from .execution import execute

    return execute(options).code


def main(argv: list[str] | None = None) -> int:
    """Runs ``teletensor launch`` with the arguments, which do not include the name of the command."""
    arguments = sys.argv[1:] if argv is None else argv
    if any(argument.replace("_", "-").startswith("--print-completion") for argument in arguments):
        return _print_completion(arguments)
    return run(parser().parse_args(arguments))


def parser(environment: Mapping[str, str] = os.environ) -> argparse.ArgumentParser:
    """Returns the parser of the flags, the script and its arguments. See add_arguments() for the environment."""
    flags = argparse.ArgumentParser(
        prog="teletensor launch", allow_abbrev=False, description="Starts one process per rank."
    )
    add_arguments(flags, environment)
    return flags


def _print_completion(arguments: list[str]) -> int:
    """Prints a completion script: --print-completion needs no script of a rank."""
    flags = parser()
    shell = flags.parse_args([*arguments, "-"]).print_completion
    try:
        import shtab
    except ImportError:
        print("teletensor launch: --print-completion needs the package shtab: pip install shtab", file=sys.stderr)
        return 1
    print(shtab.complete(flags, shell=shell))
    return 0
