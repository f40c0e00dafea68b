"""Names that PyTorch's build for CPUs cannot serve as reference for, and where names are found."""

import importlib
import subprocess
import sys

import pytest

from tests.conftest import client_environment

IMPORTS = """
import sys, teletensor
lazy = "hub accelerator cpu nn optim distributed distributions utils fft func cuda serialization autograd.gradcheck".split()
assert not [n for n in lazy if "teletensor." + n in sys.modules], "imported with the package"
assert teletensor.distributions.Normal and teletensor.nn.functional.relu and teletensor.conv1d and teletensor.autograd.gradcheck
lazy = "hub accelerator utils._pytree nn.utils.prune testing._creation utils.data".split()
assert not [n for n in lazy if "teletensor." + n in sys.modules], "imported with another module"
assert {"conv1d", "distributions", "load"} <= set(dir(teletensor))
import teletensor.as_torch, torch
import torch.hub, torch.accelerator, torch.cpu, torch.utils._pytree as pytree, torch.nn.utils.prune as prune
from torch.nn.utils import stateless
from torch.nn.modules.lazy import LazyModuleMixin
from torch.testing import make_tensor
from torch.autograd.graph import register_multi_grad_hook
from torch.utils.checkpoint import noop_context_fn, CheckpointPolicy
assert pytree.tree_map(lambda x: x + 1, [1]) == [2] and torch.utils._pytree is pytree and torch.hub.get_dir()
"""


def test_lazy_modules_are_imported_under_torchs_names():
    result = subprocess.run([sys.executable, "-c", IMPORTS], env=client_environment(), capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


def check_without_gpus(accelerator):
    """Checks an engine without GPUs."""
    assert accelerator.current_accelerator() is None and accelerator.device_count() == accelerator.memory_allocated() == 0
    with pytest.raises(RuntimeError, match="none is available"):
        accelerator.current_device_index()


def test_accelerator_is_the_engines_gpus(torch):
    accelerator = torch.accelerator
    if not torch.cuda.is_available():
        check_without_gpus(accelerator)
        return
    assert accelerator.is_available() and accelerator.device_count() == torch.cuda.device_count()
    assert accelerator.current_accelerator() == torch.device("cuda")
    before = accelerator.current_device_index()
    with accelerator.device_index(1):
        assert accelerator.current_device_index() == 1
        tensor = torch.ones(1000, device="cuda")
    assert accelerator.current_device_index() == before and tensor.device == torch.device("cuda:1")
    accelerator.synchronize("cuda:1")
    assert accelerator.memory_allocated(1) == torch.cuda.memory_allocated(1) >= 4000
    assert accelerator.max_memory_allocated(1) >= accelerator.memory_allocated(1)
    assert torch.float32 in accelerator.get_device_capability()["supported_dtypes"]
    with pytest.raises(ValueError, match="doesn't match the current accelerator"):
        accelerator.synchronize("cpu")
    first = torch.ones(1000, device="cuda:0")
    counted = accelerator.memory_stats(1)["num_allocations"]
    accelerator.reset_accumulated_memory_stats(1)
    assert counted > 0 and accelerator.memory_stats(1)["num_allocations"] == 0
    tensor = torch.ones(1000, device="cuda:1")
    assert torch.cuda.memory_stats(1)["num_allocations"] > 0 and torch.cuda.memory_stats(1)["reserved_bytes.all.current"] > 0
    assert accelerator.memory_stats(0)["num_allocations"] > 0 and first.device.index == 0


def test_counters_of_the_cpu_are_reset(torch):
    torch.cuda.reset_accumulated_memory_stats("cpu")
    before = torch.cuda.memory_stats("cpu")["num_allocations"]
    tensors = [torch.ones(100_000) for _ in range(5)]
    assert torch.cuda.memory_stats("cpu")["num_allocations"] >= before + 5 and len(tensors) == 5


def test_cpu_synchronize_raises_the_errors_of_earlier_work(torch):
    torch.ones(3).sum()
    torch.cpu.synchronize()
    assert torch.cpu.get_capabilities()["device"].startswith("cpu")


def test_callbacks_outside_of_a_backward_pass_raise(torch):
    with pytest.raises(RuntimeError, match="during backward pass"):
        torch.autograd.graph.queue_callback(print)


def test_multi_grad_hook_after_a_failed_pass(torch):
    x, seen = torch.ones(2, requires_grad=True), []
    y = x * 2

    def fail(gradient):
        raise ValueError("from the hook")

    torch.autograd.graph.register_multi_grad_hook((y,), seen.append)
    handle = x.register_hook(fail)
    with pytest.raises(ValueError, match="from the hook"):
        (y * y).sum().backward(retain_graph=True)
    handle.remove()
    assert not seen
    (y * 3).sum().backward()
    assert [g.tolist() for g in seen[0]] == [[3, 3]] and len(seen) == 1


def test_passes_of_a_group_of_graph_executions(torch):
    group, calls = torch.utils.checkpoint.GraphExecGroup, []

    def function(x):
        calls.append(1)
        return x.sin() * 2, x.cos()

    x = torch.ones(3, requires_grad=True)
    a, b = torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False)
    with group() as entered:
        assert group._get_current_group() is entered
        a.sum().backward()
        b.sum().backward()
        with pytest.raises(RuntimeError, match="cannot be nested"), group():
            pass
    assert group._get_current_group() is None and len(calls) == 3
    torch.testing.assert_close(x.grad, 2 * torch.ones(3).cos() - torch.ones(3).sin())


def test_only_nested_tensors_are_padded(torch):
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    assert torch.Tensor.to_padded_tensor(nested, 5.0).tolist() == [[1, 1, 5], [1, 1, 1]]
    with pytest.raises(NotImplementedError, match="not nested"):
        torch.ones(3).to_padded_tensor(0.0)


def test_hub_lists_and_explains_a_local_folder(torch, tmp_path):
    (tmp_path / "hubconf.py").write_text("def model():\n    'The doc.'\n\ndef _hidden():\n    pass\n")
    assert torch.hub.list(tmp_path) == ["model"] and torch.hub.help(tmp_path, "model") == "The doc."
    with pytest.raises(NotImplementedError, match="does not download"):
        torch.hub.load("owner/name", "model")
    with pytest.raises(FileNotFoundError, match="hubconf.py"):
        torch.hub.load(tmp_path / "none", "model", source="local")


def test_a_loaded_structure_imports_nothing(torch):
    pytree = torch.utils._pytree
    enumeration = '{\\"__enum__\\": true, \\"fqn\\": \\"antigravity:geohash\\", \\"name\\": \\"X\\"}'
    with pytest.raises(ValueError, match="not imported"):
        pytree.treespec_loads(f'[1, {{"type": "builtins.dict", "context": "[{enumeration}]", "children_spec": []}}]')
    assert "antigravity" not in sys.modules


def test_swap_tensors_of_different_layouts_raises(torch):
    with pytest.raises(TypeError):
        torch.utils.swap_tensors(torch.ones(1), torch.nn.Parameter(torch.ones(1)))
    with pytest.raises(RuntimeError, match="two leaf tensors"):
        torch.utils.swap_tensors(torch.ones(1), torch.ones(1, requires_grad=True) * 2)


def test_flex_attention_refuses_functions_that_depend_on_more_than_one_score(torch):
    flex, x = torch.nn.attention.flex_attention, torch.sin(torch.arange(48.0)).reshape(1, 2, 6, 4)
    bias, seen = torch.arange(6.0).reshape(2, 3), []

    def reducing(score, b, h, i, j):
        return score + bias[h].sum()

    def pointwise(score, b, h, i, j):
        seen.append(score.dim())
        return score + bias[h, 0]

    with pytest.raises(NotImplementedError, match="reducing returns"):
        flex.flex_attention(x, x, x, reducing)
    for _ in range(2):
        flex.flex_attention(x, x, x, pointwise)
    assert seen == [4, 0, 0, 0, 4]  # called for single scores once


def test_blocks_without_a_mask_function(torch):
    flex, x = torch.nn.attention.flex_attention, torch.sin(torch.arange(32.0)).reshape(1, 1, 8, 4)
    lists = torch.tensor([[[1, 1]]], dtype=torch.int32), torch.tensor([[[[0, 1], [1, 0]]]], dtype=torch.int32)
    mask = torch.zeros(8, 8, dtype=torch.bool)
    mask[:4, :4] = mask[4:, 4:] = True
    result = flex.flex_attention(x, x, x, block_mask=flex.BlockMask.from_kv_blocks(*lists, BLOCK_SIZE=4))
    assert torch.allclose(result, torch.nn.functional.scaled_dot_product_attention(x, x, x, mask), atol=1e-6)


def test_a_timer_waits_for_the_engine(torch):
    benchmark = torch.utils.benchmark
    calls = []
    measured = benchmark.Timer("calls.append(1); x + 1", globals={"x": torch.ones(4), "calls": calls}, label="add").blocked_autorange(
        min_run_time=0.01
    )
    assert measured.median > 0 and sum(measured.raw_times) >= 0.01 and len(calls) >= measured.number_per_run * len(measured.times)
    adaptive = benchmark.Timer("pass").adaptive_autorange(min_run_time=1e-4, max_run_time=0.1)
    assert adaptive.number_per_run >= 1 and "add" in repr(measured) and "Times are in" in str(benchmark.Compare([measured]))
    for refused in (lambda: benchmark.Timer("x", language="cpp"), benchmark.Timer("pass").collect_callgrind, benchmark.Fuzzer):
        with pytest.raises(NotImplementedError):
            refused()


def test_utilities_without_a_compiler_or_other_devices(torch):
    utils = torch.utils
    assert utils.cpp_extension.is_ninja_available() in (True, False) and "torch_extensions" in utils.cpp_extension.get_default_build_root()
    optimize = utils.mobile_optimizer.optimize_for_mobile
    for refused in (utils.cpp_extension.load, optimize):
        with pytest.raises(NotImplementedError):
            refused()
    text = utils.collect_env.get_pretty_env_info()
    assert "numpy==" in text and "engine version: " in text and utils.collect_env.get_env_info().cpu_info
    assert utils.model_zoo.load_url is torch.hub.load_state_dict_from_url


def test_copies_between_devices_have_gradients(torch):
    functions = importlib.import_module("teletensor.nn.parallel._functions")
    x, y = (torch.arange(6.0).reshape(2, 3) + i for i in range(2))
    x.requires_grad_()
    copies = functions.Broadcast.apply([-1, "cpu"], x, y)
    assert len(copies) == 4 and torch.equal(copies[2], x) and torch.equal(copies[3], y)
    sums = functions.ReduceAddCoalesced.apply(-1, 2, *copies)
    parts = functions.Scatter.apply([-1, -1], [1, 1], 0, sums[0])
    joined = functions.Gather.apply(-1, 0, *parts)
    assert torch.equal(joined, 2 * x) and torch.equal(sums[1], 2 * y)
    (joined * joined).sum().backward()
    assert torch.equal(x.grad, 8 * x.detach())
    scalars = functions.Gather.apply(-1, 0, torch.tensor(1.0), torch.tensor(2.0))
    assert scalars.tolist() == [1, 2] and functions._get_stream(-1) is None
    planned = torch.ao.quantization.quantize_jit, torch.package.PackageImporter
    for refused in planned:
        with pytest.raises(NotImplementedError):
            refused()
    assert torch.nn.quantized.FloatFunctional and torch.onnx.OperatorExportTypes.ONNX and torch.cuda.amp.autocast_mode.autocast
