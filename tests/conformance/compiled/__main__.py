"""Calls every operator of PyTorch's op_db and every module of its module_db in a compiled function, and compares with eager calls.

    PYTHONPATH=build/python PEER_PYTHON -m tests.conformance.compiled ops|modules [--samples N] [--only NAME] [--export]

Values, requires_grad, gradients and, for modules, buffers must have eager's bits or be close (rewritten patterns). The report is
a line per difference and a summary: rows that run as Programs, operator by operator, with graph breaks, and as plain Python.
"""

from __future__ import annotations

import argparse
import collections
import sys
import warnings
from typing import Any

import torch

import teletensor
from teletensor._dynamo.utils import counters
from teletensor.utils import _pytree as pytree

from ..op_db.convert import Converter, Unconvertible, our_dtype
from ..op_db.forms import MissingOperator, function_of

tensor_type = teletensor.Tensor
NO_VALUES = ("empty_like", "new_empty", "new_empty_strided", "empty_permuted", "empty", "empty_strided")  # results are not initialised


def outcome(call: Any) -> Any:
    """The result of a call, or its exception."""
    teletensor.manual_seed(0)
    try:
        return call()
    except Exception as e:  # noqa: BLE001 - both must raise the same
        return e


def tensors(value: Any) -> list[Any]:
    return [t for t in pytree.tree_leaves(value) if isinstance(t, tensor_type)]


def gradients(result: Any, inputs: list[Any]) -> Any:
    """Gradients of the sum of a result's tensors with respect to inputs."""
    roots = [t for t in tensors(result) if t.requires_grad]
    wanted = [t for t in inputs if t.requires_grad and t.is_leaf]
    if not roots or not wanted:
        return []
    total = sum((t.abs() if t.is_complex() else t).double().sum() for t in roots)
    return list(teletensor.autograd.grad(total, wanted, allow_unused=True))


def differs(got: Any, want: Any) -> str:
    """How a result differs from eager's; empty if it does not."""
    if isinstance(want, Exception) or isinstance(got, Exception):
        same = type(got) is type(want)
        return "" if same else f"{type(got).__name__} {str(got)[:200]!r} instead of {type(want).__name__} {str(want)[:100]!r}"
    a, b = pytree.tree_leaves(got), pytree.tree_leaves(want)
    if len(a) != len(b):
        return f"{len(a)} results instead of {len(b)}"
    for x, y in zip(a, b):
        if isinstance(y, tensor_type):
            if not isinstance(x, tensor_type) or x.requires_grad != y.requires_grad or x.dtype != y.dtype or x.shape != y.shape:
                return f"{getattr(x, 'shape', x)} instead of {getattr(y, 'shape', y)}, or another dtype or requires_grad"
            try:
                teletensor.testing.assert_close(x.detach(), y.detach(), equal_nan=True)
            except AssertionError as e:
                return str(e).splitlines()[0] + " " + str(e).splitlines()[-1]
        elif type(x) is not type(y) or not (x == y or x != x and y != y):
            return f"{x!r} instead of {y!r}"
    return ""


class Tally:
    """Counts and texts of one run."""

    def __init__(self) -> None:
        self.kinds: collections.Counter = collections.Counter()
        self.failures: list[str] = []

    def note(self, name: str, found: str) -> None:
        """A comparison."""
        kind = (
            "differs" if found else "internal error" if counters["internal"]
            else "plain" if counters["skipped"] else "breaks" if counters["graph_break"]
            else "operator by operator" if counters["engine"]["one by one"] else "Programs"
        )  # fmt: skip
        self.kinds[kind] += 1
        if kind in ("differs", "internal error"):
            self.failures.append(f"{name}: {found or dict(counters['internal'])}")
        elif kind == "plain":
            self.failures.append(f"{name} (plain): {dict(counters['skipped'])}")

    def print(self) -> None:
        print("\n".join(self.failures))
        print(", ".join(f"{kind}: {count}" for kind, count in self.kinds.most_common()))


def run_operators(tally: Tally, only: str | None, most: int) -> None:
    """The first samples of each operator."""
    from torch.testing._internal.common_methods_invocations import op_db

    for info in op_db:
        if only and only != info.name or info.name in NO_VALUES:
            continue
        try:
            form = function_of(info)
        except MissingOperator:
            tally.kinds["missing"] += 1
            continue
        dtypes = sorted(info.supported_dtypes("cpu"), key=str)
        if not dtypes:
            continue
        dtype = torch.float32 if torch.float32 in dtypes else dtypes[0]
        torch.manual_seed(0)
        try:
            has_grad = info.supports_autograd and dtype.is_floating_point
            samples = list(zip(range(most), info.sample_inputs("cpu", dtype, requires_grad=has_grad)))
        except Exception:  # noqa: BLE001 - of PyTorch's
            continue
        for i, sample in samples:
            try:
                run_operator(tally, f"{info.name} {i}", form.ours, sample)
            except (Unconvertible, MissingOperator, TypeError):  # a dtype that NumPy lacks
                tally.kinds["unconvertible"] += 1


def run_operator(tally: Tally, name: str, function: Any, sample: Any) -> None:
    given = []
    for _ in range(2):
        convert = Converter()
        given.append((convert(sample.input), convert(sample.args), convert(sample.kwargs)))
    teletensor._dynamo.reset()

    def call(x, args, kwargs):
        return function(x, *args, **kwargs)

    want = outcome(lambda: call(*given[0]))
    got = outcome(lambda: teletensor.compile(call)(*given[1]))
    found = differs(got, want)
    if not found and not isinstance(want, Exception):
        grads = [outcome(lambda r=r, g=g: gradients(r, tensors(g))) for r, g in zip((got, want), (given[1], given[0]))]
        found = differs(*grads)
        found = found and f"gradients: {found}"
    if not found:
        found = differs(tensors(given[1]), tensors(given[0]))
        found = found and f"arguments: {found}"
    tally.note(name, found)


def run_modules(tally: Tally, only: str | None, most: int, exports: bool) -> None:
    """The first samples of each module in each mode."""
    from torch.testing._internal.common_modules import module_db

    from ..module_db.module_checks import ModuleChecks, Pair

    for info in module_db:
        name = info.module_cls.__name__
        if only and only != name or info.is_lazy:
            continue
        checks = ModuleChecks(info)
        for training in (True, False) if info.train_and_eval_differ else (True,):
            samples = list(zip(range(most), checks._samples(torch.float32, training, True)))
            for i, sample in samples:
                if sample.forward_input is None:
                    continue
                label = f"{name} {'train' if training else 'eval'} {i}"
                try:
                    pairs = [Pair(info, sample, training).same_state() for _ in range(2)]
                except (AttributeError, Unconvertible):
                    tally.kinds["unconvertible"] += 1
                    continue
                (run_export if exports else run_module)(tally, label, *pairs)


def run_module(tally: Tally, label: str, a: Any, b: Any) -> None:
    teletensor._dynamo.reset()
    b.ours.load_state_dict(a.ours.state_dict())
    want = outcome(lambda: a.ours(*a.args, **a.kwargs))
    got = outcome(lambda: teletensor.compile(b.ours)(*b.args, **b.kwargs))
    found = differs(got, want)
    if not found and not isinstance(want, Exception):
        grads = [
            outcome(lambda r=r, p=p: gradients(r, [*tensors((p.args, p.kwargs)), *p.ours.parameters()])) for r, p in ((got, b), (want, a))
        ]
        found = differs(*grads) or differs(list(b.ours.buffers()), list(a.ours.buffers()))
    tally.note(label, found)


def run_export(tally: Tally, label: str, a: Any, b: Any) -> None:
    counters.clear()
    b.ours.load_state_dict(a.ours.state_dict())
    want = outcome(lambda: a.ours(*a.args, **a.kwargs))
    exported = outcome(lambda: teletensor.export.export(b.ours, b.args, b.kwargs))
    if isinstance(exported, Exception) and type(exported) is not type(want):
        tally.kinds["not exported"] += 1
        tally.failures.append(f"{label}: {type(exported).__name__}: {str(exported).splitlines()[0][:200]}")
        return
    if isinstance(exported, Exception):
        tally.note(label, "")
        return
    tally.note(label, differs(outcome(lambda: exported.module()(*b.args, **b.kwargs)), want))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("ops", "modules"))
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--only")
    parser.add_argument("--export", action="store_true", help="torch.export instead of torch.compile")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    our_dtype(torch.float32)
    tally = Tally()
    if args.what == "ops":
        run_operators(tally, args.only, args.samples)
    else:
        run_modules(tally, args.only, args.samples, args.export)
    tally.print()
    return 1 if tally.kinds["differs"] or tally.kinds["internal error"] else 0


if __name__ == "__main__":
    sys.exit(main())
