"""PowerSGD: communication hooks that send gradients as products of two small matrices.

Source: T. Vogels et al., "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization", NeurIPS 2019.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from .... import _C, linalg
from ...._C import Tensor
from ...._generator import Generator
from ....futures import Future
from ... import distributed_c10d
from ..._grad_bucket import GradBucket
from . import default_hooks

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

logger = logging.getLogger(__name__)


class PowerSGDState:
    """Options of PowerSGD, and its state between steps. One state serves one module.

    Args:
        process_group: the ranks; None: the group of init_process_group().
        matrix_approximation_rank: the number of columns of the two matrices.
        start_powerSGD_iter: the number of steps in which gradients are averaged without compression.
        min_compression_rate: a gradient is compressed only if its size shrinks by at least this factor.
        use_error_feedback: whether the compression error is added to the gradients of the next step.
        warm_start: whether the approximation starts from that of the previous step, instead of from random numbers.
        orthogonalization_epsilon: added to the norm of columns; if it is 0, float32 and float64 matrices are decomposed by
            linalg.qr instead.
        random_seed: of the random numbers; the same on all ranks.
        compression_stats_logging_frequency: the number of steps between two log messages with compression_stats().
        batch_tensors_with_same_shape: whether matrices of equal shape are approximated together.

    Raises:
        ValueError: `start_powerSGD_iter` is less than 2 with error feedback or warm start, as in PyTorch.
    """

    def __init__(
        self, process_group, matrix_approximation_rank: int = 1, start_powerSGD_iter: int = 1_000,  # noqa: N803
        min_compression_rate: float = 2, use_error_feedback: bool = True, warm_start: bool = True,
        orthogonalization_epsilon: float = 0, random_seed: int = 0, compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ):  # fmt: skip
        import numpy as np

        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can "
                "only be applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank, self.start_powerSGD_iter = matrix_approximation_rank, start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = np.random.RandomState(random_seed)
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        # By bucket index: the part of the gradients that compression has lost, and the last matrices.
        self.error_dict: dict[int, Tensor] = {}
        self.p_memory_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, Tensor] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.next_stats_report = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Counts the step at its last bucket."""
        if bucket.is_last():
            self.iter += 1
            if self.iter == self.start_powerSGD_iter:
                logger.info("Start to apply PowerSGD after %s iterations.", self.iter)

    def compression_stats(self) -> tuple[float, int, int]:
        """Returns the compression rate, and the numbers of elements before and after compression, over all steps."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return before / after if after > 0 else 0, before, after

    # Used by the hooks.

    def _is_exact(self, bucket: GradBucket) -> bool:
        """Whether the bucket is averaged exactly: in the first steps, and a sparse gradient, which has few elements already."""
        return self.iter < self.start_powerSGD_iter or bucket.buffer().is_sparse

    def _report(self, bucket: GradBucket) -> None:
        if bucket.is_last() and self.iter >= self.next_stats_report:
            logger.info("Compression stats: iter %s, rate %s, from %s to %s", self.iter, *self.compression_stats())
            self.next_stats_report = self.iter + self.compression_stats_logging_frequency

    def _with_error(self, bucket: GradBucket, gradient: Tensor) -> Tensor | None:
        """Adds the error of the previous step to the gradient; returns a copy of the sum."""
        if not self.use_error_feedback:
            return None
        if bucket.index() in self.error_dict:
            gradient.add_(self.error_dict[bucket.index()])
        return gradient.clone()

    def _finish(self, bucket: GradBucket, approximation: Tensor, gradient: Tensor | None, q: Tensor, p: Tensor) -> None:
        """Stores the state that the next step needs."""
        if gradient is not None:
            self.error_dict[bucket.index()] = gradient - approximation
        if self.warm_start:
            self.p_memory_dict[bucket.index()], self.q_memory_dict[bucket.index()] = p, q
        self.maybe_increase_iter(bucket)

    def _start_of(self, bucket: GradBucket, shapes: list[tuple[int, ...]], dtype, device) -> list[Tensor]:
        """The matrices from which the approximation starts, with orthonormal columns: the last ones, or random ones."""
        if bucket.index() in self.q_memory_dict:
            matrices = _unflattened(self.q_memory_dict[bucket.index()], shapes)
        else:
            generator = Generator()
            generator.manual_seed(int(self.rng.randint(1_000_000_000)))
            empty = [_C.torch.empty(shape) for shape in shapes]
            matrices = [m.normal_(generator=generator).to(device, dtype) for m in empty]
        return [_orthogonalized(m, self.orthogonalization_epsilon) for m in matrices]


def _orthogonalized(matrices: Tensor, epsilon: float) -> Tensor:
    """Orthonormal columns that span the columns of matrices, of sizes (batch, rows, columns)."""
    if epsilon == 0 and matrices.dtype in (_C.float32, _C.float64):
        return linalg.qr(matrices)[0]
    columns: list[Tensor] = []
    rest = matrices
    for i in range(matrices.shape[2]):
        column = rest[:, :, :1]
        column = column / (column.norm(dim=1, keepdim=True) + epsilon)
        columns.append(column)
        if i + 1 < matrices.shape[2]:
            rest = rest[:, :, 1:]
            rest = rest - column @ (column.transpose(1, 2) @ rest)
    return _C.torch.cat(columns, 2)


def _flattened(tensors: list[Tensor], like: Tensor) -> Tensor:
    if not tensors:
        return _C.torch.empty(0, dtype=like.dtype, device=like.device)
    return _C.torch.cat([t.reshape(-1) for t in tensors])


def _unflattened(flat: Tensor, shapes: list[tuple[int, ...]]) -> list[Tensor]:
    pieces = flat.split([math.prod(shape) for shape in shapes])
    return [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]


def _should_compress(rows: int, columns: int, rank: int, min_compression_rate: float) -> tuple[bool, int, int]:
    """Whether a matrix is compressed, and its numbers of elements before and after compression."""
    before, after = rows * columns, (rows + columns) * rank
    return after * min_compression_rate < before, before, after


def _selected(state: PowerSGDState, gradients: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """The gradients that are compressed, as matrices, and the other ones."""
    compressed, others = [], []
    for gradient in gradients:
        if gradient.numel() == 0:
            continue
        matrix = gradient.view(gradient.shape[0] if gradient.dim() else 1, -1)
        rank = min(*matrix.shape, state.matrix_approximation_rank)
        worthwhile, before, after = _should_compress(*matrix.shape, rank, state.min_compression_rate)
        state.total_numel_before_compression += before
        state.total_numel_after_compression += after if worthwhile else before
        if worthwhile:
            compressed.append(matrix)
        else:
            others.append(gradient)
    return compressed, others


def _batches(state: PowerSGDState, matrices: list[Tensor]) -> list[list[Tensor]]:
    """The matrices that are approximated together."""
    if not state.batch_tensors_with_same_shape:
        return [[m] for m in matrices]
    by_shape: dict[tuple, list[Tensor]] = {}
    for m in matrices:
        by_shape.setdefault(tuple(m.shape), []).append(m)
    return list(by_shape.values())


def _approximated(
    state: PowerSGDState, bucket: GradBucket, group, matrices: list[Tensor], before: Future | None, finish: Callable
) -> Future:
    """Approximates the sums of batches of matrices over all ranks.

    Args:
        matrices: this rank's matrices, of sizes (batch, rows, columns).
        before: a future to wait for first.
        finish: gets the averages, and the flat matrices q and p; returns the future's value.
    """
    ranks = [min(m.shape[1], m.shape[2], state.matrix_approximation_rank) for m in matrices]
    q_shapes = [(m.shape[0], m.shape[2], rank) for m, rank in zip(matrices, ranks, strict=True)]
    p_shapes = [(m.shape[0], m.shape[1], rank) for m, rank in zip(matrices, ranks, strict=True)]
    buffer = bucket.buffer()
    qs = state._start_of(bucket, q_shapes, buffer.dtype, buffer.device)
    flat_p = _flattened([m @ q for m, q in zip(matrices, qs, strict=True)], buffer)

    def compute_q(_: Future) -> Tensor:
        ps[:] = [_orthogonalized(p, state.orthogonalization_epsilon) for p in _unflattened(flat_p, p_shapes)]
        flat_q = _flattened([m.transpose(1, 2) @ p for m, p in zip(matrices, ps, strict=True)], buffer)
        group.allreduce([flat_q]).wait()
        return flat_q.div_(group.size())

    def decompress(future: Future):
        flat_q = future.value()
        averages = [p @ q.transpose(1, 2) for p, q in zip(ps, _unflattened(flat_q, q_shapes), strict=True)]
        return finish(averages, flat_q, _flattened(ps, buffer))

    ps: list[Tensor] = []
    if before is None:
        started = default_hooks._started(group.allreduce([flat_p]))
    else:
        # Overlaps two collectives: the second starts before the first has ended.
        work = group.allreduce([flat_p])
        started = before.then(lambda future: (future.value(), work.wait())[0])
    return started.then(compute_q).then(decompress)


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:  # noqa: N802 - PyTorch's name
    """Averages gradients approximately: each matrix M as P Q^T with `matrix_approximation_rank` columns.

    P = M Q is summed over the ranks and orthogonalized, then Q = M^T P is averaged. Vectors, and matrices that
    compression would shrink too little, are averaged exactly.
    """
    group = state.process_group or distributed_c10d._get_default_group()
    buffer = bucket.buffer()
    if state._is_exact(bucket):
        state.maybe_increase_iter(bucket)
        return default_hooks._allreduce_fut(group, buffer)
    gradient = state._with_error(bucket, buffer)
    compressed, others = _selected(state, bucket.gradients())
    state._report(bucket)
    batches = _batches(state, compressed)
    exact = default_hooks._allreduce_fut(group, _flattened(others, buffer))

    def finish(averages: list[Tensor], flat_q: Tensor, flat_p: Tensor) -> Tensor:
        for other, average in zip(others, _unflattened(exact.value(), [tuple(t.shape) for t in others]), strict=True):
            other.copy_(average)
        for batch, average in zip(batches, averages, strict=True):
            for matrix, result in zip(batch, average, strict=True):
                matrix.copy_(result)
        state._finish(bucket, buffer, gradient, flat_q, flat_p)
        return buffer

    return _approximated(state, bucket, group, [_C.torch.stack(batch) for batch in batches], exact, finish)


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:  # noqa: N802 - PyTorch's name
    """Like powerSGD_hook, with all gradients of a bucket as one square matrix, padded by zeros.

    Faster, but less exact, because the matrix's rows and columns have no meaning.
    """
    group = state.process_group or distributed_c10d._get_default_group()
    buffer = bucket.buffer()
    if state._is_exact(bucket):
        state.maybe_increase_iter(bucket)
        return default_hooks._allreduce_fut(group, buffer)
    side = math.ceil(math.sqrt(buffer.numel()))
    state.total_numel_before_compression += buffer.numel()
    state.total_numel_after_compression += side * state.matrix_approximation_rank * 2
    state._report(bucket)
    gradient = state._with_error(bucket, buffer)
    padding = _C.torch.zeros(side * side - buffer.numel(), dtype=buffer.dtype, device=buffer.device)
    matrix = _C.torch.cat([buffer, padding]).view(1, side, side)

    def finish(averages: list[Tensor], flat_q: Tensor, flat_p: Tensor) -> Tensor:
        buffer.copy_(averages[0].view(-1)[: buffer.numel()])
        state._finish(bucket, buffer, gradient, flat_q, flat_p)
        return buffer

    return _approximated(state, bucket, group, [matrix], None, finish)
