"""Ways in which DistributedDataParallel sends gradients, for its ``register_comm_hook(None, hook)``.

The engine applies them; the functions here only name them.
"""

from __future__ import annotations

from .... import _C


def _hook(name: str, wire_dtype, doc: str):
    def hook(process_group, bucket):
        raise NotImplementedError(f"[{name}] expected to be passed to register_comm_hook: the engine applies it to its buckets")

    hook.__name__ = hook.__qualname__ = name
    hook.__doc__ = doc
    hook._wire_dtype = wire_dtype
    return hook


allreduce_hook = _hook("allreduce_hook", None, "Sends gradients in their own dtype, which is the default.")
fp16_compress_hook = _hook("fp16_compress_hook", _C.float16, "Sends gradients as float16, and averages them in float16.")
bf16_compress_hook = _hook("bf16_compress_hook", _C.bfloat16, "Sends gradients as bfloat16, and averages them in bfloat16.")

__all__ = ["allreduce_hook", "bf16_compress_hook", "fp16_compress_hook"]
