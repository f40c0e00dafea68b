"""Nodes that the program asks for by name: torch.onnx.ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._builder import Builder, Value
from .._dtypes import dtype_of
from .._registry import Untranslatable, translates
from .._symbolic_nodes import decoded


def _node(
    b: Builder,
    inputs: Sequence[Value | None],
    op_type: str,
    count: int,
    dtypes: Any,
    shapes: Any,
    options: dict[str, Any],
) -> Any:
    domain = options.get("domain", "")
    domain = "" if domain == "ai.onnx" else domain
    version = options.get("version")
    known = b.shared.domains
    if domain == "" and version is not None and version > b.opset:
        raise Untranslatable(f"{op_type} of opset {version}, in a model of opset {b.opset}")
    if domain and known.setdefault(domain, version or 1) != (version or known[domain]):
        raise Untranslatable(f"the versions {known[domain]} and {version} of the domain {domain}")
    b.metadata |= dict(zip(options["metadata_props_keys"], options["metadata_props_values"]))
    attributes = decoded(options)
    return b.op(op_type, *inputs, domain=domain, outputs=count, dtype=dtypes, shape=shapes, **attributes)


@translates("onnx_symbolic._symbolic.default")
def _symbolic(
    b: Builder, inputs: Sequence[Value | None], op_type: str, onnx_dtype: int, *, shape: Any, **options: Any
) -> Value:
    del shape
    return _node(b, inputs, op_type, 1, dtype_of(onnx_dtype), b.shape, options)


@translates("onnx_symbolic._symbolic_multi_out.default")
def _several(
    b: Builder,
    inputs: Sequence[Value | None],
    op_type: str,
    onnx_dtypes: Sequence[int],
    *,
    ranks: Any,
    shape: Any,
    **options: Any,
) -> Any:
    del ranks, shape
    dtypes = [dtype_of(n) for n in onnx_dtypes]
    made = _node(b, inputs, op_type, len(dtypes), dtypes, b.shape, options)
    return [made] if len(dtypes) == 1 else list(made)


def _check_opset(b: Builder, name: str) -> None:
    if b.opset < 23:
        raise Untranslatable(f"{name} needs opset 23")


@translates("onnx.RotaryEmbedding.opset23")
def _rotary(
    b: Builder, x: Value, cos_cache: Value, sin_cache: Value, position_ids: Value | None = None, *, interleaved: bool = False,
    num_heads: int = 0, rotary_embedding_dim: int = 0,
) -> Value:  # fmt: skip
    _check_opset(b, "RotaryEmbedding")
    return b.op(
        "RotaryEmbedding", x, cos_cache, sin_cache, position_ids, interleaved=int(interleaved), num_heads=num_heads or None,
        rotary_embedding_dim=rotary_embedding_dim or None,
    )  # fmt: skip


@translates("onnx.Attention.opset23")
def _attention(
    b: Builder, Q: Value, K: Value, V: Value, attn_mask: Value | None = None, past_key: Value | None = None,  # noqa: N803
    past_value: Value | None = None, *, is_causal: bool = False, kv_num_heads: int = 0, q_num_heads: int = 0,
    qk_matmul_output_mode: int = 0, scale: float | None = None, softcap: float = 0.0, softmax_precision: int | None = None,
) -> list[Value]:  # fmt: skip
    _check_opset(b, "Attention")
    made = b.op(
        "Attention", Q, K, V, attn_mask, past_key, past_value, outputs=4, dtype=[Q.dtype, K.dtype, V.dtype, Q.dtype],
        is_causal=int(is_causal),
        kv_num_heads=kv_num_heads or None, q_num_heads=q_num_heads or None, qk_matmul_output_mode=qk_matmul_output_mode, scale=scale,
        softcap=softcap or None, softmax_precision=softmax_precision,
    )  # fmt: skip
    return list(made)
