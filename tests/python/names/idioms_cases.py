"""Idioms of programs that once had other results without an error, or did not exist."""

import collections
import copy
import datetime
import importlib
import io
import math
import types
import warnings

import numpy as np

from .record import error
from .rows import values_of


def case_numpy_scalars(torch):
    numbers = [np.float64(0.1), np.float32(0.1), np.float16(0.5), np.int8(3), np.bool_(True)]
    rows = [
        getattr(torch, name)(value)
        for name in ("tensor", "as_tensor")
        for n in numbers
        for value in (n, [n], [[n], [n]])
    ]
    rows += [str(torch.tensor([n(1j)]).dtype) for n in (np.complex64, np.complex128)]
    return rows + [
        torch.tensor([np.float64(0.1), 2]),
        torch.tensor([1, np.float32(2)]),
        torch.full((2,), np.float64(0.5)),
    ]


def case_deepcopy_keeps_sharing(torch):
    x = torch.arange(6.0)
    a, b, c = copy.deepcopy([x, x[:2], x.view(2, 3).t()])
    a.mul_(10)
    p = torch.nn.Parameter(torch.ones(3))
    q, r = copy.deepcopy((p, p))
    return [a, b, c, list(c.stride()), b.storage_offset(), x, q is r, q.requires_grad, type(q).__name__]


def case_materialize_grads(torch):
    seen = []

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, p, q):
            seen.append([g is None for g in (p, q)])
            return p if q is None else q

    rows = []
    for used in (0, 1):
        x = torch.ones(2, requires_grad=True)
        Two.apply(x)[used].sum().backward()
        rows.append(x.grad)
    return rows + seen


def case_clamp_at_its_bounds(torch):
    rows = []
    for bounds in ({"min": 0.0, "max": 1.0}, {"min": 0.0}, {"max": 1.0}):
        x = torch.tensor([0.0, 1.0, 0.5, -1.0, 2.0], requires_grad=True)
        x.clamp(**bounds).sum().backward()
        rows.append(x.grad)
    return rows


def case_windows_and_draws(torch):
    rows = [
        torch.hann_window(4, requires_grad=True).requires_grad,
        torch.kaiser_window(4, requires_grad=True).requires_grad,
    ]
    rows.append("normal expects" in error(torch.normal, 0.0, -1.0, (2,)))
    generator = torch.manual_seed(0)
    return rows + [
        isinstance(generator, torch.Generator),
        generator is torch.default_generator,
        generator.initial_seed(),
    ]


def case_sdp_backend(torch):
    backend = torch.nn.attention.SDPBackend
    return [
        type(backend.MATH).__name__,
        isinstance(backend.MATH, int),
        backend.MATH == backend.MATH,
        repr(backend.MATH),
    ]


def case_numpy_without_gradients(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        return [x.numpy().tolist(), np.asarray(x).tolist(), np.array(x * 2).tolist()]


def case_writes_to_data(torch):
    rows = []
    for write in (
        lambda d: d.__setitem__(0, 5.0),
        lambda d: d.__setitem__(slice(None), torch.tensor([7.0, 8.0])),
        lambda d: d.mul_(2),
        lambda d: d.copy_(torch.ones(2)),
    ):
        x = torch.tensor([2.0, 3.0], requires_grad=True)
        y = x * x
        write(x.data)
        y.sum().backward()
        rows.append([x, x.grad])
    return rows


def case_lists_of_results(torch):
    x = torch.tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])
    rows = []
    for name in ("max", "min", "mode", "cummax", "cummin", "median", "sort"):
        out = [torch.empty(0), torch.empty(0, dtype=torch.int64)]
        result = getattr(torch, name)(x, 1, out=out)
        rows.append([out, result[0] is out[0], type(result).__name__])
    return rows


def case_files_of_plain_objects(torch):
    content = {
        "n": types.SimpleNamespace(a=1, b=torch.ones(2)),
        "t": datetime.datetime(2024, 1, 2),
        "o": collections.OrderedDict(a=1),
    }
    file = io.BytesIO()
    torch.save(content, file)
    file.seek(0)
    read = torch.load(file, weights_only=False)
    module = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU())
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    equal = all(torch.equal(a, b) for a, b in zip(module.parameters(), loaded.parameters(), strict=True))
    return [read["n"].a, read["n"].b, str(read["t"]), read["o"], repr(loaded), equal]


def case_small_names(torch):
    x = torch.arange(6.0).view(2, 3)
    rows = [
        torch.finfo(type=torch.float64).bits,
        torch.functional.cdist(x, x),
        torch.distributions.normal.Normal.__name__,
    ]
    rows.append([list(t.shape) for t in torch.hsplit(x, (1, 2))])
    lu, pivots = torch.linalg.lu_factor(torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
    rows += [lu, pivots, torch.functional.lu(torch.tensor([[2.0, 1.0], [1.0, 3.0]]), True, False)[0]]
    return rows


def case_fake_tensors(torch):
    with importlib.import_module(f"{torch.__name__}._subclasses").FakeTensorMode():
        x = torch.zeros(3, 4)
        y = x @ torch.ones(4, 5)
    return [list(y.shape), str(y.dtype), type(y).__name__]


def case_sobol_without_scrambling(torch):
    engine = torch.quasirandom.SobolEngine(3)
    return [engine.draw(5), engine.draw(2), engine.fast_forward(3).draw(1), engine.reset().draw(2)]


NUMPY_INTEGERS = """
x.sum(i), x.mean(dim=i), x.amax(i, True), x.std(i), x.all(i), x.count_nonzero(i), x.logsumexp(i)
torch.var_mean(x, i), x.norm(2, i)
x.sum((i, n)), x.movedim(i, n), x.roll(n, i), x.squeeze(i), x.diff(n, i), x.unique(dim=i)
x.unflatten(i, (n, 2)), x.repeat_interleave(n)
x.tensor_split(two), torch.hsplit(x, n), torch.fft.fft(x, two, i), torch.fft.fftshift(x, i), torch.linalg.norm(x, dim=i)
torch.zeros(n), torch.zeros((two, n)), torch.full((n,), 2.0), torch.eye(two), torch.hann_window(two)
F.interpolate(x[None], size=two), F.max_pool1d(x[None], two), F.avg_pool2d(x[None], two), F.adaptive_avg_pool1d(x[None], n)
F.unfold(x[None, None], two)
F.conv1d(x[None], torch.ones(1, 2, 1), padding=n, stride=two), F.layer_norm(x, (three,)), F.normalize(x, dim=i), F.pad(x, (n, i))
torch.nn.Conv2d(n, n, two).weight.shape, torch.nn.ConvTranspose1d(n, n, two, output_padding=i).weight.shape, torch.nn.ZeroPad2d(n)(x)
torch.nn.LayerNorm(three)(x), torch.nn.RMSNorm(three)(x), torch.nn.Linear(three, n).weight.shape
torch.nn.LSTM(three, two, n)
x.sum(np.float64(1))
torch.zeros(np.float64(2))
"""


def case_numpy_integers(torch):
    i, n, two, three = (np.int64(v) for v in range(4))
    names = {"x": torch.arange(6.0).view(2, 3), "i": i, "n": n, "two": two, "three": three, "np": np, "F": torch.nn.functional}
    return values_of(torch, NUMPY_INTEGERS, **names)


OTHER_VALUES = """
torch.tensor(np.datetime64("2024"))
torch.tensor([np.datetime64("2024")])
torch.as_tensor(np.timedelta64(3, "D"))
torch.tensor(np.array(["2024"], dtype="M8[Y]"))
torch.tensor(np.float32(2)), torch.tensor(np.bool_(True)), torch.tensor(np.array(3)), torch.tensor(np.array([1, 2], dtype=np.uint8))
"""


def case_numpy_values_without_a_dtype(torch):
    return values_of(torch, OTHER_VALUES, np=np)


LISTS_AS_INDICES = """
x[[[0, 1], [1, 0]]]
x[[slice(0, 1), 1]]
x[[torch.tensor([0, 1]), torch.tensor([1, 0])]]
x[[0, torch.tensor(1)]]
x[[[0, 1]]]
x[[None, 0]]
x[[..., 0]]
x[[np.array([0, 1]), np.array([1, 0])]]
x[[[True, False], [0]]]
x[[[]]]
x[[]]
x[[0, 1]]
x[[True, False]]
x[[[0], [1], [2]]]
x[range(2)]
x[np.array([[0, 1], [1, 0]])]
x[torch.tensor([[0, 1], [1, 0]])]
"""


def case_lists_as_indices(torch):
    x = torch.arange(6.0).view(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = values_of(torch, LISTS_AS_INDICES, x=x, np=np)
        x[[[0, 1], [1, 0]]] = 9.0
        return [rows, x]


def case_gradients_at_ties_and_corners(torch):
    nan, inf, f = math.nan, math.inf, torch.nn.functional
    pairs = {
        "fmax": ([1.0, 2, 3, nan, 1, inf, -0.0, nan], [1.0, 3, 2, 1, nan, inf, 0, inf]),
        "fmin": ([1.0, 2, 3, nan, 1, inf, -0.0, nan], [1.0, 3, 2, 1, nan, inf, 0, inf]),
        "maximum": ([1.0, 2, 3], [1.0, 3, 2]),
        "atan2": ([0.0, 0, 1e-30, 1, -2], [0.0, -1, 0, 1, 0]),
        "hypot": ([3.0, 0], [4.0, 2]),
        "pow": ([0.0, 0, 2], [0.0, 2, 0]),
    }
    rows = []
    for name, values in pairs.items():
        leaves = [torch.tensor(v, requires_grad=True) for v in values]
        getattr(torch, name)(*leaves).sum().backward()
        rows.append([name, [[v if v == v else "nan" for v in leaf.grad.tolist()] for leaf in leaves]])
    for function in (f.rrelu, f.leaky_relu, f.relu6, f.hardtanh, f.hardsigmoid, f.hardswish, f.softshrink, f.hardshrink, f.elu):
        x = torch.tensor([-3.0, -0.5, 0, 0.5, 1, 3, 6], requires_grad=True)
        function(x).sum().backward()
        rows.append([function.__name__, x.grad])
    x = torch.tensor([-1.0, 0, 1], requires_grad=True)
    f.rrelu(x, training=True).sum().backward()
    return [*rows, [bool(0.1 < x.grad[i] < 0.4) for i in range(3)]]


def case_seeds_beyond_64_bits(torch):
    seeds = [torch.manual_seed(seed).initial_seed() for seed in (-1, 2**63, 2**64 - 1, np.int64(3))]
    refused = [bool(error(f, seed)) for f in (torch.manual_seed, torch.Generator().manual_seed) for seed in (2**64, -(2**63) - 1)]
    torch.manual_seed(0)
    return [seeds, refused]


def case_tied_buffers(torch):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2, 2))
            self.same = self.weight
            self.register_buffer("table", torch.zeros(4))
            self.register_buffer("head", self.table[:2])

    module = copy.deepcopy(Tied())
    module.table.fill_(3.0)
    optimizer = torch.optim.AdamW(module.parameters())
    module.weight.sum().backward()
    optimizer.step()
    again, stepped = copy.deepcopy((module, optimizer))
    return [
        module.head, module.same is module.weight, stepped.param_groups[0]["params"][0] is again.weight, len(stepped.state),
        again.weight.grad,
    ]  # fmt: skip


PRIVATE_NAMES = """
sorted(map(str, attention._cur_sdpa_kernel_backends())) == sorted(str(b) for b in B.__members__.values() if b != B.ERROR)
proxies.get_proxy_mode()
torch.ops.aten.sym_size(x, 1), torch.ops.aten.sym_size.int(x, 0), torch.ops.aten.sym_size.default(x), torch.ops.aten.sym_numel(x)
torch.iinfo(type=torch.int8).max, torch.finfo(type=torch.bfloat16).eps, str(torch._C.TensorType.get())
torch.TensorType is torch._C.TensorType
torch.functional.lu(a, True, True), torch.functional.lu(a, True, False)[1]
torch.functional.istft(torch.functional.stft(y, 8, return_complex=True, window=w), 8, window=w)
[[n, type(getattr(torch.distributions, n)).__name__] for n in "normal constraints kl transforms utils von_mises exp_family".split()]
[list(t.shape) for t in (*torch.hsplit(x, (1, 5)), *x.vsplit([1, 9]), *torch.dsplit(x[None], (4,)))]
linear.NonDynamicallyQuantizableLinear(2, 3), isinstance(linear.NonDynamicallyQuantizableLinear(2, 3), torch.nn.Linear)
sorted({"pca_lowrank", "svd_lowrank", "stft", "istft", "lu", "cdist"} - set(torch.functional.__all__))
"""


def case_private_names(torch):
    attention = importlib.import_module(f"{torch.__name__}.nn.attention")
    names = {
        "attention": attention, "B": attention.SDPBackend, "x": torch.arange(6.0).view(2, 3), "a": torch.eye(2) + 1,
        "proxies": importlib.import_module(f"{torch.__name__}.fx.experimental.proxy_tensor"), "w": torch.hann_window(8),
        "linear": importlib.import_module(f"{torch.__name__}.nn.modules.linear"), "y": torch.arange(32.0).sin(),
    }  # fmt: skip
    with names["proxies"].disable_proxy_modes_tracing():
        rows = values_of(torch, PRIVATE_NAMES, **names)
    with attention.sdpa_kernel([attention.SDPBackend.MATH, attention.SDPBackend.FLASH_ATTENTION], set_priority=True):
        return [rows, [str(b) for b in attention._cur_sdpa_kernel_backends(with_priority=True)[:2]]]


def case_ranges_of_profiles(torch):
    profiler = torch.ops.profiler
    with importlib.import_module(f"{torch.__name__}.profiler").profile() as profile:
        for enter, leave in (
            (profiler._record_function_enter, profiler._record_function_exit),
            (profiler._record_function_enter_new.default, profiler._record_function_exit._RecordFunction),
        ):
            handle = enter("a range", None) if enter is not profiler._record_function_enter else enter("a range")
            torch.ones(2) + 1
            leave(handle)
    return [[e.key, e.count] for e in profile.key_averages() if e.key in ("a range", "aten::add")]


def case_einsum_of_a_tuple_is_traced(torch):
    class Product(torch.nn.Module):
        def forward(self, a, b):
            return torch.einsum("ij,jk->ik", (a, b)) + torch.einsum("ij,jk->ik", a, b)

    traced = importlib.import_module(f"{torch.__name__}.fx").symbolic_trace(Product())
    x = torch.arange(4.0).view(2, 2)
    return [traced(x, x), [node.op for node in traced.graph.nodes]]


def case_fake_tensors_of_modules(torch):
    subclasses = importlib.import_module(f"{torch.__name__}._subclasses")
    mode = subclasses.FakeTensorMode(allow_non_fake_inputs=True)
    of_real = mode.from_tensor(torch.ones(2, 3, requires_grad=True).t())
    with mode:
        layer = torch.nn.Linear(3, 2)
        result = layer(torch.ones(1, 3))
    kinds = [isinstance(t, subclasses.FakeTensor) for t in (of_real, layer.weight, result, torch.ones(1))]
    return [
        kinds, list(of_real.shape), list(of_real.stride()), of_real.requires_grad, list(result.shape), result.fake_mode is mode,
        str(result.device),
    ]  # fmt: skip


def case_sobol_in_powers_of_two(torch):
    engine = torch.quasirandom.SobolEngine
    points = engine(4, scramble=True, seed=1).draw(64)
    return [
        engine(2).draw_base2(2), engine(2).draw(2, dtype=torch.float64), repr(engine(2)), engine.MAXDIM, list(points.shape),
        bool(((points >= 0) & (points < 1)).all()), bool((points.mean(0) - 0.5).abs().max() < 0.03), error(engine, 21202),
    ]  # fmt: skip


TEXTS = """
repr(torch.tensor([], dtype=torch.int64)), repr(torch.empty(0, 3, dtype=torch.int32)), repr(torch.tensor([], dtype=torch.bool))
repr(torch.empty(0)), repr(torch.empty(0, 2, requires_grad=True)), repr(torch.empty(0, dtype=torch.complex64))
repr(torch.empty(2, device="meta")), repr(torch.empty(2, 0, device="meta", dtype=torch.int64))
repr(torch.ones(2, dtype=torch.int32)), repr(torch.ones(1, dtype=torch.complex64))
repr(torch.distributions.Categorical(torch.ones(3))), repr(torch.distributions.Normal(torch.zeros(2), 1.0))
"""


def case_texts_of_empty_tensors(torch):
    return values_of(torch, TEXTS)


BEYOND = """
torch.clamp(u, -1, 300), torch.clamp(u, min=-5), torch.clamp(u, max=2**40), torch.clamp(i, max=300), torch.clamp(i, -(2**40), 2**40)
torch.clamp(i.int(), max=2**31), torch.clamp(i.int(), -(2**32) - 1, 2**32 + 1), torch.clamp(i.short(), max=2**33 + 1)
i.long().clamp(max=2**62)
torch.clamp(u, max=-1)
torch.clamp(u, 0, -1)
torch.clamp(u, min=256)
torch.clamp(i, min=128)
torch.clamp(i, max=-129)
torch.clamp(i.int(), min=2**31)
torch.clamp(u, -1.5, 300.5), torch.clamp(u.bool(), max=-1), torch.clamp(i, -128, 127)
u.clone().clamp_(max=-1)
torch.bucketize(torch.tensor([2.5, 0.5]), ints), torch.bucketize(ints, floats), torch.bucketize(ints, floats, right=True)
torch.searchsorted(ints, torch.tensor([[2.5]])), torch.searchsorted(u, torch.tensor([300, -1]))
torch.searchsorted(floats.half(), floats.double())
torch.bucketize(torch.tensor([2**53 + 1]), torch.tensor([2.0**53])), torch.bucketize(2.5, ints), torch.searchsorted(floats, 2)
"""


def case_values_beyond_a_dtype(torch):
    names = {"u": torch.tensor([4, 100], dtype=torch.uint8), "i": torch.tensor([-4, 100], dtype=torch.int8)}
    return values_of(torch, BEYOND, ints=torch.tensor([1, 2, 3]), floats=torch.tensor([1.5, 2.5]), **names)


def case_functions_behind_none(torch):
    """Functions before one whose backward returns None are called, with zeros."""
    calls = []

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            calls.append(g.tolist())
            return g + 1

    class Dropped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return g, None

    rows = []
    for before in (lambda y: y, lambda y: y * 3, lambda y: Scaled.apply(y) * 1):
        x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        Dropped.apply(x, before(Scaled.apply(y))).sum().backward()
        rows.append([x.grad, y.grad])
    x, y, z = (torch.ones(2, requires_grad=True) for _ in range(3))
    total = Dropped.apply(x, Scaled.apply(y)).sum() + z.sum()
    rows.append(list(torch.autograd.grad(total, [x, y, z])))
    y = torch.ones(2, requires_grad=True)
    Dropped.apply(x, y * 2).sum().backward()
    return [*rows, y.grad, calls]


def case_derivatives_of_norms_and_gamma_functions(torch):
    rows = []
    for power in (0.5, 1.5, 3):
        x = torch.tensor([[0.0, 2.0, -1.0], [0.0, 0.0, 0.0]], requires_grad=True)
        torch.linalg.vector_norm(x, power, 1).sum().backward()
        rows.append([power, x.grad])
    for function in (torch.lgamma, torch.digamma, lambda x: torch.polygamma(1, x)):
        x = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
        derivatives = [function(x).sum()]
        for _ in range(3):
            derivatives.append(torch.autograd.grad(derivatives[-1].sum(), x, create_graph=True)[0])
        rows.append(derivatives)
    return rows


LIMITS = """
torch.clamp_max(u, 2**40), torch.clamp_min(u, -1), torch.clamp_max(u, 300), torch.clamp_max(i, 2**31), torch.clamp_min(i, -(2**40))
torch.clamp_max(u, -1)
torch.clamp_min(u, 256)
torch.clamp_min(i, 2**31)
torch.clamp_min(wide, 2**63)
torch.clamp_max(i, torch.tensor([2**40, 4])), i.clone().clamp_max_(2**40), i.clone().clamp_min_(-(2**40))
torch._foreach_clamp_max([i, i], 2**40), torch._foreach_minimum([i], 2**40), torch._foreach_maximum([i], -(2**40))
torch.nn.functional.hardtanh(i, -(2**40), 2**40), torch.nn.functional.hardtanh(u, 0, 256)
torch.nn.functional.hardtanh(i, 2**40, 2**41)
u ** 300
i ** 2**31
wide ** 2**63
300**u, (2**40) ** i, i.to(torch.int16) ** 32767
"""


def case_limits_beyond_a_dtype(torch):
    u, i, wide = (torch.tensor([2, 5], dtype=t) for t in (torch.uint8, torch.int32, torch.int64))
    return values_of(torch, LIMITS, u=u, i=i, wide=wide)
