"""torch.utils.throughput_benchmark: runs a TorchScript module in threads."""

from __future__ import annotations

from .._not_implemented import not_implemented

not_implemented(
    globals(), "there are no TorchScript modules; torch.utils.benchmark.Timer measures statements", "format_time",
    "ExecutionStats ThroughputBenchmark",
)  # fmt: skip
