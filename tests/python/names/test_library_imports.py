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
    # Found by `python -m tests.conformance.public --attributes`.
    ("_guards", "active_fake_mode detect_fake_mode"),
    ("amp.autocast_mode", "_cast"),
    ("autograd", "_is_checkpoint_valid"),
    ("backends.cuda", "SDPBackend"),
    ("cuda", "_lazy_call _lazy_init"),
    ("distributed._tensor", "DTensor DeviceMesh init_device_mesh"),
    ("distributed.tensor", "DeviceMesh init_device_mesh"),
    ("distributions.gumbel", "euler_constant"),
    ("functional", "Tensor"),
    ("jit", "_unwrap_optional"),
    ("nn.functional", "_canonical_mask _in_projection _in_projection_packed _list_with_default _mha_shape_check _none_or_dtype _pair "
     "_single _triple"),
    ("nn.modules.activation", "NonDynamicallyQuantizableLinear constant_ xavier_normal_ xavier_uniform_"),
    ("nn.modules.batchnorm", "Module _BatchNorm _NormBase"),
    ("nn.modules.container", "T"),
    ("nn.modules.conv", "Tensor _ConvNd _pair _reverse_repeat_tuple _single _size_1_t _size_2_t _size_3_t _triple"),
    ("nn.modules.module", "T Tensor _IncompatibleKeys _addindent _grad_t"),
    ("nn.modules.normalization", "_shape_t"),
    ("nn.modules.pooling", "_AvgPoolNd _MaxPoolNd _size_2_t _size_any_t"),
    ("nn.modules.rnn", "apply_permutation"),
    ("nn.modules.transformer", "F LayerNorm Linear MultiheadAttention Tensor _get_activation_fn _get_clones "
     "xavier_uniform_"),
    ("nn.modules.upsampling", "_ratio_any_t _size_2_t"),
    ("nn.modules.utils", "_list_with_default _ntuple _pair _quadruple _reverse_repeat_tuple _single _triple"),
    ("nn.parallel.distributed", "_find_tensors"),
    ("optim.lr_scheduler", "EPOCH_DEPRECATION_WARNING _LRScheduler"),
    ("optim.optimizer", "DeviceDict ParamsT StateDict _capturable_doc _default_to_fused_or_foreach "
     "_device_dtype_check_for_fused _differentiable_doc _disable_dynamo_if_unsupported _foreach_doc _fused_doc "
     "_get_scalar_dtype _get_value _maximize_doc _params_doc _stack_if_compiling _to_scalar _use_grad_for_differentiable "
     "_view_as_real"),
    ("profiler.profiler", "_default_schedule_fn"),
    ("serialization", "_is_zipfile"),
    ("storage", "_LegacyStorage _StorageBase"),
    ("utils.data._utils.worker", "WorkerInfo _generate_state"),
    ("utils.data.dataloader", "Dataset Sampler _BaseDataLoaderIter default_collate"),
    ("utils.data.distributed", "Dataset Sampler"),
]  # fmt: skip


@pytest.mark.parametrize("module, names", IMPORTED)
def test_names_exist(torch, module, names):
    found = importlib.import_module(f"{torch.__name__}.{module}")
    assert [name for name in names.split() if not hasattr(found, name)] == []


def test_toplevel_names(torch):
    assert torch.torch is torch and torch.StorageBase is torch.UntypedStorage and torch.Storage is torch.types.Storage


def test_functions_of_layers_and_optimizers(torch):
    from teletensor.nn.modules.rnn import apply_permutation
    from teletensor.nn.parallel.distributed import _find_tensors
    from teletensor.optim import optimizer

    a, b = torch.ones(1), torch.tensor([1 + 2j])
    assert list(_find_tensors([a, {"b": (b, 3)}, None])) == [a, b] and not list(_find_tensors("text"))
    assert torch.nn.functional._list_with_default([None, 2], [5, 6, 7]) == [6, 2]
    with pytest.warns(FutureWarning, match="`apply_permutation` is deprecated"):
        assert apply_permutation(torch.tensor([[1, 2]]), torch.tensor([1, 0])).tolist() == [[2, 1]]
    params, states = [a, b], [a, b]
    optimizer._view_as_real(params, states)
    assert params[0] is a and params[1].tolist() == states[1].tolist() == [[1, 2]]
    assert optimizer._get_value(a) == optimizer._dispatch_sqrt(1.0) == 1 and optimizer._to_scalar(a).shape == ()
    with pytest.raises(RuntimeError, match="requires all the params to be floating point Tensors"):
        optimizer._device_dtype_check_for_fused(b)


def test_functions_of_attention(torch):
    from teletensor.nn import functional as F

    mask, q, w = torch.tensor([True, False]), torch.ones(1, 1, 2), torch.arange(12.0).view(6, 2)
    assert F._canonical_mask(mask, "mask", None, "other", torch.float32).tolist() == [-float("inf"), 0]
    with pytest.warns(UserWarning, match="Support for mismatched mask and other is deprecated"):
        F._canonical_mask(mask, "mask", torch.float32, "other", torch.float32)
    projected = F._in_projection_packed(q, q, q, w, torch.arange(6.0))
    assert [t.tolist() for t in projected] == [[[[1, 6]]], [[[11, 16]]], [[[21, 26]]]]
    with pytest.raises(AssertionError, match="expecting query weights shape of"):
        F._in_projection(q, q, q, w[:3], w[:2], w[:2])
    assert F._mha_shape_check(q, q, q, None, None, 2) and F._none_or_dtype(q) is torch.float32


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


def test_detect_fake_mode(torch):
    guards, mode = importlib.import_module("teletensor._guards"), torch._subclasses.FakeTensorMode()
    assert guards.active_fake_mode() is guards.detect_fake_mode([torch.ones(1)]) is None
    with mode:
        fake = torch.ones(2)
        assert guards.active_fake_mode() is guards.detect_fake_mode() is mode
    assert guards.detect_fake_mode([1, {"a": fake}]) is mode


def test_numbers_of_tensors(torch):
    a, b = torch.ones(1), torch.ones(1)
    assert a._cdata == a._cdata != b._cdata and isinstance(a._cdata, int) and a.detach()._cdata != a._cdata
    assert torch.random.default_generator is torch.default_generator
