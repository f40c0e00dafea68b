"""DataLoader with worker processes: failures, ends, leaks, tensors, shared memory."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import pytest

from tests.conftest import IN_PROCESS, ROOT, client_environment

from .datasets import Images, Numbers, Process, Tensors, as_arrays, keep, stack_with_tensors

pytestmark = pytest.mark.slow

np = pytest.importorskip("numpy")


def children() -> set[int]:
    """The process ids of this process's children that run loaders' workers."""
    import multiprocessing

    return {process.pid for process in multiprocessing.active_children()}


def shared_segments() -> int:
    """The number of mapped segments of shared memory."""
    with open("/proc/self/maps") as maps:
        return sum("teletensor-batch" in line for line in maps)


def values(tree):
    """A batch as numbers and lists, with dtypes."""
    if hasattr(tree, "detach"):
        return str(tree.dtype), tree.float().tolist() if tree.dtype.is_floating_point else tree.tolist()
    if hasattr(tree, "dtype"):
        return "array", str(tree.dtype), tree.tolist()
    if isinstance(tree, dict):
        return {key: values(value) for key, value in tree.items()}
    return [values(value) for value in tree] if isinstance(tree, (list, tuple)) else tree


@pytest.fixture(autouse=True)
def no_leaks():
    """No worker, descriptor or segment of shared memory remains after a test."""
    gc.collect()
    before = children(), len(os.listdir("/proc/self/fd")), shared_segments()
    yield
    gc.collect()
    assert (children(), shared_segments()) == (before[0], before[2])
    assert len(os.listdir("/proc/self/fd")) <= before[1] + 8  # the session's, which may be opened by the test


@pytest.mark.parametrize(
    "action, cause",
    [("kill", "is killed by signal: Killed"), ("exit", "exited unexpectedly with exit code 5")],
)
@pytest.mark.parametrize("persistent", [False, True])
def test_a_worker_that_ends_is_reported(torch, action, cause, persistent):
    loader = torch.utils.data.DataLoader(Numbers(8, 3, action), None, num_workers=2, persistent_workers=persistent)
    batches = iter(loader)
    pids = {worker.process.pid for worker in batches._workers}
    assert [next(batches), next(batches)] == [0, 1]
    assert next(batches) == 2  # the error is raised instead of batch 3
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly") as raised:
        next(batches)
    assert cause in str(raised.value.__cause__) and int(str(raised.value).split()[3].rstrip(")")) in pids
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        next(batches)
    assert not children() & pids
    if persistent:  # the next epoch begins with new workers
        assert next(iter(loader)) == 0


def test_a_worker_killed_between_batches_is_reported(torch):
    loader = torch.utils.data.DataLoader(Numbers(100), None, num_workers=1, prefetch_factor=1)
    batches = iter(loader)
    assert next(batches) == 0
    os.kill(batches._workers[0].process.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        for _ in range(5):
            next(batches)


def test_timeout(torch):
    batches = iter(torch.utils.data.DataLoader(Numbers(4, 1, "sleep"), None, num_workers=1, timeout=0.4))
    assert next(batches) == 0
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.4 seconds"):
        next(batches)
    found = []
    while len(found) < 3:  # the loop may continue
        try:
            found.append(next(batches))
        except RuntimeError:
            continue
    assert found == [1, 2, 3]


def test_errors_that_cannot_be_sent(torch):
    loader = torch.utils.data.DataLoader(Numbers(4, 1, "local error"), None, num_workers=1)
    batches = iter(loader)
    assert next(batches) == 0
    with pytest.raises(RuntimeError, match=r"(?s)in DataLoader worker process 0.*LocalError: local"):
        next(batches)
    assert next(batches) == 2
    batches = iter(torch.utils.data.DataLoader(Numbers(4, 1, "pickle"), None, num_workers=1))
    assert next(batches) == 0
    with pytest.raises((AttributeError, RuntimeError), match="(?s)in DataLoader worker process 0.*pickle local object"):
        next(batches)


def test_persistent_workers_are_the_same_processes(torch):
    for persistent in (True, False):
        loader = torch.utils.data.DataLoader(Process(), None, num_workers=2, persistent_workers=persistent)
        epochs = [set(loader) for _ in range(3)]
        assert all(len(epoch) == 2 and os.getpid() not in epoch for epoch in epochs)
        assert (epochs[0] == epochs[2]) is persistent
        next(iter(loader))  # an epoch that is not finished
        assert len(set(loader)) == 2
        del loader


@pytest.mark.parametrize("context, workers", [("fork", 2), ("forkserver", 1), ("thread", 2)])
def test_batches_of_each_start_method(torch, context, workers):
    loader = torch.utils.data.DataLoader(Images(), 5, num_workers=workers, multiprocessing_context=context)
    expected = [values(b) for b in torch.utils.data.DataLoader(Images(), 5)]
    assert [values(b) for b in loader] == expected
    loader = torch.utils.data.DataLoader(Numbers(5), 2, num_workers=1, collate_fn=as_arrays, multiprocessing_context=context)
    assert [values(b)["ids"][2] for b in loader] == [[0, 1], [2, 3], [4]]
    assert [b["large"][:, 7].tolist() for b in loader] == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize("context, held", [("fork", False), ("fork", True), ("spawn", True), ("thread", True)])
def test_tensors_of_workers(torch, context, held):
    """Tensors that a worker makes, and tensors that the data set holds."""
    dataset = Tensors(torch if held else None)
    workers = 1 if context == "spawn" else 2
    loader = torch.utils.data.DataLoader(dataset, 3, num_workers=workers, multiprocessing_context=context)
    expected = [values(b) for b in torch.utils.data.DataLoader(dataset, 3)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(1 if context == "spawn" else 2):
            assert [values(b) for b in loader] == expected
    assert any("threads load this data set" in str(w.message) for w in caught) is (context == "fork" and not held)


def test_collate_function_that_uses_tensors(torch):
    """The worker reads the samples; this process collates them, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader = torch.utils.data.DataLoader(Process(), 2, num_workers=1, collate_fn=stack_with_tensors)
        batches = [b.tolist() for b in loader]
    pids = {pid for batch in batches for pid in batch}
    assert len(pids) == 1 and 2 * os.getpid() not in pids
    loader = torch.utils.data.DataLoader(Numbers(4, 3, "local error"), 2, num_workers=1, collate_fn=stack_with_tensors)
    batches = iter(loader)
    assert next(batches).tolist() == [0, 2]
    with pytest.raises(RuntimeError, match="local"):
        next(batches)


def test_an_iterable_data_set_that_makes_tensors_later(torch):
    class Late(torch.utils.data.IterableDataset):
        def __iter__(self):
            yield 1
            yield torch.ones(1).item()

    with pytest.raises(RuntimeError, match="used a tensor after its first batch"):
        list(torch.utils.data.DataLoader(Late(), None, num_workers=1))


def test_an_early_exit_ends_workers(torch):
    for action in ("", "sleep"):
        for _ in torch.utils.data.DataLoader(Numbers(1000, 0, action), 2, num_workers=2):
            break
    loader = torch.utils.data.DataLoader(Numbers(1000), 2, num_workers=2, persistent_workers=True)
    next(iter(loader))
    assert len(children()) == 2
    del loader, _
    gc.collect()
    assert not children()


def test_segments_are_reused(torch):
    loader = torch.utils.data.DataLoader(Images(60, 100_000), 4, num_workers=1, persistent_workers=True)
    for _ in range(2):
        for batch in loader:
            assert batch["image"].shape == (4, 100_000)
    assert 0 < shared_segments() <= 2 * 4  # two arrays per batch, of at most four batches
    del loader


def run(script: str, **options) -> subprocess.Popen:
    """Starts a client that runs a script."""
    environment = client_environment(PYTHONPATH=os.pathsep.join([str(ROOT / "build/python"), str(ROOT)]))
    code = textwrap.dedent(script)
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


LOOP = """
    import multiprocessing, teletensor as torch
    from tests.python.data.datasets import Numbers
    loader = torch.utils.data.DataLoader(Numbers(10_000_000), 4, num_workers=2, persistent_workers=True)
    try:
        for i, batch in enumerate(loader):
            if i == 3:
                print(*[process.pid for process in multiprocessing.active_children()], flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def alive(pids: list[int]) -> list[int]:
    """The processes that have not ended."""
    found = []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] != "Z":
                    found.append(pid)
        except FileNotFoundError:
            continue
    return found


def wait_until_ended(pids: list[int]) -> None:
    """Waits until processes have ended."""
    deadline = time.monotonic() + 20
    while alive(pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert alive(pids) == []


@pytest.mark.skipif(IN_PROCESS, reason="starts clients")
def test_keyboard_interrupt():
    """Ctrl-C reaches the whole group: one KeyboardInterrupt in the parent, and no output of the workers."""
    client = run(LOOP, start_new_session=True)
    pids = [int(pid) for pid in client.stdout.readline().split()]
    os.killpg(client.pid, signal.SIGINT)
    out, err = client.communicate(timeout=30)
    assert (out, err, client.returncode, len(pids)) == ("interrupted\n", "", 0, 2)
    wait_until_ended(pids)


@pytest.mark.skipif(IN_PROCESS, reason="starts clients")
def test_workers_of_a_killed_parent_end():
    client = run(LOOP)
    pids = [int(pid) for pid in client.stdout.readline().split()]
    client.kill()
    client.communicate()
    assert len(pids) == 2
    wait_until_ended(pids)


@pytest.mark.skipif(IN_PROCESS, reason="starts clients")
def test_the_first_tensors_are_those_of_a_loader():
    """Batches belong to one session, even if a loader's threads create the first tensors of a program."""
    client = run("""
        import teletensor as torch
        from tests.python.data.datasets import Images
        batches = list(torch.utils.data.DataLoader(Images(40), 4, num_workers=2))
        print(sum(b["label"].sum() + b["image"].long().sum() for b in batches).item() // 780)
    """)
    out, err = client.communicate(timeout=60)
    assert (out, client.returncode) == ("40001\n", 0), err


@pytest.mark.skipif(IN_PROCESS, reason="starts clients")
def test_exit_with_an_iterator():
    """A program that ends in the middle of an epoch ends quietly, with its workers."""
    client = run("""
        import multiprocessing, teletensor as torch
        from tests.python.data.datasets import Images
        loader = torch.utils.data.DataLoader(Images(1000), 4, num_workers=2, persistent_workers=True)
        batches = iter(loader)
        print(next(batches)["label"].tolist(), flush=True)
    """)
    out, err = client.communicate(timeout=30)
    assert (out, client.returncode) == ("[0, 1, 2, 3]\n", 0)
    assert "Traceback" not in err and "Exception" not in err  # the engine may report an upload that was cancelled


def test_options_of_loaders(torch):
    data = torch.utils.data
    with pytest.warns(UserWarning, match="This DataLoader will create 999 worker processes in total"):
        data.DataLoader([1], num_workers=999)
    with pytest.raises(ValueError, match=r"\[DataLoader\] expected prefetch_factor to be at least 1, got 0"):
        data.DataLoader([1], num_workers=1, prefetch_factor=0)
    with pytest.raises(NotImplementedError):
        __import__("pickle").dumps(iter(data.DataLoader([1])))

    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(4))

        def __len__(self):
            return 2

    loader = data.DataLoader(Stream(), None)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 2.*but [34] samples have been fetched"):
        list(loader)
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        data.random_split([1], [0.9, 0.1])


def test_mixed_epochs(torch):
    """A new epoch of persistent workers begins in the middle of another; results of the old one are dropped."""
    loader = torch.utils.data.DataLoader(Numbers(20), None, num_workers=2, persistent_workers=True, collate_fn=keep)
    first = iter(loader)
    assert [next(first) for _ in range(3)] == [0, 1, 2]
    assert list(loader) == list(range(20))
    assert list(loader) == list(range(20))


@pytest.mark.skipif(IN_PROCESS, reason="starts clients")
@pytest.mark.skipif(sys.platform != "linux", reason="requires glibc")
@pytest.mark.parametrize("options", ["num_workers=0", "num_workers=1", "num_workers=1, multiprocessing_context='spawn'"])
def test_memory_of_freed_samples_is_reused(options):
    """Loading allocates and frees 8 MiB per sample without new pages from the system (2,048 per sample without reuse)."""
    client = run(f"""
        import teletensor as torch
        from tests.python.data.datasets import PageFaults
        if __name__ == "__main__":
            print(*torch.utils.data.DataLoader(PageFaults(), None, {options}))
    """)
    out, err = client.communicate(timeout=60)
    assert client.returncode == 0, err
    assert sum(map(int, out.split()[4:])) < 1000, out
