"""Methods of Graph that create nodes for symbolic sizes. Not implemented."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn


class SymbolicSizes:
    """Raises NotImplementedError: sizes in graphs are nodes that call size(), or numbers."""

    def create_size_node(self, tensor_node: Any, dim: int) -> NoReturn:
        """Not implemented."""
        raise NotImplementedError("[Graph.create_size_node] there are no symbolic sizes; use call_method('size', (node, dim))")

    def create_stride_node(self, tensor_node: Any, dim: int) -> NoReturn:
        """Not implemented."""
        raise NotImplementedError("[Graph.create_stride_node] there are no symbolic sizes; use call_method('stride', (node, dim))")

    def create_storage_offset_node(self, tensor_node: Any) -> NoReturn:
        """Not implemented."""
        raise NotImplementedError(
            "[Graph.create_storage_offset_node] there are no symbolic sizes; use call_method('storage_offset', (node,))"
        )

    def materialize_symints(self, values: Sequence[Any]) -> NoReturn:
        """Not implemented."""
        raise NotImplementedError("[Graph.materialize_symints] there are no symbolic sizes")

    def materialize_symint(self, value: Any) -> NoReturn:
        """Not implemented."""
        raise NotImplementedError("[Graph.materialize_symint] there are no symbolic sizes")
