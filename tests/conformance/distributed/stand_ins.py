"""The parts of PyTorch's internal test modules that distributed_test.py imports."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import random
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

import teletensor as torch
import teletensor.distributed as dist

from .absent import Absent, AbsentName
from .assertions import TestCase

# Conditions of PyTorch's backends that do not hold here: the engine's collectives are the same for all devices.
NOT_LIMITED = ("Only MPI supports",)


def _size() -> int:
    return int(os.environ["WORLD_SIZE"])


def _skip_unless(holds: Callable[[], bool], reason: str) -> Callable:
    """A decorator that skips a test, when it runs, if the condition does not hold."""

    def decorator(test: Callable) -> Callable:
        @functools.wraps(test)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not holds():
                raise unittest.SkipTest(reason)
            return test(*args, **kwargs)

        return wrapper

    return decorator


def _gpus() -> int:
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def skip_but_pass_in_sandcastle_if(condition: bool, reason: str) -> Callable:
    """Skips a test if the condition holds and is not one of NOT_LIMITED."""
    limited = condition and not reason.startswith(NOT_LIMITED)
    return _skip_unless(lambda: not limited, reason)


def _unchanged(*args: Any) -> Callable:
    """A decorator without effect, for conditions of NCCL's version and of ROCm."""
    return lambda test: test


def with_dist_debug_levels(levels: list[str]) -> Callable:
    """Runs a test at each debug level."""

    def decorator(test: Callable) -> Callable:
        @functools.wraps(test)
        def wrapper(*args: Any, **kwargs: Any) -> None:
            before = os.environ.get("TORCH_DISTRIBUTED_DEBUG")
            try:
                for level in levels:
                    os.environ["TORCH_DISTRIBUTED_DEBUG"] = level
                    dist.set_debug_level_from_env()
                    test(*args, **kwargs)
                    dist.barrier()
            finally:
                os.environ.pop("TORCH_DISTRIBUTED_DEBUG")
                if before is not None:
                    os.environ["TORCH_DISTRIBUTED_DEBUG"] = before
                dist.set_debug_level_from_env()

        return wrapper

    return decorator


@contextlib.contextmanager
def captured_output() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Captures what is printed."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        yield out, err


def verify_ddp_error_logged(model: Any, message: str) -> None:
    """Fails if the module's logging data does not contain the error."""
    data = model._get_ddp_logging_data()
    assert "iteration" in data and "has_error" in data and message in data["error"], data


def init_multigpu_helper(world_size: int, backend: str) -> dict[int, list[int]]:
    """The GPUs of each rank."""
    each = 1 if world_size <= _gpus() else _gpus() // world_size
    return {rank: list(range(_gpus()))[rank * each : (rank + 1) * each] for rank in range(world_size)}


def simple_sparse_reduce_tests(rank: int, world_size: int, num_inputs: int = 1) -> list:
    """Inputs and results of reductions of sparse tensors, of which rank r has elements 0 to r in the first dimension."""

    def generate(rank: int, size: int, sparse: int, dense: int) -> torch.Tensor:
        first = torch.arange(rank + 1).reshape(1, rank + 1)
        indices = torch.cat([first, *[torch.zeros(1, rank + 1, dtype=torch.int64)] * (sparse - 1)])
        return torch.sparse_coo_tensor(indices, torch.ones([rank + 1] + [2] * dense), [size] * sparse + [2] * dense)

    def case(sparse: int, dense: int) -> tuple[list, list]:
        size = num_inputs * world_size
        total = functools.reduce(lambda a, b: a + b, [generate(r, size, sparse, dense) for r in range(size)])
        inputs = [generate(num_inputs * rank + i, size, sparse, dense) for i in range(num_inputs)]
        return inputs, [total] * num_inputs

    return [case(sparse, dense) for sparse, dense in ((1, 0), (2, 0), (3, 0), (1, 1), (1, 2), (1, 3))]


class MultiProcessTestCase(TestCase):
    """A test of one rank. worker.py calls `_run` on each rank, so setUp(), which starts the ranks, is not used."""

    def __init__(self, method_name: str = "runTest"):
        super().__init__(method_name)
        self.rank = -1

    def run_test(self, name: str, pipe: Any) -> None:
        """Runs the test with the seed of PyTorch's tests."""
        torch.manual_seed(1234)
        random.seed(1234)
        np.random.seed(1234)
        getattr(self, name)()

    @property
    def is_master(self) -> bool:
        """Whether this is rank 0."""
        return self.rank == 0


class DistTestCases:
    """Features that PyTorch's backends lack and have. Here Gloo and NCCL have all features."""

    skip_collective: dict[str, set[str]] = {
        name: set() for name in ("allgather_coalesced", "reduce", "sendrecv anysource", "cpu barrier")
    }
    backend_feature: dict[str, set[str]] = {
        name: {"gloo", "nccl"} for name in ("gpu", "cuda", "ddp", "subgroup")
    } | {"plugin": set()}


@contextlib.contextmanager
def _temporary_file_name(*args: Any, **kwargs: Any) -> Iterator[str]:
    with tempfile.NamedTemporaryFile(*args, **kwargs) as file:
        yield file.name


class DeterministicGuard:
    """A context with torch.use_deterministic_algorithms(); restores the setting."""

    def __init__(self, deterministic: bool, *, warn_only: bool = False, **_: Any):
        self._wanted = deterministic, warn_only

    def __enter__(self) -> None:
        self._before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
        torch.use_deterministic_algorithms(self._wanted[0], warn_only=self._wanted[1])

    def __exit__(self, *_: Any) -> None:
        torch.use_deterministic_algorithms(self._before[0], warn_only=self._before[1])


class NoProfile:
    """torch.profiler.profile without events: tests that require events cannot run, those that also record them can."""

    def __init__(self, *args: Any, **kwargs: Any):
        pass

    def __enter__(self) -> NoProfile:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise AbsentName(f"torch.profiler.profile.{name}")


class _Skips(dict):
    """TEST_SKIPS: the exit codes of skipped tests; reasons are created on first use."""

    def __missing__(self, name: str) -> Any:
        raise unittest.SkipTest(f"skipped by the test: {name}")


def _common_distributed() -> dict[str, Any]:
    return {
        "captured_output": captured_output, "cleanup_temp_dir": lambda: None, "DistTestCases": DistTestCases,
        "init_multigpu_helper": init_multigpu_helper, "initialize_temp_directories": lambda: None,
        "MultiProcessTestCase": MultiProcessTestCase,
        "nccl_skip_if_lt_x_gpu": lambda backend, n: _skip_unless(lambda: backend != "nccl" or _gpus() >= n, f"needs {n} GPUs"),
        "require_n_gpus_for_nccl_backend": lambda n, backend: _skip_unless(
            lambda: backend != "nccl" or _gpus() >= n, f"needs {n} GPUs"
        ),
        "requires_nccl_version": _unchanged, "simple_sparse_reduce_tests": simple_sparse_reduce_tests,
        "skip_if_lt_x_gpu": lambda n, **_: _skip_unless(lambda: _gpus() >= n, f"needs {n} GPUs"),
        "skip_if_no_gpu": _skip_unless(lambda: _gpus() >= _size(), "needs a GPU per rank"),
        "skip_if_odd_worldsize": _skip_unless(lambda: _size() % 2 == 0, "needs an even number of ranks"),
        "skip_if_rocm_multiprocess": lambda test: test,
        # PyTorch requires 8 ranks; the tests use a group of ranks 1 and 2.
        "skip_if_small_worldsize": _skip_unless(lambda: _size() >= 3, "needs 3 ranks"),
        "TEST_SKIPS": _Skips(), "verify_ddp_error_logged": verify_ddp_error_logged,
        "with_dist_debug_levels": with_dist_debug_levels, "with_nccl_blocking_wait": lambda test: test,
    }  # fmt: skip


def _common_utils() -> dict[str, Any]:
    return {
        "DeterministicGuard": DeterministicGuard, "FILE_SCHEMA": "file://", "instantiate_parametrized_tests": lambda cls: cls,
        "IS_FBCODE": False, "IS_LINUX": False,  # disables flaky tests of PyTorch's engine
        "IS_MACOS": False, "IS_SANDCASTLE": False, "IS_WINDOWS": False, "TEST_WITH_ROCM": False, "TestCase": TestCase,
        "skip_but_pass_in_sandcastle": lambda reason: skip_but_pass_in_sandcastle_if(True, reason),
        "skip_but_pass_in_sandcastle_if": skip_but_pass_in_sandcastle_if, "TemporaryFileName": _temporary_file_name,
    }  # fmt: skip


def install() -> None:
    """Makes the modules importable. teletensor.as_torch must be imported."""
    contents: dict[str, dict[str, Any]] = {
        "torch.testing._internal": {"__path__": []},
        "torch.testing._internal.common_distributed": _common_distributed(),
        "torch.testing._internal.common_utils": _common_utils(),
        "torch.autograd.profiler": {"profile": NoProfile},
        "torch.profiler": {"profile": NoProfile, "ProfilerActivity": Absent("torch.profiler.ProfilerActivity")},
        "torch._utils_internal": {"TEST_MASTER_ADDR": "127.0.0.1", "TEST_MASTER_PORT": 29500},
    }
    import torch.autograd
    import torch.testing  # noqa: F401

    for name, values in contents.items():
        module = ModuleType(name, __doc__)
        vars(module).update(values)
        sys.modules[name] = module
        setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], module)
