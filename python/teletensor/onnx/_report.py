"""Report: what an export did and how long it took, as Markdown."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any


class Report:
    """Collects the steps of one export; writes files only if asked to."""

    def __init__(self, opset: int, folder: str, verbose: bool, wanted: bool, profile: bool) -> None:
        self.opset, self.folder, self.verbose, self.wanted, self.profile = opset, folder, verbose, wanted, profile
        self.steps: list[tuple[str, float, str]] = []
        self.counts: dict[str, int] = {}
        self.verification: list[Any] | None = None
        self.stamp = time.strftime("%Y-%m-%d_%H-%M-%S") + f"-{time.time_ns() // 1000 % 1_000_000:06d}"

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        """Runs the export, with a profile of its functions if that was asked for."""
        if not self.profile:
            yield
            return
        import cProfile
        import io
        import pstats

        profiler = cProfile.Profile()
        with profiler:
            yield
        text = io.StringIO()
        pstats.Stats(profiler, stream=text).sort_stats("cumulative").print_stats(60)
        steps = "\n".join(f"{name}: {seconds:.3f} s" for name, seconds, _ in self.steps)
        self._write("profile.md", f"# Time of the export\n\n```\n{steps}\n\n{text.getvalue()}\n```\n")

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measures one step."""
        start = time.perf_counter()
        if self.verbose:
            print(f"[torch.onnx] {name}...")
        try:
            yield
        except Exception as e:
            self.steps.append((name, time.perf_counter() - start, f"failed: {type(e).__name__}"))
            if self.wanted:
                self._write("report.md", self._text(None, e))
            raise
        self.steps.append((name, time.perf_counter() - start, "ok"))
        if self.verbose:
            print(f"[torch.onnx] {name}... done")

    def fail(self, error: Exception) -> None:
        """Prints the error of a conversion."""
        if self.verbose:
            print(f"[torch.onnx] {error}")

    def dump(self, program: Any) -> None:
        """Writes the program."""
        from ..export import save

        os.makedirs(self.folder, exist_ok=True)
        save(program, os.path.join(self.folder, f"onnx_export_{self.stamp}.pt2"))

    def finish(self, program: Any) -> None:
        """Writes the report."""
        if self.wanted:
            self._write("report.md", self._text(program, None))

    def _write(self, suffix: str, text: str) -> None:
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(self.folder, f"onnx_export_{self.stamp}_{suffix}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        if self.verbose:
            print(f"[torch.onnx] wrote {path}")

    def _text(self, program: Any, error: Exception | None) -> str:
        lines = [f"# ONNX export, opset {self.opset}", "", "| step | result | seconds |", "|---|---|---|"]
        lines += [f"| {name} | {outcome} | {seconds:.3f} |" for name, seconds, outcome in self.steps]
        if error is not None:
            lines += ["", "## Error", "", "```", str(error), "```"]
        if program is not None:
            proto = program._structure()
            lines += ["", "## Inputs and outputs", "", "| kind | name | type |", "|---|---|---|"]
            lines += [f"| input | `{v.name}` | {_type(v)} |" for v in proto.graph.input]
            lines += [f"| output | `{v.name}` | {_type(v)} |" for v in proto.graph.output]
            kinds: dict[str, int] = {}
            for node in proto.graph.node:
                kinds[node.op_type] = kinds.get(node.op_type, 0) + 1
            weights = sum(t.numel() for t in program._weights().values())
            lines += ["", f"{len(proto.graph.node)} nodes, {weights} numbers in weights.", ""]
            lines += ["| ONNX operator | nodes |", "|---|---|", *(f"| {k} | {n} |" for k, n in sorted(kinds.items()))]
        if self.counts:
            lines += [
                "",
                "| operator of the program | calls |",
                "|---|---|",
                *(f"| {k} | {n} |" for k, n in sorted(self.counts.items())),
            ]
        if self.verification is not None:
            lines += ["", "## Verification", "", "| output | largest difference | relative |", "|---|---|---|"]
            lines += [f"| `{v.name}` | {v.max_abs_diff:.3g} | {v.max_rel_diff:.3g} |" for v in self.verification]
        if program is not None:
            lines += ["", "## Program", "", "```python", str(program.exported_program), "```"]
        return "\n".join(lines) + "\n"


def _type(value: Any) -> str:
    from ._dtypes import dtype_of

    tensor = value.type.tensor_type
    sizes = ", ".join(d.dim_param or (str(d.dim_value) if d.HasField("dim_value") else "?") for d in tensor.shape.dim)
    return f"{str(dtype_of(tensor.elem_type)).removeprefix('torch.')}[{sizes}]"
