"""InputObserver: collects the arguments of calls, from which it infers dynamic sizes and example arguments for an export."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Iterator
from typing import Any

from .._C import Tensor
from .._grad_mode import no_grad
from .._lazy import set_module
from ..export.dynamic_shapes import Dim
from ..utils import _pytree as pytree


def _copied(value: Any) -> Any:
    return pytree.tree_map(lambda v: v.detach().clone() if isinstance(v, Tensor) else v, value)


class InputObserver:
    """Collects arguments and results of a module's calls within ``with observer(module):``.

    Args:
        value_if_missing: tensors for arguments, by name, that some calls leave out.
    """

    def __init__(self, value_if_missing: dict[str | int, Any] | None = None) -> None:
        self.value_if_missing = dict(value_if_missing or {})
        self.calls: list[tuple[tuple, dict[str, Any], Any]] = []
        self._signature: inspect.Signature | None = None

    def num_obs(self) -> int:
        """The number of stored calls."""
        return len(self.calls)

    @contextlib.contextmanager
    def __call__(self, model: Any, store_n_calls: int = 3, method_name: str = "forward") -> Iterator[InputObserver]:
        """Replaces a method while the context is active, and stores the arguments of its first calls."""
        if not hasattr(model, method_name):
            raise ValueError(f"[InputObserver] {type(model).__name__} has no method {method_name}")
        method: Callable = getattr(model, method_name)
        self._signature = inspect.signature(method)

        def observed(*args: Any, **kwargs: Any) -> Any:
            if len(self.calls) >= store_n_calls:
                return method(*args, **kwargs)
            stored = _copied((args, {k: v for k, v in kwargs.items() if v is not None}))
            start = time.perf_counter()
            result = method(*args, **kwargs)
            self.calls.append((*stored, (_copied(result), time.perf_counter() - start)))
            return result

        own = method_name in vars(model)
        object.__setattr__(model, method_name, observed)
        try:
            yield self
        finally:
            if own:
                object.__setattr__(model, method_name, method)
            else:
                object.__delattr__(model, method_name)

    def _bound(self) -> list[dict[str, Any]]:
        if not self.calls or self._signature is None:
            raise RuntimeError("No inputs were captured.")
        rows = [dict(self._signature.bind(*args, **kwargs).arguments) for args, kwargs, _ in self.calls]
        names = dict.fromkeys(n for row in rows for n in row)
        for row in rows:
            for name in names:
                if name not in row and name in self.value_if_missing:
                    row[name] = self.value_if_missing[name]
        complete = [row for row in rows if set(row) == set(names)]
        if len(complete) < len(rows) and not complete:
            raise RuntimeError(
                f"At least one call this method must have all the arguments {list(names)}; pass value_if_missing"
            )
        if len({str(pytree.tree_flatten(row)[1]) for row in complete}) > 1:
            raise RuntimeError("Inputs have different structures in the captured calls")
        return [{n: row[n] for n in names} for row in complete]

    def infer_dynamic_shapes(self, set_batch_dimension_for: set[int | str] | bool | None = None) -> dict[str, Any]:
        """The sizes that differ between the calls, as Dim.DYNAMIC, by the names of the arguments.

        Args:
            set_batch_dimension_for: arguments whose first size is dynamic too; True: all.
        """
        rows = self._bound()
        found = {}
        for i, name in enumerate(rows[0]):
            wanted = set_batch_dimension_for
            forced = wanted is True or (isinstance(wanted, (set, list, tuple)) and (name in wanted or i in wanted))

            def sizes(first: Any, *rest: Any, forced: bool = forced) -> Any:
                if not isinstance(first, Tensor):
                    return None
                differing = {d for d, n in enumerate(first.shape) if any(r.shape[d] != n for r in rest)}
                differing |= {0} if forced and first.dim() else set()
                return {d: Dim.DYNAMIC for d in sorted(differing)}

            found[name] = pytree.tree_map(sizes, rows[0][name], *(row[name] for row in rows[1:]))
        return found

    def infer_arguments(self, index_or_candidate: int | None = None, flat: bool = False) -> Any:
        """The arguments of a call, by default the one with the largest tensors, as a dict by name, or as a list of leaves.

        Args:
            index_or_candidate: the number of the call.
            flat: return the leaves.
        """
        rows = self._bound()
        if index_or_candidate is not None:
            row = rows[index_or_candidate]
        else:
            row = max(rows, key=lambda r: sum(t.numel() for t in pytree.tree_leaves(r) if isinstance(t, Tensor)))
        return pytree.tree_leaves(row) if flat else dict(row)

    def check_discrepancies(self, onnx_model: Any, atol: float = 1e-4, rtol: float = 0.1) -> list[dict[str, Any]]:
        """Runs an ONNXProgram with the arguments of each call, and compares its results with the stored ones.

        Returns:
            for each call: "index", "abs" and "rel" (largest differences) and "SUCCESS".
        """
        found = []
        for i, (args, kwargs, (expected, _)) in enumerate(self.calls):
            with no_grad():
                actual = onnx_model(*args, **kwargs)
            leaves = [v for v in pytree.tree_leaves(expected) if isinstance(v, Tensor)]
            absolute = [
                float((a.double() - e.double()).abs().max()) if e.numel() else 0.0
                for a, e in zip(actual, leaves, strict=True)
            ]
            sizes = [float(e.double().abs().max()) + 1e-7 if e.numel() else 1.0 for e in leaves]
            relative = [a / s for a, s in zip(absolute, sizes)]
            good = all(a <= atol + rtol * s for a, s in zip(absolute, sizes))
            found.append(
                {"index": i, "abs": max(absolute, default=0.0), "rel": max(relative, default=0.0), "SUCCESS": good}
            )
        return found


set_module("teletensor.onnx", InputObserver)
