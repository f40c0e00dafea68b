"""The checks of one operator: runs each sample through both packages and compares the results."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Callable
from unittest import SkipTest

import torch

import teletensor

from . import special_points
from .convert import Converter, Unconvertible, difference, dtype_name, leaves, rebind
from .differences import reason
from .forms import Form, MissingOperator, function_of, other_forms

DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16, torch.complex64)
FORM_DTYPES = (torch.float32, torch.int64)
SPARSE_LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
SPECIAL_SAMPLES = 3  # of each operator, at every special point
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AttributeError, AssertionError)


@dataclass
class CheckCounts:
    """The results of one check of one operator in one dtype."""

    passed: int = 0
    failed: int = 0
    on_purpose: int = 0
    skipped: int = 0
    why: list[str] = field(default_factory=list)  # the first few differences
    reasons: list[str] = field(default_factory=list)  # why skipped or expected to differ

    def add(self, found: str, sample: str) -> None:
        self.passed += not found
        self.failed += bool(found)
        if found and len(self.why) < 3:
            self.why.append(f"{found} <- {sample}"[:600])

    def add_expected(self, reason: str) -> None:
        self.on_purpose += 1
        self._note(reason)

    def skip(self, reason: str) -> None:
        self.skipped += 1
        self._note(reason)

    def _note(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)


@dataclass
class Report:
    """The results of all checks of one operator, by (check, dtype)."""

    counts: dict[tuple[str, str], CheckCounts] = field(default_factory=lambda: defaultdict(CheckCounts))
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Allowance:
    """Which parts of an operator's results can be compared."""

    values: bool = True
    absolute: bool = False
    tolerance_factor: float = 1.0
    random_where: str = ""  # values are random in samples whose description matches this


def arguments_text(args, kwargs) -> str:
    """The arguments of a call, with dtypes and sizes instead of values."""
    def text(value) -> str:
        if isinstance(value, torch.Tensor):
            return f"{dtype_name(value.dtype)}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return "(" + ", ".join(map(text, value)) + ")"
        return repr(value)

    return ", ".join([*map(text, args), *(f"{k}={text(v)}" for k, v in kwargs.items())])


def described(sample) -> str:
    """A short description of a sample: sizes and arguments."""
    return arguments_text((sample.input, *sample.args), sample.kwargs)


def _chosen(samples: Iterator, most: int) -> list:
    """At most `most` elements, evenly spaced."""
    rows = list(samples)
    step = max(1, -(-len(rows) // most))
    return rows[::step]


def _outcome(call: Callable[[], Any], read: bool) -> tuple[Any, Exception | None]:
    """Returns the result, or the exception. `read`: wait for our values, since data-dependent errors are raised
    then."""
    try:
        result = call()
        if read:
            for leaf in leaves(result):
                if isinstance(leaf, teletensor.Tensor) and leaf.device.type != "meta":
                    leaf.detach().to_dense().reshape(-1)[:1].tolist()
        return result, None
    except REFUSALS as e:
        return None, e


def _with_strided_results(function: Callable) -> Callable:
    """The function with sparse results as strided ones, which have random weights in a backward pass."""

    def call(*args, **kwargs):
        result = function(*args, **kwargs)
        sparse = isinstance(result, (torch.Tensor, teletensor.Tensor)) and str(result.layout) != "torch.strided"
        return result.to_dense() if sparse else result

    return call


def _is_detached_view(t: torch.Tensor) -> bool:
    """Whether a sample took a view of a tensor that requires grad without recording it: it gets no gradient in
    PyTorch."""
    return t._base is not None and t._base.requires_grad


def kind_difference(mine: Exception | None, other: Exception | None) -> str:
    """How two outcomes differ in their exception types; empty if they do not."""
    if mine is None and other is None:
        return ""
    if mine is None:
        return f"no error, PyTorch raises {type(other).__name__}: {str(other).splitlines()[0] if str(other) else ''}"
    if other is None:
        return f"{type(mine).__name__}: {mine}"
    if isinstance(mine, NotImplementedError) and not isinstance(other, NotImplementedError):
        return f"{type(mine).__name__}: {mine}; PyTorch raises {type(other).__name__}"
    if isinstance(mine, type(other)) or isinstance(other, type(mine)) and not isinstance(other, NotImplementedError):
        return ""
    return f"{type(mine).__name__}: {mine}; PyTorch raises {type(other).__name__}: {other}"


class Checks:
    """All comparisons of one operator."""

    def __init__(self, info, allowance: Allowance, most: int, seed: int = 0):
        self.info, self.allowance, self.most, self.seed = info, allowance, most, seed
        self.report = Report()

    def run(self) -> Report:
        """Raises MissingOperator if teletensor has no such operator."""
        form = function_of(self.info)
        taken = [t for t in DTYPES if self.info.supports_dtype(t, "cpu")]
        for dtype in taken:
            self._each(("value", dtype), self._samples(dtype), lambda s: self._check_result(form, s))
        further, self.report.missing = other_forms(self.info)
        for dtype in FORM_DTYPES:
            if dtype in taken:
                rows = self._samples(dtype, 8)
                for other in further:
                    self._each((other.name, dtype), rows, lambda s, f=other: self._check_result(f, s))
                if self.info.supports_out:
                    self._each(("out=", dtype), rows, lambda s: self._check_out(form, s))
                self._each(("aliasing", dtype), rows[:3], lambda s: self._check_aliasing(form, s))
        for dtype in (torch.float64, torch.complex128):
            if self.info.supports_autograd and self.info.supports_dtype(dtype, "cpu") and self.allowance.values:
                rows = self._samples(dtype, self.most // 2, requires_grad=True)
                self._each(("gradient", dtype), rows, lambda s: self._check_gradients(form, s))
                if not self.allowance.random_where:
                    self._check_special_points(form, dtype)
        if self.info.error_inputs_func is not None:
            self._check_errors(form, "error", self.info.error_inputs("cpu"))
        for layout in SPARSE_LAYOUTS:
            if self.info.supports_sparse_layout(layout):
                self._check_layout(form, layout, [t for t in FORM_DTYPES if t in taken])
        return self.report

    def _check_layout(self, form: Form, layout: torch.layout, dtypes: list[torch.dtype]) -> None:
        """Compares results, gradients and errors of samples with inputs of a sparse layout."""
        name = str(layout).removeprefix("torch.")
        for dtype in dtypes:
            self._each((name, dtype), self._sparse_samples(layout, dtype), lambda s: self._check_result(form, s))
        if self.info.supports_autograd and self.info.supports_dtype(torch.float64, "cpu") and self.allowance.values:
            rows = self._sparse_samples(layout, torch.float64, requires_grad=True)
            dense = replace(form, theirs=_with_strided_results(form.theirs), ours=_with_strided_results(form.ours))
            self._each((f"{name} gradient", torch.float64), rows, lambda s: self._check_gradients(dense, s))
        if self.info.error_inputs_sparse_func is not None:
            self._check_errors(form, f"{name} error", self.info.error_inputs_sparse("cpu", layout))

    def _sparse_samples(self, layout: torch.layout, dtype: torch.dtype, requires_grad: bool = False) -> list:
        torch.manual_seed(self.seed)
        samples = []
        try:
            samples += self.info.sample_inputs_sparse(layout, "cpu", dtype, requires_grad=requires_grad)
        except (NotImplementedError, SkipTest):  # PyTorch lists the layout, and has no samples
            return []
        return _chosen(iter(samples), self.most)

    def _samples(self, dtype: torch.dtype, most: int | None = None, requires_grad: bool = False) -> list:
        torch.manual_seed(self.seed)
        return _chosen(self.info.sample_inputs("cpu", dtype, requires_grad=requires_grad), most or self.most)

    def _each(self, key: tuple[str, torch.dtype], samples: list, check: Callable[[Any], str | None]) -> None:
        counts = self.report.counts[key[0], dtype_name(key[1])]
        for sample in samples:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    found = check(sample)
                except Unconvertible as e:
                    counts.skip(str(e))
                    continue
            if found is not None:  # None: nothing to compare
                self._add(counts, key[0], found, sample)

    def _add(self, counts: CheckCounts, check: str, found: str, sample) -> None:
        text = described(sample)
        if found and (expected := reason(self.info.name, check, f"{found} <- {text}")):
            counts.add_expected(expected)
        else:
            counts.add(found, text)

    def _compare(self, ours, theirs, sample=None) -> str:
        a = self.allowance
        drawn = a.random_where and sample is not None and re.search(a.random_where, described(sample))
        return difference(ours, theirs, values=a.values and not drawn, tolerance_factor=a.tolerance_factor, absolute=a.absolute)

    def _check_result(self, form: Form, sample) -> str | None:
        """Compares the result of a call, and its effect on the arguments."""
        convert = Converter()
        args = (sample.input, *sample.args)
        if form.changes and isinstance(sample.input, torch.Tensor):
            args = (sample.input.clone(), *sample.args)
        mine_args, mine_kwargs = convert(args), convert(sample.kwargs)
        theirs, refused = _outcome(lambda: form.theirs(*args, **sample.kwargs), False)
        ours, refusal = _outcome(lambda: form.ours(*mine_args, **mine_kwargs), True)
        if refused is not None or refusal is not None:
            return kind_difference(refusal, refused)
        if found := self._compare(ours, theirs, sample):
            return found
        if form.changes and ours is not mine_args[0]:
            return "is not the tensor it was called on"
        return self._compare_arguments(convert)

    def _compare_arguments(self, convert: Converter) -> str:
        for theirs, ours in convert.pairs.values():
            if theirs.device.type != "meta" and (found := self._compare(ours, theirs)):
                return f"an argument has another value after the call: {found}"
        return ""

    def _check_out(self, form: Form, sample) -> str | None:
        """Checks that an out tensor of the right dtype receives the result, and that an out tensor of a wrong dtype is rejected."""
        expected, refused = _outcome(lambda: form.theirs(sample.input, *sample.args, **sample.kwargs), False)
        tensors = list(leaves(expected))
        if refused is not None or not tensors or not all(isinstance(t, torch.Tensor) for t in tensors):
            return None
        for cast in (None, torch.int32):
            outs = [torch.empty_like(t, dtype=cast or t.dtype) for t in tensors]
            convert = Converter()
            mine_args, mine_kwargs, mine_outs = convert(((sample.input, *sample.args), sample.kwargs, outs))
            single = isinstance(expected, torch.Tensor)
            container = type(expected) if type(expected) is list else tuple
            theirs_out, mine_out = (x[0] if single else container(x) for x in (outs, mine_outs))
            _, refused = _outcome(
                lambda: form.theirs(sample.input, *sample.args, **sample.kwargs, out=theirs_out), False
            )
            ours, refusal = _outcome(lambda: form.ours(*mine_args, **mine_kwargs, out=mine_out), True)
            what = "" if cast is None else f"out tensor of {dtype_name(cast)}: "
            if refused is not None or refusal is not None:
                found = kind_difference(refusal, refused)
            else:
                found = self._compare(mine_outs, outs)
                if not found and single and ours is not mine_outs[0]:
                    found = "is not the tensor given as out"
            if found:
                return what + found
        return ""

    def _check_aliasing(self, form: Form, sample) -> str | None:
        """Checks that a result shares memory with the input exactly if PyTorch's does."""
        convert = Converter()
        if not isinstance(sample.input, torch.Tensor) or sample.input.numel() == 0:
            return None
        args = (sample.input.clone(), *sample.args)
        mine_args, mine_kwargs = convert(args), convert(sample.kwargs)
        theirs, refused = _outcome(lambda: form.theirs(*args, **sample.kwargs), False)
        ours, refusal = _outcome(lambda: form.ours(*mine_args, **mine_kwargs), True)
        if refused is not None or refusal is not None:
            return None
        for t, m in zip(leaves(theirs), leaves(ours)):
            if isinstance(t, torch.Tensor) and isinstance(m, teletensor.Tensor) and 0 not in (*t.stride(), *m.stride()):
                t.fill_(1)
                m.fill_(1)
        found = difference(mine_args[0], args[0], values=True)
        return f"the input after writing to the result: {found}" if found else ""

    def _check_gradients(self, form: Form, sample) -> str | None:
        """Compares first derivatives of all floating-point arguments, with random output gradients."""
        wrapper = self.info.gradcheck_wrapper
        convert = Converter()
        args = (sample.input, *sample.args)
        mine_args, mine_kwargs = convert(args), convert(sample.kwargs)
        inputs = [(t, m) for t, m in convert.pairs.values() if t.requires_grad and t.is_leaf and not _is_detached_view(t)]
        process = sample.output_process_fn_grad
        theirs, refused = _outcome(lambda: process(wrapper(form.theirs, *args, **sample.kwargs)), False)
        ours, refusal = _outcome(lambda: rebind(process)(rebind(wrapper)(form.ours, *mine_args, **mine_kwargs)), True)
        if refused is not None or self.allowance.random_where and re.search(self.allowance.random_where, described(sample)):
            return None
        if refusal is not None:
            return kind_difference(refusal, None)
        outs = [t for t in leaves(theirs) if isinstance(t, torch.Tensor) and t.requires_grad]
        mine_outs = [m for t, m in zip(leaves(theirs), leaves(ours)) if isinstance(t, torch.Tensor) and t.requires_grad]
        if not outs or not inputs:
            return None
        torch.manual_seed(self.seed)
        weights = [torch.randn_like(t) for t in outs]
        expected, refused = _outcome(lambda: torch.autograd.grad(outs, [t for t, _ in inputs], weights, allow_unused=True), False)
        mine_weights = [Converter()(w) for w in weights]
        got, refusal = _outcome(
            lambda: teletensor.autograd.grad(mine_outs, [m for _, m in inputs], mine_weights, allow_unused=True), True
        )
        if refused is not None or refusal is not None:
            return kind_difference(refusal, refused)
        for i, (mine, other) in enumerate(zip(got, expected)):
            # None and zeros are equivalent
            if mine is None and other is None:
                continue
            other = torch.zeros_like(inputs[i][0]) if other is None else other
            mine = teletensor.zeros_like(inputs[i][1]) if mine is None else mine
            if found := difference(mine, other, tolerance_factor=self.allowance.tolerance_factor * 10):
                return f"in tensor {i}: {found}"
        return ""

    def _check_special_points(self, form: Form, dtype: torch.dtype) -> None:
        """Compares values and two derivatives at zeros, ties, bounds and infinities."""
        for sample in self._samples(dtype, SPECIAL_SAMPLES, requires_grad=True):
            for point, moved in special_points.samples_at_points(sample):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        differences = special_points.differences(form, self.info.gradcheck_wrapper, moved, self.allowance)
                    except Unconvertible:  # counted by the check of values
                        continue
                for what, found in differences.items():
                    counts = self.report.counts[f"{what} at special points", dtype_name(dtype)]
                    self._add(counts, f"{what} at special points", found and f"{point}: {found}", moved)

    def _check_errors(self, form: Form, check: str, samples: Iterator) -> None:
        """Checks that invalid input raises the same type of exception."""
        counts = self.report.counts[check, ""]
        torch.manual_seed(self.seed)
        for row in _chosen(samples, self.most):
            sample = row.sample_input
            convert = Converter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    mine_args, mine_kwargs = convert((sample.input, *sample.args)), convert(sample.kwargs)
                except Unconvertible as e:
                    counts.skip(str(e))
                    continue
                _, refused = _outcome(lambda: form.theirs(sample.input, *sample.args, **sample.kwargs), False)
                if refused is None:
                    continue
                _, refusal = _outcome(lambda: form.ours(*mine_args, **mine_kwargs), True)
            self._add(counts, check, kind_difference(refusal, refused), sample)


__all__ = ["Allowance", "Checks", "MissingOperator", "Report", "CheckCounts"]
