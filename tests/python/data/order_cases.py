"""Cases: orders drawn from equal seeds."""

from __future__ import annotations

from typing import Any


def generators(torch: Any) -> list[Any]:
    """Generators with several seeds."""
    return [torch.Generator().manual_seed(seed) for seed in (0, 7, 123456789012345)]


def epochs(sampler: Any, count: int = 3) -> list[list]:
    """The orders of several iterations."""
    return [list(sampler) for _ in range(count)]


def case_random_sampler(torch: Any) -> Any:
    """Permutations, partial and repeated permutations, and draws with replacement."""
    options = ({}, {"num_samples": 3}, {"num_samples": 25}, {"replacement": True}, {"replacement": True, "num_samples": 70})
    return [
        epochs(torch.utils.data.RandomSampler(range(10), generator=g, **o)) for o in options for g in generators(torch)
    ]


def case_sampler_with_the_default_generator(torch: Any) -> Any:
    """Each iteration draws a seed."""
    found = []
    for seed in (0, 99):
        torch.manual_seed(seed)
        found.append(epochs(torch.utils.data.RandomSampler(range(12))))
        found.append(list(torch.utils.data.SubsetRandomSampler([5, 3, 8, 1])))
    return found


def case_subset_random_sampler(torch: Any) -> Any:
    """Permutations of given indices."""
    data = torch.utils.data
    return [epochs(data.SubsetRandomSampler([4, 9, 2, 7, 7, 1], generator=g)) for g in generators(torch)]


def case_weighted_random_sampler(torch: Any) -> Any:
    """Draws by weights, with and without replacement."""
    weights = [0.1, 0.9, 0.4, 0.7, 3.0, 0.6, 0.0]
    rows = ((5, True), (40, True), (1, True), (6, False), (2, False))
    data = torch.utils.data
    return [epochs(data.WeightedRandomSampler(weights, n, r, g)) for n, r in rows for g in generators(torch)]


def case_random_split(torch: Any) -> Any:
    """Splits by lengths and by fractions."""
    data = torch.utils.data
    rows = ((range(10), [3, 7]), (range(31), [0.3, 0.3, 0.4]), (range(5), [0.5, 0.25, 0.25]), (range(1), [1]))
    return [[list(s.indices) for s in data.random_split(d, n, g)] for d, n in rows for g in generators(torch)]


def case_distributed_sampler(torch: Any) -> Any:
    """Each rank's share in several epochs."""
    found = []
    for options in ({}, {"seed": 5}, {"drop_last": True}, {"shuffle": False}, {"shuffle": False, "drop_last": True}):
        for length, replicas in ((11, 3), (2, 5), (12, 4)):
            for rank in range(replicas):
                sampler = torch.utils.data.DistributedSampler(range(length), replicas, rank, **options)
                sampler.set_epoch(rank % 2)
                found.append([len(sampler), list(sampler)])
    return found


def case_loader_orders(torch: Any) -> Any:
    """Shuffled batches of several epochs, with the draws of the workers' seeds in between."""
    found = []
    for workers in (0, 2):
        for options in ({}, {"persistent_workers": workers > 0}, {"batch_size": None}):
            generator = torch.Generator().manual_seed(3)
            options = {"batch_size": 4, **options}
            loader = torch.utils.data.DataLoader(
                range(11), shuffle=True, generator=generator, num_workers=workers, collate_fn=lambda s: s, **options
            )
            found.append(epochs(loader))
        torch.manual_seed(17)
        loader = torch.utils.data.DataLoader(range(11), 5, shuffle=True, num_workers=workers, collate_fn=list)
        found.append(epochs(loader))
    return found


def case_batch_sampler(torch: Any) -> Any:
    """Batches of indices."""
    data = torch.utils.data
    rows = [(n, size, drop) for n in (0, 1, 6, 7) for size in (1, 3) for drop in (False, True)]
    return [[list(data.BatchSampler(range(n), size, drop)), len(data.BatchSampler(range(n), size, drop))] for n, size, drop in rows]
