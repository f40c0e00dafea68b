"""torch.distributed.elastic.multiprocessing: processes of this host that run a function or a program, with their output.

    context = start_processes(
        name="worker", entrypoint=work, args={0: (1,), 1: (2,)}, envs={0: {}, 1: {}}, logs_specs=DefaultLogsSpecs(tee=Std.ALL)
    )
    result = context.wait()

``torch.distributed.launcher`` starts ranks, with restarts and on several nodes.
"""

from ...._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_start": "start_processes",
    "api": (
        "DefaultLogsSpecs LogsDest LogsSpecs MultiprocessContext PContext RunProcsResult SignalException Std "
        "SubprocessContext to_map"
    ),
    "errors": "ProcessFailure",
}


__all__ = [  # noqa: F822 - imported at their first use
    "DefaultLogsSpecs", "LogsDest", "LogsSpecs", "MultiprocessContext", "PContext", "ProcessFailure", "RunProcsResult",
    "SignalException", "Std", "SubprocessContext", "start_processes", "to_map",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
