"""ShapeProp: runs a graph and records the size and dtype of each node's result."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

from ..._C import Tensor
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["TensorMetadata", "ShapeProp"]


class TensorMetadata(NamedTuple):
    """The properties of a tensor that passes use.

    memory_format is the first of contiguous, channels_last and channels_last_3d that the tensor has, or None; qparams is
    empty, since tensors are not quantized.
    """

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """The metadata of a tensor."""
    import teletensor

    formats = (teletensor.contiguous_format, teletensor.channels_last, teletensor.channels_last_3d)
    memory_format = None
    if include_contiguity:
        memory_format = next((f for f in formats if _has_format(result, f)), None)
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), memory_format, False, {})


def _has_format(tensor: Tensor, memory_format: Any) -> bool:
    dimensions = {"torch.channels_last": 4, "torch.channels_last_3d": 5}.get(str(memory_format))
    return dimensions in (None, tensor.dim()) and tensor.is_contiguous(memory_format=memory_format)


class ShapeProp(Interpreter):
    """Runs a module's graph; each node's meta receives "tensor_meta", if its result contains tensors, and "type".

    Args:
        gm: the module.
        fake_mode: not implemented; move the module and the inputs to the device "meta" to run it without values.
    """

    def __init__(self, gm: GraphModule, fake_mode: Any = None) -> None:
        super().__init__(gm)
        if fake_mode is not None:
            raise NotImplementedError("[ShapeProp] fake tensors are not implemented; use tensors on the device 'meta'")
        self.fake_mode, self.fake_module, self.real_module = None, None, self.module

    def run_node(self, n: Node) -> Any:
        """Runs one node and records its result.

        Raises:
            RuntimeError: the node raised an error.
        """
        try:
            result = super().run_node(n)
        except Exception as e:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from e
        found = False

        def metadata(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, metadata)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the module with these inputs; returns its result."""
        return super().run(*args)
