"""Cases: batches of worker processes."""

from __future__ import annotations

import itertools
import random
from typing import Any


class Seeds:
    """Samples that show a worker's seeds and random numbers."""

    def __init__(self, torch: Any):
        self.torch = torch

    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int) -> list:
        import numpy as np

        info = self.torch.utils.data.get_worker_info()
        numbers = [random.random(), float(np.random.rand()), int(np.random.randint(1000))]
        return [i, info.id, info.num_workers, str(info.seed), self.torch.initial_seed() == info.seed, *numbers]


def same(samples: Any) -> Any:
    """Leaves samples as they are."""
    return samples


def case_seeds(torch: Any) -> Any:
    """Seeds and random numbers of the workers, in two epochs."""
    found = []
    for options in ({}, {"persistent_workers": True}):
        generator = torch.Generator().manual_seed(11)
        loader = torch.utils.data.DataLoader(
            Seeds(torch), None, num_workers=2, collate_fn=same, generator=generator, **options
        )
        found.append([list(loader) for _ in range(2)])
    return found


def shares(torch: Any, lengths: list[int]) -> Any:
    """An iterable data set of which worker k yields lengths[k] samples."""

    class Shares(torch.utils.data.IterableDataset):
        def __iter__(self):
            info = torch.utils.data.get_worker_info()
            number = 0 if info is None else info.id
            return iter(range(100 * number, 100 * number + lengths[number]))

    return Shares()


def case_iterable(torch: Any) -> Any:
    """The order of batches of workers with shares of different lengths."""
    found = []
    for lengths in ([5, 3], [0, 4], [1, 12]):
        for options in ({"batch_size": 2}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}):
            for more in ({}, {"persistent_workers": True, "prefetch_factor": 1}):
                loader = torch.utils.data.DataLoader(
                    shares(torch, lengths), num_workers=2, collate_fn=same, **options, **more
                )
                found.append([list(loader) for _ in range(1 + ("persistent_workers" in more))])
    return found


def case_map(torch: Any) -> Any:
    """The order of batches of data sets with indices."""
    data = torch.utils.data
    rows: list[dict] = [
        {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}, {"batch_sampler": [[5, 1], [0], [2, 2, 2]]},
        {"sampler": [4, 3, 2], "batch_size": 2}, {"batch_size": 4, "prefetch_factor": 1}, {"batch_size": 20},
        {"batch_size": 2, "in_order": False, "num_workers": 1}, {"batch_size": None, "sampler": [[1, 2], [3]]},
    ]  # fmt: skip
    return [list(data.DataLoader(Squares(), collate_fn=same, **{"num_workers": 2, **row})) for row in rows]


class Squares:
    """Samples by index or by a list of indices."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: Any) -> Any:
        return [k * k for k in i] if isinstance(i, list) else i * i


def case_combined_data_sets(torch: Any) -> Any:
    """Samples of StackDataset, ConcatDataset, ChainDataset and Subset."""
    data, squares = torch.utils.data, Squares()
    chain = data.ChainDataset([shares(torch, [3]), shares(torch, [2])])
    parts = [
        data.StackDataset(squares, range(8)), data.StackDataset(a=squares, b=range(8)), data.ConcatDataset([range(3), squares]),
        data.Subset(data.Subset(squares, [7, 6, 5, 4]), [3, 0]), data.Subset(data.StackDataset(squares, range(8)), [2, 1]),
    ]  # fmt: skip
    found = [[list(data.DataLoader(p, 3, collate_fn=same)), len(p), [p[i] for i in range(2)]] for p in parts]
    return [*found, list(chain), list(shares(torch, [2]) + shares(torch, [1])), parts[2].cumulative_sizes, parts[2][-1]]


class Part:
    """The part of a data set that counts samples."""

    start = count = 0


class Assigned:
    """Samples that depend on what the worker has assigned to its data set. Holds a tensor."""

    def __init__(self, torch: Any):
        self.rows, self.start, self.parts, self.seen = torch.arange(8), 0, [Part()], {}
        import numpy as np

        self.random, self.numbers = random.Random(3), np.random.default_rng(3)

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> list:
        self.seen[i] = True
        self.parts[0].count += 1
        drawn = [self.random.random(), float(self.numbers.random())]
        return [int(self.rows[i]), self.start, self.parts[0].start, self.parts[0].count, sorted(self.seen), drawn]

    def collate(self, samples: list) -> list:
        """The samples and the worker's start."""
        return [self.start, samples]


def case_assigned_state(torch: Any) -> Any:
    """Each worker has its own data set, whose parts worker_init_fn and the samples change."""

    def assign(number: int) -> None:
        dataset = torch.utils.data.get_worker_info().dataset
        dataset.start, dataset.parts[0].start = 100 * number, 10 * number

    dataset = Assigned(torch)
    loader = torch.utils.data.DataLoader(dataset, 2, num_workers=2, worker_init_fn=assign, collate_fn=dataset.collate)
    return [list(loader), list(loader), dataset.start, dataset.parts[0].count, dataset.seen]


class LibraryLoader:
    """A library's loader: an iterable data set of its own, with the attributes that the iterators of PyTorch read."""

    _IterableDataset_len_called, _auto_collation, drop_last, in_order, collate_fn = None, False, False, True, staticmethod(same)
    generator, prefetch_factor, pin_memory, pin_memory_device, timeout, persistent_workers = None, 2, False, "", 0, False

    def __init__(self, torch: Any, num_workers: int):
        self.torch, self.num_workers, self.dataset, self.rows = torch, num_workers, self, Assigned(torch)
        self._dataset_kind = torch.utils.data._DatasetKind.Iterable
        self.multiprocessing_context = torch.multiprocessing if num_workers else None

    @property
    def _index_sampler(self) -> Any:
        return itertools.count()

    def worker_init_fn(self, number: int) -> None:
        """Selects the worker's samples."""
        info = self.torch.utils.data.get_worker_info()
        info.dataset.rows.start, info.dataset.rows.step = info.id, info.num_workers

    def __iter__(self) -> Any:
        return (self.rows[i][:2] for i in range(self.rows.start, 8, getattr(self.rows, "step", 1)))


def case_loader_of_a_library(torch: Any) -> Any:
    """The iterators of a DataLoader with an object that is not a DataLoader."""
    kinds = torch.utils.data.dataloader
    return [
        list(kinds._SingleProcessDataLoaderIter(LibraryLoader(torch, 0))),
        list(kinds._MultiProcessingDataLoaderIter(LibraryLoader(torch, 2))),
    ]
