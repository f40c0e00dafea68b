"""Arguments that were once accepted and ignored: each is used, or rejected."""

import ast
import random
import time
from pathlib import Path

import pytest

from tests.expression_table import check_row

from .unused_names import UNUSED_NAMES

NAMES = """
a = torch.arange(6.0).reshape(2, 3)
b = torch.cos(a)
"""

CROSSES = [
    ('torch.cross(a, b)', [[-1.49675, 2.0, -1.0], [4.40287, -5.80095, 1.99904]]),
    ('torch.cross(a.T, b.T)', [[-1.49675, 4.40287], [2.0, -5.80095], [-1.0, 1.99904]]),
    ('a.cross(b)', [[-1.49675, 2.0, -1.0], [4.40287, -5.80095, 1.99904]]),
    (
        'torch.cross(torch.arange(9.0).reshape(3, 3), torch.ones(3, 3))',
        [[-3.0, -3.0, -3.0], [6.0, 6.0, 6.0], [-3.0, -3.0, -3.0]],
    ),
    ('torch.cross(a, b, 1)', [[-1.49675, 2.0, -1.0], [4.40287, -5.80095, 1.99904]]),
    ('torch.cross(a, b, dim=-1, out=torch.zeros(2, 3))', [[-1.49675, 2.0, -1.0], [4.40287, -5.80095, 1.99904]]),
    ('torch.cross(a, b[:1])', [[-1.49675, 2.0, -1.0], [-4.3661, 6.24844, -2.37909]]),
    ('torch.linalg.cross(a, b)', [[-1.49675, 2.0, -1.0], [4.40287, -5.80095, 1.99904]]),
    ('torch.linalg.cross(a.T, b.T)', RuntimeError),
    ('torch.cross(a[:, :2], b[:, :2])', RuntimeError),
    ('torch.cross(a, b[0])', RuntimeError),
    ('torch.cross(a, b, 0)', RuntimeError),
]  # fmt: skip


@pytest.mark.parametrize("code, expected", CROSSES)
def test_cross(torch, code, expected):
    check_row(torch, NAMES, code, expected)


def test_cross_without_dim_warns(torch):
    with pytest.warns(UserWarning, match="without specifying the dim arg"):
        torch.cross(torch.ones(2, 3), torch.ones(2, 3))


FACTORIES = [
    ("zeros", (3,)), ("ones", (3,)), ("empty", (3,)), ("full", ((3,), 2.0)), ("rand", (3,)), ("randn", (3,)), ("arange", (3,)),
    ("linspace", (0, 1, 3)), ("logspace", (0, 1, 3)), ("eye", (2,)), ("randint", (5, (3,))), ("randperm", (3,)),
]  # fmt: skip


@pytest.mark.parametrize("name, args", FACTORIES)
def test_out_that_requires_a_gradient(torch, name, args):
    function = getattr(torch, name)
    for target in (torch.ones(3), torch.ones(1)):  # of the result's size, and of another size
        result = function(*args, out=target, requires_grad=True)
        assert result is target and target.requires_grad and target.is_leaf
    (target * 2).sum().backward()
    assert target.grad is not None
    assert not function(*args, out=torch.ones(3)).requires_grad
    if name not in ("empty", "full"):
        with pytest.raises(RuntimeError, match="floating point and complex"):
            torch.zeros(3, out=torch.ones(3, dtype=torch.int64), requires_grad=True)


REFUSED = [
    (lambda t, x: t.zeros(2, layout=3), TypeError),
    (lambda t, x: t.zeros(2, layout="torch.sparse_coo"), TypeError),
    (lambda t, x: t.add(x, x, copy=True), TypeError),
    (lambda t, x: t.add(x, x, non_blocking=True), TypeError),
    (lambda t, x: t.add(x, x, generator=t.Generator()), TypeError),
    (lambda t, x: t.randint_like(x, 3, more=1), TypeError),
    (lambda t, x: t.repeat_interleave(x, 2, output_size=3), RuntimeError),
    (lambda t, x: t.repeat_interleave(x, t.tensor([1, 2]), output_size=4), RuntimeError),
    (lambda t, x: t.segment_reduce(x, "sum", lengths=t.tensor([2]), indices=t.tensor([0, 0])), RuntimeError),
    (lambda t, x: t.set_printoptions(profile="long"), ValueError),
    (lambda t, x: t.autograd.grad(x, x, is_grads_batched=True), RuntimeError),
    (lambda t, x: t.autograd.functional.jacobian(t.ones_like, x, strict=True), RuntimeError),
    (lambda t, x: t.autograd.functional.vjp(t.ones_like, x, x, strict=True), RuntimeError),
    (lambda t, x: t.autograd.functional.jvp(t.ones_like, x, x, strict=True), RuntimeError),
    (lambda t, x: t.func.jvp(t.ones_like, (x,), (x,), strict=True), RuntimeError),
    (lambda t, x: t.func.jacrev(t.sin, more=1), TypeError),
    (lambda t, x: t.func.jacfwd(t.sin, randomness="other")(x), RuntimeError),
    (lambda t, x: t.autograd.gradcheck(t.sin, x, more=1), TypeError),
    (lambda t, x: t.autograd.gradcheck(t.sin, x, check_batched_forward_grad=True), AssertionError),
    (lambda t, x: t.utils.checkpoint.checkpoint(t.sin, x, use_reentrant=True, context_fn=lambda: None), ValueError),
    (lambda t, x: t.utils.data.DataLoader(x, batch_sampler=[[0]], batch_size=2), ValueError),
    (lambda t, x: t.utils.data.DataLoader(x, timeout=-1), ValueError),
    (lambda t, x: t.utils.data.DataLoader(x, num_workers=-1), ValueError),
    (lambda t, x: t.utils.data.DataLoader(x, prefetch_factor=2), ValueError),
    (lambda t, x: t.utils.data.DataLoader(x, persistent_workers=True), ValueError),
    (lambda t, x: t.utils.data.DataLoader(x, batch_size=None, drop_last=True), ValueError),
    (lambda t, x: t.utils.data.DataLoader(x, bath_size=2), TypeError),
    (lambda t, x: t.utils.data.RandomSampler(x, num_samples=-1), ValueError),
    (lambda t, x: t.utils.data.WeightedRandomSampler([1.0], 0), ValueError),
    (lambda t, x: t.save(x, "/dev/null", more=1), TypeError),
    (lambda t, x: t.save(x, "/dev/null", pickle_protocol=0), NotImplementedError),
    (lambda t, x: t.save(x, "/dev/null", pickle_module=t), NotImplementedError),
    (lambda t, x: t.load("/dev/null", more=1), TypeError),
    (lambda t, x: t.load("/dev/null", pickle_module=t), NotImplementedError),
    (lambda t, x: t.load("/dev/null", 3.5), TypeError),
    (lambda t, x: t.load("/dev/null", weights_only=3), TypeError),
    (lambda t, x: x.new_zeros(2, layout=3), TypeError),
    (lambda t, x: x.new_ones(2, pin_memory=3), TypeError),
    (lambda t, x: x.new_empty(2, memory_format=1), TypeError),
    (lambda t, x: x.new_full((2,), 3, more=1), TypeError),
    (lambda t, x: x.new_empty_strided((2,), (1,), layout="torch.sparse_coo"), TypeError),
    (lambda t, x: x.new_zeros(2, device=7), RuntimeError),
    (lambda t, x: x.new_tensor([1.0], device=7), RuntimeError),
    (lambda t, x: x.new(2, device=7), RuntimeError),
    (lambda t, x: x.to(memory_format="channels"), TypeError),
    (lambda t, x: x.cpu(memory_format=3), TypeError),
    (lambda t, x: x.double(memory_format=3), TypeError),
    (lambda t, x: x.to("cpu", non_blocking=3), TypeError),
    (lambda t, x: x.copy_(x, non_blocking=3), TypeError),
    (lambda t, x: x.clone(memory_format="channels"), TypeError),
    (lambda t, x: x.resize_(1, memory_format="torch.channels_last"), RuntimeError),
    (lambda t, x: x.pin_memory("nowhere"), RuntimeError),
    (lambda t, x: x.record_stream(3), TypeError),
    (lambda t, x: t.zeros(2, pin_memory=3), TypeError),
    (lambda t, x: t.zeros_like(x, memory_format=3), TypeError),
    (lambda t, x: t.tensor([1.0], pin_memory=3), TypeError),
    (lambda t, x: t.randint_like(x, 3, memory_format=3), TypeError),
    (lambda t, x: t.hann_window(3, layout=3), TypeError),
    (lambda t, x: t.kaiser_window(3, layout="torch.sparse_coo"), TypeError),
    (lambda t, x: t.signal.windows.hann(3, layout=3), TypeError),
    (lambda t, x: t.signal.windows.kaiser(3, layout=3), TypeError),
    (lambda t, x: t.fft.fftfreq(3, layout=3), TypeError),
    (lambda t, x: t.fft.rfftfreq(3, layout=3), TypeError),
    (lambda t, x: t.triu_indices(2, 2, layout=3), TypeError),
    (lambda t, x: t.is_conj(3), TypeError),
    (lambda t, x: t.use_deterministic_algorithms(3), TypeError),
    (lambda t, x: t.use_deterministic_algorithms(False, warn_only=3), TypeError),
    (lambda t, x: t.set_num_threads(0), RuntimeError),
    (lambda t, x: t.compile(t.sin, more=1), TypeError),
    (lambda t, x: t.compile(t.sin, backend="nothing"), RuntimeError),
    (lambda t, x: t.compile(t.sin, dynamic_shapes={}), NotImplementedError),
    (lambda t, x: t.compile(t.sin, mode="fast"), RuntimeError),
    (lambda t, x: t.compile(t.sin, options={"trace": True}), NotImplementedError),
    (lambda t, x: t.compile(t.sin, fullgraph=3), TypeError),
    (lambda t, x: t.jit.script(t.sin, more=1), TypeError),
    (lambda t, x: t.jit.trace(t.sin, (x,), more=1), TypeError),
    (lambda t, x: t.jit.ignore(more=1), TypeError),
    (lambda t, x: t.random.fork_rng(device_type="nowhere").__enter__(), RuntimeError),
    (lambda t, x: t.random.fork_rng(["cpu"]).__enter__(), ValueError),
    (lambda t, x: t.amp.GradScaler("nowhere"), RuntimeError),
    (lambda t, x: t.amp.GradScaler(65536.0), TypeError),
    (lambda t, x: t.autocast("cpu", cache_enabled=3), TypeError),
    (lambda t, x: t.cuda.Stream(0, stream_id=3), TypeError),
    (lambda t, x: t.cuda.Stream(0, "high"), TypeError),
    (lambda t, x: t.cuda.Event(enable_timing=3), TypeError),
    (lambda t, x: t.cuda.Event().elapsed_time(t.cuda.Event()), RuntimeError),
    (lambda t, x: t.cuda.Event().wait(3), TypeError),
    (lambda t, x: t.cuda.graph(t.cuda.CUDAGraph(), stream=3), TypeError),
    (lambda t, x: t.cuda.CUDAGraph().capture_begin(pool=3), TypeError),
    (lambda t, x: t.cuda.CUDAGraph().capture_begin(capture_error_mode="none"), RuntimeError),
    (lambda t, x: t.cuda.make_graphed_callables(t.sin, (x,), pool=3), TypeError),
    (lambda t, x: t.cuda.get_rng_state(99), RuntimeError),
    (lambda t, x: t.cuda.set_rng_state(t.get_rng_state(), 99), RuntimeError),
    (lambda t, x: x.__array_namespace__().__array_namespace_info__().dtypes(device="cuda:99"), RuntimeError),
    (lambda t, x: t.nn.utils.rnn.pad_sequence([x], padding_side="centre"), RuntimeError),
    (lambda t, x: list(t.utils.data.WeightedRandomSampler([1.0], 2, False)), RuntimeError),
    (lambda t, x: t.utils.data.WeightedRandomSampler([[1.0]], 2), ValueError),
    (lambda t, x: t.utils.data.BatchSampler([1], True, False), ValueError),
    (lambda t, x: t.utils.data.BatchSampler([1], 1, 3), ValueError),
    (lambda t, x: t.utils.data.RandomSampler([1], 3), TypeError),
    (lambda t, x: t.utils.data.RandomSampler([1], num_samples=0), ValueError),
    (lambda t, x: t.nn.functional.interpolate(t.ones(1, 1, 4), 2, align_corners=True), ValueError),
    (lambda t, x: t.nn.functional.interpolate(t.ones(1, 1, 4), 2, recompute_scale_factor=True), ValueError),
    (lambda t, x: t.nn.functional.batch_norm(t.ones(2, 2), x, None), RuntimeError),
    (lambda t, x: t.nn.functional.batch_norm(t.ones(2, 2), x, None, training=True), ValueError),
    (lambda t, x: t.nn.functional.batch_norm(t.ones(2, 2), x, x, training=True, eps=0), ValueError),
    (lambda t, x: t.nn.functional.pixel_unshuffle(t.ones(1, 3, 4), 2), RuntimeError),
    (lambda t, x: t.renorm(t.ones(2, 2), 0, 0, 1.0), RuntimeError),
    (lambda t, x: t.linalg.vander(x, N=1), RuntimeError),
    (lambda t, x: t.linalg.vecdot(x, x, dim=None), TypeError),
    (lambda t, x: t.linalg.cond(t.eye(2), 3), ValueError),
    (lambda t, x: t.norm(x, dtype=t.complex64), RuntimeError),
    (lambda t, x: t.diff(x, 0, None), TypeError),
    (lambda t, x: t.nonzero_static(x, size=1, fill_value=True), TypeError),
    (lambda t, x: t.histogramdd(t.ones(2, 2), 1, range=(0.0, 1.0)), RuntimeError),
    (lambda t, x: t.hash_tensor(x, 3), IndexError),
    (lambda t, x: t.fft.fft2(t.ones(2, 2), dim=None), TypeError),
    (lambda t, x: t.as_strided_scatter(x, x[0], (), (), 2), RuntimeError),
    (lambda t, x: t.masked.softmax(x, (0, 1)), IndexError),
]


def test_settings_that_take_effect(torch, tmp_path):
    x = torch.ones(2)
    assert x.__repr__(tensor_contents="...") == "tensor(...)"
    assert x.new_zeros(2, requires_grad=True, layout=torch.strided, pin_memory=True).requires_grad
    assert x.new_empty(size=(2, 3)).shape == (2, 3) and x.new_full((2,), fill_value=3).tolist() == [3, 3]
    assert x.new_zeros(2, device="meta").device.type == "meta"
    assert torch.is_storage(x.untyped_storage()) and not torch.is_storage(x)
    assert torch.compile(torch.sin, backend="eager", mode="max-autotune")(x).tolist() == torch.sin(x).tolist()
    assert torch.compile(fullgraph=True)(torch.sin)(x).tolist() == torch.sin(x).tolist()
    assert torch.compile(torch.sin, disable=True) is torch.sin
    torch.save(x, tmp_path / "x")
    assert torch.load(tmp_path / "x", {"cpu": "meta"}).device.type == "meta"
    assert torch.load(tmp_path / "x", {"cuda:0": "cpu"}, weights_only=False, mmap=True).tolist() == [1, 1]
    with torch.random.fork_rng(devices=[], device_type="cuda"):
        torch.manual_seed(3)


VALUES = [
    (
        "torch.nn.functional.interpolate(torch.arange(4.0).reshape(1, 1, 1, 4), (1, 3), mode='bilinear', align_corners=True, "
        "antialias=True)",
        [[[[0.375, 1.77778, 2.83333]]]],
    ),
    ("torch.nn.functional.kl_div(torch.zeros(2), torch.ones(2), size_average=False, reduction='batchmean', log_target=True)", 2.71828),
    ("torch.nn.functional.embedding_bag(torch.eye(2), torch.tensor([[0, 1]]))", [[0.5, 0.5]]),
    ("torch.masked.softmax(torch.zeros(2, 1), None)", [[0.5], [0.5]]),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("code, expected", VALUES)
def test_values_of_moved_arguments(torch, code, expected):
    check_row(torch, NAMES, code, expected)


def test_expanded_distributions_validate(torch):
    for kind in (torch.distributions.Categorical, torch.distributions.OneHotCategorical):
        expanded = kind(logits=torch.zeros(3), validate_args=True).expand((2,))
        with pytest.raises(ValueError):
            expanded.log_prob(torch.full((5,), 7.0))


def test_deterministic_algorithms(torch):
    assert not torch.are_deterministic_algorithms_enabled()
    try:
        if torch.cuda.is_available():
            with pytest.raises(NotImplementedError, match="warn_only=True"):
                torch.use_deterministic_algorithms(True)
            assert not torch.are_deterministic_algorithms_enabled()
            with pytest.warns(UserWarning, match="last bits"):
                torch.use_deterministic_algorithms(True, warn_only=True)
        else:
            torch.use_deterministic_algorithms(True, warn_only=True)
        assert torch.are_deterministic_algorithms_enabled() and torch.is_deterministic_algorithms_warn_only_enabled()
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("call, error", REFUSED)
def test_invalid_arguments_are_rejected(torch, call, error):
    with pytest.raises(error):
        call(torch, torch.ones(2))


def test_like_functions_draw_from_a_generator(torch):
    x, generator = torch.ones(5), torch.Generator()
    for draw in (torch.rand_like, torch.randn_like, lambda t, generator: torch.randint_like(t, 1000, generator=generator)):
        first = draw(x, generator=generator.manual_seed(3))
        assert torch.equal(draw(x, generator=generator.manual_seed(3)), first)
        assert not torch.equal(draw(x, generator=generator), first)


ORDERS = [
    lambda data, generator: list(data.RandomSampler(range(20), generator=generator)),
    lambda data, generator: list(data.RandomSampler(range(20), True, 15, generator=generator)),
    lambda data, generator: list(data.SubsetRandomSampler(range(20), generator=generator)),
    lambda data, generator: list(data.WeightedRandomSampler([1.0] * 20, 15, generator=generator)),
    lambda data, generator: list(data.WeightedRandomSampler([1.0] * 20, 15, False, generator=generator)),
    lambda data, generator: [b.tolist() for b in data.DataLoader(range(20), 4, shuffle=True, generator=generator)],
    lambda data, generator: [list(s.indices) for s in data.random_split(range(20), [12, 8], generator=generator)],
]


@pytest.mark.parametrize("order", ORDERS)
def test_permutations_use_the_generator_or_the_seed(torch, order):
    data, generator = torch.utils.data, torch.Generator().manual_seed(5)
    state = generator.get_state()
    first, second = order(data, generator), order(data, generator)
    assert first != second
    random.seed(0)
    torch.manual_seed(9)
    assert [order(data, generator.manual_seed(5)), order(data, generator)] == [first, second]
    assert order(data, generator.set_state(state)) == first
    torch.manual_seed(1)
    first, second = order(data, None), order(data, None)
    torch.manual_seed(1)
    assert first != second and [order(data, None), order(data, None)] == [first, second]


def test_print_profiles(torch):
    try:
        torch.set_printoptions(profile="short")
        assert repr(torch.tensor([0.125])) == "tensor([0.12])"
        torch.set_printoptions(profile="full", precision=3)
        assert repr(torch.zeros(2000)).count("0.") == 2000
    finally:
        torch.set_printoptions(profile="default")
    assert repr(torch.tensor([0.125])) == "tensor([0.1250])" and "..." in repr(torch.zeros(2000))


def test_loader_timeout(torch):
    class Slow(torch.utils.data.Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            time.sleep(1)
            return index

    with pytest.raises(RuntimeError, match="timed out after 0.1 seconds"):
        next(iter(torch.utils.data.DataLoader(Slow(), num_workers=1, timeout=0.1)))


def test_jacobians_stay_in_the_graph_of_their_inputs(torch):
    functional = torch.autograd.functional
    for product in (
        lambda w: functional.jacobian(lambda v: v**3, w, create_graph=True).sum(),
        lambda w: functional.vjp(lambda v: (v**3).sum(), w, create_graph=True)[1].sum(),
    ):
        w = torch.tensor([2.0, 3.0], requires_grad=True)
        product(w).backward()
        assert w.grad.tolist() == [12, 18]


def test_contexts_of_a_checkpoint(torch):
    entered = []

    class Noted:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *exc):
            pass

    x = torch.ones(2, requires_grad=True)
    result = torch.utils.checkpoint.checkpoint(
        torch.sin, x, use_reentrant=False, context_fn=lambda: (Noted("forward"), Noted("again"))
    )
    assert entered == ["forward"]
    result.sum().backward()
    assert entered == ["forward", "again"]


# Arguments that choose how something is computed or stored, not the result.
HINTS = {
    "assume_unique", "chunk_size", "check_undefined_grad", "check_grad_dtypes", "cudnn_enabled", "debug",
    "determinism_check", "enable_nested_tensor", "foreach", "mask_check", "masked", "memory_format",
    "non_blocking", "nondet_tol", "num_warmup_iters", "sorted", "sparse", "vectorize",
}  # fmt: skip

# Files with classes whose methods subclasses define.
INTERFACES = {"distributed/checkpoint/planner.py", "distributed/checkpoint/stateful.py", "distributed/checkpoint/storage.py"}
INTERFACES |= {"package/_importers.py"}
# Tables of functions of one signature: handlers of instructions and of builtin functions.
INTERFACES |= {"_dynamo/_builtins.py", "_dynamo/_deques.py", "_dynamo/_getters.py", "_dynamo/_opcodes_311.py"}
INTERFACES |= {f"_dynamo/_builtin_{name}.py" for name in ("attributes", "containers", "iteration", "numbers", "text")}

# Modules about TorchScript, and settings of compilation that depend on sizes and addresses, which are constants here or unknown.
NOT_COMPILED = {
    "_torch_c_compat/__init__.py", "_dynamo/decorators.py", "compiler/__init__.py", "jit/_settings.py", "jit/_types.py",
}  # fmt: skip

# Parameters required by a protocol: of hooks, overridden methods, and PyTorch functions that have no effect here.
UNUSED = {
    ("backends/cudnn.py", "tensor"), ("backends/mps.py", "major"), ("backends/mps.py", "minor"),
    ("onnx/symbolic_helper.py", "arg_q_descriptors"), ("onnx/symbolic_helper.py", "arg_types"),
    ("onnx/symbolic_helper.py", "quantize_output"), ("onnx/symbolic_helper.py", "scale"),
    ("onnx/symbolic_helper.py", "zero_point"), ("_library/schema.py", "tags"),
    ("distributed/_functional_collectives.py", "tag"), ("library.py", "alias_analysis"),
    ("library.py", "atol"), ("library.py", "lib"), ("library.py", "rtol"), ("library.py", "tags"),
    ("_storage.py", "device"), ("_tensor.py", "context"), ("_tensor.py", "protocol"), ("_tensor.py", "return_scalar"),
    ("accelerator.py", "check_available"),
    ("as_torch.py", "path"), ("as_torch.py", "target"),
    # The engine copies saved tensors from and to its own page-locked memory.
    ("autograd/_saved_tensors.py", "pin_memory"), ("autograd/_graph_names.py", "enabled"),
    ("_active_profile.py", "is_operator"), ("_active_profile.py", "name"), ("_library/registrations.py", "lib"),
    ("cpu/__init__.py", "device"), ("cpu/__init__.py", "event"), ("cpu/__init__.py", "priority"),
    ("cpu/__init__.py", "stream"), ("cuda/graphs.py", "allow_unused_input"), ("distributed/_breakpoint.py", "timeout_s"),
    ("distributed/_coalescing.py", "device"), ("distributed/_coalescing.py", "group"),
    ("distributed/_collectives.py", "device_ids"), ("distributed/_collectives.py", "name"),
    ("futures.py", "devices"), ("distributed/_groups.py", "group_name"),
    ("distributed/_groups.py", "pg_options"), ("distributed/_objects.py", "device"),
    ("distributed/_objects.py", "use_batch"), ("distributed/_objects.py", "weights_only"),
    ("distributed/_rendezvous.py", "options"), ("distributed/_world.py", "device"),
    ("distributed/algorithms/join.py", "is_last_joiner"), ("distributed/algorithms/join.py", "kwargs"),
    ("distributed/algorithms/model_averaging/averagers.py", "params"),
    ("distributed/checkpoint/default_planner.py", "is_coordinator"),
    ("distributed/checkpoint/default_planner.py", "read_item"),
    ("distributed/checkpoint/default_planner.py", "storage_meta"),
    ("distributed/checkpoint/default_planner.py", "tensor"), ("distributed/checkpoint/filesystem.py", "args"),
    ("distributed/checkpoint/filesystem.py", "is_coordinator"), ("distributed/checkpoint/filesystem.py", "kwargs"),
    ("distributed/checkpoint/filesystem.py", "per_thread_copy_ahead"),
    ("distributed/checkpoint/filesystem.py", "thread_count"), ("distributed/checkpoint/hf_storage.py", "args"),
    ("distributed/checkpoint/hf_storage.py", "kwargs"), ("distributed/checkpoint/hf_storage.py", "thread_count"),
    ("distributed/device_mesh.py", "backend_override"), ("distributed/fsdp/_fully_shard.py", "enable"),
    ("distributed/fsdp/_fully_shard.py", "is_last_backward"), ("distributed/fsdp/_run.py", "anchor"),
    ("distributed/fsdp/_sharded_tensor.py", "args"), ("distributed/fsdp/_sharded_tensor.py", "kwargs"),
    ("distributed/fsdp/fully_sharded_data_parallel.py", "forward_prefetch"),
    ("distributed/fsdp/sharded_grad_scaler.py", "optimizer"), ("distributed/fsdp/wrap.py", "args"),
    ("distributed/fsdp/wrap.py", "kwargs"), ("distributed/fsdp/wrap.py", "nonwrapped_numel"),
    ("distributed/optim/zero_redundancy_optimizer.py", "kwargs"),
    ("distributed/tensor/_decompositions.py", "specs"), ("distributed/tensor/_dtensor.py", "args"),
    ("distributed/tensor/_dtensor.py", "async_op"), ("distributed/tensor/_dtensor.py", "kwargs"),
    ("_transforms.py", "tensor"), ("func/_batched.py", "tensor_contents"), ("func/_dual.py", "tensor_contents"),
    ("func/_linearized.py", "tensor_contents"), ("func/_transformed.py", "types"), ("_quantized/tensor.py", "types"),
    ("_component_tensor.py", "roots"), ("_sparse/tensor.py", "types"), ("utils/flop_counter.py", "types"),
    ("func/_functionalized.py", "tensor_contents"),
    ("distributed/tensor/_dtensor.py", "tensor_contents"), ("distributed/tensor/_rules.py", "offset"),
    ("distributed/tensor/parallel/style.py", "device_mesh"), ("distributed/tensor/parallel/style.py", "inputs"),
    ("distributed/tensor/parallel/style.py", "mesh"), ("distributed/tensor/parallel/style.py", "module"),
    ("distributed/tensor/parallel/style.py", "name"), ("distributed/tensor/placement_types.py", "dim"),
    ("distributed/tensor/placement_types.py", "reduce_op"), ("distributions/_transform_types.py", "y"),
    ("distributions/_transforms_elementwise.py", "y"), ("distributions/_transforms_vectors.py", "intermediates"),
    ("distributions/utils.py", "owner"), ("hub.py", "skip_validation"),
    ("hub.py", "trust_repo"), ("hub.py", "verbose"), ("jit/__init__.py", "check_inputs"),
    ("jit/__init__.py", "check_tolerance"), ("jit/__init__.py", "check_trace"), 
    ("jit/__init__.py", "optimize"),
    ("jit/__init__.py", "optimize_numerics"), ("jit/__init__.py", "mod"), ("jit/__init__.py", "preserved_methods"), 
    ("jit/__init__.py", "strict"), ("jit/__init__.py", "the_type"),
    ("nn/pooling.py", "return_indices"), ("nn/functional.py", "p"), ("nn/functional.py", "training"),
    ("jit/_graph.py", "recurse"), ("jit/_trace.py", "strict"), ("jit/_trace.py", "types"),
    ("nn/modules/lazy.py", "args"), ("nn/modules/lazy.py", "error_msgs"),
    ("nn/modules/lazy.py", "kwargs"), ("nn/modules/lazy.py", "local_metadata"),
    ("nn/modules/lazy.py", "missing_keys"), ("nn/modules/lazy.py", "strict"),
    ("nn/modules/lazy.py", "unexpected_keys"), ("nn/modules/linear.py", "args"), ("nn/modules/linear.py", "kwargs"),
    ("nn/parallel/distributed.py", "check_reduction"), ("nn/parameter.py", "args"), ("nn/parameter.py", "kwargs"),
    ("nn/parameter.py", "proto"), ("nn/utils/prune.py", "default_mask"), ("nn/utils/prune.py", "inputs"),
    ("nn/utils/prune.py", "t"), ("nn/utils/spectral_norm.py", "inputs"), ("nn/utils/weight_norm.py", "inputs"),
    ("nn/utils/parametrizations.py", "rest"), ("nn/utils/stateless.py", "stack_weights"), ("optim/_per_parameter.py", "group"),
    ("optim/adadelta.py", "group"),
    ("optim/swa_utils.py", "num_averaged"),
    ("serialization/_unpickler.py", "args"), ("serialization/_unpickler.py", "elements"),
    ("serialization/_unpickler.py", "items"), ("serialization/_unpickler.py", "options"), ("storage.py", "device"),
    ("utils/_pytree/_treespec.py", "indent"), ("utils/_checkpoint_runs.py", "args"), ("utils/_checkpoint_runs.py", "device_type"),
    ("utils/_checkpoint_runs.py", "devices"), ("utils/_checkpoint_runs.py", "states"),
    ("utils/data/collate.py", "collate_fn_map"), ("utils/data/_workers/child.py", "collate_fn_map"),
}  # fmt: skip

# The counts that are passed contain the weights; PyTorch does not use the argument either.
UNUSED |= {("utils/tensorboard/summary.py", "weights")}


UNUSED |= UNUSED_NAMES

# torch.fx: parameters of methods that subclasses and passes define, and of protocols. split_module's root_m has
# no effect in PyTorch either; fast_sympy_print applies to symbolic sizes, which graphs do not contain.
UNUSED |= {
    *(("fx/_symbolic_trace.py", name) for name in ("attr", "module_qualified_name", "root")),
    ("fx/graph_module.py", "fast_sympy_print"), ("fx/graph_module.py", "protocol"),
    *(("fx/interpreter.py", name) for name in ("args", "kwargs", "m", "module_qualified_name", "target")),
    ("fx/operator_schemas.py", "args"), ("fx/passes/infra/pass_base.py", "graph_module"),
    ("fx/passes/infra/pass_manager.py", "module"), ("fx/passes/param_fetch.py", "target_version"),
    ("fx/passes/split_module.py", "root_m"), ("fx/proxy.py", "types"), ("fx/subgraph_rewriter.py", "graph"),
}  # fmt: skip


# Options of PyTorch that select among ways to the same result (FakeTensorMode's caches and fallbacks; when FSDP's buffers
# are freed and which streams it uses; `unsafe` of a registration), methods that subclasses define, and the names of
# parameters that are checked by a declaration (`mean`, `median`).
UNUSED |= {
    ("_decomp/__init__.py", "unsafe"), ("_generator.py", "mean"), ("_generator.py", "median"),
    *(("_subclasses/fake_tensor.py", name) for name in (
        "allow_fallback_kernels", "export", "func", "static_shapes", "tensor_contents", "types",
    )),
    ("distributed/elastic/multiprocessing/errors/error_handler.py", "rootcause_error_file"),
    *(("distributed/fsdp/_fully_shard.py", name) for name in ("event", "max_input_buffers", "recurse", "reshard_after_backward")),
    ("distributed/fsdp/_run.py", "grad"), ("distributed/fsdp/_unit.py", "grads"),
}  # fmt: skip

# torch.distributed.elastic: what argparse and subclasses define (timers, metric handlers, logs, contexts of processes), the
# roles of an agent that has one, and an implementation of the store's server, which the engine serves.
UNUSED |= {
    *(("distributed/argparse_util.py", name) for name in ("option_string", "parser", "values")),
    *((f"distributed/elastic/agent/server/{name}.py", "role") for name in ("api", "local_elastic_agent")),
    ("distributed/elastic/metrics/api.py", "cfg"), ("distributed/elastic/metrics/api.py", "metric_data"),
    *(("distributed/elastic/multiprocessing/api.py", name) for name in ("envs", "rank", "seconds")),
    *(("distributed/elastic/timer/api.py", name) for name in (
        "deadline", "expiration_time", "scope_id", "size", "timeout", "timer_requests", "worker_id", "worker_ids",
    )),
    ("distributed/elastic/utils/distributed.py", "use_libuv"),
}  # fmt: skip


# An abstract method of torch.export's adapters; handlers of calls and copies of recorded tensors; options of graph
# partitions that select among equal results.
UNUSED |= {
    *(("export/unflatten.py", name) for name in ("input_args", "input_spec", "metadata", "obj", "target_spec")),
    ("fx/experimental/_recorded.py", "tensor_contents"), ("fx/experimental/_recording.py", "types"), ("fx/experimental/_sizes.py", "memo"),
}  # fmt: skip

# Quantizers: hooks whose defaults accept every model.
UNUSED |= {
    *((f"ao/quantization/quantizer/{name}_quantizer.py", "model") for name in ("embedding", "x86_inductor", "xnnpack")),
    *(("ao/quantization/quantizer/quantizer.py", name) for name in ("edge_or_node_to_obs_or_fq", "model")),
}


def unused_arguments(source: str) -> list[str]:
    """The parameters of functions whose bodies never use them, except of bodies that only raise."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef) or node.name in ("__exit__", "__init_subclass__"):
            continue
        body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        if body and all(isinstance(s, ast.Raise) for s in body):
            continue
        a = node.args
        names = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if x is not None]
        used = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name)}
        found += [n for n in names if n not in used and n not in ("self", "cls") and not n.startswith("_")]
    return found


def test_no_argument_is_ignored(torch):
    root = Path(torch.__file__).resolve().parent
    paths = sorted(root.rglob("*.py"))
    assert len(paths) > 150
    found = {(path.relative_to(root).as_posix(), a) for path in paths for a in unused_arguments(path.read_text())}
    found = {(name, a) for name, a in found if name not in INTERFACES | NOT_COMPILED}
    ignored = sorted((name, a) for name, a in found if a not in HINTS and (name, a) not in UNUSED)
    assert not ignored, "arguments that are accepted and ignored"
    assert UNUSED <= found, f"unnecessary exceptions: {sorted(UNUSED - found)}"
