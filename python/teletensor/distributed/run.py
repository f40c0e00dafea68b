"""``python -m torch.distributed.run``: torchrun. The same command as ``teletensor launch`` (docs/launch.md)."""

from __future__ import annotations

import argparse
import sys

from .. import launch as _launch

__all__ = ["get_args_parser", "main", "parse_args", "run"]


def get_args_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return _launch.parser()


def parse_args(args: list[str] | None) -> argparse.Namespace:
    """Parses the arguments, by default those of the process."""
    return get_args_parser().parse_args(args)


def run(args: argparse.Namespace) -> None:
    """Runs the parsed command. Raises SystemExit with the exit code of the first failed rank if the run fails."""
    if code := _launch.run(args):
        sys.exit(code)


def main(args: list[str] | None = None) -> None:
    """Runs the command; `args` are its arguments, by default those of the process."""
    if code := _launch.main(args):
        sys.exit(code)


if __name__ == "__main__":
    main()
