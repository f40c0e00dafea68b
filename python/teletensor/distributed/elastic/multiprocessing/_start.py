"""torch.distributed.elastic.multiprocessing.start_processes."""

from __future__ import annotations

from collections.abc import Callable

from ...._lazy import set_module
from .api import (
    LogsSpecs,
    MultiprocessContext,
    PContext,
    SubprocessContext,
)  # fmt: skip


def start_processes(
    name: str,
    entrypoint: Callable | str,
    args: dict[int, tuple],
    envs: dict[int, dict[str, str]],
    logs_specs: LogsSpecs,
    log_line_prefixes: dict[int, str] | None = None,
    start_method: str = "spawn",
    numa_options: None = None,
    duplicate_stdout_filters: list[str] | None = None,
    duplicate_stderr_filters: list[str] | None = None,
) -> PContext:
    """Starts a process for each key of `args` and `envs`, the local ranks 0 to N - 1.

    Args:
        name: part of the prefix of lines that are shown.
        entrypoint: a function, or a program's name.
        args: the arguments by local rank. Those of a program are converted to texts.
        envs: variables by local rank, in addition to those of this process.
        logs_specs: where the output goes.
        log_line_prefixes: of lines that are shown, by local rank.
        start_method: of a function's processes: "spawn", "fork" or "forkserver".
        numa_options: not supported.
        duplicate_stdout_filters, duplicate_stderr_filters: lines of shown streams with one of these texts are also written to
            filtered_stdout.log and filtered_stderr.log.

    Raises:
        RuntimeError: the keys are not 0 to N - 1.
        NotImplementedError: `numa_options` is given.
    """
    if numa_options is not None:
        raise NotImplementedError("[start_processes] numa_options is not supported: start the program with numactl")
    for what, given in (("args", args), ("envs", envs)):
        if given.keys() != set(range(len(args))):
            raise RuntimeError(
                f"{what}, local rank mapping mismatch, expected: {set(range(len(args)))}, actual: {set(given)}"
            )
    shared = (name, entrypoint, args, envs, logs_specs, log_line_prefixes, duplicate_stdout_filters, duplicate_stderr_filters)
    context = SubprocessContext(*shared) if isinstance(entrypoint, str) else MultiprocessContext(*shared, start_method=start_method)
    try:
        context.start()
    except BaseException:
        context.close()
        raise
    return context


set_module(__package__, start_processes)
