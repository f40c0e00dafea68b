"""`python -m tests.conformance.distributed.worker FILE`: runs tests of distributed_test.py on one rank.

Reads one line of JSON per test (class, name, rank, folder) and writes one line with its state and reason. With the name
"?", it writes the names of all tests.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import traceback
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any

import teletensor.as_torch  # noqa: F401 - `import torch` returns teletensor
import teletensor.distributed as dist

from ..worker_loop import replies, requests
from . import stand_ins
from .absent import AbsentName, provide

MODULE = "torch.testing._internal.distributed.distributed_test"
COLLECTIVE = "DistributedTest"  # the class whose tests run on all ranks


def load(path: str) -> ModuleType:
    """Executes PyTorch's file."""
    stand_ins.install()
    provide(Path(path).read_text())
    spec = importlib.util.spec_from_file_location(MODULE, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    module.default_pg_timeout = 20  # a hanging collective is then reported before the test is killed
    # The file's modules are saved and loaded as those of a program, although its name is that of a module of torch.
    modules = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, module.torch.nn.Module)]
    module.torch.serialization.add_safe_globals([(kind, f"{MODULE}.{kind.__qualname__}") for kind in modules])
    module.PROFILING_SUPPORTED_BACKENDS = module.SEND_RECV_PROFILING_SUPPORTED_BACKENDS = []
    module.torch.backends.cudnn.flags = contextlib.nullcontext  # the settings of cuDNN have no effect
    objects = module.create_collectives_object_test_list
    module.create_collectives_object_test_list = lambda: [o for o in objects() if not isinstance(o, module.Foo)]
    return module


def tests_of(module: ModuleType) -> list[tuple[str, str]]:
    """Class and name of every test."""
    names = [(COLLECTIVE, name) for name in dir(module.DistributedTest._DistTestBase) if name.startswith("test_")]
    for cls in vars(module).values():
        if isinstance(cls, type) and issubclass(cls, unittest.TestCase) and cls.__module__ == MODULE:
            names += [(cls.__name__, name) for name in unittest.TestLoader().getTestCaseNames(cls)]
    return names


def _run(module: ModuleType, cls: str, name: str, rank: int, folder: str) -> None:
    if cls != COLLECTIVE:
        test = getattr(module, cls)(name)
        test.setUp()
        getattr(test, name)()
        test.tearDown()
        return
    os.environ["TEMP_DIR"] = folder
    module.Barrier.barrier_id = 0
    case = type("TestDistBackendOfTeletensor", (module.TestDistBackend, module.DistributedTest._DistTestBase), {})
    case._run(rank, name, os.path.join(folder, "group"), None)


def outcome(module: ModuleType, call: dict[str, Any]) -> dict[str, str]:
    """Runs one test on this rank; returns its state and reason."""
    try:
        _run(module, call["class"], call["name"], call["rank"], call["folder"])
    except SystemExit as e:
        if e.code:
            return {"state": "failed", "reason": f"exit code {e.code}"}
    except unittest.SkipTest as e:
        return {"state": "skipped", "reason": str(e)}
    except AbsentName as e:
        return {"state": "absent", "reason": str(e)}
    except BaseException as e:  # noqa: BLE001 - reported
        lines = [line for line in str(e).splitlines() if line.strip()]
        frames = [f for f in traceback.extract_tb(e.__traceback__) if f.filename == module.__file__]
        line = f" (line {frames[-1].lineno})" if frames else ""
        return {"state": "failed", "reason": f"{type(e).__name__}: {' '.join(lines)}{line}", "trace": traceback.format_exc()}
    return {"state": "passed", "reason": ""}


def main() -> int:
    reply = replies()
    module = load(sys.argv[1])
    for call in requests():
        reply(tests_of(module) if call["name"] == "?" else outcome(module, call))
        if call["name"] != "?" and dist.is_initialized():
            dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
