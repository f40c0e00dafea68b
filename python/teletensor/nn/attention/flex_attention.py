"""flex_attention: attention with a Python function that modifies the scores, and a mask by blocks.

PyTorch calls these functions with the indices of single scores, vectorised by vmap. Here they are called once, with
tensors of indices that broadcast to the scores, (batch, 1, 1, 1), (1, heads, 1, 1), (1, 1, queries, 1) and (1, 1, 1, keys).
Pointwise functions and indexing of other tensors have the same results in both ways. The first use of a function checks
this for a few scores, which waits for the engine.
"""

from __future__ import annotations

import inspect
import math
from typing import Any, Callable, NamedTuple, TypedDict

from ... import _C
from ..._C import Tensor
from ..._grad_mode import no_grad
from ._block_mask import DEFAULT_BLOCK_SIZE as _DEFAULT_SPARSE_BLOCK_SIZE
from ._block_mask import BlockMask, noop_mask, sliced_mask_error, to_dense, to_ordered

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask", "flex_attention",
    "noop_mask", "or_masks",
]  # fmt: skip


class AuxRequest(NamedTuple):
    """Which additional results flex_attention returns."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """Additional results of flex_attention, (batch, heads, queries); None if not requested.

    ``lse``: the logarithm of the sum of the exponentials of the scores. ``max_scores``: the largest scores.
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class FlexKernelOptions(TypedDict, total=False):
    """Options of PyTorch's kernels, of which the engine has none; their values are not used."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    BACKEND: str


# -- calls of functions of single scores

_checked: set[tuple] = set()  # the functions and sizes that were checked


def _positions(sizes: tuple[int, ...], device) -> list[Tensor]:
    """The indices of the scores, one tensor per dimension, which broadcast to the sizes."""
    shapes = ((-1, 1, 1, 1), (-1, 1, 1), (-1, 1), (-1,))
    return [_C.torch.arange(n, device=device).reshape(shape).expand((1,) * (4 - len(shape)) + (n,) + (1,) * (len(shape) - 1))
            for n, shape in zip(sizes, shapes)]  # fmt: skip


def _call(function: Callable, scores: tuple[Tensor, ...], sizes: tuple[int, ...], device) -> Tensor:
    """The function's results for all scores; ``scores`` is empty for a mask function."""
    result = function(*scores, *_positions(sizes, device))
    if not isinstance(result, Tensor):
        raise TypeError(f"expected {getattr(function, '__name__', function)} to return a tensor, got {type(result).__name__}")
    key = (getattr(function, "__code__", function), tuple(n > 1 for n in sizes))
    try:
        known = key in _checked
    except TypeError:
        known, key = False, None
    result = result.expand(sizes)
    if not known and math.prod(sizes):
        _check(function, scores, sizes, result)
        if key is not None:
            _checked.add(key)
    return result


@no_grad()
def _check(function: Callable, scores: tuple[Tensor, ...], sizes: tuple[int, ...], result: Tensor) -> None:
    """Raises NotImplementedError unless the function returns the same for single scores."""
    for place in {tuple(n - 1 for n in sizes), tuple(n // 2 for n in sizes), (0,) * 4}:
        single = function(*(s[place] for s in scores), *(_C.tensor(i, device=result.device) for i in place))
        expected, actual = float(single), float(result[place])
        if expected != actual and not math.isclose(expected, actual, rel_tol=1e-3, abs_tol=1e-3) and not expected != expected:
            name = getattr(function, "__name__", function)
            raise NotImplementedError(
                f"flex_attention: {name} returns {actual} for score {place} when it is called for all scores at once, but {expected} "
                "when it is called for this score: use pointwise functions and indexing only, not reductions or random numbers"
            )


def _is_score_function(function: Callable) -> bool:
    required = [p for p in inspect.signature(function).parameters.values() if p.default is inspect.Parameter.empty]
    if len(required) not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {len(required)}")
    return len(required) == 5


# -- masks


def or_masks(*mask_mods: Callable) -> Callable:
    """A mask function that is True where any of the given ones is."""
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_zeros((), dtype=_C.bool)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def and_masks(*mask_mods: Callable) -> Callable:
    """A mask function that is True where all given ones are."""
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_ones((), dtype=_C.bool)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def _default_device(device):
    from ... import accelerator

    return device if device is not None else accelerator.current_accelerator() or _C.device("cpu")


def create_mask(mod_fn: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device=None) -> Tensor:  # noqa: N803
    """The mask (B, H, Q_LEN, KV_LEN) of a mask function; of a score function, where it does not return -inf for 0."""
    sizes, device = (B or 1, H or 1, Q_LEN, KV_LEN), _default_device(device)
    if _is_score_function(mod_fn):
        return _C.torch.isneginf(_call(mod_fn, (_C.torch.zeros(sizes, device=device),), sizes, device)).logical_not()
    return _call(mod_fn, (), sizes, device)


def _blocks_of(mask: Tensor, size: tuple[int, int], separate_full_blocks: bool) -> tuple[Tensor, Tensor | None]:
    """(blocks with masked and other elements, blocks without masked elements), or (blocks with elements, None)."""
    padding = [-mask.shape[-1] % size[1], -mask.shape[-2] % size[0]]
    mask = _C.ops.pad(mask.to(_C.int32), [0, padding[0], 0, padding[1]])
    rows, columns = mask.shape[-2] // size[0], mask.shape[-1] // size[1]
    counts = mask.reshape(*mask.shape[:2], rows, size[0], columns, size[1]).sum([-3, -1])
    if not separate_full_blocks:
        return counts > 0, None
    full = counts == size[0] * size[1]
    return (counts > 0) & full.logical_not(), full


def create_block_mask(
    mask_mod: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device=None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE, _compile: bool = False, separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False, dq_kv_order: bool = True,
) -> BlockMask:  # fmt: skip # noqa: N803 - PyTorch's names
    """The BlockMask of a mask function.

    Args:
        mask_mod: receives (batch, head, query, key) and returns whether the score is used.
        B, H: the numbers of batches and heads; None means that the mask is the same for all.
        device: by default a GPU, if the engine has one.
        separate_full_blocks: lists blocks without masked elements separately.
    """
    if _is_score_function(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    if compute_dq_write_order:
        raise NotImplementedError("create_block_mask: compute_dq_write_order describes a kernel that the engine does not have")
    if not isinstance(dq_kv_order, bool):
        raise ValueError("dq_kv_order must be a bool when using create_block_mask")
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    partial, full = _blocks_of(mask, size, separate_full_blocks)
    lists = (*to_ordered(partial), *((None, None) if full is None else to_ordered(full)))
    result = BlockMask.from_kv_blocks(*lists, BLOCK_SIZE=size, mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN))
    result._of_function = mask_mod  # mask_mod alone is the whole mask
    return result


def _scores_used(block_mask: BlockMask, sizes: tuple[int, ...], device) -> Tensor:
    """The mask of all scores: mask_mod in partial blocks, True in full blocks."""
    used = _call(block_mask.mask_mod, (), sizes, device)
    if getattr(block_mask, "_of_function", None) is block_mask.mask_mod:
        return used

    def expanded(num_blocks: Tensor, indices: Tensor) -> Tensor:
        size = block_mask.BLOCK_SIZE
        dense = to_dense(num_blocks, indices, -(-sizes[3] // size[1])).to(_C.bool)
        dense = dense.repeat_interleave(size[0], -2).repeat_interleave(size[1], -1)
        return dense[..., : sizes[2], : sizes[3]]

    used = used & expanded(block_mask.kv_num_blocks, block_mask.kv_indices)
    if block_mask.full_kv_indices is not None:
        used = used | expanded(block_mask.full_kv_num_blocks, block_mask.full_kv_indices)
    return used


# -- attention


def _validate(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    if not query.device == key.device == value.device:
        raise ValueError(
            f"Expected query, key, and value to have the same device type, but got {query.device}, {key.device}, {value.device}"
        )
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension "
            f"but got E={query.shape[-1]} and E={key.shape[-1]}."
        )
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    heads, kv_heads = query.shape[1], key.shape[1]
    if not enable_gqa and heads != kv_heads:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={kv_heads}. "
            "Try setting enable_gqa=True for GQA."
        )
    if heads % kv_heads:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={kv_heads}."
        )
    if query.shape[0] != key.shape[0] and (block_mask is None or block_mask.kv_num_blocks.shape[0] != query.shape[0] or key.shape[0] > 1):
        raise ValueError(
            f"Expect query and key/value to have the same batch size, but got Bq={query.shape[0]} and Bkv={key.shape[0]}."
        )
    if block_mask is not None:
        _validate_mask(query, key, block_mask)


def _validate_mask(query: Tensor, key: Tensor, block_mask: BlockMask) -> None:
    if block_mask.mask_mod is sliced_mask_error:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    lengths, expected = (query.shape[-2], key.shape[-2]), tuple(block_mask.shape[-2:])
    if lengths != expected:
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={lengths[0]} and kv_len={lengths[1]}."
        )
    if query.device != block_mask.kv_num_blocks.device:
        raise RuntimeError(
            f"Expect q/k/v and block_mask to be on the same device but got {query.device} and {block_mask.kv_num_blocks.device}."
        )


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Callable | None = None, block_mask: BlockMask | None = None,
    scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False, kernel_options: FlexKernelOptions | None = None,
    *, return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """softmax(score_mod(query key^T scale)) value, of the scores that block_mask uses; 0 for a query without used scores.

    Without score_mod and additional results it is the engine's fused attention; else all scores are stored at once. It is
    differentiable on CPUs, too.

    Args:
        query: (batch, heads, queries, features).
        key, value: (batch, heads, keys, features); fewer heads with ``enable_gqa``.
        score_mod: receives (score, batch, head, query, key) and returns the changed score.
        scale: by default 1 / sqrt(features).
        return_lse: also returns AuxOutput.lse; deprecated.
        kernel_options: has no effect.
        return_aux: which additional results to return, as the AuxOutput in (result, AuxOutput).
    """
    _validate(query, key, value, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use return_aux=AuxRequest(lse=True) instead."
        )
    batch, heads, groups = query.shape[0], query.shape[1], query.shape[1] // key.shape[1]
    key, value = (t.repeat_interleave(groups, 1) if groups > 1 else t for t in (key, value))
    key, value = (t.expand(batch, *t.shape[1:]) for t in (key, value))
    sizes = (batch, heads, query.shape[2], key.shape[2])
    wanted = return_aux or AuxRequest(lse=return_lse)
    used = None if block_mask is None else _scores_used(block_mask, sizes, query.device)
    if score_mod is None and return_aux is None and not return_lse and query.dtype is key.dtype is value.dtype:
        return _C.ops.attention(query, key, value, used, False, scale=scale)
    dtype = query.dtype if query.dtype is _C.float64 else _C.float32
    scores = query.to(dtype) @ key.to(dtype).transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if score_mod is not None:
        scores = _call(score_mod, (scores,), sizes, query.device).to(dtype)
    if used is not None:
        scores = scores.masked_fill(used.logical_not(), -math.inf)
    unused = (scores == -math.inf).all(-1, True)
    weights = scores.masked_fill(unused, 0.0).softmax(-1).masked_fill(unused, 0.0)
    result = weights.to(query.dtype) @ value.to(query.dtype)
    if return_aux is None and not return_lse:
        return result
    lse = scores.masked_fill(unused, 0.0).logsumexp(-1).masked_fill(unused.squeeze(-1), -math.inf) if wanted.lse else None
    return (result, lse) if return_lse else (result, AuxOutput(lse, scores.amax(-1) if wanted.max_scores else None))
