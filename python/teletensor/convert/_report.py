"""What a conversion did, and what it could not keep."""

from __future__ import annotations

import dataclasses
import json


@dataclasses.dataclass
class Report:
    """The outcome of a conversion.

    Attributes:
        source, target: paths.
        formats: of the source and the target.
        inputs, outputs: "name: dtype[sizes]" each.
        weights: their number.
        bytes: of the weights.
        kept_symbols: names of sizes that are open in the target.
        difference: the largest absolute difference between the outputs of source and target for the example inputs; None if
            the target was not run.
        problems: what was not convertible, one sentence each; the conversion has failed if `failed`.
        notes: what changed without loss of results.
    """

    source: str
    target: str
    formats: tuple[str, str]
    inputs: list[str] = dataclasses.field(default_factory=list)
    outputs: list[str] = dataclasses.field(default_factory=list)
    weights: int = 0
    bytes: int = 0
    kept_symbols: list[str] = dataclasses.field(default_factory=list)
    difference: float | None = None
    problems: list[str] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    failed: bool = False

    def json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1)

    def __str__(self) -> str:
        lines = [f"{self.source} ({self.formats[0]}) -> {self.target} ({self.formats[1]})"]
        for title, entries in (("inputs", self.inputs), ("outputs", self.outputs)):
            if entries:
                lines.append(f"  {title}: {', '.join(entries)}")
        if self.weights:
            lines.append(f"  weights: {self.weights}, {self.bytes} bytes")
        if self.kept_symbols:
            lines.append(f"  open sizes: {', '.join(self.kept_symbols)}")
        if self.difference is not None:
            lines.append(f"  largest difference for the example inputs: {self.difference:.3g}")
        lines += [f"  note: {n}" for n in self.notes]
        lines += [f"  not convertible: {p}" for p in self.problems]
        lines.append("  failed" if self.failed else "  converted")
        return "\n".join(lines)
