"""torch._dynamo._trace_wrapped_higher_order_op: a mode for indexing while graphs are captured."""

from contextlib import nullcontext


class TransformGetItemToIndex(nullcontext):
    """A context in which indexing with tensors is recorded as an operator by PyTorch's tracer. It has no effect here."""
