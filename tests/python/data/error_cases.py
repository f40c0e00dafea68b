"""Cases: types and texts of errors."""

from __future__ import annotations

from typing import Any

from tests.python.names.record import error


class TwoArgumentsError(Exception):
    """An exception that cannot be made from a text alone."""

    def __init__(self, code: int, text: str):
        super().__init__(code, text)


class MessageError(Exception):
    """An exception with an argument named message."""

    message = "?"

    def __init__(self, message: str):
        super().__init__(message)


class Failing:
    """Raises an exception instead of sample 2."""

    def __init__(self, kind: type, args: tuple):
        self.kind, self.args = kind, args

    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> int:
        if i == 2:
            raise self.kind(*self.args)
        return i


def same(samples: Any) -> Any:
    """Leaves samples as they are."""
    return samples


def first_and_last(text: str) -> list[str]:
    """The first line and the last one of a message with a traceback."""
    lines = [line for line in text.splitlines() if line.strip()]
    return [lines[0], lines[1], lines[-1]]


def case_worker_errors(torch: Any) -> Any:
    """Errors of samples: what comes before, the error, and what comes after it."""
    rows = (
        (KeyError, ("k",)), (ValueError, ("v", 3)), (TwoArgumentsError, (5, "t")), (MessageError, ("m",)), (OSError, (2, "no file")),
        (UnicodeDecodeError, ("ascii", b"x", 0, 1, "reason")), (AssertionError, ()), (StopIteration, ("s",)), (MemoryError, ()),
    )  # fmt: skip
    found = []
    for kind, args in rows:
        batches = iter(torch.utils.data.DataLoader(Failing(kind, args), 1, num_workers=2, collate_fn=same))
        before = [next(batches), next(batches)]
        try:
            next(batches)
            text = "no error"
        except Exception as e:  # noqa: BLE001 - any error is a result
            text = f"{type(e).__name__}: {e}"
        found.append([before, first_and_last(text), next(batches), error(next, batches)])
    return found


def case_init_error(torch: Any) -> Any:
    """An error of worker_init_fn."""

    def begin(number: int) -> None:
        raise ZeroDivisionError(f"worker {number}")

    batches = iter(torch.utils.data.DataLoader(range(4), num_workers=2, worker_init_fn=begin))
    return first_and_last(error(next, batches))


def case_options(torch: Any) -> Any:
    """Invalid options of DataLoader, samplers and data sets."""
    data = torch.utils.data

    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(3))

        def __repr__(self) -> str:
            return "Stream"

    stream = Stream()
    rows: list[tuple] = [
        (data.DataLoader, ([1],), {"num_workers": -1}), (data.DataLoader, ([1],), {"timeout": -1}),
        (data.DataLoader, ([1],), {"prefetch_factor": 2}), (data.DataLoader, ([1],), {"num_workers": 1, "prefetch_factor": -2}),
        (data.DataLoader, ([1],), {"persistent_workers": True}), (data.DataLoader, ([1],), {"sampler": [0], "shuffle": True}),
        (data.DataLoader, ([1],), {"batch_sampler": [[0]], "batch_size": 2}), (data.DataLoader, ([1],), {"batch_size": 0}),
        (data.DataLoader, ([1],), {"batch_size": None, "drop_last": True}), (data.DataLoader, ([1],), {"batch_size": 1.5}),
        (data.DataLoader, (stream,), {"shuffle": True}), (data.DataLoader, (stream,), {"sampler": [1]}),
        (data.DataLoader, (stream,), {"batch_sampler": [[1]]}), (data.DataLoader, (stream,), {"batch_size": 0}),
        (data.DataLoader, ([1],), {"multiprocessing_context": "fork"}), (data.DataLoader, ([],), {"shuffle": True}),
        (data.DataLoader, ([1],), {"num_workers": 1, "multiprocessing_context": "nothing"}),
        (data.DataLoader, ([1],), {"num_workers": 1, "multiprocessing_context": 3}),
        (setattr, (data.DataLoader([1]), "batch_size", 3), {}), (setattr, (data.DataLoader([1]), "dataset", 3), {}),
        (len, (data.DataLoader(stream),), {}), (data.RandomSampler, ([1], 1), {}), (data.RandomSampler, ([1],), {"num_samples": 0}),
        (data.RandomSampler, ([1],), {"num_samples": 1.5}), (data.BatchSampler, ([1], True, False), {}),
        (data.BatchSampler, ([1], 1, 0), {}), (data.WeightedRandomSampler, ([1.0], 0), {}),
        (data.WeightedRandomSampler, ([1.0], 1, 1), {}), (data.WeightedRandomSampler, ([[1.0]], 1), {}),
        (list, (data.WeightedRandomSampler([1.0, -1.0], 2),), {}), (list, (data.WeightedRandomSampler([0.0], 2),), {}),
        (list, (data.WeightedRandomSampler([1.0], 2, False),), {}), (list, (data.WeightedRandomSampler([float("nan")], 2),), {}),
        (data.DistributedSampler, ([1], 2, 2), {}), (data.random_split, ([1, 2], [1]), {}), (data.random_split, ([1, 2], [-0.5, 1.5]), {}),
        (data.StackDataset, (), {}), (data.StackDataset, ([1], [1, 2]), {}), (data.StackDataset, ([1],), {"a": [1]}),
        (data.ConcatDataset, ([],), {}), (data.ConcatDataset, ([stream],), {}), (list, (data.ChainDataset([[1]]),), {}),
        (data.ConcatDataset([[1]]).__getitem__, (-2,), {}), (data.Dataset().__getitem__, (0,), {}),
        (iter, (data.DataLoader([1], timeout=1),), {}),
    ]  # fmt: skip
    return [error(function, *args, **options) for function, args, options in rows]
