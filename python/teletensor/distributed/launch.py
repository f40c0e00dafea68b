"""``python -m torch.distributed.launch``: torchrun for scripts that expect ``--local-rank=K`` among their arguments.

``--use-env`` leaves the argument out; LOCAL_RANK is set in any case. Deprecated in PyTorch; use ``torch.distributed.run``.
"""

from __future__ import annotations

import argparse
import sys

from . import run as _run

__all__ = ["launch", "main", "parse_args", "run"]


def parse_args(args: list[str] | None) -> argparse.Namespace:
    """Parses the arguments, by default those of the process."""
    parser = _run.get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true", help="do not add --local-rank to the arguments")
    return parser.parse_args(args)


def launch(args: argparse.Namespace) -> None:
    """Runs the parsed command. Raises SystemExit if it fails."""
    if not args.use_env and not args.no_python:
        args.training_script_args.insert(0, "--local-rank=${local_rank}")
    run(args)


run = _run.run


def main(args: list[str] | None = None) -> None:
    """Runs the command; `args` are its arguments, by default those of the process."""
    print(
        "torch.distributed.launch is deprecated: use torch.distributed.run, and LOCAL_RANK instead of --local-rank",
        file=sys.stderr,
    )
    launch(parse_args(args))


if __name__ == "__main__":
    main()
