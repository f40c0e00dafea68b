"""Numbers of graphs and graph breaks of the functions of tests/python/compile/body_rows.py.

    PEER_PYTHON -m tests.conformance.compile_bodies > tests/python/compile/body_rows.json
    .venv/bin/python -m tests.conformance.compile_bodies --ours
"""

from __future__ import annotations

import importlib.util
import json
import pathlib
import sys
import warnings

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "python/compile"


def load(peer: bool):
    """The module of the rows; with PyTorch under teletensor's name if `peer`."""
    if peer:
        import torch

        torch.__dict__.setdefault("cond", torch.cond)
        names = (
            "torch.func torch.nn torch.utils.checkpoint torch._higher_order_ops torch._higher_order_ops.associative_scan "
            "torch._higher_order_ops.cond torch._higher_order_ops.map torch._higher_order_ops.scan torch._higher_order_ops.while_loop "
            "torch.autograd.forward_ad torch.nn.utils.parametrizations torch.nn.utils.parametrize torch.autograd"
        )
        for name in names.split():
            importlib.import_module(name)
        for name, module in list(sys.modules.items()):
            if name == "torch" or name.startswith("torch."):
                sys.modules["teletensor" + name[5:]] = module
    spec = importlib.util.spec_from_file_location("body_rows", FOLDER / "body_rows.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["body_rows"] = module
    spec.loader.exec_module(module)
    return module


def counts(torch, function, needs_grad: bool) -> list:
    """[graphs, breaks] of a first call, or the name of the exception."""
    torch._dynamo.reset()
    counters = importlib.import_module(f"{torch.__name__}._dynamo.utils").counters
    counters.clear()
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward

    torch.manual_seed(0)
    args = torch.randn(3, 4, requires_grad=needs_grad), torch.randn(3, 4)
    try:
        torch.compile(function, backend=backend)(*args)
    except Exception as e:  # noqa: BLE001 - reported as a row
        print(f"{function.__name__}: {type(e).__name__}: {str(e)[:300]}", file=sys.stderr)
        return [type(e).__name__]
    reasons = dict(counters["graph_break"])
    return [len(graphs), sum(reasons.values()), *([] if "--ours" not in sys.argv or not reasons else [str(reasons)[:150]])]


def main() -> None:
    warnings.simplefilter("ignore")
    ours = "--ours" in sys.argv
    module = load(not ours)
    found = {f.__name__: [counts(module.torch, f, False), counts(module.torch, f, True)] for f in module.ROWS}
    if not ours:
        print("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}")
        return
    known = json.loads((FOLDER / "body_rows.json").read_text())
    same = 0
    for name, values in found.items():
        is_less = all(
            len(w) == 1 or len(v) > 1 and (v[0] > 0) >= (w[0] > 0) and v[0] <= w[0] and v[1] <= w[1] for v, w in zip(values, known[name])
        )
        same += is_less
        if not is_less:
            print(f"  {name}: {values} against {known[name]}")
    print(f"{same} of {len(found)} functions have as many graphs and breaks as with PyTorch, or fewer")


if __name__ == "__main__":
    main()
