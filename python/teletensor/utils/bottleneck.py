"""torch.utils.bottleneck: a report on a script's slow parts. torch.sync_report() lists the lines that waited."""

from __future__ import annotations

from .._planned import not_implemented

not_implemented(globals(), "the profiler is not implemented yet; torch.sync_report() lists the lines that waited for the engine", "main")
