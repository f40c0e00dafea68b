"""torch.utils.benchmark: measures statements, waiting until the engine has executed what they issued."""

from __future__ import annotations

from ..._not_implemented import not_implemented
from ._compare import Colorize, Compare
from ._measurement import Measurement, TaskSpec, ordered_unique, select_unit, set_torch_threads, trim_sigfig, unit_to_english
from ._timer import Language, Timer, timer

not_implemented(
    globals(), "instructions are executed by the engine, which Callgrind does not see; random inputs are not generated yet",
    classes="CallgrindStats CopyIfCallgrind FunctionCount FunctionCounts FuzzedParameter FuzzedSparseTensor FuzzedTensor Fuzzer "
    "ParameterAlias",
)  # fmt: skip
