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
from ..op_db.convert import TOLERANCES, Converter, difference, leaves
from ..op_db.differences import allowance_of
from ..op_db.forms import find
from ..signatures import check
from ..signatures.compare import Overload, parse
from .calls import Call, bind, variations
from .steps import Outcome, Step, outcome, refused_by_both

DTYPES = (torch.float32, torch.int64)
# Operators that return values and their indices, of which there may be several; the arguments are input, k, dim or input, dim.
WITH_INDICES = {"topk": 2, "kthvalue": 2, "mode": 1, "median": 1, "nanmedian": 1}
IN_FLOAT32 = ("torch.masked.logaddexp", "torch.masked.logsumexp")  # in both packages, also for dtype=torch.float64


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
    factor = allowance.tolerance_factor * (TOLERANCES["float32"] / TOLERANCES["float64"] if path in IN_FLOAT32 else 1)
    is_exact = allowance.values and not _drops(path, call)
    found = difference(ours, theirs, values=is_exact, tolerance_factor=factor, absolute=allowance.absolute)
    if found and path.split(".")[-1] in WITH_INDICES and _selects_as_well(path, call, ours, theirs):
        found = ""
    if not found and _flags(ours) != _flags(theirs):
        found = f"requires_grad {_flags(ours)}, PyTorch has {_flags(theirs)}"
    for i, (other, mine) in enumerate(convert.pairs.values()):
        if not found and not other.requires_grad and other.device.type != "meta":
            if effect := difference(mine, other, values=allowance.values, tolerance_factor=10):
                found = f"argument {i} afterwards: {effect}"
    return found


def _drops(path: str, call: Call) -> bool:
    """Whether random elements become zero, so that only sizes and dtypes can be compared."""
    if path != "torch.nn.functional.multi_head_attention_forward":
        return False
    training = call.kwargs.get("training", call.args[13] if len(call.args) > 13 else True)
    return bool(training) and call.kwargs.get("dropout_p", call.args[10] if len(call.args) > 10 else 0.0) > 0


def _selects_as_well(path: str, call: Call, ours, theirs) -> bool:
    """Whether our results differ from PyTorch's only in which of several equal values is selected, and in the order of
    topk's values if it is not sorted: the values are PyTorch's, and are found in the input at our indices."""
    if not isinstance(ours, tuple) or len(ours) != 2 or difference(ours, theirs, values=False):
        return False
    values, indices = (torch.from_numpy(t.detach().numpy()) for t in ours)
    name, kwargs = path.split(".")[-1], dict(call.kwargs)
    given = call.args[1:] if call.args else ()
    data = (call.args[0] if call.args else kwargs["input"]).detach()
    place = WITH_INDICES[name] - 1
    dim = kwargs.get("dim", given[place] if len(given) > place else -1)
    if name == "topk" and kwargs.get("sorted", given[3] if len(given) > 3 else True) is False:
        same = torch.equal(values.sort(dim)[0], theirs[0].detach().sort(dim)[0])
    else:
        same = difference(ours[0], theirs[0]) == ""
    if values.dim() < data.dim():
        values, indices = values.unsqueeze(dim), indices.unsqueeze(dim)
    return same and torch.allclose(data.gather(dim, indices), values, equal_nan=True)


def short(call: Call) -> str:
    """The call's arguments, with sizes instead of values."""
    return arguments_text(call.args, call.kwargs)[:200]
