"""torch.nn.parallel's functions for one process and several devices, with the CPU in the place of each device."""

from __future__ import annotations

import numpy as np


def model(torch):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3).eval(), torch.nn.Linear(3, 2))


def test_a_divided_batch_gives_the_same_result_and_gradients(torch):
    from teletensor.nn.parallel import DataParallel

    net, x = model(torch), torch.randn(5, 4)
    parallel = DataParallel(net, ["cpu", "cpu"])
    parallel(x).square().sum().backward()
    grads = [p.grad.numpy() for p in net.parameters()]
    net.zero_grad()
    net(x).square().sum().backward()
    for grad, p in zip(grads, net.parameters(), strict=True):
        np.testing.assert_allclose(grad, p.grad.numpy(), rtol=1e-5, atol=1e-6)
    assert list(parallel.state_dict()) == [f"module.{k}" for k in net.state_dict()]


def test_without_a_device_the_module_is_called(torch):
    from teletensor.nn.parallel import DataParallel, data_parallel

    net, x = model(torch), torch.randn(5, 4)
    assert (DataParallel(net, [])(x) == net(x)).all() and (data_parallel(net, x, []) == net(x)).all()


def test_scatter_and_gather_of_nested_values(torch):
    from teletensor.nn.parallel import gather, scatter

    value = {"a": torch.arange(5), "b": (torch.ones(5, 2), "text"), "c": 3}
    parts = scatter(value, ["cpu", "cpu", "cpu"])
    assert [p["a"].tolist() for p in parts] == [[0, 1], [2, 3], [4]] and parts[2]["b"][1] == "text" and parts[1]["c"] == 3
    joined = gather([{"a": p["a"], "b": [p["b"][0]]} for p in parts], "cpu")
    assert joined["a"].tolist() == [0, 1, 2, 3, 4] and joined["b"][0].shape == (5, 2)
    assert gather([torch.tensor(1.0), torch.tensor(2.0)], "cpu").tolist() == [1.0, 2.0]
