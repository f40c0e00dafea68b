"""What a node has saved: `grad_fn._saved_self`, `grad_fn._raw_saved_result` and the like.

The engine's tape has the saved values, and describes the nodes of an operation on request. PyTorch's names of values are
found by the names of the engine's operators: `self` is the argument `input`, `result` the first result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). "
    "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if "
    "you need to backward through the graph a second time or if you need to access saved tensors after calling backward."
)
# PyTorch's names of arguments and results, by name of ours; the first one that an operator has is meant.
_NAMES = {
    "self": ("input",), "input": ("input",), "result": ("result0",), "indices": ("indices", "result1"), "mat1": ("input",),
    "mat2": ("mat2", "other"), "vec": ("other",), "target": ("target", "other"), "values": ("result0",),
    "exponent": ("exponent", "other"), "dims": ("dims", "dim"), "split_size": ("split_size_or_sections",),
    "output": ("result0",), "shifts": ("shifts",),
}  # fmt: skip
_SPELLINGS = {"input": "self", "result0": "result"}  # our names as they are listed
_TENSORS = ("self", "other")  # numbers in place of these tensors are tensors to PyTorch
_LISTS = {"index": "indices", "index_put": "indices"}  # the arguments of operators that are lists of tensors
_SPELLINGS_BY_OP = {
    "matmul": {"other": "mat2"}, "split": {"split_size_or_sections": "split_size"},
    **dict.fromkeys(("max_dim", "min_dim", "median_dim", "nanmedian_dim", "sort", "topk", "kthvalue", "mode"), {"result1": "indices"}),
}  # fmt: skip
# Values that PyTorch has with other sizes or in another layout.
_HIDDEN = {"layer_norm_forward": {"result1", "result2"}, "lu_determinant": {"LU", "lu", "pivots"}}
_DTYPES = {bool: _C.bool, int: _C.int64, float: _C.float64, complex: _C.complex128}
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
# Operators composed of several others, and the one of these whose arguments are meant.
_PARTS = {"addmm": "matmul", "addmv": "matmul", "addbmm": "matmul", "baddbmm": "matmul"}


class SavedTensor:
    """A tensor that a node has saved: ``grad_fn._raw_saved_self``."""

    unpack_hook = None
    _read: Callable[[], Tensor | None]

    def __init__(self) -> None:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    @classmethod
    def of(cls, read: Callable[[], Tensor | None]) -> SavedTensor:
        """A tensor that `read` returns."""
        made = cls.__new__(cls)
        made._read = read
        return made

    def unpack(self) -> Tensor | None:
        """The tensor. Raises RuntimeError if a backward pass has freed it."""
        return self._read()

    data = property(unpack)

    def register_hooks(self, pack_hook: Any, unpack_hook: Any) -> None:
        """Raises NotImplementedError: the engine stores the tensor."""
        raise NotImplementedError(
            "[SavedTensor.register_hooks] the engine has stored the tensor when the operation was recorded; run the operation "
            "within torch.autograd.graph.saved_tensors_hooks(pack_hook, unpack_hook)"
        )


class NodeValues:
    """The values of one node, as the engine describes them."""

    def __init__(self, node: Any, root: Tensor):
        self.node, self.root = node, root
        import json  # slow to import, and rarely needed

        self.nodes: list[dict] = json.loads(bytes(node.describe(root), "utf-8"))

    def _known(self) -> list[int]:
        """The engine's nodes whose arguments are those of the operation: the only one, or that of _PARTS."""
        if len(self.nodes) == 1:
            return [0]
        part = _PARTS.get(self.node.operator())
        return [i for i, one in enumerate(self.nodes) if one["op"] == part]

    def _places(self, name: str) -> list[tuple[int, str]]:
        """The engine's nodes that know a value of PyTorch's name, and its name there."""
        found = []
        for i in self._known():
            one = self.nodes[i]
            known = {*one["args"], *one["reads"], *one["others"], *one["sizes"]} - _HIDDEN.get(one["op"], set())
            ours = next((n for n in (*_NAMES.get(name, ()), name) if n in known), None)
            if ours is not None:
                found.append((i, ours))
        return found

    def names(self) -> list[str]:
        """PyTorch's names of the values."""
        found = set()
        for one in (self.nodes[i] for i in self._known()):
            spellings = {**_SPELLINGS, **_SPELLINGS_BY_OP.get(one["op"], {})}
            values = {*one["args"], *one["reads"], *one["others"]}
            found.update(f"_saved_{spellings.get(ours, ours)}" for ours in values)
            found.update(f"_saved_{spellings.get(ours, ours)}_sym_sizes" for ours in one["sizes"] if ours not in values)
        return sorted(name for name in found if self.has(name))

    def has(self, name: str) -> bool:
        """Whether a value exists."""
        found = self._find(name)
        if found is None:
            return False
        one = self.nodes[found[0]]
        return found[2] or any(found[1] in one[kind] for kind in ("args", "reads", "others"))

    def _find(self, name: str) -> tuple[int, str, bool] | None:
        """The engine's node, our name and whether its sizes are meant. None if several nodes have such a value."""
        plain = name.removeprefix("_raw").removeprefix("_saved_")
        is_sizes = plain.endswith(("_sym_sizes", "_sizes"))
        plain = plain.removesuffix("_sizes").removesuffix("_sym") if is_sizes else plain
        places = [(i, ours) for i, ours in self._places(plain) if not is_sizes or ours in self.nodes[i]["sizes"]]
        return (*places[0], is_sizes) if len(places) == 1 else None

    def value(self, name: str) -> Any:
        """The value of a name such as `_saved_self`.

        Raises:
            AttributeError: the engine's node has no such value.
            RuntimeError: a backward pass has freed the tensor.
        """
        found = self._find(name)
        if found is None:
            kept = ", ".join(self.names()) or "nothing"
            raise AttributeError(
                f"{self.node.name()!r} object has no attribute {name!r}: for this operation the engine keeps {kept}"
            )
        index, ours, is_sizes = found
        one = self.nodes[index]
        if is_sizes:
            return tuple(one["sizes"][ours])
        is_raw = name.startswith("_raw")
        if is_raw and (ours in one["reads"] or ours in one["others"]):
            count = sum(place[0] == ours for place in one["saved"]) if _LISTS.get(one["op"]) == ours else None
            return self._raw(name) if count is None else tuple(self._raw(name, i) for i in range(count))
        if ours in one["reads"]:
            if one["released"]:
                raise RuntimeError(FREED)
            return self._tensor(index, ours)
        if ours in one["others"]:
            return None
        if ours not in one["args"]:  # only its sizes are known
            raise AttributeError(
                f"{self.node.name()!r} object has no attribute {name!r}: the engine keeps only sizes of it"
            )
        value = _plain(one["args"][ours])
        if ours == "reduction":
            value = _REDUCTIONS.get(value, value)
        if name.rpartition("_saved_")[2] in _TENSORS and isinstance(value, (bool, int, float, complex)):
            value = _C.torch.full((), value, dtype=_DTYPES[type(value)])
            return SavedTensor.of(lambda: value) if is_raw else value
        if is_raw:
            raise AttributeError(f"{self.node.name()!r} object has no attribute {name!r}: it is not a tensor")
        return value

    def _raw(self, name: str, place: int | None = None) -> SavedTensor:
        """A saved value, or an entry of a list, as it is when it is unpacked."""
        node, root = self.node, self.root

        def read() -> Tensor | None:
            found = NodeValues(node, root).value(name.removeprefix("_raw"))
            return found if place is None else found[place]

        return SavedTensor.of(read)

    def _tensor(self, index: int, ours: str) -> Tensor | tuple[Tensor | None, ...] | None:
        saved = self.nodes[index]["saved"]
        places = [i for i, one in enumerate(saved) if one[0] == ours]
        if not places:
            return None
        values = [self._at(index, place) for place in places]
        return tuple(values) if _LISTS.get(self.nodes[index]["op"]) == ours else values[0]

    def _at(self, index: int, place: int) -> Tensor | None:
        name, edge, is_here, is_with_client = self.nodes[index]["saved"][place]
        if is_with_client:
            stored = [i for i, one in enumerate(self.nodes) if any(row[3] for row in one["saved"])]
            packed = self.node.packed()[-1 - stored.index(index)]  # the oldest first
            return packed[sum(one[3] for one in self.nodes[index]["saved"][:place])]
        if not is_here:
            return None
        if self.node.is_composite():
            return self.node.saved(self.root, index, place, None)
        leaf = self.node.edges()[edge] if edge >= 0 else None
        if leaf is not None:
            return leaf
        number = int(name.removeprefix("result") or 0) if name.startswith("result") else None
        history = edge if edge >= 0 else None if number is None else ~number
        return self.node.saved(self.root, index, place, history)


def _plain(value: Any) -> Any:
    """A number, a tuple, a dtype or a device of a description."""
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        return complex(*text) if kind == "complex" else _C.device(text) if kind == "device" else getattr(_C, text)
    return value
