"""``python -m torch.distributed.run``: torchrun. The same command as ``teletensor launch`` (docs/launch.md)."""

from __future__ import annotations

import argparse
import os
import sys

from .. import launch as _launch
from ..launch.options import STDERR, STDOUT, check, ranks_per_node
from .argparse_util import check_env, env  # noqa: F401 - programs import these names from here
from .elastic.multiprocessing import DefaultLogsSpecs, LogsSpecs, Std  # noqa: F401
from .elastic.multiprocessing.errors import record  # noqa: F401
from .elastic.utils import macros  # noqa: F401
from .elastic.utils.logging import get_logger  # noqa: F401
from .launcher.api import LaunchConfig, elastic_launch, launch_agent

__all__ = [
    "LaunchConfig", "config_from_args", "determine_local_world_size", "elastic_launch", "get_args_parser", "main", "parse_args",
    "parse_min_max_nnodes", "run", "run_script_path",
]  # fmt: skip


def get_args_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return _launch.parser()


def parse_args(args: list[str] | None) -> argparse.Namespace:
    """Parses the arguments, by default those of the process."""
    return get_args_parser().parse_args(args)


def parse_min_max_nnodes(nnodes: str) -> tuple[int, int]:
    """Parses "N" or "MIN:MAX"."""
    numbers = nnodes.split(":")
    if len(numbers) > 2:
        raise RuntimeError(f'nnodes={nnodes} is not in "MIN:MAX" format')
    return int(numbers[0]), int(numbers[-1])


def determine_local_world_size(nproc_per_node: str) -> int:
    """Returns the number that "4", "cpu", "gpu" or "auto" stands for on this machine. Raises ValueError."""
    return ranks_per_node(str(nproc_per_node))


def run_script_path(training_script: str, *training_script_args: str) -> None:
    """Runs a script in this interpreter, as its main module."""
    import runpy

    sys.argv = [training_script, *training_script_args]
    runpy.run_path(training_script, run_name="__main__")


def config_from_args(args: argparse.Namespace) -> tuple[LaunchConfig, str, list[str]]:
    """Returns the configuration, the program and its arguments for elastic_launch(). Raises ValueError.

    One node without --master-port or --rdzv-endpoint has the backend "c10d", which uses a free port.
    """
    options = check(args, os.environ.get("PYTHON_EXEC", sys.executable), dict(os.environ))
    if options.hosts:
        raise ValueError("[config_from_args] expected no --hosts: the launcher starts those nodes itself; use run()")
    logs = DefaultLogsSpecs(
        options.log_dir, _streams(options.redirects, options.ranks), _streams(options.tee, options.ranks),
        set(options.ranks_shown) if options.ranks_shown else None,
    )  # fmt: skip
    backend = "static" if options.master else "c10d"
    host, port = options.master or options.endpoint
    endpoint = f"[{host}]:{port}" if ":" in host else f"{host}:{port}" if host else ""
    configs = {
        "timeout": options.join_timeout, "last_call_timeout": options.last_call_timeout, "read_timeout": options.read_timeout,
        "keep_alive_interval": options.keep_alive_interval, "keep_alive_max_attempt": options.keep_alive_attempts,
    }  # fmt: skip
    if backend == "static":
        configs["rank"] = options.node_rank or 0
    elif options.hosts_store is not None:
        configs["is_host"] = options.hosts_store
    config = LaunchConfig(
        min_nodes=options.min_nodes, max_nodes=options.max_nodes, nproc_per_node=options.ranks, logs_specs=logs,
        run_id=options.run_id or "none", role=options.role, rdzv_endpoint=endpoint, rdzv_backend=backend,
        rdzv_configs=configs, max_restarts=options.max_restarts, monitor_interval=options.monitor_interval, start_method="spawn",
        log_line_prefix_template=options.line_prefix, local_addr=options.local_address,
        event_log_handler=options.event_log_handler, signals_to_handle=args.signals_to_handle,
        duplicate_stdout_filters=list(options.filters.get(STDOUT, ())) or None,
        duplicate_stderr_filters=list(options.filters.get(STDERR, ())) or None, virtual_local_rank=options.virtual_local_rank,
        shutdown_timeout=options.grace,
    )  # fmt: skip
    return config, options.command[0], list(options.command[1:])


def _streams(bits: dict[int, int], ranks: int) -> Std | dict[int, Std]:
    if -1 in bits or not bits:
        return Std(bits.get(-1, 0))
    return {rank: Std(bits.get(rank, 0)) for rank in range(ranks)}


def run(args: argparse.Namespace) -> None:
    """Runs the parsed command.

    Raises:
        ChildFailedError: a rank failed. With --hosts SystemExit with its exit code is raised instead.
        SignalException, RendezvousError, ValueError: see launch_agent().
    """
    if args.hosts:
        if code := _launch.run(args):
            sys.exit(code)
        return
    config, program, arguments = config_from_args(args)
    launch_agent(config, program, arguments)


def main(args: list[str] | None = None) -> None:
    """Runs the command; `args` are its arguments, by default those of the process.

    Raises SystemExit with the exit code of the first failed rank if the run fails.
    """
    if code := _launch.main(args):
        sys.exit(code)


if __name__ == "__main__":
    main()
