"""The suites that others wrote: where they come from, and how they are told of teletensor."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Suite:
    """One suite; it comes from `package` on PyPI, whose wheel holds its tests, or from a checkout of `project`.

    Or it is `module`, which runs by itself and writes a table as JSON (op_db).
    """

    name: str
    package: str = ""
    module: str = ""
    project: str = ""
    needs: str = ""  # a folder that a whole checkout has
    arguments: tuple[str, ...] = ()  # pytest's, or the module's
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The checkout's."""
        return self.project.rpartition("/")[2]


AS_TORCH = ("-p", "teletensor.as_torch")  # the suite's own PyTorch backend, unchanged

SUITES = (
    Suite(
        "array API standard",
        project="data-apis/array-api-tests",
        needs="array-api/src",
        arguments=("array_api_tests", "--hypothesis-disable-deadline", "--max-examples", "20"),
        environment={"ARRAY_API_TESTS_MODULE": "teletensor.array_api"},
    ),
    Suite(
        "einops",
        package="einops",
        arguments=("--pyargs", "einops.tests", *AS_TORCH),
        environment={"EINOPS_TEST_BACKENDS": "torch"},
    ),
    Suite(
        "opt_einsum",
        package="opt_einsum",
        arguments=("--pyargs", "opt_einsum.tests", *AS_TORCH, "-p", "on_tensors"),
    ),
    Suite(
        "TensorLy",
        package="tensorly",
        arguments=("--pyargs", "tensorly", *AS_TORCH),
        environment={"TENSORLY_BACKEND": "pytorch"},
    ),
    Suite("PyTorch's op_db", module="tests.conformance.op_db", arguments=("--page", "docs/op_db.md")),
)

# What the suites need beside themselves.
REQUIREMENTS = ("pytest", "hypothesis>=6.151", "ndindex>=1.8", "pytest-json-report", "numpy", "scipy", "parameterized")
