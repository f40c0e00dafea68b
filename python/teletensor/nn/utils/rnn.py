"""Sequences of different lengths, padded or packed."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable

from ... import _C, _autocast_lists
from ..._C import Tensor

__all__ = [
    "PackedSequence", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence", "unpad_sequence",
    "unpack_sequence", "invert_permutation",
]  # fmt: skip

_Packed = namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(_Packed):
    """The rows of all sequences by time step, longest sequence first; see torch.nn.utils.rnn.PackedSequence.

    ``steps`` contains batch_sizes as Python ints, so that reading the sizes does not wait for the engine.
    """

    steps: list[int]

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        steps = [int(n) for n in (batch_sizes.tolist() if isinstance(batch_sizes, Tensor) else batch_sizes)]
        if not isinstance(batch_sizes, Tensor):
            batch_sizes = _C.tensor(steps, dtype=_C.int64)
        self = super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)
        self.steps = steps
        return self

    def _with_data(self, data: Tensor, indices=None) -> PackedSequence:
        result = _Packed.__new__(type(self), data, self.batch_sizes, *(indices or self[2:]))
        result.steps = self.steps
        return result

    def to(self, *args, **kwargs) -> PackedSequence:
        """Moves or casts the data."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        return self._with_data(data, tuple(None if i is None else i.to(data.device) for i in self[2:]))

    def cuda(self, device=None, *args, **kwargs) -> PackedSequence:
        """Copies the data to a GPU of the engine, by default the current one."""
        return self.to("cuda" if device is None else device, *args, **kwargs)

    def cpu(self, *args, **kwargs) -> PackedSequence:
        """Copies the data to the engine's CPU."""
        return self.to("cpu", *args, **kwargs)

    def pin_memory(self) -> PackedSequence:
        """Returns itself, because the client stores no data that could be pinned."""
        return self

    def is_pinned(self) -> bool:
        """Whether the data is pinned."""
        return self.data.is_pinned()

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        return self.data.is_cuda


def _cast(name: str, dtype: _C.dtype) -> Callable[[PackedSequence], PackedSequence]:
    def cast(self: PackedSequence) -> PackedSequence:
        return self.to(dtype)

    cast.__name__, cast.__qualname__ = name, f"PackedSequence.{name}"
    cast.__doc__ = f"Casts the data to {str(dtype).removeprefix('torch.')}."
    return cast


for _name, _dtype in (
    ("double", _C.float64), ("float", _C.float32), ("half", _C.float16), ("long", _C.int64), ("int", _C.int32), ("short", _C.int16),
    ("char", _C.int8), ("byte", _C.uint8),
):  # fmt: skip
    setattr(PackedSequence, _name, _cast(_name, _dtype))


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The inverse of a permutation."""
    if permutation is None:
        return None
    positions = _C.torch.arange(permutation.numel(), device=permutation.device)
    return _C.torch.empty_like(permutation).scatter_(0, permutation, positions)


def _lengths_list(lengths) -> list[int]:
    return [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]


def pack_padded_sequence(input: Tensor, lengths, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """Packs a padded batch of sequences for recurrent layers, which then compute no steps of the padding.

    Args:
        input: (T, N, *), or (N, T, *) with batch_first.
        lengths: of the N sequences: a list, or a tensor on the CPU, for which it waits.
        batch_first: whether the batch is the first dimension.
        enforce_sorted: whether the lengths must decrease; False: the sequences are sorted, and results have the original
            order.

    Raises:
        RuntimeError: a length is not positive or exceeds T, lengths and the batch differ in number, or lengths increase.

    >>> packed = torch.nn.utils.rnn.pack_padded_sequence(torch.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 3, 2], [2, 1])
    """
    sizes = _lengths_list(lengths)
    order = list(range(len(sizes)))
    if not enforce_sorted:
        order.sort(key=lambda i: -sizes[i])
        sizes = [sizes[i] for i in order]
    elif any(a < b for a, b in zip(sizes, sizes[1:])):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do "
            "not need ONNX exportability."
        )
    if batch_first:
        input = input.transpose(0, 1)
    if len(sizes) != input.shape[1]:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={input.shape[1]})")
    if not sizes or sizes[-1] <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    if sizes[0] > input.shape[0]:
        raise RuntimeError(f"Expected lengths of at most {input.shape[0]}, got {sizes[0]}")
    sorted_indices = None
    if not enforce_sorted:
        sorted_indices = _C.tensor(order, dtype=_C.int64, device=input.device)
        input = input.index_select(1, sorted_indices)
    steps = [sum(n > t for n in sizes) for t in range(sizes[0])]
    rows = [t * input.shape[1] + i for t, count in enumerate(steps) for i in range(count)]
    flat = input.reshape(-1, *input.shape[2:])
    data = flat.index_select(0, _C.tensor(rows, dtype=_C.int64, device=input.device))
    return PackedSequence(data, steps, sorted_indices)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None) -> tuple[Tensor, Tensor]:
    """The inverse of pack_padded_sequence.

    Args:
        sequence: a PackedSequence.
        batch_first: whether the batch is the first dimension of the result.
        padding_value: the elements after the end of a sequence.
        total_length: T of the result; None: the longest sequence.

    Returns:
        The padded sequences in the order before packing, (T, N, *) or (N, T, *), and their lengths.

    Raises:
        ValueError: total_length is less than the longest sequence.

    >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])])
    >>> [t.tolist() for t in torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)]
    [[[1, 2], [3, 0]], [2, 1]]
    """
    steps = sequence.steps
    longest = len(steps)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                f"Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {longest}"
            )
        longest = total_length
    batch = steps[0]
    rows = [t * batch + i for t, count in enumerate(steps) for i in range(count)]
    data = sequence.data
    index = _C.tensor(rows, dtype=_C.int64, device=data.device)
    empty = _C.torch.full((longest * batch, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    padded = empty.index_copy(0, index, data).reshape(longest, batch, *data.shape[1:])
    lengths = _C.tensor([sum(count > i for count in steps) for i in range(batch)], dtype=_C.int64)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return padded.transpose(0, 1) if batch_first else padded, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side: str = "right") -> Tensor:
    """Pads sequences (L, *) to a batch (T, N, *) of the first one's dtype, also under autocast.

    Raises:
        RuntimeError: there are no sequences, their other sizes differ, or `padding_side` is not "left" or "right".
    """
    from ..functional import pad

    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    longest = max(s.shape[0] for s in sequences)
    padded = []
    for s in sequences:
        gap = longest - s.shape[0]
        sides = [0, gap] if padding_side == "right" else [gap, 0]
        s = pad(s, [0, 0] * (s.dim() - 1) + sides, value=padding_value) if gap else s
        padded.append(s.to(sequences[0].dtype))
    return _autocast_lists.call(_C.torch.stack, ("as given", "as given"), (padded, 0 if batch_first else 1), None)


def unpad_sequence(padded_sequences: Tensor, lengths, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded batch."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [s[:n] for s, n in zip(padded_sequences.unbind(0), _lengths_list(lengths))]


def pack_sequence(sequences, enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences of any lengths."""
    return pack_padded_sequence(pad_sequence(sequences), [s.shape[0] for s in sequences], False, enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed batch."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
