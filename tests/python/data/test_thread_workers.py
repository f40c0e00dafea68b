"""Workers that are threads: their random numbers, and their ends."""

import os
import random
import sys

import pytest

pytestmark = pytest.mark.slow

np = pytest.importorskip("numpy")


class Draws:
    """Samples with the random numbers of a worker's generators. `torch` is imported by the worker if it is a process."""

    def __init__(self, count=12, act=None):
        self.count, self.act = count, act

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        import teletensor as torch

        if self.act is not None and i == 3:
            self.act()
        drawn = [torch.rand(2), torch.nn.functional.dropout(torch.ones(4)), torch.empty(1).normal_(), torch.randperm(4)]
        numbers = [random.random(), random.gauss(0, 1), float(np.random.rand()), float(np.random.sample())]
        generator = torch.rand(1, generator=torch.Generator().manual_seed(i))
        return [i, *numbers, random.randint(0, 99), torch.initial_seed(), *(x.tolist() for x in (*drawn, generator))]


def keep(samples):
    return samples


def batches(torch, context, workers, dataset=None, between=lambda: None):
    """The samples of two epochs."""
    generator = torch.Generator().manual_seed(11)
    loader = torch.utils.data.DataLoader(
        dataset or Draws(), 2, num_workers=workers, collate_fn=keep, multiprocessing_context=context, generator=generator
    )
    found = []
    for _ in range(2):
        for batch in loader:
            found.append(batch)
            between()
    return found


@pytest.mark.filterwarnings("ignore:.*threads load this data set")
@pytest.mark.parametrize("workers", [1, 3])
def test_random_numbers_depend_on_the_seed_only(torch, workers):
    """Whatever the order in which the threads run, and whatever this thread draws."""

    def draw():
        torch.rand(3)
        torch.manual_seed(5)
        random.random()
        np.random.rand()

    expected = batches(torch, "thread", workers)
    assert batches(torch, "thread", workers) == expected
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        assert batches(torch, None, workers, between=draw) == expected
    finally:
        sys.setswitchinterval(interval)


def test_random_numbers_are_those_of_processes(torch):
    assert batches(torch, "thread", 1) == batches(torch, "spawn", 1)


def test_generators_of_this_thread_are_not_changed(torch):
    def state():
        python, numpy = random.getstate(), np.random.get_state()[1].tolist()
        return python, numpy, torch.get_rng_state().tolist(), torch.initial_seed()

    class Seeding(Draws):
        def __getitem__(self, i):
            torch.manual_seed(i)
            random.seed(i)
            np.random.seed(i)
            return super().__getitem__(0)[1:5] + [torch.initial_seed(), torch.rand(1).item()]

    functions = random.random, random.shuffle, np.random.rand, np.random.seed, os._exit
    torch.manual_seed(3)
    before = state()
    found = batches(torch, "thread", 2, Seeding())
    assert state() == before
    assert found[0] == found[6] and [sample[4] for batch in found[:6] for sample in batch] == list(range(12))
    assert functions == (random.random, random.shuffle, np.random.rand, np.random.seed, os._exit)


@pytest.mark.parametrize("act", [lambda: os._exit(5), lambda: sys.exit(5)], ids=["os._exit", "sys.exit"])
@pytest.mark.parametrize("persistent", [False, True])
def test_an_exit_ends_the_worker(torch, act, persistent):
    loader = torch.utils.data.DataLoader(
        Draws(act=act), None, num_workers=2, multiprocessing_context="thread", persistent_workers=persistent
    )
    found = iter(loader)
    assert [next(found)[0] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly") as raised:
        next(found)
    assert "exit code 5" in str(raised.value.__cause__)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        next(found)
    if persistent:
        assert next(iter(loader))[0] == 0


def test_a_loader_may_be_destroyed_while_an_executor_holds_its_lock(torch):
    """The collector of garbage may destroy it while another loader starts its threads."""
    from concurrent.futures import thread

    found = iter(torch.utils.data.DataLoader(Draws(), 2, num_workers=2, multiprocessing_context="thread", collate_fn=keep))
    next(found)
    with thread._global_shutdown_lock:
        del found
