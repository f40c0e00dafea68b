"""The failure of a rank, and which of several failures came first."""

from __future__ import annotations

import dataclasses
import signal


@dataclasses.dataclass(frozen=True)
class Failure:
    """A rank that failed."""

    rank: int
    host: str
    pid: int
    code: int  # exit code; 128 + N for signal N
    error: str  # the last lines of standard error, or the traceback of the failure file
    time: float = 0.0  # seconds since the epoch: when the rank failed, by its failure file; otherwise when it ended
    caused_by_peer: bool = False  # the exception reports the loss of another rank

    @property
    def order(self) -> tuple:
        """Smaller for the failure that more likely came first. A rank that SIGTERM ended was probably ended by another
        process, and an error that reports a lost rank follows that rank's own failure, whatever the clocks show.
        """
        return (self.code == 128 + signal.SIGTERM, self.caused_by_peer, self.time, self.rank)

    def describe(self) -> str:
        how = f"exit code {self.code}"
        if self.code > 128:
            try:
                how = f"killed by {signal.Signals(self.code - 128).name}, {how}"
            except ValueError:
                pass
        return f"rank {self.rank} failed first, on {self.host} (pid {self.pid}): {how}"
