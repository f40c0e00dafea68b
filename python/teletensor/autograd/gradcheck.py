"""Checks of gradients against central finite differences in float64.

A complex number counts as two real numbers: each part of an input is varied, and each part of an output is compared.
By PyTorch's convention, the gradient of a real L with respect to z = x + i y is dL/dx + i dL/dy. A backward pass with
gradient v of an output o therefore differentiates Re(conj(v) o).
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import _C
from .._C import Tensor
from .._options import check_flags
from .._sparse.invariants import as_sparse_gradcheck
from .._sparse.tensor import SparseTensor
from .gradients import grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """Raised if the gradients differ. The message contains both Jacobians and names the output and the input."""


def _outputs(func, inputs) -> list[Tensor]:
    result = func(*inputs)
    result = list(result) if isinstance(result, (tuple, list)) else [result]
    return [r for r in result if isinstance(r, Tensor) and (r.is_floating_point() or r.dtype.is_complex)]


def _as_real_array(t: Tensor):
    """Returns the elements as a flat array of real numbers; real and imaginary parts alternate."""
    import numpy as np

    array = np.ascontiguousarray(t.detach().cpu().numpy()).ravel()
    return array.view("float64" if array.itemsize == 16 else "float32").copy() if array.dtype.kind == "c" else array.copy()


def _numerical(func, inputs, which: int, eps: float, directions) -> list:
    """Returns the differences of the outputs along each direction: one array per output, of size (directions, output elements).

    The input itself is changed, and restored: functions may reach it in another way than by their arguments.
    """
    import numpy as np

    x = inputs[which]
    original, data = x.detach().clone(), x.data
    kind = "complex128" if x.dtype.is_complex else "float64"
    base = np.ascontiguousarray(original.cpu().numpy().astype(kind)).reshape(-1).view("float64")
    rows = []
    try:
        for direction in directions:
            values = []
            for step in (eps, -eps):
                moved = (base + step * direction).view(kind).reshape(tuple(x.shape))
                data.copy_(_C.tensor(moved, dtype=x.dtype, device=x.device))
                values.append([_as_real_array(o) for o in _outputs(func, inputs)])
            rows.append([(above - below) / (2 * eps) for above, below in zip(*values)])
    finally:
        data.copy_(original)
    return [np.array(row) for row in zip(*rows)] if rows else [np.zeros((0, 0)) for _ in _outputs(func, inputs)]


def _forward(func, inputs, which: int, directions) -> list:
    """The same by forward mode."""
    import numpy as np

    from ..func.forward import jvp  # imports much, for a check that few use

    x = inputs[which].detach()
    tangents = [_from_real(direction, x) for direction in directions]
    rows = [[_as_real_array(t) for t in jvp(_of_input(func, inputs, which), (x,), (tangent,))[1]] for tangent in tangents]
    return [np.array(row) for row in zip(*rows)]


def _backward(output: Tensor, x: Tensor, check_dtype: bool, seeds):
    """The gradients of the seeds, which have the output's real numbers, as an array of size (input elements, seeds)."""
    import numpy as np

    columns = []
    rows = x.numel() * (2 if x.dtype.is_complex else 1)
    for seed in seeds:
        found = None
        if output.requires_grad:
            found = grad(output, [x], _from_real(seed, output), retain_graph=True, allow_unused=True)[0]
        if check_dtype and found is not None and found.dtype != x.dtype:
            raise GradcheckError(f"Gradient has dtype mismatch: expected {x.dtype}, got {found.dtype}")
        columns.append(np.zeros(rows) if found is None else _as_real_array(found))
    return np.array(columns).T.reshape(rows, len(columns))


def _from_real(numbers, like: Tensor) -> Tensor:
    """The inverse of _as_real_array()."""
    values = numbers.astype("float64").view("complex128" if like.dtype.is_complex else "float64")
    return _C.tensor(values.reshape(tuple(like.shape)), dtype=like.dtype, device=like.device)


def _basis(t: Tensor) -> Iterator:
    """The unit vectors of the tensor's real numbers."""
    import numpy as np

    size = t.numel() * (2 if t.dtype.is_complex else 1)
    for i in range(size):
        unit = np.zeros(size)
        unit[i] = 1
        yield unit


def _projection(t: Tensor, seed: int):
    """A positive vector of length 1 with an element for each of the tensor's real numbers, the same in each call."""
    import numpy as np

    vector = np.random.default_rng(seed).random(t.numel() * (2 if t.dtype.is_complex else 1))
    return vector / max(np.linalg.norm(vector), 1e-300)


def _of_input(func, inputs, which: int):
    """The function of one input."""
    return lambda x: tuple(_outputs(func, [*inputs[:which], x, *inputs[which + 1 :]]))


def _compare(what: str, expected, found, atol: float, rtol: float) -> None:
    import numpy as np

    if not np.allclose(found, expected, rtol, atol, equal_nan=True):
        raise GradcheckError(f"{what},\nnumerical:\n{expected}\nanalytical:\n{found}")


def _check_repeated(output: Tensor, x: Tensor, nondet_tol: float) -> None:
    """Compares two backward passes with the same gradient. Sums in another order, as on GPUs, may differ in their last bits."""
    import numpy as np

    seed = _random_like(output).detach()
    passes = [grad(output, [x], seed, retain_graph=True, allow_unused=True)[0] for _ in range(2)]
    if passes[0] is None:
        return
    once, again = map(_as_real_array, passes)
    rounding = 1e-9 * np.abs(once).max(initial=0.0)
    if not np.allclose(once, again, 0, nondet_tol + rounding, equal_nan=True):
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, "
            f"although analytical gradient matches numerical gradient. The tolerance for nondeterminism was {nondet_tol}."
        )


def _check_batched(output: Tensor, x: Tensor, place: str) -> None:
    """Compares the gradients of two passes under vmap with those of two passes."""
    seeds = _C.torch.stack([_random_like(output).detach(), -0.5 * _random_like(output).detach()])
    single = [grad(output, [x], seed, retain_graph=True, allow_unused=True)[0] for seed in seeds]
    if single[0] is None:
        return
    batched = grad(output, [x], seeds, retain_graph=True, is_grads_batched=True)[0]
    _compare(f"gradients computed with vmap differ {place}", *(_as_real_array(t) for t in (_C.torch.stack(single), batched)), 1e-7, 1e-5)


def _check_batched_forward(func, inputs, which: int) -> None:
    """Compares tangents under vmap with those of single calls."""
    from ..func.batching import vmap
    from ..func.forward import jvp

    x, f = inputs[which].detach(), _of_input(func, inputs, which)
    given = _C.torch.stack([_random_like(x).detach(), -0.5 * _random_like(x).detach()])
    single = [jvp(f, (x,), (t,))[1] for t in given]
    batched = vmap(lambda t: jvp(f, (x,), (t,))[1])(given)
    for k, rows in enumerate(zip(*single)):
        expected = _as_real_array(_C.torch.stack(rows))
        _compare(f"tangents of output {k} computed with vmap differ for input {which}", expected, _as_real_array(batched[k]), 1e-7, 1e-5)


def gradcheck(
    func, inputs, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
    nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
    check_batched_grad: bool = False, check_batched_forward_grad: bool = False, check_forward_ad: bool = False,
    check_backward_ad: bool = True, fast_mode: bool = False, masked: bool | None = None,
) -> bool:  # fmt: skip
    """Whether the gradients of func at the (float64) inputs agree with finite differences. Waits for the engine.

    ``fast_mode`` compares v^T J u with random u and v instead of each element of the Jacobian J. Two passes
    may differ by 1e-9 of the largest gradient and ``nondet_tol``.
    ``check_undefined_grad`` has no effect: a pass calls no formula of the engine without a gradient.

    Raises:
        GradcheckError: the gradients disagree, and raise_exception is set.
        ValueError: no input requires grad.
    """
    assert check_forward_ad or check_backward_ad, "Expected at least one of check_forward_ad or check_backward_ad to be True"
    assert check_backward_ad or not check_batched_grad, "Setting check_batched_grad=True requires check_backward_ad to be True"
    assert check_forward_ad or not check_batched_forward_grad, (
        "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
    )
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if any(isinstance(x, SparseTensor) and x.requires_grad for x in inputs):
        return as_sparse_gradcheck(gradcheck)(
            func, inputs, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, masked=bool(masked),
            nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
            check_batched_grad=check_batched_grad, check_batched_forward_grad=check_batched_forward_grad,
            check_forward_ad=check_forward_ad, check_backward_ad=check_backward_ad, fast_mode=fast_mode,
        )  # fmt: skip
    differentiable = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not differentiable:
        raise ValueError("gradcheck expects at least one input tensor to require gradient")
    for i in differentiable:
        if any(stride == 0 and size > 1 for stride, size in zip(inputs[i].stride(), inputs[i].shape)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able to "
                "compute the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck."
            )
    outputs = _outputs(func, inputs)
    try:
        for i in differentiable:
            along = [_projection(inputs[i], 2 * i)] if fast_mode else list(_basis(inputs[i]))
            numerical = _numerical(func, inputs, i, eps, along)
            forward = _forward(func, inputs, i, along) if check_forward_ad else []
            if check_batched_forward_grad:
                _check_batched_forward(func, inputs, i)
            for k, output in enumerate(outputs):
                place = f"for output {k} with respect to input {i}"
                expected, tolerance = numerical[k], atol
                if fast_mode:
                    weights = _projection(output, 2 * k + 1)
                    expected, place = expected @ weights, place + " (projected, fast_mode)"
                    tolerance = atol * along[0].sum() * weights.sum()
                if check_backward_ad:
                    found = _backward(output, inputs[i], check_grad_dtypes, [weights] if fast_mode else _basis(output))
                    found = along[0] @ found if fast_mode else found
                    _compare(f"Jacobian mismatch {place}", expected.reshape(found.shape), found, tolerance, rtol)
                if check_backward_ad and output.requires_grad:
                    _check_repeated(output, inputs[i], nondet_tol)
                if check_batched_grad and output.requires_grad:
                    _check_batched(output, inputs[i], place)
                if forward:
                    found = (forward[k] @ weights if fast_mode else forward[k]).reshape(expected.shape)
                    _compare(f"Jacobian computed with forward mode mismatch {place}", expected, found, tolerance, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _random_like(t: Tensor) -> Tensor:
    """Normally distributed numbers, the same in each call, that require grad. Leaves the session's generator unchanged."""
    import numpy as np

    numbers = np.random.default_rng(1).standard_normal((2, *t.shape))
    values = numbers[0] + 1j * numbers[1] if t.is_complex() else numbers[0]
    return _C.tensor(values, dtype=t.dtype, device=t.device, requires_grad=True)


def gradgradcheck(
    func, inputs, grad_outputs=None, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True, nondet_tol: float = 0.0,
    check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True, fast_mode: bool = False, masked: bool = False,
) -> bool:  # fmt: skip
    """Checks second derivatives by gradcheck of the gradients, by default with fixed pseudorandom grad_outputs. Waits for the engine."""
    assert check_fwd_over_rev or check_rev_over_rev, "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
    assert check_rev_over_rev or not check_undefined_grad, "Setting check_undefined_grad=True requires check_rev_over_rev to be True"
    check_flags("gradgradcheck", gen_non_contig_grad_outputs=gen_non_contig_grad_outputs)  # results do not depend on strides
    options = {
        "eps": eps, "atol": atol, "rtol": rtol, "raise_exception": raise_exception, "nondet_tol": nondet_tol,
        "check_undefined_grad": check_undefined_grad, "check_grad_dtypes": check_grad_dtypes,
        "check_batched_grad": check_batched_grad, "fast_mode": fast_mode, "masked": masked,
        "check_forward_ad": check_fwd_over_rev, "check_backward_ad": check_rev_over_rev,
    }  # fmt: skip
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        raise ValueError("gradcheck expects at least one input tensor to require gradient")
    outputs = _outputs(func, inputs)
    if grad_outputs is None:
        weights = [_random_like(o) for o in outputs]
    else:
        weights = list(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else [grad_outputs]
    leaves = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]

    def first(*values):
        again = [v if not isinstance(v, Tensor) or v.requires_grad or i not in leaves else v.requires_grad_()
                 for i, v in enumerate(values[: len(inputs)])]  # fmt: skip
        results = _outputs(func, again)
        return grad(
            results, [again[i] for i in leaves], list(values[len(inputs) :]), create_graph=True, materialize_grads=True
        )

    return gradcheck(first, (*inputs, *weights), **options)
