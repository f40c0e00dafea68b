"""Functions with ATen's signatures, implemented by torch.nn.functional and torch.linalg."""

from __future__ import annotations

from collections.abc import Callable

from .. import _C
from .._C import Tensor
from .._grad_mode import before_write
from .._integers import repeated
from .._ops import tensor_queries
from .._ops.join import unique
from .._ops.out_variant import exact_out_variant
from . import functional as F  # noqa: N812 - PyTorch's name

_ops = _C.ops


def affine_grid_generator(theta: Tensor, size, align_corners: bool) -> Tensor:
    """functional.affine_grid."""
    return F.affine_grid(theta, list(size), align_corners)


def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride, padding, dilation, transposed: bool, output_padding, groups: int
) -> Tensor:
    """The convolutions of 1 to 3 dimensions, and the transposed ones. ``output_padding`` applies to the transposed ones
    only.
    """
    dims = input.dim() - 2
    if not 1 <= dims <= 3:
        raise RuntimeError(f"convolution: expected an input of 3 to 5 dimensions, got {input.dim()}")
    if transposed:
        run = getattr(F, f"conv_transpose{dims}d")
        return run(input, weight, bias, list(stride), list(padding), list(output_padding), groups, list(dilation))
    return getattr(F, f"conv{dims}d")(input, weight, bias, list(stride), list(padding), list(dilation), groups)


def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scales down, in place, the rows at the indices whose norm exceeds max_norm."""
    rows = unique(indices.reshape(-1))
    input[rows] = _C.torch.embedding(input, rows).renorm(norm_type, 0, max_norm)
    return input


@exact_out_variant
def frobenius_norm(input: Tensor, dim, keepdim: bool = False) -> Tensor:
    """The 2-norm over one or two dimensions, all if ``dim`` is empty."""
    dims = list(repeated(dim, 1))
    if len(dims) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead.")
    return _ops.vector_norm(input, 2.0, dims or None, keepdim)


@exact_out_variant
def nuclear_norm(input: Tensor, dim=None, keepdim: bool = False) -> Tensor:
    """The sum of the singular values, of matrices in two dimensions."""
    from ..linalg import matrix_norm

    if isinstance(dim, bool):
        dim, keepdim = None, dim
    if dim is None:
        if input.dim() != 2:
            raise RuntimeError(f"Expected a tensor with 2 dimensions, but got a tensor with {input.dim()} dimensions instead.")
        dim = (0, 1)
    dim = repeated(dim, 2)
    if len(dim) != 2:
        raise RuntimeError("nuclear norm requires a 'dim' argument of size 2")
    return matrix_norm(input, "nuc", tuple(dim), keepdim)


nuclear_norm.__overloads__ = ("input, keepdim=False, *, out=None", "input, dim, keepdim=False, *, out=None")


def max_pool1d_with_indices(
    input: Tensor, kernel_size, stride=(), padding=0, dilation=1, ceil_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """Returns (functional.max_pool1d, the positions of the maxima)."""
    steps = None if isinstance(stride, (list, tuple)) and not stride else stride
    return F.max_pool1d(input, kernel_size, steps, padding, dilation, ceil_mode, return_indices=True)


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """functional.channel_shuffle."""
    return F.channel_shuffle(input, groups)


def wait(fut):
    """jit.wait: returns its argument, because fork() returns the result instead of a future."""
    return fut


def slice_inverse(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """A view, with the sizes and strides of ``src``, of the storage that ``input`` is a slice of."""
    return tensor_queries.slice_inverse(input, src, dim, start, end, step)


@exact_out_variant
def view_as_complex_copy(input: Tensor) -> Tensor:
    """A copy of view_as_complex."""
    return _C.torch.view_as_complex(input).clone()


@exact_out_variant
def view_as_real_copy(input: Tensor) -> Tensor:
    """A copy of view_as_real."""
    return _C.torch.view_as_real(input).clone()


def _in_place(name: str, function: Callable[..., Tensor], parameters: str) -> Callable[..., Tensor]:
    def run(input: Tensor, *args, **kwargs) -> Tensor:
        return input.copy_(function(before_write(input), *args, **kwargs))

    run.__overloads__ = (parameters,)
    run.__name__ = run.__qualname__ = f"{name}_"
    run.__doc__ = f"functional.{name}, in place."
    return run


celu_ = _in_place("celu", F.celu, "input, alpha=1.0")
selu_ = _in_place("selu", F.selu, "input")
threshold_ = _in_place("threshold", F.threshold, "input, threshold, value")
