"""Models that generate sequences of tokens: two functions over one cache, which a daemon runs for many requests at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from .. import _C
from .._C import Tensor
from ._entries import Entry


@dataclasses.dataclass
class Decoder:
    """A model for streams of tokens (docs/serving-python.md, "Generation").

    Attributes:
        prefill: ``prefill(tokens, length, slot, cache)`` computes a prompt, int64 tokens (1, T), of which the first `length`
            (1) count; the others are padding. It stores what later steps need in slot `slot` (1) of the cache, in place, and
            returns float32 logits (1, vocabulary) of the next token.
        step: ``step(tokens, positions, window, cache)`` appends a token to each of the first R slots: int64 tokens (R) at
            positions (R). `window` (W) is 0, 1, ..., W - 1, with W larger than all positions: no later position has to be
            read. Returns logits (R, vocabulary). Row i is slot i; slots without a sequence have token 0 and position 0.
        cache: a tensor, or tensors by name, passed as keywords; the daemon makes its own, zero at first.
        slots: sequences that the cache has room for.
        max_length: tokens of a sequence, with its prompt.
    """

    prefill: Callable
    step: Callable
    cache: Tensor | Mapping[str, Tensor]
    slots: int
    max_length: int

    def __call__(self, *args, **kwargs):
        """Raises TypeError: a decoder is served, not called."""
        raise TypeError("[serving] a Decoder is saved or served; call its functions prefill and step")


def decoder_entries(decoder: Decoder) -> tuple[dict[str, Entry], dict[str, str]]:
    """The entries and the attributes of a model of generation."""
    for name, number in (("slots", decoder.slots), ("max_length", decoder.max_length)):
        if not isinstance(number, int) or number < 2:
            raise ValueError(f"[serving] expected {name} to be an integer of at least 2, got {number!r}")
    states = dict(decoder.cache) if isinstance(decoder.cache, Mapping) else {"cache": decoder.cache}

    def zeros(*size: int) -> Tensor:
        return _C.torch.zeros(size, dtype=_C.int64)

    length = min(8, decoder.max_length - 1)
    prefill = Entry(
        decoder.prefill, (zeros(1, max(length, 2)), zeros(1) + 1, zeros(1)), [{1: "length"}, {}, {}], ["tokens", "length", "slot"],
        ["logits"], states,
    )  # fmt: skip
    step = Entry(
        decoder.step, (zeros(2), zeros(2), zeros(max(length, 3))), [{0: "rows"}, {0: "rows"}, {0: "window"}],
        ["tokens", "positions", "window"], ["logits"], states,
    )  # fmt: skip
    attributes = {"generation.slots": str(decoder.slots), "generation.max_length": str(decoder.max_length)}
    return {"prefill": prefill, "step": step}, attributes
