"""Records the numbers of graphs that PyTorch makes for tests/python/compile/size_rows.py, and compares.

    PEER_PYTHON -m tests.conformance.compile_sizes --peer > tests/python/compile/sizes.json
    .venv/bin/python -m tests.conformance.compile_sizes tests/python/compile/sizes.json
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import pathlib
import sys
import warnings

ROWS = pathlib.Path(__file__).resolve().parent.parent / "python/compile/size_rows.py"


def load_rows(peer: bool):
    """The module of the rows; with PyTorch under teletensor's name if `peer`."""
    if peer:
        import torch

        sys.modules.update({"teletensor": torch, "teletensor.nn": torch.nn})
    spec = importlib.util.spec_from_file_location("compile_size_rows", ROWS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def graphs_after_calls(torch, rows, name: str, backend=None) -> list[int]:
    """The number of graphs after each call. Raises AssertionError if a result differs from that of the function itself."""
    function, calls, options = rows.ROWS[name]
    torch._dynamo.reset()
    graphs = []
    inner = importlib.import_module(f"{torch.__name__}._dynamo").lookup_backend(backend) if backend else None

    def count(module, inputs):
        graphs.append(module)
        return inner(module, inputs) if inner else module.forward

    compiled, counts = torch.compile(function, backend=count, **options), []
    for call in calls:
        args, others = rows.arguments(call), rows.arguments(call)
        torch.testing.assert_close(compiled(*args), function(*others))
        counts.append(len(graphs))
    return counts


def main() -> None:
    warnings.simplefilter("ignore")
    peer = "--peer" in sys.argv
    rows = load_rows(peer)
    found = {}
    for name in rows.ROWS:
        try:
            found[name] = graphs_after_calls(rows.torch, rows, name)
        except Exception as e:  # noqa: BLE001 - reported as a row
            print(f"{name}: {type(e).__name__}: {str(e)[:300]}", file=sys.stderr)
    if peer:
        print("{\n" + ",\n".join(f'  "{name}": {json.dumps(counts)}' for name, counts in found.items()) + "\n}")
        return
    theirs = json.loads(pathlib.Path(sys.argv[1]).read_text())
    common = [name for name in found if name in theirs]
    fewer = [name for name in common if all(a <= b for a, b in zip(found[name], theirs[name]))]
    same = sum(found[name] == theirs[name] for name in common)
    print(f"{len(fewer)} of {len(common)} functions have as many graphs as with PyTorch, or fewer; {same} have as many")
    for name in common:
        if found[name] != theirs[name]:
            print(f"  {name}: {found[name]} against {theirs[name]}")


if __name__ == "__main__":
    main()
