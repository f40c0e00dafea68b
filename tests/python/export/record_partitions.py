"""Records what PyTorch's partitioners save: `PYTHON_WITH_PYTORCH -m tests.python.export.record_partitions` writes data/partitions.json."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

from .partition_cases import cases


def saved(torch: ModuleType, aot: Any, partition: Any, name: str) -> int:
    """The bytes that forward saves for backward."""
    function, arguments = cases(torch)[name]
    found: list[Any] = []

    def divide(joint: Any, inputs: Any, **options: Any) -> Any:
        forward, backward = partition(joint, inputs, **options)
        found[:] = [n.meta["val"] for n in backward.graph.nodes if n.op == "placeholder" and not n.name.startswith("tangents")]
        return forward, backward

    given = [torch.ones(sizes, requires_grad=grad) for sizes, grad in arguments]
    aot.aot_function(function, lambda g, _: g, partition_fn=divide)(*given)
    return sum(int(v.numel()) * v.element_size() for v in found)


def main() -> None:
    import torch
    from torch._functorch import aot_autograd, partitioners

    rows = {
        partition: {name: saved(torch, aot_autograd, getattr(partitioners, partition), name) for name in cases(torch)}
        for partition in ("default_partition", "min_cut_rematerialization_partition")
    }
    path = Path(__file__).parent / "data" / "partitions.json"
    path.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
