"""The backends "inductor" and "teletensor": graphs as Programs, which the engine runs as one instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._C import Tensor
from .._dynamo._backends import plain_forward, register_backend
from .._dynamo._logs import counters, log
from .._dynamo._tensors import mode_state, set_mode_state
from .._dynamo._warnings import executing_again
from ._graph_programs import GraphProgram


def engine(gm: Any, inputs: Sequence[Tensor]) -> Callable:
    """Makes a Program of the graph, which the engine runs as one instruction; if a Program cannot contain it, runs its operators."""
    before = mode_state()
    made: GraphProgram | None = None
    try:
        with executing_again():
            made = GraphProgram(gm, inputs)
        reason = made.reason_against
    except Exception as e:  # noqa: BLE001 - whatever a Program refuses runs one by one
        reason = f"{type(e).__name__}: {e}"
    finally:
        set_mode_state(before)
    if reason:
        counters["engine"]["one by one"] += 1
        log("graph_code", f"the graph runs operator by operator: {reason}")
        return plain_forward(gm)
    counters["engine"]["programs"] += 1
    forward: Callable | None = None

    def run_plainly(*tensors: Any) -> Any:  # where the Program refuses a run
        nonlocal forward
        forward = forward or plain_forward(gm)
        return forward(*tensors)

    run = made.run_function(run_plainly, inputs)

    def run_program(*tensors: Any) -> tuple:
        return run(tensors)

    run_program.run = run
    run_program.program = made.program
    run_program.graph_program = made
    return run_program


engine.contains_steps = True
engine.reads_nodes = True

for _name in ("inductor", "teletensor"):
    register_backend(engine, _name)
