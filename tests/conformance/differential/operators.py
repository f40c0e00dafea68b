"""Steps of tensor functions and methods; the base calls are PyTorch's operator samples (`op_db`)."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_map

import teletensor

from ..op_db.checks import Allowance, arguments_text
from ..op_db.convert import Converter, difference, leaves
from ..op_db.differences import allowance_of
from ..op_db.forms import find
from ..signatures import check
from ..signatures.compare import Overload, parse
from .calls import Call, bind, variations
from .steps import Outcome, Step, outcome, refused_by_both

DTYPES = (torch.float32, torch.int64)


@functools.cache
def infos() -> dict[str, list]:
    """The operators' descriptions, by name."""
    by_name = defaultdict(list)
    for info in op_db:
        by_name[info.name].append(info)
    return by_name


def _theirs(path: str):
    found = torch
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return found


PLACES = ("torch", "torch.Tensor", "torch.nn.functional", "torch.linalg", "torch.special", "torch.fft", "torch.masked")
SUFFIXES = ("_", "_copy", "_with_indices")  # of names that take an operator's arguments


def _direct(info) -> list[str]:
    names = [info.name, *(alias.name for alias in info.aliases)]
    found = []
    for name in names:
        short = name.split(".")[-1]
        for path in (f"torch.{name}", f"torch.Tensor.{short}"):
            if callable(_theirs(path)) and path not in found:
                found.append(path)
    return found


@functools.cache
def _further() -> dict[str, list[str]]:
    """Declared names without an operator of their own (in place, copying, in another module), by an operator of that name."""
    taken = {path for rows in infos().values() for info in rows for path in _direct(info)}
    by_short: dict[str, str] = {}
    for name, rows in infos().items():
        for short in (name.split(".")[-1], *(alias.name.split(".")[-1] for info in rows for alias in info.aliases)):
            by_short.setdefault(short, name)
    found = defaultdict(list)
    for path in check.recorded():
        place, short = path.rsplit(".", 1)
        if place not in PLACES or path in taken:
            continue
        for stem in (short, *(short.removesuffix(suffix) for suffix in SUFFIXES if short.endswith(suffix))):
            if stem in by_short:
                found[by_short[stem]].append(path)
                break
    return found


def targets(info) -> list[str]:
    """The names in PyTorch of an operator: functions and methods, with aliases."""
    return _direct(info) + [path for path in _further()[info.name] if callable(_theirs(path))]


def steps(name: str, most: int) -> Iterator[Step]:
    """All calls of an operator's functions and methods; `most`: base calls for one dtype and one form."""
    declared = check.recorded()
    allowance = Allowance(**allowance_of(name))
    for info in infos()[name]:
        for path in targets(info):
            overloads = [parse(text) for text in declared.get(path, ())]
            for dtype in DTYPES:
                if not overloads or not info.supports_dtype(dtype, "cpu"):
                    continue
                for grad in (False, True) if info.supports_autograd and dtype.is_floating_point else (False,):
                    torch.manual_seed(0)
                    samples = list(info.sample_inputs("cpu", dtype, requires_grad=grad))
                    for sample in samples[:: max(1, -(-len(samples) // most))]:
                        yield from _of_sample(path, overloads, sample, allowance)


def _of_sample(path: str, overloads: list[Overload], sample, allowance: Allowance) -> Iterator[Step]:
    args = (sample.input, *sample.args)
    is_method = path.startswith("torch.Tensor.")
    if is_method and not isinstance(args[0], torch.Tensor):
        return
    for i, overload in enumerate(overloads):
        bound = bind(overload, args[1:] if is_method else args, sample.kwargs)
        for call in variations(overload, bound) if bound is not None else ():
            full = Call(call.what, (args[0], *call.args), call.kwargs) if is_method else call
            yield Step(path, call.what, functools.partial(_compared, path, full, allowance), f"{path}#{i}")


def _copy(value):
    def copy(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        fresh = leaf.detach().clone()
        return fresh.requires_grad_() if leaf.requires_grad else fresh

    return tree_map(copy, value)


def _flags(value) -> list[bool]:
    return [bool(leaf.requires_grad) for leaf in leaves(value) if isinstance(leaf, (torch.Tensor, teletensor.Tensor))]


def _compared(path: str, call: Call, allowance: Allowance) -> Iterator[Outcome]:
    found = compare(path, call, allowance)
    if found is None:
        yield "skipped", ""
    else:
        yield ("failed", f"{found} <- {short(call)}"[:500]) if found else ("passed", "")


def compare(path: str, call: Call, allowance: Allowance) -> str | None:
    """How the results of a call in both packages differ; empty if they do not, None if PyTorch does not implement it."""
    args, kwargs = _copy(call.args), _copy(call.kwargs)
    convert = Converter()
    mine_args, mine_kwargs = convert(args), convert(kwargs)
    torch.manual_seed(0)
    theirs, refused = outcome(lambda: _theirs(path)(*args, **kwargs))
    if isinstance(refused, NotImplementedError) or refused is not None and "not implemented for" in str(refused):
        return None
    function = find(path)
    ours, refusal = outcome(lambda: function(*mine_args, **mine_kwargs), teletensor.Tensor)
    if (found := refused_by_both(refusal, refused)) is not None:
        return found
    found = difference(ours, theirs, values=allowance.values, tolerance_factor=allowance.tolerance_factor, absolute=allowance.absolute)
    if not found and _flags(ours) != _flags(theirs):
        found = f"requires_grad {_flags(ours)}, PyTorch has {_flags(theirs)}"
    for i, (other, mine) in enumerate(convert.pairs.values()):
        if not found and not other.requires_grad and other.device.type != "meta":
            if effect := difference(mine, other, values=allowance.values, tolerance_factor=10):
                found = f"argument {i} afterwards: {effect}"
    return found


def short(call: Call) -> str:
    """The call's arguments, with sizes instead of values."""
    return arguments_text(call.args, call.kwargs)[:200]
