"""torch.multiprocessing: tensors and modules in other processes, and their errors."""

import multiprocessing
import pickle
import signal

import pytest

from tests.conftest import IN_PROCESS

from . import processes

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="other processes have no engine in this process")


@pytest.fixture
def mp(torch):
    import teletensor.multiprocessing as module

    assert torch.multiprocessing is module
    return module


def test_spawn_shares_arguments_and_a_queue(torch, mp):
    x, net, queue = torch.arange(4.0).requires_grad_(), torch.nn.Linear(4, 2), mp.Queue()
    mp.spawn(processes.work, (x, net, queue), nprocs=2)
    results = sorted((queue.get(timeout=30) for _ in range(2)), key=lambda row: row[0])
    for i, row in enumerate(results):
        assert row[0] == i and torch.allclose(row[1], net(x)) and row[2:] == ("Parameter", True, "torch.float32")


def test_a_tensor_is_the_same_in_both_processes(torch, mp):
    x, net, to_child, to_parent = torch.arange(4.0), torch.nn.Linear(2, 2), mp.Queue(), mp.Queue()
    view = x[1:3]
    child = mp.Process(target=processes.change, args=(view, net, to_child, to_parent))
    child.start()
    sent = torch.zeros(2, 3).t()
    to_child.put(sent)
    received, no_grad, kind = to_parent.get(timeout=30)
    assert x.tolist() == [0, 2, 4, 3] and (net.weight == 3).all() and (no_grad, kind) == (True, "Parameter")
    assert sent.tolist() == [[7, 7], [0, 0], [0, 0]] and received.stride() == (1, 3) and torch.equal(received, sent)
    received[1] = 8
    torch.synchronize()
    to_parent.put(None)
    child.join(30)
    assert sent.tolist() == [[7, 7], [8, 8], [0, 0]] and to_parent.get(timeout=30) == sent.tolist()


def test_processes_train_one_module(torch, mp):
    net = torch.nn.Linear(2, 1).share_memory()
    children = [mp.Process(target=processes.train, args=(net, steps)) for steps in (60, 61)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0, 0]
    assert torch.allclose(net.weight, torch.ones(1, 2), atol=0.05) and net.bias.abs().item() < 0.05


def test_a_pickled_tensor_is_received_once(torch, mp):
    function, args = mp.reductions.reduce_tensor(torch.arange(3.0))
    assert function(*args).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="no tensor is shared under this capability: it was received before"):
        function(*args).tolist()
    (_, *place), *rest = mp.reductions.reduce_tensor(torch.arange(3.0))[1]
    with pytest.raises(ConnectionError, match="expected a process that uses the sender's engine at elsewhere:1"):
        mp.reductions.rebuild_tensor(("elsewhere:1", *place), *rest)


def test_errors_of_processes(torch, mp):
    with pytest.raises(mp.ProcessRaisedException, match="Process 1 terminated.*\n(.*\n)*ValueError: sum 6.0") as error:
        mp.spawn(processes.fail, (torch.arange(4.0),), nprocs=2)
    assert error.value.error_index == 1 and pickle.loads(pickle.dumps(error.value)).error_index == 1
    for how, name, code in ((signal.SIGKILL, "SIGKILL", -9), (3, None, 3)):
        context = mp.spawn(processes.leave, (int(how),), join=False)
        with pytest.raises(mp.ProcessExitedException) as exited:
            while not context.join(timeout=30):
                pass
        assert (exited.value.signal_name, exited.value.exit_code) == (name, code)


def test_a_pool_maps_tensors(torch, mp):
    inputs = [torch.arange(3), torch.tensor(2.5), torch.zeros(2, 0), torch.ones(1100, 1000)]
    with mp.Pool(1) as pool:
        results = pool.map(processes.double, inputs)  # the worker ends before the results are read
    for x, (doubled, shape) in zip(inputs, results):
        assert torch.equal(doubled, x * 2) and shape == x.shape and doubled.dtype is x.dtype


def test_start_methods_and_strategies(torch, mp):
    assert mp.get_start_method() == "spawn" and mp.get_start_method(allow_none=True) is None
    assert mp.Process is mp.get_context("spawn").Process and mp.get_context("fork").Process is multiprocessing.context.ForkProcess
    mp.set_start_method("forkserver")
    with pytest.raises(RuntimeError, match="already been set"):
        mp.set_start_method("spawn")
    assert mp.Process is multiprocessing.context.ForkServerProcess
    mp.set_start_method(None, force=True)
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system" and mp.get_all_sharing_strategies() == {"file_system", "file_descriptor"}
    with pytest.raises(AssertionError, match="invalid sharing strategy"):
        mp.set_sharing_strategy("none")
    with pytest.raises(RuntimeError, match="non-leaf"):
        mp.reductions.reduce_tensor(torch.ones(1, requires_grad=True) * 2)
    function, args = mp.reductions.reduce_tensor(torch.empty(2, 3, device="meta"))
    assert function(*args).shape == (2, 3) and function(*args).is_meta
