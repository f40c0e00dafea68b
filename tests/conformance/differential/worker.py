"""`python -m tests.conformance.differential.worker`: reads lines of `name|most samples`, writes one line of JSON each.

Requires an interpreter with PyTorch. The parent process restarts it if a call crashes it.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections import Counter, defaultdict

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_map

import teletensor

from ..op_db.checks import Allowance, _outcome, kind_difference
from ..op_db.convert import Converter, Unconvertible, difference, leaves
from ..op_db.differences import allowance_of
from ..op_db.forms import MissingOperator, find
from ..signatures import check
from ..signatures.compare import parse
from . import scripts
from .calls import Call, bind, variations

DTYPES = (torch.float32, torch.int64)


def _theirs(path: str):
    found = torch
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def targets(info) -> list[str]:
    """The names in PyTorch of an operator: functions and methods, with aliases."""
    names = [info.name, *(alias.name for alias in info.aliases)]
    found = []
    for name in names:
        short = name.split(".")[-1]
        for path in (f"torch.{name}", f"torch.Tensor.{short}"):
            if callable(_theirs(path)) and path not in found:
                found.append(path)
    return found


def _copy(value):
    def copy(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        fresh = leaf.detach().clone()
        return fresh.requires_grad_() if leaf.requires_grad else fresh

    return tree_map(copy, value)


def _flags(value) -> list[bool]:
    return [bool(leaf.requires_grad) for leaf in leaves(value) if isinstance(leaf, (torch.Tensor, teletensor.Tensor))]


def compare(path: str, call: Call, allowance: Allowance) -> str | None:
    """How the two libraries' results of a call differ; empty if they do not, None if the call cannot be compared."""
    args, kwargs = _copy(call.args), _copy(call.kwargs)
    convert = Converter()
    mine_args, mine_kwargs = convert(args), convert(kwargs)
    theirs, refused = _outcome(lambda: _theirs(path)(*args, **kwargs), False)
    if isinstance(refused, NotImplementedError) or refused is not None and "not implemented for" in str(refused):
        return None
    ours, refusal = _outcome(lambda: find(path)(*mine_args, **mine_kwargs), True)
    if refused is not None or refusal is not None:
        return kind_difference(refusal, refused)
    found = difference(ours, theirs, values=allowance.values, tolerance_factor=allowance.tolerance_factor, absolute=allowance.absolute)
    if not found and _flags(ours) != _flags(theirs):
        found = f"requires_grad {_flags(ours)}, PyTorch has {_flags(theirs)}"
    if not found and call.args and isinstance(call.args[0], torch.Tensor) and not args[0].requires_grad:
        if effect := difference(mine_args[0], args[0], values=allowance.values, tolerance_factor=10):
            found = f"first argument afterwards: {effect}"
    return found


def short(call: Call) -> str:
    """The call's arguments, with sizes instead of values."""
    def text(value) -> str:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return "(" + ", ".join(map(text, value)) + ")"
        return repr(value)

    return ", ".join([*map(text, call.args), *(f"{k}={text(v)}" for k, v in call.kwargs.items())])[:200]


def row(name: str, infos: list, most: int) -> dict:
    """The counts and differences of one operator's functions and methods."""
    counts: Counter[str] = Counter()
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    called: set[str] = set()
    declared = check.recorded()
    allowance = Allowance(**allowance_of(name))
    for info in infos:
        for path in targets(info):
            overloads = [parse(text) for text in declared.get(path, ())]
            for dtype in DTYPES:
                if not overloads or not info.supports_dtype(dtype, "cpu"):
                    continue
                for grad in (False, True) if info.supports_autograd and dtype.is_floating_point else (False,):
                    torch.manual_seed(0)
                    samples = list(info.sample_inputs("cpu", dtype, requires_grad=grad))
                    step = max(1, -(-len(samples) // most))
                    for sample in samples[::step]:
                        args = (sample.input, *sample.args)
                        for overload in overloads:
                            is_method = path.startswith("torch.Tensor.")
                            if is_method and not isinstance(args[0], torch.Tensor):
                                continue
                            bound = bind(overload, args[1:] if is_method else args, sample.kwargs)
                            if bound is not None:
                                own = {"": args[0]} if is_method else {}
                                called.add(f"{path}#{overloads.index(overload)}")
                                _try(path, overload, own | bound, allowance, counts, found)
    rows = [[*key, *texts[:2], len(texts)] for key, texts in found.items()]
    return {"name": name, "counts": counts, "called": sorted(called), "found": rows}


def _try(path: str, overload, bound: dict, allowance, counts: Counter, found: dict) -> None:
    is_method = "" in bound
    own = bound.pop("") if is_method else None
    for call in variations(overload, bound):
        if is_method:
            call = Call(call.what, (own, *call.args), call.kwargs)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                text = compare(path, call, allowance)
        except (Unconvertible, MissingOperator) as e:
            counts["skipped" if isinstance(e, Unconvertible) else "missing"] += 1
            continue
        if text is None:
            counts["skipped"] += 1
            continue
        counts["failed" if text else "passed"] += 1
        if text:
            found[(path, call.what)].append(f"{text} <- {short(call)}"[:500])


def main() -> int:
    torch.set_num_threads(1)
    by_name = defaultdict(list)
    for info in op_db:
        by_name[info.name].append(info)
    rows = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of operators is not a row
    for line in sys.stdin:
        name, most = line.strip().rsplit("|", 1)
        if name == "?":
            reply = {"names": [*sorted(by_name), *scripts.names()], "version": torch.__version__}
        else:
            try:
                reply = row(name, by_name[name], int(most)) if name in by_name else scripts.row(name)
            except Exception as e:  # a fault of the suite, or an exception of a type that PyTorch never raises
                reply = {"name": name, "broken": f"{type(e).__name__}: {e}"}
        rows.write(json.dumps(reply, default=str) + "\n")
        rows.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
