"""CUDA graphs: work that is captured once and replayed without issuing the operations again.

As in PyTorch, nothing is computed during a capture. A replay computes in the same memory, so inputs are updated by
writing into the captured tensors (``static_x.copy_(x)``), and results are in the same tensors each time. A graph cannot
contain operations that copy to or from the host, read a value, or have sizes that depend on data. Each replay draws new
random numbers from the session's generator.
"""

from __future__ import annotations

import itertools

from .. import _C
from .._options import check_flags, check_kind
from .device_index import current_device, index_of
from .streams import Stream, StreamContext

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

_numbers = itertools.count(1)
_capturing = False


def _check_pool(pool) -> None:
    if pool is not None and not (isinstance(pool, tuple) and len(pool) == 2):
        raise TypeError(f"[graph] expected pool to be a graph_pool_handle() or None, got {type(pool).__name__}")


class CUDAGraph:
    """Operations on one GPU that are replayed as a unit."""

    def __init__(self, keep_graph: bool = False):
        check_flags("CUDAGraph", keep_graph=keep_graph)
        if keep_graph:
            raise NotImplementedError("[CUDAGraph] expected keep_graph to be False: the engine owns the graph")
        self._number = 0
        self._captured = False

    def capture_begin(self, pool=None, capture_error_mode: str = "global", check_input_liveness: bool = False) -> None:
        """Starts capturing: operations on the current GPU are recorded instead of executed.

        ``pool`` has no effect on results: each graph has a separate pool. ``capture_error_mode`` has no effect either:
        an operation that a graph cannot contain is an error in every mode. Nor does ``check_input_liveness``: the engine
        keeps the graph's inputs.
        """
        check_flags("capture_begin", check_input_liveness=check_input_liveness)
        _check_pool(pool)
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
            )
        if self._number:
            raise RuntimeError("the graph is already captured; call reset() first")
        global _capturing
        self._number, _capturing = next(_numbers), True
        _C.ops.graph_begin(self._number, _C.device(f"cuda:{current_device()}"))

    def capture_end(self) -> None:
        """Ends the capture and waits for the engine. Raises RuntimeError if an operation cannot be replayed."""
        if not self._number or self._captured:
            raise RuntimeError("expected capture_begin() before capture_end()")
        global _capturing
        _capturing = False
        try:
            _C.ops.graph_end(self._number).item()
        except RuntimeError:
            self._number = 0
            raise
        self._captured = True

    def replay(self) -> None:
        """Repeats the captured work in the same memory. Does not wait."""
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
        except Exception:  # noqa: BLE001 - the session may have ended
            pass


class graph:  # noqa: N801 - PyTorch's name
    """``with torch.cuda.graph(g):`` captures the block's operations into g, on the stream's GPU if one is given."""

    def __init__(
        self, cuda_graph: CUDAGraph, pool=None, stream=None, capture_error_mode: str = "global", enable_annotations: bool = False,
        annotation_config=None, check_input_liveness: bool = False,
    ):  # fmt: skip
        check_flags("graph", enable_annotations=enable_annotations)
        if enable_annotations or annotation_config is not None:
            raise NotImplementedError("[graph] expected no annotations: kernels of a graph are not annotated")
        if stream is not None:
            check_kind("graph", "stream", stream, Stream)
        self.cuda_graph = cuda_graph
        self._options = {
            "pool": pool, "capture_error_mode": capture_error_mode, "check_input_liveness": check_input_liveness,
        }  # fmt: skip
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
        except RuntimeError:  # the error raised in the block is more specific
            pass


def replay_stats(device=None) -> dict[str, int]:
    """Statistics of this session's repeated work on the GPU, which is replayed as graphs automatically.

    ``graphs``: current number of graphs. ``replays``: number of replays. ``launches``: number of launches replaced by
    replays. ``changed``: number of launches whose parameters differed from the previous replay.

    ``replay_refusal`` in ``teletensor status --json`` gives the reason why repeated work is not replayed.
    ``TELETENSOR_CUDA_REPLAY`` in the engine's environment sets after how many microseconds without a further launch the
    held launches are issued individually (default 200); ``off`` turns automatic replay off. Waits for the engine.
    """
    names = ("graphs", "replays", "launches", "changed")
    return dict(zip(names, _C.ops.replay_counts(f"cuda:{index_of(device)}").tolist(), strict=True))


def graph_pool_handle() -> tuple[int, int]:
    """A handle for ``graph(..., pool=)``. It has no effect: each graph has a separate pool."""
    return 0, next(_numbers)


def make_graphed_callables(
    callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None, capture_error_mode: str = "global",
    enable_annotations: bool = False,
):  # fmt: skip
    """Returns the callables unchanged: the engine replays repeated work, including gradients, as graphs automatically.

    ``replay_stats`` counts the replayed work. Nothing is captured here, so ``num_warmup_iters``,
    ``allow_unused_input``, ``pool``, ``capture_error_mode`` and ``enable_annotations`` have no effect.
    """
    check_kind("make_graphed_callables", "capture_error_mode", capture_error_mode, str)
    check_flags("make_graphed_callables", enable_annotations=enable_annotations)
    _check_pool(pool)
    if isinstance(callables, tuple) and len(sample_args) != len(callables):
        raise ValueError(f"expected sample_args for each of {len(callables)} callables, got {len(sample_args)}")
    return callables


def is_current_stream_capturing() -> bool:
    """Whether a graph is being captured."""
    return _capturing
