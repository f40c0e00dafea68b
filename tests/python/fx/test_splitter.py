"""Splitters: submodules by what a backend supports."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import teletensor as torch
from teletensor import fx
from teletensor.fx.passes import operator_support, splitter_base

from . import programs


def calling(*targets):
    return operator_support.create_op_support(lambda _, node: node.target in targets)


def splitter(program, sizes, support, **settings):
    traced = fx.symbolic_trace(program)
    inputs = [torch.randn(*size) for size in sizes]
    return splitter_base._SplitterBase(traced, inputs, support, splitter_base._SplitterSettingBase(**settings)), inputs


def sized(x):
    n = x.shape[0] * 2
    return (x.relu() + n).relu() * 3


# program, its inputs' sizes, supported targets, settings, nodes in each submodule
SPLITS = [
    (lambda x: (x.relu() + 1).relu(), [(3,)], ("relu",), {}, [("acc", 1), ("cpu", 1), ("acc", 1)]),
    (lambda x: (x.relu() + 1).relu(), [(3,)], (operator.add,), {}, [("cpu", 1), ("acc", 1), ("cpu", 1)]),
    (lambda x: (x.relu() + 1).relu(), [(3,)], ("relu",), {"min_acc_module_size": 2}, [("cpu", 3)]),
    (lambda x: (x.relu().relu() + 1).relu(), [(3,)], ("relu",), {"min_acc_module_size": 2}, [("acc", 2), ("cpu", 2)]),
    (lambda x, y: (x.relu() + y.relu()) * 2, [(3,), (3,)], ("relu",), {}, [("acc", 2), ("cpu", 2)]),
    (lambda x: x + 1, [(3,)], (operator.add,), {}, [("acc", 1)]),
    (sized, [(3,)], ("relu", operator.add), {}, [("cpu", 3), ("acc", 1), ("cpu", 1), ("acc", 1), ("cpu", 1)]),
    (sized, [(3,)], ("relu", operator.add), {"allow_non_tensor": True, "skip_fusion": True}, [("cpu", 3), ("acc", 3), ("cpu", 1)]),
]


@pytest.mark.parametrize(("program", "sizes", "targets", "settings", "parts"), SPLITS)
def test_modules_are_split(program, sizes, targets, settings, parts):
    made, inputs = splitter(program, sizes, calling(*targets), **settings)
    result = made.generate_split_results()
    names = [name for name, _ in result.split_module.named_children()]
    counts = [sum(n.op.startswith("call") for n in module.graph.nodes) for module in result.split_module.children()]
    assert [("acc" if "acc" in name else "cpu", count) for name, count in zip(names, counts, strict=True)] == parts
    assert list(result.submodule_inputs) == names
    assert set(made.get_node_submodule_map().values()) == set(names)
    np.testing.assert_array_equal(result.split_module(*inputs).numpy(), program(*inputs).numpy())


def test_a_network_is_split():
    torch.manual_seed(0)
    root, sizes = programs.residual(torch)
    support = operator_support.OperatorSupport({"torch.nn.modules.conv.Conv2d": None, "torch.nn.modules.batchnorm.BatchNorm2d": None})
    made, inputs = splitter(root, sizes, support)
    result = made()
    assert [name for name, _ in result.named_children()] == [
        "_run_on_acc_0", "_run_on_cpu_1", "_run_on_acc_2", "_run_on_cpu_3",
    ]  # fmt: skip
    np.testing.assert_array_equal(result(*inputs).detach().numpy(), root(*inputs).detach().numpy())
    text = made.node_support_preview()
    assert "torch.nn.modules.conv.Conv2d: ((torch.float32,), {})" in text.split("Unsupported")[0]
    with pytest.raises(splitter_base.FxNetSplitterInternalError, match="was already tagged"):
        made()


def test_errors_of_splitters():
    made, _ = splitter(lambda x: (x.relu() + 1).relu(), [(3,)], calling("relu"), max_acc_splits=1)
    with pytest.raises(ValueError, match="Cannot fulfill max_acc_splits limit"):
        made.generate_split_results()
    with pytest.raises(splitter_base.FxNetSplitterInternalError, match="Couldn't create subgraphs"):
        splitter(lambda x: x, [(3,)], calling())[0]()
    with pytest.raises(NotImplementedError, match="move_non_tensor_nodes_on_boundary"):
        splitter_base._SplitterSettingBase(move_non_tensor_nodes_on_boundary=True)
