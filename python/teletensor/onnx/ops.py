"""torch.onnx.ops: operators of ONNX as functions, which compute in other programs and are ONNX's nodes after an export."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._C import Tensor
from . import _onnx_functions as functions
from . import _symbolic_nodes as nodes
from ._dtypes import dtype_of, elem_type

__all__ = ["aten_decompositions", "attention", "rotary_embedding", "symbolic", "symbolic_multi_out"]


def aten_decompositions() -> dict[Any, Callable]:
    """The functions of PyTorch's operators that compute ONNX's, by overload."""
    return functions.decompositions()


def _number(dtype: Any) -> int:
    number = dtype if isinstance(dtype, int) else elem_type(dtype)
    if dtype_of(number) is None:
        raise RuntimeError(f"[onnx.ops.symbolic] {number} is invalid as an ONNX data type")
    return number


def symbolic(
    domain_op: str, /, inputs: Sequence[Tensor | None], attrs: dict[str, Any] | None = None, *, dtype: Any, shape: Sequence[int],
    version: int | None = None, metadata_props: dict[str, str] | None = None,
) -> Tensor:  # fmt: skip
    """A node of any ONNX operator. Outside of an export, its result is zeros.

    Args:
        domain_op: "domain::Name", or "Name" of ONNX's own domain.
        inputs: of the node; None is left out.
        attrs: numbers, strings and lists of them.
        dtype, shape: of the result.
        version: of the domain's operators.
        metadata_props: of the node.
    """
    options = nodes.encoded(domain_op, attrs or {}, version, metadata_props or {})
    return nodes.single()(list(inputs), options.pop("op_type"), _number(dtype), shape=list(shape), **options)


def symbolic_multi_out(
    domain_op: str, /, inputs: Sequence[Tensor | None], attrs: dict[str, Any] | None = None, *, dtypes: Sequence[Any],
    shapes: Sequence[Sequence[int]], version: int | None = None, metadata_props: dict[str, str] | None = None,
) -> Sequence[Tensor]:  # fmt: skip
    """symbolic() of an operator with several results; `dtypes` and `shapes` have an entry for each."""
    if len(dtypes) != len(shapes):
        raise RuntimeError(f"Number of shapes ({len(shapes)}) must match number of dtypes ({len(dtypes)})")
    options = nodes.encoded(domain_op, attrs or {}, version, metadata_props or {})
    flat = [n for s in shapes for n in s]
    return nodes.several()(
        list(inputs),
        options.pop("op_type"),
        [_number(d) for d in dtypes],
        ranks=[len(s) for s in shapes],
        shape=flat,
        **options,
    )


def rotary_embedding(
    X: Tensor, cos_cache: Tensor, sin_cache: Tensor, position_ids: Tensor | None = None, *, interleaved: bool = False,  # noqa: N803
    num_heads: int = 0, rotary_embedding_dim: int = 0,
) -> Tensor:  # fmt: skip
    """RotaryEmbedding of opset 23.

    Args:
        X: (batch, heads, length, size) or (batch, length, heads * size).
        cos_cache, sin_cache: (positions, size / 2) with position_ids, else (batch, length, size / 2).
        position_ids: (batch, length).
        interleaved: rotate pairs of neighbours instead of halves.
        num_heads: required for three dimensions.
        rotary_embedding_dim: the first elements that are rotated; all if 0.
    """
    operator = functions.operators()["RotaryEmbedding"]
    return operator(
        X,
        cos_cache,
        sin_cache,
        position_ids,
        interleaved=interleaved,
        num_heads=num_heads,
        rotary_embedding_dim=rotary_embedding_dim,
    )


def attention(
    Q: Tensor, K: Tensor, V: Tensor, attn_mask: Tensor | None = None, past_key: Tensor | None = None, past_value: Tensor | None = None, *,  # noqa: N803
    is_causal: bool = False, kv_num_heads: int = 0, q_num_heads: int = 0, qk_matmul_output_mode: int = 0, scale: float | None = None,
    softcap: float = 0.0, softmax_precision: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Attention of opset 23: the result, the keys and values with those of the past, and the products of queries and keys.

    Args:
        Q, K, V: (batch, heads, length, size), or (batch, length, heads * size) with q_num_heads and kv_num_heads.
        attn_mask: booleans (True takes part) or numbers that are added; broadcast to (batch, heads, length, keys).
        past_key, past_value: earlier keys and values.
        qk_matmul_output_mode: the fourth result: 0 the products, 1 with the mask, 2 after softcap, 3 after softmax.
        softmax_precision: ONNX's number of the dtype of softmax.
    """
    operator = functions.operators()["Attention"]
    return operator(
        Q, K, V, attn_mask, past_key, past_value, is_causal=is_causal, kv_num_heads=kv_num_heads, q_num_heads=q_num_heads,
        qk_matmul_output_mode=qk_matmul_output_mode, scale=scale, softcap=softcap, softmax_precision=softmax_precision,
    )  # fmt: skip
