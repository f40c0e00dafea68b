"""torch.nested: lists of tensors of different sizes. Importable; not implemented yet."""

from __future__ import annotations

from .._not_implemented import not_implemented

not_implemented(
    globals(), "there are no nested tensors yet; use torch.nn.utils.rnn.pad_sequence and masks",
    "as_nested_tensor masked_select narrow nested_tensor nested_tensor_from_jagged to_padded_tensor",
)  # fmt: skip
