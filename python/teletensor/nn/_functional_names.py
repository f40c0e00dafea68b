"""Names of torch.nn.functional that belong to TorchScript or have fixed return types."""

from __future__ import annotations

import enum
import math
import warnings
from typing import TYPE_CHECKING, Any, Callable

from .. import _C
from .._C import Tensor
from .._integers import is_int
from . import pooling
from .dot_product_attention import _check_dimensions
from .modules.utils import _list_with_default, _pair, _single, _triple  # noqa: F401 - programs import them from functional

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}
reproducibility_notes: dict[str, str] = {}
sparse_support_notes: dict[str, str] = {}
tf32_notes: dict[str, str] = {}
_ = TYPE_CHECKING  # PyTorch exports it


class _BroadcastingList:
    """A type in annotations: a number or a list of numbers."""

    def __getitem__(self, types: Any) -> None:
        """Returns None, as PyTorch does."""


BroadcastingList1, BroadcastingList2, BroadcastingList3 = _BroadcastingList(), _BroadcastingList(), _BroadcastingList()


class ScalingType(enum.Enum):
    """Which elements of a matrix share a scale."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.Enum):
    """The order of scales in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1
    SWIZZLE_32_8 = 2


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """Raises AssertionError unless an argument is an int or has two elements."""
    if not (is_int(arg) or len(arg) == 2):
        raise AssertionError(message.format(arg_name))


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Callable, if_false: Callable, module_name: str | None, func_name: str | None
) -> Callable:
    """A function that calls one of two functions, by the value of one of its arguments."""

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        chosen = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    dispatch.__doc__ = if_true.__doc__ or if_false.__doc__
    dispatch.__module__ = module_name or dispatch.__module__
    dispatch.__name__ = func_name or dispatch.__name__
    return dispatch


_FRACTIONAL = "input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None"
_WINDOWS = "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False"
_ADAPTIVE = "input, output_size, return_indices=False"
_POOL_PARAMETERS = {
    "fractional_max_pool2d": _FRACTIONAL, "fractional_max_pool3d": _FRACTIONAL, "adaptive_max_pool1d": _ADAPTIVE,
    "adaptive_max_pool3d": _ADAPTIVE, "max_pool1d": _WINDOWS, "max_pool3d": _WINDOWS,
}  # fmt: skip


def _with_indices(name: str) -> Callable:
    def pool(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        positions = {"fractional_max_pool2d": 4, "fractional_max_pool3d": 4, "adaptive_max_pool1d": 2, "adaptive_max_pool3d": 2}
        place = positions.get(name, 6)
        if len(args) > place:
            args = (*args[:place], True, *args[place + 1 :])
            kwargs.pop("return_indices", None)
        else:
            kwargs["return_indices"] = True
        return getattr(pooling, name)(*args, **kwargs)

    pool.__overloads__ = (_POOL_PARAMETERS[name],)  # for tools that read signatures
    pool.__name__ = pool.__qualname__ = f"{name}_with_indices"
    pool.__doc__ = f"{name} with return_indices=True, whatever is passed for it."
    return pool


for _name in (
    "adaptive_max_pool1d", "adaptive_max_pool3d", "fractional_max_pool2d", "fractional_max_pool3d", "max_pool1d", "max_pool3d",
):  # fmt: skip
    globals()[f"{_name}_with_indices"] = _with_indices(_name)


def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: _C.dtype | None = None
) -> Tensor:
    """Products of groups of matrices. Waits for ``offs``.

    Args:
        mat_a, mat_b: (G, M, K) and (G, K, N); with ``offs`` one of them, or both, have two dimensions, of which the rows
            of mat_a, the columns of mat_b, or the common dimension K of both are divided into groups.
        offs: the end of each group; of int32. The result has zeros in rows or columns after the last group.
    """
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if mat_a.dim() not in (2, 3) or mat_b.dim() not in (2, 3):
        raise RuntimeError("mat_a and mat_b have to be 2 or 3 dimensional")
    if (offs is None) != (mat_a.dim() == mat_b.dim() == 3):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, and no offset if both matrices are 3d")
    dtype = mat_a.dtype if out_dtype is None else out_dtype
    if offs is None:
        return _C.torch.bmm(mat_a, mat_b).to(dtype)
    ends = offs.tolist()
    starts = [0, *ends[:-1]]
    if mat_a.dim() == mat_b.dim():  # groups of the common dimension
        return _C.torch.stack([mat_a[:, i:j] @ mat_b[i:j] for i, j in zip(starts, ends)]).to(dtype)
    if mat_a.dim() == 2:
        parts, whole = [mat_a[i:j] @ mat_b[g] for g, (i, j) in enumerate(zip(starts, ends))], mat_a.shape[0]
        rest = mat_a.new_zeros(whole - ends[-1], mat_b.shape[-1])
        return _C.torch.cat([*parts, rest], 0).to(dtype)
    parts, whole = [mat_a[g] @ mat_b[:, i:j] for g, (i, j) in enumerate(zip(starts, ends))], mat_b.shape[1]
    return _C.torch.cat([*parts, mat_a.new_zeros(mat_a.shape[1], whole - ends[-1])], 1).to(dtype)


def _only(values: Any, name: str) -> Any:
    """The value, or the only one of a list."""
    if isinstance(values, (list, tuple)):
        if len(values) != 1:
            raise NotImplementedError(f"[scaled_mm] expected one {name}, got {len(values)}: scales of scales are not implemented")
        return values[0]
    return values


_DEEPSEEK = {
    (ScalingType.BlockWise1x128, ScalingType.BlockWise1x128), (ScalingType.BlockWise1x128, ScalingType.BlockWise128x128),
    (ScalingType.BlockWise128x128, ScalingType.BlockWise1x128),
}  # fmt: skip


def _check_shape(op: str, name: str, scale: Tensor, *shapes: tuple[int, ...]) -> None:
    if tuple(scale.shape) not in shapes:
        raise ValueError(f"[{op}] expected {name} of shape {' or '.join(map(str, shapes))}, got {tuple(scale.shape)}")


def _lines_scales(op: str, name: str, scale: Tensor, recipe: ScalingType, lines: int, inner: int) -> Tensor:
    """Scales of blocks of 128 as (lines or blocks of lines, blocks of the common dimension)."""
    blocks = -(-inner // 128)
    if scale.dtype is not _C.float32:
        raise ValueError(f"[{op}] expected {name} of float32, got {scale.dtype}")
    if recipe is ScalingType.BlockWise1x128:
        _check_shape(op, name, scale, (lines, blocks))
        return scale
    groups = -(-lines // 128)
    _check_shape(op, name, scale, (-(-blocks // 4) * 4, groups), (blocks, groups))
    return scale[:blocks].t()


def _powers(op: str, name: str, scale: Tensor, swizzle: SwizzleType, lines: int, inner: int) -> Tensor:
    """The powers of two whose exponents are bytes (float8_e8m0fnu): (lines, blocks of 32 of the common dimension), float32."""
    if scale.dtype is not _C.uint8:
        raise ValueError(f"[{op}] expected {name} as the bytes of float8_e8m0fnu (uint8), got {scale.dtype}")
    blocks = -(-inner // 32)
    if swizzle is SwizzleType.NO_SWIZZLE:
        _check_shape(op, name, scale, (lines, blocks))
    elif swizzle is SwizzleType.SWIZZLE_32_4_4:  # tiles of 128x4, each stored as 32 rows of 4x4
        rows, columns = -(-lines // 128), -(-blocks // 4)
        if scale.numel() != rows * columns * 512:
            raise ValueError(
                f"For Blockwise scaling with SWIZZLE_32_4_4 {name} should have {rows * columns * 512} elements, got: {scale.numel()}"
            )
        tiles = scale.reshape(rows, columns, 32, 4, 4).permute(0, 3, 2, 1, 4)
        scale = tiles.reshape(rows * 128, columns * 4)[:lines, :blocks]
    else:
        raise NotImplementedError(f"[{op}] expected SwizzleType.NO_SWIZZLE or SWIZZLE_32_4_4, got {swizzle}")
    bits = scale.to(_C.int32)
    powers = _C.torch.where(bits == 0, 1 << 22, bits << 23).view(_C.float32)  # 2^-127 has no implicit bit
    return _C.torch.where(bits == 255, float("nan"), powers)


def _is_any(values: Any, recipe: Any) -> bool:
    return any(value is recipe for value in values)


def _multiplied_blocks(
    mat_a: Tensor, mat_b: Tensor, rows: Tensor, columns: Tensor, block: int, bias: Tensor | None, dtype: _C.dtype
) -> Tensor:
    """The product with scales of blocks on a GPU: computed in float32 from the scaled matrices."""
    (m, inner), n = mat_a.shape, mat_b.shape[1]

    def scaled(matrix: Tensor, scales: Tensor, lines: int) -> Tensor:
        whole = scales.repeat_interleave(block, 1)[:, :inner]
        whole = whole if scales.shape[0] == lines else whole.repeat_interleave(128, 0)[:lines]
        return matrix.to(_C.float32) * whole

    product = scaled(mat_a, rows, m) @ scaled(mat_b.t(), columns, n).t()
    return (product if bias is None else product + bias).to(dtype)


def scaled_mm(
    mat_a: Tensor, mat_b: Tensor, scale_a: Any, scale_recipe_a: Any, scale_b: Any, scale_recipe_b: Any, swizzle_a: Any = None,
    swizzle_b: Any = None, bias: Tensor | None = None, output_dtype: _C.dtype | None = _C.bfloat16, contraction_dim: Any = (),
    use_fast_accum: bool = False,
) -> Tensor:  # fmt: skip
    """The product of two matrices of 8-bit floats times their scales, plus bias.

    Args:
        scale_a, scale_b: one number per matrix (TensorWise); one per row of mat_a and per column of mat_b (RowWise); of
            blocks of the common dimension K: (M, ceil(K / 128)) and (N, ceil(K / 128)) for BlockWise1x128, transposed and
            per 128 rows or columns for BlockWise128x128, with the first dimension a multiple of 4 or not; bytes of
            float8_e8m0fnu (uint8) for BlockWise1x32.
        scale_recipe_a, scale_recipe_b: the ScalingType of the scales.
        swizzle_a, swizzle_b: the order of the scales of BlockWise1x32: SwizzleType.SWIZZLE_32_4_4 or NO_SWIZZLE.
        output_dtype: the result's dtype; None is that of mat_a.
        use_fast_accum: permits sums of lower precision on GPUs.

    Raises:
        NotImplementedError: scales of 4-bit floats (BlockWise1x16), scales of scales, or dimensions to contract.
        ValueError: the recipes do not belong together, or the scales have another size or dtype.
    """
    recipes = tuple(_only(recipe, "recipe") for recipe in (scale_recipe_a, scale_recipe_b))
    swizzles = [
        SwizzleType.NO_SWIZZLE if s is None else _only(s, name) for name, s in (("swizzle_a", swizzle_a), ("swizzle_b", swizzle_b))
    ]
    if len(contraction_dim):
        raise NotImplementedError(f"[scaled_mm] expected no contraction_dim, got {contraction_dim}")
    if _is_any(recipes, ScalingType.BlockWise1x16):
        raise NotImplementedError("[scaled_mm] BlockWise1x16 scales belong to 4-bit floats, a dtype that the engine does not have")
    if mat_a.dim() != 2 or mat_b.dim() != 2:
        raise RuntimeError(f"[scaled_mm] expected two matrices, got {tuple(mat_a.shape)} and {tuple(mat_b.shape)}")
    a, b = _only(scale_a, "scale_a"), _only(scale_b, "scale_b")
    dtype = output_dtype or mat_a.dtype
    (m, inner), n = mat_a.shape, mat_b.shape[1]
    both_small = all(recipe is ScalingType.BlockWise1x32 for recipe in recipes)
    if not both_small and any(swizzle is not SwizzleType.NO_SWIZZLE for swizzle in swizzles):
        raise NotImplementedError(f"[scaled_mm] expected swizzles of None or NO_SWIZZLE for {recipes}, got {swizzles}")
    if both_small:
        a = _powers("scaled_mm", "scale_a", a, swizzles[0], m, inner)
        b = _powers("scaled_mm", "scale_b", b, swizzles[1], n, inner)
    elif recipes in _DEEPSEEK:
        a = _lines_scales("scaled_mm", "scale_a", a, recipes[0], m, inner)
        b = _lines_scales("scaled_mm", "scale_b", b, recipes[1], n, inner)
    elif recipes[0] is recipes[1] is ScalingType.RowWise:
        a, b = a.reshape(-1, 1), b.reshape(-1, 1)
    elif not recipes[0] is recipes[1] is ScalingType.TensorWise:
        raise ValueError(f"Invalid scaling configuration for _scaled_mm_v2: unsupported recipe(s). Got {recipes}")
    if not _is_any(recipes, ScalingType.TensorWise):
        if mat_a.is_cuda and not _is_any(recipes, ScalingType.RowWise):
            if mat_b.shape[0] != inner:
                raise RuntimeError(f"mat_a and mat_b shapes cannot be multiplied ({m}x{inner} and {mat_b.shape[0]}x{n})")
            return _multiplied_blocks(mat_a, mat_b, a, b, 32 if both_small else 128, bias, dtype)
        b = b.t()
    return _C.torch._scaled_mm(mat_a, mat_b, a, b, bias=bias, out_dtype=dtype, use_fast_accum=use_fast_accum)


def scaled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, scale_a: Any, scale_recipe_a: Any, scale_b: Any, scale_recipe_b: Any,
    swizzle_a: Any = None, swizzle_b: Any = None, contraction_dim: Any = (), use_fast_accum: bool = False, *, beta: float = 1.0,
    alpha: float = 1.0,
) -> Tensor:  # fmt: skip
    """beta * input + alpha * scaled_mm(mat1, mat2, ...), computed in float32; the result has the input's dtype. See scaled_mm."""
    product = scaled_mm(
        mat1, mat2, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a, swizzle_b, None, _C.float32, contraction_dim,
        use_fast_accum,
    )  # fmt: skip
    added = alpha * product if beta == 0 else beta * input.to(_C.float32) + alpha * product
    return added.expand(product.shape).to(input.dtype)


def scaled_addmm_(
    input: Tensor, mat1: Tensor, mat2: Tensor, scale_a: Any, scale_recipe_a: Any, scale_b: Any, scale_recipe_b: Any,
    swizzle_a: Any = None, swizzle_b: Any = None, contraction_dim: Any = (), use_fast_accum: bool = False, *, beta: float = 1.0,
    alpha: float = 1.0,
) -> Tensor:  # fmt: skip
    """scaled_addmm() in place of the input."""
    return input.copy_(scaled_addmm(
        input, mat1, mat2, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a, swizzle_b, contraction_dim, use_fast_accum,
        beta=beta, alpha=alpha,
    ))  # fmt: skip


def scaled_grouped_mm(
    mat_a: Tensor, mat_b: Tensor, scale_a: Any, scale_recipe_a: Any, scale_b: Any, scale_recipe_b: Any, swizzle_a: Any = None,
    swizzle_b: Any = None, bias: Tensor | None = None, offs: Tensor | None = None, output_dtype: _C.dtype | None = _C.bfloat16,
    contraction_dim: Any = (), use_fast_accum: bool = False,
) -> Tensor:  # fmt: skip
    """grouped_mm() of matrices of 8-bit floats with scales per row of mat_a and column of mat_b, or of blocks. Waits for ``offs``.

    The matrices are converted to float32, so that use_fast_accum has no effect on the sums.

    Args:
        scale_a: RowWise: (M,) for a mat_a of two dimensions, else (G, M). Of blocks: as of scaled_mm(), with a first dimension
            G more for a mat_a of three dimensions; blocks of 128 rows are those of the whole mat_a.
        scale_b: the same with N in place of M.

    Raises:
        NotImplementedError: scales of 4-bit floats or of whole matrices, swizzled scales of a matrix of two dimensions, dimensions
            to contract, or two matrices of two dimensions.
        ValueError: the recipes do not belong together, or scales of blocks have another size or dtype.
    """
    recipes = tuple(_only(recipe, "recipe") for recipe in (scale_recipe_a, scale_recipe_b))
    of_blocks = recipes in _DEEPSEEK or recipes[0] is recipes[1] is ScalingType.BlockWise1x32
    if _is_any(recipes, ScalingType.TensorWise) or _is_any(recipes, ScalingType.BlockWise1x16):
        raise NotImplementedError(f"[scaled_grouped_mm] expected ScalingType.RowWise or scales of blocks of 8-bit floats, got {recipes}")
    if not of_blocks and not recipes[0] is recipes[1] is ScalingType.RowWise:
        raise ValueError(f"[scaled_grouped_mm] expected scales that belong together, got {recipes}")
    if len(contraction_dim) or (mat_a.dim() == 2 and mat_b.dim() == 2):
        raise NotImplementedError("[scaled_grouped_mm] groups of the common dimension, and contraction_dim, are not supported")
    if use_fast_accum not in (False, True):
        raise TypeError(f"[scaled_grouped_mm] expected a bool as use_fast_accum, got {use_fast_accum!r}")
    wide = []
    for name, matrix, scale, recipe, swizzle in (
        ("a", mat_a, scale_a, recipes[0], swizzle_a), ("b", mat_b.transpose(-2, -1), scale_b, recipes[1], swizzle_b),
    ):  # fmt: skip
        scale = _only(scale, f"scale_{name}")
        order = SwizzleType.NO_SWIZZLE if swizzle is None else _only(swizzle, f"swizzle_{name}")
        if order is not SwizzleType.NO_SWIZZLE and (matrix.dim() == 2 or recipe is not ScalingType.BlockWise1x32):
            raise NotImplementedError(f"[scaled_grouped_mm] expected swizzle_{name} to be None or NO_SWIZZLE, got {swizzle}")
        if of_blocks:
            factors = _scales_of_groups(f"scale_{name}", scale, recipe, order, matrix)
        elif tuple(scale.shape) != tuple(matrix.shape[:-1]):
            raise RuntimeError(
                f"[scaled_grouped_mm] expected scale_{name} of shape {tuple(matrix.shape[:-1])}, got {tuple(scale.shape)}"
            )
        else:
            factors = scale.unsqueeze(-1)
        wide.append(matrix.to(_C.float32) * factors)
    return grouped_mm(wide[0], wide[1].transpose(-2, -1), offs=offs, bias=bias, out_dtype=output_dtype or mat_a.dtype)


def _scales_of_groups(name: str, scale: Tensor, recipe: ScalingType, swizzle: SwizzleType, matrix: Tensor) -> Tensor:
    """The scale of each element of a matrix (lines, common dimension), or of several (G, lines, common dimension)."""
    if matrix.dim() == 3:
        if scale.dim() == 0 or scale.shape[0] != matrix.shape[0]:
            raise ValueError(f"[scaled_grouped_mm] expected {name} of {matrix.shape[0]} matrices, got {tuple(scale.shape)}")
        return _C.torch.stack([_scales_of_groups(name, s, recipe, swizzle, m) for s, m in zip(scale, matrix)])
    lines, inner = matrix.shape
    if recipe is ScalingType.BlockWise1x32:
        return _powers("scaled_grouped_mm", name, scale, swizzle, lines, inner).repeat_interleave(32, 1)[:, :inner]
    whole = _lines_scales("scaled_grouped_mm", name, scale, recipe, lines, inner).repeat_interleave(128, 1)[:, :inner]
    return whole if recipe is ScalingType.BlockWise1x128 else whole.repeat_interleave(128, 0)[:lines]


def _canonical_mask(
    mask: Tensor | None, mask_name: str, other_type: _C.dtype | None, other_name: str, target_type: _C.dtype, check_other: bool = True
) -> Tensor | None:
    """An additive mask for a bool mask (True: not attended). This and the functions below: for attention layers of programs."""
    if mask is None:
        return None
    if mask.dtype != _C.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.", stacklevel=2
        )
    return mask if mask.is_floating_point() else _C.torch.zeros_like(mask, dtype=target_type).masked_fill_(mask, -math.inf)


def _none_or_dtype(input: Tensor | None) -> _C.dtype | None:
    """The dtype of a tensor."""
    if input is not None and not isinstance(input, Tensor):
        raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")
    return None if input is None else input.dtype


def _in_projection(
    q: Tensor, k: Tensor, v: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor,
    b_q: Tensor | None = None, b_k: Tensor | None = None, b_v: Tensor | None = None,
) -> tuple:  # fmt: skip
    """Query, key and value, each projected by its weight, and its bias if there is one."""
    for name, t, w in (("query", q, w_q), ("key", k, w_k), ("value", v, w_v)):
        if w.shape != (q.shape[-1], t.shape[-1]):
            raise AssertionError(f"expecting {name} weights shape of {(q.shape[-1], t.shape[-1])}, but got {w.shape}")
    return tuple(_C.functional.linear(t, w, b) for t, w, b in ((q, w_q, b_q), (k, w_k, b_k), (v, w_v, b_v)))


def _in_projection_packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None) -> tuple:
    """Query, key and value, projected by thirds of a weight and a bias."""
    return _in_projection(q, k, v, *w.chunk(3), *(() if b is None else b.chunk(3)))


def _mha_shape_check(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, num_heads: int
) -> bool:
    """Whether the inputs of attention have a batch dimension. Raises AssertionError if their dimensions do not fit."""
    _check_dimensions(query, key, value, key_padding_mask, attn_mask)
    expected = (num_heads, query.shape[0], key.shape[0])
    if query.dim() == 2 and attn_mask is not None and attn_mask.dim() == 3 and attn_mask.shape != expected:
        raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return query.dim() == 3
