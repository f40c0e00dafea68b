"""`python -m tests.conformance.unit_tests --checkout FOLDER [--only NAME...] [--every N]`

Runs test files of PyTorch (a checkout of github.com/pytorch/pytorch) on the CPU with teletensor and with PyTorch, which is
installed into .venv-peers. Writes the rows of docs/conformance.md; with --only the other rows are kept. The failures are in
build/unit-tests/failures.txt, what pytest printed and the outcome of each test beside it.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .. import sections
from ..peer import BUILD, PACKAGES, ROOT, add_option, python_of
from .comparison import Comparison, compare, kinds
from .execution import LIMIT, run

PAGE = ROOT / "docs/conformance.md"
FOLDER = BUILD / "unit-tests"
FILES = (
    "test_indexing", "test_view_ops", "test_shape_ops", "test_type_promotion", "test_sort_and_select", "test_scatter_gather_ops",
    "test_reductions", "test_segment_reductions", "test_binary_ufuncs", "test_unary_ufuncs", "test_complex", "test_foreach",
    "test_linalg", "test_spectral_ops", "test_tensor_creation_ops", "test_torch", "test_numpy_interop", "test_dlpack",
    "test_type_info", "test_namedtuple_return_api", "test_namedtensor", "test_serialization", "test_dataloader",
    "test_masked", "test_maskedtensor", "test_sparse", "test_sparse_csr", "test_nestedtensor", "test_autograd",
    "autograd/test_functional", "autograd/test_complex", "functorch/test_eager_transforms", "functorch/test_vmap", "test_stateless",
    "test_nn", "nn/test_convolution", "nn/test_dropout", "nn/test_embedding", "nn/test_init", "nn/test_lazy_modules",
    "nn/test_load_state_dict", "nn/test_module_hooks", "nn/test_multihead_attention", "nn/test_packed_sequence",
    "nn/test_parametrization", "nn/test_pooling", "nn/test_pruning", "test_modules", "test_transformers", "optim/test_lrscheduler",
    "optim/test_optim", "optim/test_swa_utils", "test_optim", "distributions/test_constraints", "distributions/test_distributions",
    "distributions/test_transforms", "test_fx", "test_module_tracker", "test_flop_counter", "test_pytree", "test_subclass",
    "test_overrides", "test_weak", "test_utils", "test_autocast", "test_testing", "test_futures", "dynamo/test_misc",
    "dynamo/test_repros", "dynamo/test_functions", "dynamo/test_higher_order_ops", "export/test_export",
    "quantization/core/test_quantized_tensor", "quantization/core/test_quantized_op", "quantization/core/test_quantized_functional",
    "quantization/core/test_quantized_module", "quantization/core/test_workflow_module", "quantization/core/test_workflow_ops",
)  # fmt: skip
HEAD = (
    "file", "tests", "passed with both", "by design", "other failures", "failed with both", "failed with PyTorch only",
    "by design: why",
)  # fmt: skip
HEADER = f"""## PyTorch's unit tests

`make unit-tests CHECKOUT=folder` runs test files of a checkout of github.com/pytorch/pytorch, unchanged, on the CPU with
teletensor and with PyTorch 2.15, whose `torch.testing._internal` is loaded over both. `ONLY="test_indexing nn/test_init"` runs
some, `EVERY=3` a third of the tests. Tests that failed with teletensor only are in two columns: for reasons in
tests/conformance/unit_tests/reasons.py, and others. A test that PyTorch passes and that skips itself with teletensor has failed;
tests that PyTorch skips are not counted, and names that it has removed since are restored for both (former_names.py). Within
assertRaises, teletensor waits for the errors of each call. The files are those of PyTorch 2.6. Two were adapted to PyTorch 2.15:
in export/testing.py, operators with names of dimensions were removed from a list, and in dynamo/test_repros a hook accepts
another argument. Each row was made with `--limit 15`, from the part of the tests that it names; files without a row were not run,
or cannot be imported with PyTorch 2.15 (test_fx, test_overrides, test_pytree, test_weak).

| {" | ".join(HEAD)} |
|{"---|" * len(HEAD)}
"""


def _comparison(checkout: Path, name: str, python: str, every: int, limit: float) -> Comparison:
    """Runs a file with both packages at the same time."""
    file, record = checkout / f"test/{name}.py", FOLDER / name.replace("/", "-")
    packages = ("teletensor", "torch")
    with ThreadPoolExecutor() as pool:
        ours, theirs = pool.map(lambda package: run(file, package, python, Path(f"{record}.{package}.jsonl"), every, limit), packages)
    return compare(name, ours, theirs, every)


def _list(results: list[Comparison], path: Path) -> None:
    """Writes all failures with teletensor only, those without a reason first."""
    lines = []
    for result in results:
        order = sorted(result.failures, key=lambda test: (result.reason(test), test))
        for test in order:
            why = f"[{result.reason(test)}] " if result.reason(test) else ""
            lines.append(f"{result.file}::{test}: {why}{result.failures[test]}\n")
    path.write_text("".join(lines))


def main() -> int:
    """Runs the files."""
    parser = argparse.ArgumentParser(prog="tests.conformance.unit_tests", description=__doc__)
    parser.add_argument("--checkout", type=Path, required=True, help="a checkout of github.com/pytorch/pytorch")
    parser.add_argument("--only", nargs="+", help="files in the folder test, without .py")
    parser.add_argument("--every", type=int, default=1, help="run one of so many tests of each file, chosen by their names")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds per test")
    add_option(parser)
    options = parser.parse_args()
    python = python_of(options, *PACKAGES, "pytest")
    console, results = Console(), []
    for name in options.only or FILES:
        if not (options.checkout / f"test/{name}.py").exists():
            console.print(f"{name}: not in the checkout", markup=False)
            continue
        results.append(_comparison(options.checkout.resolve(), name, python, options.every, options.limit))
        console.print(" ".join(results[-1].cells()), markup=False)
        for text, count in kinds(results[-1].unexplained())[:5]:
            console.print(f"    {count}: {text}", markup=False)
        sections.write(PAGE, HEADER, [f"| {' | '.join(results[-1].cells())} |"], FILES)
    _list(results, FOLDER / "failures.txt")
    table = Table(*HEAD, title="PyTorch's unit tests")
    for result in results:
        table.add_row(*result.cells())
    console.print(table)
    return int(any(result.unexplained() for result in results))


if __name__ == "__main__":
    sys.exit(main())
