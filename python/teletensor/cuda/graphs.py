"""CUDA graphs: work that is captured once and replayed without issuing its operations again.

As in PyTorch: while a graph is captured nothing is computed; a replay computes over the same memory, so inputs are
fed by writing into the tensors that were read (``static_x.copy_(x)``) and results are found where they were. A graph
cannot hold what moves bytes to or from the host, reads a value, or has sizes that depend on data. Random numbers are new
ones at each replay, as the session's generator gives them.
"""

from __future__ import annotations

import itertools

from .. import _C
from .._options import check_kind
from .place import index_of
from .streams import Stream, StreamContext

_numbers = itertools.count(1)
_capturing = False


def _check_pool(pool) -> None:
    if pool is not None and not (isinstance(pool, tuple) and len(pool) == 2):
        raise TypeError(f"[graph] expected pool to be what graph_pool_handle() returns, got {type(pool).__name__}")


class CUDAGraph:
    """Operations on one GPU that are replayed together."""

    def __init__(self):
        self._number = 0
        self._captured = False

    def capture_begin(self, pool=None, capture_error_mode: str = "global") -> None:
        """From here on operations on the current GPU are kept instead of done.

        ``pool`` has no effect on results: each graph has a pool of its own. Nor has ``capture_error_mode``: what a graph
        cannot hold is an error in every mode.
        """
        from . import current_device

        _check_pool(pool)
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
            )
        if self._number:
            raise RuntimeError("this graph has been captured already; reset() it first")
        global _capturing
        self._number, _capturing = next(_numbers), True
        _C.ops.graph_begin(self._number, _C.device(f"cuda:{current_device()}"))

    def capture_end(self) -> None:
        """The graph is complete. Waits; raises RuntimeError where something in it cannot be replayed."""
        if not self._number or self._captured:
            raise RuntimeError("capture_begin() comes first")
        global _capturing
        _capturing = False
        try:
            _C.ops.graph_end(self._number).item()
        except RuntimeError:
            self._number = 0
            raise
        self._captured = True

    def replay(self) -> None:
        """Does the work again, over the same memory. Does not wait."""
        if not self._captured:
            raise RuntimeError("the graph has not been captured")
        _C.ops.graph_replay(self._number)

    def reset(self) -> None:
        """Frees the graph and its memory."""
        if self._captured:
            _C.ops.graph_drop(self._number)
        self._number, self._captured = 0, False

    def __del__(self):
        try:
            self.reset()
        except Exception:  # noqa: BLE001 - the session may have ended before
            pass


class graph:  # noqa: N801 - PyTorch's name
    """``with torch.cuda.graph(g):`` captures what the block does into g, on the GPU of the stream if one is given."""

    def __init__(self, cuda_graph: CUDAGraph, pool=None, stream=None, capture_error_mode: str = "global"):
        if stream is not None:
            check_kind("graph", "stream", stream, Stream)
        self.cuda_graph = cuda_graph
        self._options = {"pool": pool, "capture_error_mode": capture_error_mode}
        self._stream = StreamContext(stream)

    def __enter__(self) -> None:
        self._stream.__enter__()
        try:
            self.cuda_graph.capture_begin(**self._options)
        except BaseException:
            self._stream.__exit__(None, None, None)
            raise

    def __exit__(self, kind, error, trace) -> None:
        try:
            self._end(kind)
        finally:
            self._stream.__exit__(kind, error, trace)

    def _end(self, kind) -> None:
        if kind is None:
            self.cuda_graph.capture_end()
            return
        try:
            self.cuda_graph.capture_end()
        except RuntimeError:  # the block's own error says more
            pass


def replay_stats(device=None) -> dict[str, int]:
    """What of this session's work on the GPU repeated by itself and was done as a graph. Waits.

    ``graphs``: kept now; ``replays``: of them; ``launches``: done so, instead of one by one; ``changed``: of those, with
    other parameters than the time before. Why something that repeats is no graph stands in ``teletensor status --json``
    (``replay_refusal``). ``TELETENSOR_CUDA_REPLAY`` in the engine's environment: for how many microseconds after the last
    one launches are held back for that (200), or ``off``.
    """
    names = ("graphs", "replays", "launches", "changed")
    return dict(zip(names, _C.ops.replay_counts(f"cuda:{index_of(device)}").tolist(), strict=True))


def graph_pool_handle() -> tuple[int, int]:
    """What ``graph(..., pool=)`` takes. Each graph has a pool of its own here, whatever it is given."""
    return 0, next(_numbers)


def make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None):
    """The callables, as they are: work that repeats becomes a graph on the engine by itself, its gradients' too.

    ``replay_stats`` says what was replayed. Nothing is captured here, so that ``num_warmup_iters``,
    ``allow_unused_input`` and ``pool`` have no effect.
    """
    _check_pool(pool)
    if isinstance(callables, tuple) and len(sample_args) != len(callables):
        raise ValueError(f"expected sample_args of each of {len(callables)} callables, got {len(sample_args)}")
    return callables


def is_current_stream_capturing() -> bool:
    """Whether a graph is being captured."""
    return _capturing
