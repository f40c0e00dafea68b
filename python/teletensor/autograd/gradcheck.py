"""Checks of gradients against central finite differences in float64.

A complex number counts as two real numbers: each part of an input is varied, and each part of an output is compared.
By PyTorch's convention, the gradient of a real L with respect to z = x + i y is dL/dx + i dL/dy. A backward pass with
gradient v of an output o therefore differentiates Re(conj(v) o).
"""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .._options import check_flags
from .._sparse.invariants import as_sparse_gradcheck
from .._sparse.tensor import SparseTensor
from .gradients import grad


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


def _numerical(func, inputs, which: int, eps: float):
    """Returns d outputs / d inputs[which]: one array per output, of size (input elements, output elements)."""
    import numpy as np

    is_complex = inputs[which].dtype.is_complex
    base = inputs[which].detach().cpu().numpy().astype("complex128" if is_complex else "float64")
    shape, base = base.shape, np.ascontiguousarray(base).ravel().view("float64")
    changed = []
    for i in range(base.size):
        for sign in (1, -1):
            moved = base.copy()
            moved[i] += sign * eps
            changed.append((moved.view("complex128") if is_complex else moved).reshape(shape))
    values = []
    for moved in changed:
        replaced = list(inputs)
        replaced[which] = _C.tensor(moved, dtype=inputs[which].dtype, device=inputs[which].device)
        with_values = [_as_real_array(o) for o in _outputs(func, replaced)]
        values.append(with_values)
    count = len(_outputs(func, inputs))
    return [
        np.array([(values[2 * i][k] - values[2 * i + 1][k]) / (2 * eps) for i in range(base.size)]) for k in range(count)
    ]


def gradcheck(
    func, inputs, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
    nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
    check_batched_grad: bool = False, check_batched_forward_grad: bool = False, check_forward_ad: bool = False,
    check_backward_ad: bool = True, fast_mode: bool = False, masked: bool | None = None,
) -> bool:  # fmt: skip
    """Whether the gradients of func at the (float64) inputs agree with finite differences. Waits for the engine.

    Raises:
        GradcheckError: the gradients disagree, and raise_exception is set.
        ValueError: no input requires grad.
    """
    import numpy as np

    if check_forward_ad or not check_backward_ad or check_batched_grad or check_batched_forward_grad:
        raise NotImplementedError("gradcheck supports only unbatched backward gradients")
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if any(isinstance(x, SparseTensor) and x.requires_grad for x in inputs):
        return as_sparse_gradcheck(gradcheck)(
            func, inputs, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, masked=bool(masked),
            nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes, fast_mode=fast_mode,
        )  # fmt: skip
    differentiable = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not differentiable:
        raise ValueError("gradcheck expects at least one input tensor to require gradient")
    outputs = _outputs(func, inputs)
    for i in differentiable:
        numerical = _numerical(func, inputs, i, eps)
        for k, output in enumerate(outputs):
            flat = output.reshape(-1)
            columns: list = []
            rows = inputs[i].numel() * (2 if inputs[i].dtype.is_complex else 1)
            units = (1.0, 1.0j) if output.dtype.is_complex else (1.0,)
            for j, unit in ((j, unit) for j in range(output.numel()) for unit in units):
                found = None
                if output.requires_grad:
                    seed = _C.tensor(unit, dtype=output.dtype, device=output.device)
                    found = grad(flat[j], [inputs[i]], seed, retain_graph=True, allow_unused=True)[0]
                columns.append(np.zeros(rows) if found is None else _as_real_array(found))
            analytical = np.array(columns).T.reshape(rows, output.numel() * len(units))
            expected = numerical[k].reshape(analytical.shape)
            if not np.allclose(analytical, expected, rtol, atol, equal_nan=True):
                if not raise_exception:
                    return False
                raise GradcheckError(
                    f"Jacobian mismatch for output {k} with respect to input {i},\nnumerical:\n{expected}\nanalytical:\n{analytical}"
                )
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
    if check_fwd_over_rev or not check_rev_over_rev:
        raise NotImplementedError("[gradgradcheck] expected check_rev_over_rev only: forward mode over reverse mode is not checked")
    check_flags("gradgradcheck", gen_non_contig_grad_outputs=gen_non_contig_grad_outputs)  # results do not depend on strides
    options = {
        "eps": eps, "atol": atol, "rtol": rtol, "raise_exception": raise_exception, "nondet_tol": nondet_tol,
        "check_undefined_grad": check_undefined_grad, "check_grad_dtypes": check_grad_dtypes,
        "check_batched_grad": check_batched_grad, "fast_mode": fast_mode, "masked": masked,
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
