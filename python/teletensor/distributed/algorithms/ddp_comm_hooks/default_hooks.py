"""Communication hooks of DistributedDataParallel, for its ``register_comm_hook(None, hook)``.

The engine applies allreduce_hook, fp16_compress_hook and bf16_compress_hook to its own buckets while backward runs; the
functions are called only if another hook calls them.
"""

from __future__ import annotations

from collections.abc import Callable

from .... import _C
from ....futures import Future
from ... import distributed_c10d
from ..._grad_bucket import GradBucket
from ..._options import AllreduceOptions
from ..._reduce_op import ReduceOp

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def _allreduce_fut(process_group, tensor: _C.Tensor) -> Future:
    """Averages a tensor over the ranks, in place; returns a future of it."""
    group = process_group or distributed_c10d._get_default_group()
    if tensor.is_sparse:  # which collectives only add
        return _started(group.allreduce([tensor.div_(group.size())]))
    return _started(group.allreduce([tensor], AllreduceOptions(reduceOp=ReduceOp.AVG)))


def _started(work) -> Future:
    """A future of the tensor that a collective writes."""
    return work.get_future().then(lambda future: future.value()[0])


def allreduce_hook(process_group, bucket: GradBucket) -> Future:
    """Averages gradients in their own dtype, which is the default."""
    return _allreduce_fut(process_group, bucket.buffer())


def _compressed(dtype, process_group, bucket: GradBucket) -> Future:
    buffer = bucket.buffer()
    average = _allreduce_fut(process_group, buffer.to(dtype))
    return average.then(lambda future: buffer.copy_(future.value()))


def fp16_compress_hook(process_group, bucket: GradBucket) -> Future:
    """Sends gradients as float16, and averages them in float16."""
    return _compressed(_C.float16, process_group, bucket)


def bf16_compress_hook(process_group, bucket: GradBucket) -> Future:
    """Sends gradients as bfloat16, and averages them in bfloat16."""
    return _compressed(_C.bfloat16, process_group, bucket)


allreduce_hook._wire_dtype = None
fp16_compress_hook._wire_dtype = _C.float16
bf16_compress_hook._wire_dtype = _C.bfloat16


def _wrapper(dtype, hook: Callable) -> Callable:
    def compressed_hook(state, bucket: GradBucket) -> Future:
        original = bucket.buffer()
        bucket.set_buffer(original.to(dtype))

        def restore(future: Future) -> _C.Tensor:
            value = future.value()
            return original.copy_(value[0] if isinstance(value, (list, tuple)) else value)

        return hook(state, bucket).then(restore)

    return compressed_hook


def fp16_compress_wrapper(hook: Callable) -> Callable:
    """Returns a hook that casts gradients to float16 before another hook and back after it."""
    return _wrapper(_C.float16, hook)


def bf16_compress_wrapper(hook: Callable) -> Callable:
    """Returns a hook that casts gradients to bfloat16 before another hook and back after it."""
    return _wrapper(_C.bfloat16, hook)
