"""torch.utils.benchmark: measures statements, waiting until the engine has executed what they issued."""

from __future__ import annotations

from ..._not_implemented import not_implemented
from ..._lazy import lazy_attributes

__all__ = [
    "CallgrindStats", "Colorize", "Compare", "CopyIfCallgrind", "FunctionCount", "FunctionCounts", "FuzzedParameter",
    "FuzzedSparseTensor", "FuzzedTensor", "Fuzzer", "Language", "Measurement", "ParameterAlias", "TaskSpec", "Timer",
    "ordered_unique", "select_unit", "set_torch_threads", "timer", "trim_sigfig", "unit_to_english",
]  # fmt: skip

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_compare": "Colorize Compare",
    "_measurement": (
        "Measurement TaskSpec ordered_unique select_unit set_torch_threads trim_sigfig "
        "unit_to_english"
    ),
    "_timer": "Language Timer timer",
}
__getattr__, __dir__ = lazy_attributes(globals(), (), _NAMES)

not_implemented(
    globals(), "instructions are executed by the engine, which Callgrind does not see; random inputs are not generated yet",
    classes="CallgrindStats CopyIfCallgrind FunctionCount FunctionCounts FuzzedParameter FuzzedSparseTensor FuzzedTensor Fuzzer "
    "ParameterAlias",
)  # fmt: skip
