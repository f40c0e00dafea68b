"""Third-party test suites: their sources, and how they are configured for teletensor."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Suite:
    """A suite: from `package` on PyPI, whose wheel holds its tests, or from a checkout of `project`.

    Alternatively `module` is a Python module that runs by itself and writes a table as JSON (op_db).
    """

    name: str
    package: str = ""
    module: str = ""
    project: str = ""
    needs: str = ""  # a folder that exists in a complete checkout
    arguments: tuple[str, ...] = ()  # passed to pytest or to the module
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The folder name of the checkout."""
        return self.project.rpartition("/")[2]


AS_TORCH = ("-p", "teletensor.as_torch")  # the suite runs on its PyTorch backend, unchanged

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

# Further requirements of the suites.
REQUIREMENTS = ("pytest", "hypothesis>=6.151", "ndindex>=1.8", "pytest-json-report", "numpy", "scipy", "parameterized")
