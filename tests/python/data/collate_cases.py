"""Cases: values, types and errors of default_collate and default_convert."""

from __future__ import annotations

from collections import OrderedDict, UserList, deque, namedtuple
from typing import Any

from tests.python.names.record import error, plain

Pair = namedtuple("Pair", "a b")


class Frozen(tuple):
    """A sequence that is made from its elements."""


class Fixed(list):
    """A list with an attribute."""

    label = "fixed"


def batches() -> list[Any]:
    """Batches that can be collated."""
    import numpy as np

    return [
        [1, 2], [True, False], [1.5, 2], [1, 2.5], [2**40, 1], ["a", "b"], [b"a", b"b"], [np.float32(1), np.float32(2)],
        [np.float64(1), np.float64(2)], [np.int16(1)], [np.bool_(True)], [np.arange(3), np.arange(3)],
        [np.float16([1, 2]), np.float16([3, 4])], [np.complex64([1j])], [np.zeros((0, 2)), np.zeros((0, 2))],
        [(1, "a"), (2, "b")], [[1, [2.0]], [3, [4.0]]], [{"a": 1, "b": (2, 3)}, {"a": 4, "b": (5, 6)}], [Pair(1, 2), Pair(3, 4)],
        [OrderedDict(x=1), OrderedDict(x=2)], [UserList([1, 2]), UserList([3, 4])], [deque([1]), deque([2])], [range(2), range(2)],
        [Fixed([1, 2]), Fixed([3, 4])], [np.array(5), np.array(6)], [[], []], [{}, {}], [np.uint16([1]), np.uint16([2])],
    ]  # fmt: skip


def rejected() -> list[Any]:
    """Batches that cannot be collated."""
    import numpy as np

    return [
        [None], [1j], [object], [np.array(["a"])], [np.array([object()])], [[1, 2], [3]], [{1, 2}],
        [np.zeros(2), np.zeros(3)], [{"a": 1}, {"b": 1}],
    ]  # fmt: skip


def shown(value: Any) -> Any:
    """A value with the types of its containers."""
    if hasattr(value, "detach") or isinstance(value, (str, bytes, int, float, bool)):
        return plain(value)
    entries = [shown(v) for v in (value.values() if hasattr(value, "values") else value)]
    return [type(value).__name__, entries]


def case_default_collate(torch: Any) -> Any:
    """The results in this process."""
    return [shown(torch.utils.data.default_collate(b)) for b in batches()]


def case_collate_in_a_worker(torch: Any) -> Any:
    """The results of a worker process."""
    found = []
    for batch in batches():
        loader = torch.utils.data.DataLoader(batch, len(batch), num_workers=1)
        found.append(shown(next(iter(loader))))
    return found


def case_default_convert(torch: Any) -> Any:
    """The results for single samples."""
    return [shown(torch.utils.data.default_convert(sample)) for batch in batches() for sample in batch[:1]]


def case_convert_in_a_worker(torch: Any) -> Any:
    """The samples of a worker process, without batches."""
    samples = [batch[0] for batch in batches()]
    return [shown(sample) for sample in torch.utils.data.DataLoader(samples, None, num_workers=1)]


def case_collate_errors(torch: Any) -> Any:
    """The types of the errors, and the texts that do not describe tensors."""
    texts = [error(torch.utils.data.default_collate, batch) for batch in rejected()]
    return [text if "default_collate" in text or "each element" in text else text.split(":")[0] for text in texts]


def case_collate_map(torch: Any) -> Any:
    """A map of functions by type, and its order."""
    collate = torch.utils.data._utils.collate

    def join(batch: Any, *, collate_fn_map: Any = None) -> str:
        return "+".join(str(x) for x in batch)

    functions = {int: join, (str, float): join}
    rows = [[1, 2], [True, False], ["a"], [1.5], [[1, "x"], [2, "y"]], [{"k": 1}]]
    return [shown(collate.collate(row, collate_fn_map=functions)) for row in rows]
