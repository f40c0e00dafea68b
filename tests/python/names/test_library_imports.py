"""Private names and less used modules of PyTorch that other libraries import. They behave as PyTorch's."""

import importlib
import io

import pytest

# module, names
IMPORTED = [
    ("utils.data.dataloader", "BatchSampler Dataset IterDataPipe MapDataPipe RandomSampler Sampler SequentialSampler _collate_fn_t "
     "_utils _worker_init_fn_t default_collate"),
    ("distributions.transforms", "_clipped_sigmoid _sum_rightmost broadcast_all constraints lazy_property"),
    ("distributions.kl", "_KL_REGISTRY _dispatch_kl"),
    ("functorch.compile", "aot_function aot_module aot_module_simplified compiled_function compiled_module default_partition "
     "draw_graph make_boxed_compiler make_boxed_func min_cut_rematerialization_partition nop print_compile"),
    ("functorch.experimental", "chunk_vmap functionalize hessian jacfwd jvp replace_all_batch_norm_modules_"),
    ("functorch.experimental.control_flow", "cond map"),
    ("_functorch.eager_transforms", "functionalize hessian jacfwd jacrev jvp linearize vjp"),
    ("_functorch.functional_call", "functional_call stack_module_state"),
    ("_functorch.make_functional", "FunctionalModule FunctionalModuleWithBuffers"),
    ("quantization.observer", "MinMaxObserver ObserverBase _PartialWrapper default_observer"),
]  # fmt: skip


@pytest.mark.parametrize("module, names", IMPORTED)
def test_names_exist(torch, module, names):
    found = importlib.import_module(f"{torch.__name__}.{module}")
    assert [name for name in names.split() if not hasattr(found, name)] == []


def test_foreach_utils(torch):
    from teletensor.utils import _foreach_utils as utils

    a, b, c = torch.ones(1), torch.ones(1, dtype=torch.float64), torch.zeros(2)
    groups = utils._group_tensors_by_device_and_dtype([[a, b, c], [None, None, None]], with_indices=True)
    (lists, places), (others, _) = groups[a.device, a.dtype], groups[b.device, b.dtype]
    assert lists[0][0] is a and lists[0][1] is c and lists[1] == [None, None] and places == [0, 2] and others[0][0] is b
    assert utils._group_tensors_by_device_and_dtype([[a]])[a.device, a.dtype][1] == []
    cpu = torch.device("cpu")
    assert utils._has_foreach_support([a, None], cpu) and not utils._has_foreach_support([torch.nn.Parameter(a)], cpu)
    assert utils._device_has_foreach_support(cpu) and not utils._device_has_foreach_support(torch.device("meta"))
    assert "cuda" in utils._get_foreach_kernels_supported_devices() and "cpu" in utils._get_fused_kernels_supported_devices()


def test_distributions(torch):
    from teletensor.distributions import lowrank_multivariate_normal as lowrank
    from teletensor.distributions.kl import _dispatch_kl
    from teletensor.distributions.transforms import _clipped_sigmoid

    assert _clipped_sigmoid(torch.tensor([-200.0, 0.0, 200.0])).tolist() == [2.0**-126, 0.5, 1 - 2.0**-23]
    assert _dispatch_kl(torch.distributions.Normal, torch.distributions.HalfCauchy) is NotImplemented
    W, D, x = torch.tensor([[1.0], [2.0]]), torch.tensor([1.0, 0.5]), torch.tensor([3.0, -1.0])
    covariance, factor = W @ W.mT + D.diag(), lowrank._batch_capacitance_tril(W, D)
    assert lowrank._batch_lowrank_logdet(W, D, factor).item() == pytest.approx(covariance.logdet().item())
    distance = lowrank._batch_lowrank_mahalanobis(W, D, x, factor)
    assert distance.item() == pytest.approx((x @ covariance.inverse() @ x).item(), rel=1e-5)


def test_chunk_vmap(torch):
    from teletensor._functorch.apis import chunk_vmap

    seen = []

    def scaled(x, y):
        seen.append(1)
        return x * y

    assert chunk_vmap(scaled, in_dims=(0, None), chunks=3)(torch.arange(7.0), torch.tensor(2.0)).tolist() == [2.0 * i for i in range(7)]
    assert len(seen) == 3
    assert chunk_vmap(scaled, in_dims=(0, None), chunks=1)(torch.ones(2), torch.tensor(2.0)).tolist() == [2.0, 2.0]


def test_modules_as_functions_without_warnings(torch, recwarn):
    from teletensor._functorch.make_functional import make_functional

    function, parameters = make_functional(torch.nn.Linear(2, 1))
    assert function(parameters, torch.ones(3, 2)).shape == (3, 1) and not recwarn.list


def test_classes_of_operators(torch):
    from teletensor import _ops

    assert isinstance(torch.ops.aten.add.Tensor, _ops.OpOverload) and isinstance(torch.ops.aten.add, _ops.OpOverloadPacket)
    assert isinstance(torch.ops.higher_order.cond, _ops.HigherOrderOperator) and _ops.ops is torch.ops
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ops.nope  # noqa: B018


def test_autograd_classes(torch):
    from teletensor.autograd.function import InplaceFunction
    from teletensor.autograd.grad_mode import _DecoratorContextManager

    class Doubled(InplaceFunction):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    x = torch.ones(2, requires_grad=True)
    Doubled.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0] and Doubled(True).inplace

    calls = []

    class Logged(_DecoratorContextManager):
        def __enter__(self):
            calls.append("enter")

        def __exit__(self, *exc):
            calls.append("exit")

    assert Logged()(lambda: 3)() == 3 and calls == ["enter", "exit"]


def test_backward_hook(torch):
    from teletensor.utils.hooks import BackwardHook

    seen, module = [], torch.nn.Linear(2, 3)
    hook = BackwardHook(module, [lambda m, grad_in, grad_out: seen.append((grad_in[0].shape, grad_out[0].shape))], [])
    (x,) = hook.setup_input_hook((torch.ones(1, 2, requires_grad=True),))
    hook.setup_output_hook(module(x)).sum().backward()
    assert seen == [((1, 2), (1, 3))]


def test_files(torch, tmp_path):
    from teletensor.serialization import _is_path, _open_file_like

    buffer = io.BytesIO()
    with _open_file_like(buffer, "wb") as file:
        torch.save({"a": torch.ones(1)}, file)
    buffer.seek(0)
    with _open_file_like(buffer, "rb") as file:
        assert torch.load(file)["a"].tolist() == [1.0] and not file.closed
    with _open_file_like(tmp_path / "x", "wb") as file:
        file.write(b"abc")
    assert file.closed and (tmp_path / "x").read_bytes() == b"abc" and _is_path("x") and not _is_path(buffer)
    with pytest.raises(RuntimeError, match="Expected 'r' or 'w' in mode but got x"), _open_file_like(buffer, "x"):
        pass


def test_set_device(torch):
    from teletensor.utils._device import set_device

    @set_device("meta")
    def create():
        return torch.ones(2)

    assert create().device.type == "meta" and torch.ones(1).device.type != "meta"


def test_graph_of_data_pipes(torch):
    from teletensor.utils.data.graph import traverse, traverse_dps

    source = torch.utils.data.datapipes.iter.IterableWrapper(range(4))
    mapped = source.map(lambda x: x)  # cannot be pickled
    joined = mapped.zip(source)

    def sources(graph):
        return {id(pipe): sources(rest) for pipe, rest in graph.values()}

    assert sources(traverse_dps(joined)) == {id(joined): {id(mapped): {id(source): {}}, id(source): {}}}
    with pytest.warns(FutureWarning, match="traverse_dps"):
        assert sources(traverse(source.batch(2)))
    with pytest.raises(RuntimeError, match="Expected `IterDataPipe` or `MapDataPipe`"):
        traverse_dps([1])


def test_state_of_jit(torch):
    from teletensor.jit import _state

    module, example = torch.nn.Linear(1, 1), torch.ones(1, 1)
    assert _state._enabled and torch.jit.script(module) is not module
    _state.disable()
    try:
        assert torch.jit.script(module) is module and torch.jit.trace(module, example) is module
        assert torch.jit.trace_module(module, {"forward": example}) is module
    finally:
        _state.enable()


def test_unset_fake_temporarily(torch):
    from teletensor._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
    from teletensor.overrides import TorchFunctionMode

    class Other(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with FakeTensorMode() as mode, Other():
        with unset_fake_temporarily() as found:
            assert found is mode and not isinstance(torch.ones(1), FakeTensor)
        assert isinstance(torch.ones(1), FakeTensor)
    with unset_fake_temporarily() as found:
        assert found is None


def test_numbers_of_tensors(torch):
    a, b = torch.ones(1), torch.ones(1)
    assert a._cdata == a._cdata != b._cdata and isinstance(a._cdata, int) and a.detach()._cdata != a._cdata
    assert torch.random.default_generator is torch.default_generator
