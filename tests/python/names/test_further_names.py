"""Names that few programs use: dtypes without tensors, settings of absent devices, kernels under their own names, benchmarks."""

import copy
import io
import pickle
import random

import pytest

DTYPES = [  # name, bytes, floating point, complex, signed (None: raises)
    ("bcomplex32", 4, False, True, True), ("bits16", 2, False, False, None), ("bits1x8", 1, False, False, None),
    ("bits2x4", 1, False, False, None), ("bits4x2", 1, False, False, None), ("bits8", 1, False, False, None),
    ("float4_e2m1fn_x2", 1, True, False, True), ("float8_e4m3fnuz", 1, True, False, True), ("float8_e5m2fnuz", 1, True, False, True),
    ("float8_e8m0fnu", 1, True, False, False),
]  # fmt: skip


@pytest.mark.parametrize("name, itemsize, floating, is_complex, signed", DTYPES)
def test_dtypes_without_tensors(torch, name, itemsize, floating, is_complex, signed):
    dtype = getattr(torch, name)
    assert (dtype.itemsize, dtype.is_floating_point, dtype.is_complex, repr(dtype)) == (itemsize, floating, is_complex, f"torch.{name}")
    assert isinstance(dtype, torch.dtype) and copy.deepcopy(dtype) is dtype and pickle.loads(pickle.dumps(dtype)) is dtype  # noqa: S301
    if signed is None:
        with pytest.raises(RuntimeError, match="Bits types are undefined"):
            assert dtype.is_signed
    else:
        assert dtype.is_signed is signed
    assert dtype.to_real() is (torch.bfloat16 if is_complex else dtype) and {dtype: 1}[dtype] == 1 and dtype != torch.float32
    for call in (lambda: torch.zeros(2, dtype=dtype), lambda: torch.ones(2).to(dtype), lambda: torch.empty(1, dtype=dtype)):
        with pytest.raises((TypeError, RuntimeError, NotImplementedError)):
            call()


@pytest.mark.parametrize("name", ["complex32", "bits8", "float8_e8m0fnu", "qint8", "uint4"])
def test_dtypes_without_tensors_are_named_in_errors(name):
    import teletensor

    assert isinstance(getattr(teletensor, name), teletensor.dtype)
    for call in (lambda dtype: teletensor.ones(2, dtype=dtype), lambda dtype: teletensor.nn.Linear(2, 3, dtype=dtype)):
        with pytest.raises(RuntimeError, match=f"expected one that ordinary tensors have, got torch.{name}$"):
            call(getattr(teletensor, name))


def test_bit_is_an_integer_of_one_bit(torch):
    assert torch.bit is torch.uint1


def test_autocast_of_absent_devices(torch):
    assert (torch.get_autocast_ipu_dtype(), torch.get_autocast_xla_dtype()) == (torch.float16, torch.bfloat16)
    assert not torch.is_autocast_xla_enabled() and not torch.is_autocast_enabled("ipu")
    torch.set_autocast_xla_enabled(True)
    torch.set_autocast_ipu_dtype(torch.bfloat16)
    try:
        assert torch.is_autocast_xla_enabled() and torch.is_autocast_enabled("xla") and not torch.is_autocast_ipu_enabled()
        assert torch.get_autocast_ipu_dtype() is torch.get_autocast_dtype("ipu") is torch.bfloat16
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float32
    finally:
        torch.set_autocast_xla_enabled(False)
        torch.set_autocast_ipu_dtype(torch.float16)
    with pytest.raises(TypeError):
        torch.set_autocast_xla_dtype("float16")


def test_kernels_of_other_devices(torch):
    x = torch.ones(1, 1, 2, 2)
    assert not torch.is_vulkan_available()
    with pytest.raises(NotImplementedError, match="Could not run 'aten::miopen_convolution' with arguments from the 'CPU' backend"):
        torch.miopen_convolution(x, x, None, [0], [1], [1], 1, False, False)
    with pytest.raises(TypeError, match="miopen_rnn"):
        torch.miopen_rnn(x)
    weight = torch.randn(3, 2, 2, 2)
    image = torch.randn(1, 4, 5, 5)
    ours = torch.mkldnn_convolution(image, torch.cat([weight, weight[:1]]), None, [1, 1], [2, 2], [1, 1], 2)
    assert torch.equal(ours, torch.nn.functional.conv2d(image, torch.cat([weight, weight[:1]]), None, 2, 1, 1, 2))


# Recorded from PyTorch 2.15: bags of arange(10).reshape(5, 2), with the indices [1, 2, 4, 4].
BAGS = [
    ("[0, 2], False, 0", ([[6, 8], [16, 18]], [], [0, 0], [0, 0])),
    ("[0, 2, 4], False, 0, False, None, True", ([[6, 8], [16, 18]], [], [0, 0, 0], [0, 0, 0])),
    ("[0, 2], False, 1", ([[3, 4], [8, 9]], [0, 0, 1, 1], [2, 2], [2, 2])),
    ("[0, 2], False, 2", ([[4, 5], [8, 9]], [0, 0, 1, 1], [2, 2], [[2, 2], [4, 4]])),
    ("[0, 2], False, 2, False, None, False, 4", ([[4, 5], [0, 0]], [0, 0, 1, 1], [2, 0], [[2, 2], [0, 0]])),
    ("[0, 2], False, 1, False, None, False, 4", ([[3, 4], [0, 0]], [0, 0, 1, 1], [2, 0], [2, 0])),
    ("[0, 2], False, 1, False, None, False, -1", ([[3, 4], [0, 0]], [0, 0, 1, 1], [2, 0], [2, 0])),
    ("[0, 2], False, 0, False, None, False, -1", ([[6, 8], [0, 0]], [0, 0, 1, 1], [0, 0], [0, 0])),
    ("[0, 2], False, 2, False, None, False, -4", ([[4, 5], [8, 9]], [0, 0, 1, 1], [1, 2], [[2, 2], [4, 4]])),
]  # fmt: skip


@pytest.mark.parametrize("code, expected", BAGS)
def test_embedding_bag(torch, code, expected):
    offsets, _, rest = code.partition("], ")
    weight, found_offsets = torch.arange(10.0).reshape(5, 2).requires_grad_(), eval(offsets + "]")  # noqa: S307 - our rows
    found = eval(f"f(w, i, o, {rest})", {"f": torch.embedding_bag, "w": weight, "i": torch.tensor([1, 2, 4, 4]),  # noqa: S307 - our rows
                                         "o": torch.tensor(found_offsets)})  # fmt: skip
    assert tuple(t.tolist() for t in found) == expected and all(t.dtype is torch.int64 for t in found[1:])
    found[0].sum().backward()
    assert weight.grad.shape == weight.shape
    narrow = [torch.tensor(values, dtype=torch.int32) for values in ([1, 2, 4, 4], found_offsets)]
    again = eval(f"f(w, i, o, {rest})", {"f": torch.embedding_bag, "w": weight, "i": narrow[0], "o": narrow[1]})  # noqa: S307 - our rows
    assert tuple(t.tolist() for t in again) == expected and all(t.dtype is torch.int32 for t in again[1:3])


def test_throughput_benchmark(torch):
    module, calls = torch.nn.Linear(3, 2), []
    bench = torch.utils.ThroughputBenchmark(lambda x, scale: calls.append(scale) or module(x) * scale)
    with pytest.raises(RuntimeError, match="add_input"):
        bench.benchmark()
    bench.add_input(torch.ones(1, 3), scale=2)
    bench.add_input(torch.ones(4, 3), scale=3)
    assert torch.equal(bench.run_once(torch.ones(1, 3), scale=2), module(torch.ones(1, 3)) * 2)
    calls.clear()
    stats = bench.benchmark(num_calling_threads=2, num_warmup_iters=3, num_iters=20)
    assert stats.num_iters == 20 and len(calls) == 26 and set(calls) == {2, 3}
    assert stats.latency_avg_ms > 0 and stats.total_time_seconds == pytest.approx(20 * stats.latency_avg_ms / 2000)
    assert "Total number of iterations: 20" in str(stats) and stats.iters_per_second > 0
    with pytest.raises(NotImplementedError, match="profiler"):
        bench.benchmark(profiler_output_path="trace.json")
    failing = torch.ThroughputBenchmark(lambda: 1 / 0)
    failing.add_input()
    with pytest.raises(ZeroDivisionError):
        failing.benchmark(num_calling_threads=3)
    config = torch.BenchmarkConfig()
    config.num_iters = 5
    assert bench.benchmark(config).num_iters == 5
    assert torch.utils.throughput_benchmark.format_time(time_ms=2.5) == "2.500ms"


def test_cache_artifacts(torch):
    assert torch.compiler.save_cache_artifacts() is None and torch.compiler.load_cache_artifacts(b"") is None
    with pytest.warns(UserWarning, match="not teletensor's"):
        assert torch.compiler.load_cache_artifacts(b"abc") is None


def eight_bits(torch, *shape):
    return (torch.randn(*shape)).to(torch.float8_e4m3fn)


@pytest.mark.parametrize("alpha, beta", [(1.0, 1.0), (0.5, 2.0), (2.0, 0.0)])
def test_scaled_addmm(torch, alpha, beta):
    functional = torch.nn.functional
    rows, a, b = functional.ScalingType.RowWise, eight_bits(torch, 16, 32), eight_bits(torch, 16, 32).t()
    x, sa, sb = torch.randn(16, 16, dtype=torch.bfloat16), torch.rand(16, 1) + 0.5, torch.rand(1, 16) + 0.5
    expected = (beta * x.float() + alpha * ((a.float() * sa) @ (b.float() * sb))).to(torch.bfloat16)
    found = functional.scaled_addmm(x, a, b, sa, rows, sb, rows, beta=beta, alpha=alpha)
    assert found.dtype is torch.bfloat16 and torch.allclose(found.float(), expected.float(), rtol=0.02, atol=0.05)
    written = x.clone()
    assert functional.scaled_addmm_(written, a, b, sa, rows, sb, rows, beta=beta, alpha=alpha) is written and torch.equal(written, found)


def test_scaled_grouped_mm(torch):
    functional = torch.nn.functional
    rows = functional.ScalingType.RowWise
    a, b, offs = eight_bits(torch, 7, 8), eight_bits(torch, 3, 8, 5), torch.tensor([2, 2, 6], dtype=torch.int32)
    sa, sb = torch.rand(7) + 0.5, torch.rand(3, 5) + 0.5
    found = functional.scaled_grouped_mm(a, b, sa, rows, sb, rows, offs=offs, output_dtype=torch.float32)
    wide_a, wide_b = a.float() * sa[:, None], b.float() * sb[:, None]
    expected = torch.cat([wide_a[0:2] @ wide_b[0], wide_a[2:6] @ wide_b[2], torch.zeros(1, 5)])
    assert torch.allclose(found, expected, atol=1e-5)
    with pytest.raises(RuntimeError, match=r"scale_b of shape \(3, 5\)"):
        functional.scaled_grouped_mm(a, b, sa, rows, sb[0], rows, offs=offs)
    with pytest.raises(NotImplementedError, match="RowWise"):
        functional.scaled_grouped_mm(a, b, sa, functional.ScalingType.TensorWise, sb, rows, offs=offs)


def test_scaled_grouped_mm_of_blocks(torch):
    """The product of the matrices after each element was multiplied with the scale of its block."""
    functional = torch.nn.functional
    kinds, swizzles = functional.ScalingType, functional.SwizzleType
    m, k, n, groups = 200, 300, 140, 3
    a, b, offs = eight_bits(torch, m, k), eight_bits(torch, groups, k, n), torch.tensor([60, 60, 190], dtype=torch.int32)

    def expected(wide_a, wide_b):
        return torch.cat([wide_a[:60] @ wide_b[0], wide_a[60:190] @ wide_b[2], torch.zeros(m - 190, n)])

    def whole(scale, rows, columns, lines):
        return scale.repeat_interleave(rows, -2).repeat_interleave(columns, -1)[..., :lines, :k]

    lines_a, blocks_a = torch.rand(m, 3) + 0.5, torch.rand(3, 2) + 0.5
    lines_b, blocks_b = torch.rand(groups, n, 3) + 0.5, torch.rand(groups, 3, 2) + 0.5
    of_a = {
        kinds.BlockWise1x128: (lines_a, whole(lines_a, 1, 128, m)),
        kinds.BlockWise128x128: (blocks_a, whole(blocks_a.t(), 128, 128, m)),
    }
    of_b = {
        kinds.BlockWise1x128: (lines_b, whole(lines_b, 1, 128, n)),
        kinds.BlockWise128x128: (blocks_b, whole(blocks_b.transpose(1, 2), 128, 128, n)),
    }
    for kind_a, (scale_a, factors_a) in of_a.items():
        for kind_b, (scale_b, factors_b) in of_b.items():
            arguments = (a, b, scale_a, kind_a, scale_b, kind_b)
            if kind_a is kind_b is kinds.BlockWise128x128:
                with pytest.raises(ValueError, match="belong together"):
                    functional.scaled_grouped_mm(*arguments, offs=offs)
                continue
            found = functional.scaled_grouped_mm(*arguments, offs=offs, output_dtype=torch.float32)
            want = expected(a.float() * factors_a, b.float() * factors_b.transpose(1, 2))
            assert torch.allclose(found, want, rtol=1e-4, atol=1e-2)
    bytes_a = torch.randint(125, 130, (m, 10)).to(torch.uint8)
    bytes_b = torch.randint(125, 130, (groups, 256, 12)).to(torch.uint8)  # padded to whole tiles
    factors_a, factors_b = (whole(2.0 ** (x.float() - 127), 1, 32, lines) for x, lines in ((bytes_a, m), (bytes_b[:, :n, :10], n)))
    want = expected(a.float() * factors_a, b.float() * factors_b.transpose(1, 2))
    swizzled = bytes_b.reshape(groups, 2, 4, 32, 3, 4).permute(0, 1, 4, 3, 2, 5).reshape(groups, -1)
    for scale_b, swizzle in ((bytes_b[:, :n, :10].contiguous(), None), (swizzled, swizzles.SWIZZLE_32_4_4)):
        found = functional.scaled_grouped_mm(
            a, b, bytes_a, kinds.BlockWise1x32, scale_b, kinds.BlockWise1x32, swizzle_b=swizzle, offs=offs, output_dtype=torch.float32
        )
        assert torch.allclose(found, want, rtol=1e-4, atol=1e-2)
    with pytest.raises(ValueError, match=r"scale_b of 3 matrices, got \(2, 140, 3\)"):
        functional.scaled_grouped_mm(a, b, lines_a, kinds.BlockWise1x128, lines_b[:2], kinds.BlockWise1x128, offs=offs)
    with pytest.raises(NotImplementedError, match="swizzle_a"):
        functional.scaled_grouped_mm(
            a, b, bytes_a, kinds.BlockWise1x32, bytes_b, kinds.BlockWise1x32, swizzles.SWIZZLE_32_4_4, offs=offs
        )


def test_wrap_numpy(torch):
    import numpy

    @torch.compiler.wrap_numpy
    def function(x, pair, scale=1):
        assert isinstance(x, numpy.ndarray) and isinstance(pair[1], numpy.ndarray)
        return {"sum": x.sum(0) * scale, "same": pair[0], "number": x.max()}

    x = torch.arange(6.0).reshape(2, 3)
    found = function(x, ("a", x), scale=2)
    assert found["sum"].tolist() == [6, 10, 14] and found["same"] == "a" and found["number"].item() == 5
    with pytest.raises(RuntimeError):
        function(x.requires_grad_(), ("a", x))


def test_file_reader(torch, tmp_path):
    path = tmp_path / "saved.pt"
    torch.save({"a": torch.arange(3), "b": torch.ones(2)}, path)
    with open(path, "rb") as file:
        content = file.read()
        for source in (path, str(path), file):
            reader = torch.PyTorchFileReader(source)
            assert {"data.pkl", "version", "data/0", "data/1"} <= set(reader.get_all_records())
            assert reader.has_record("data/0") and not reader.has_record("data/9")
            assert reader.get_record("data/0") == torch.arange(3).numpy().tobytes() and reader.get_record_size("data/0") == 24
            at = reader.get_record_offset("data/0")
            assert content[at : at + 24] == reader.get_record("data/0") and reader.get_record_header_offset("data/0") < at
            assert reader.get_storage_from_record("data/0", 3, torch.int64).tolist() == [0, 1, 2]
    for call in (
        lambda: reader_of(torch, path).get_record("data/9"),
        lambda: reader_of(torch, path).get_storage_from_record("data/0", 2, torch.int64),
        lambda: torch.PyTorchFileReader(tmp_path / "none"), lambda: torch.PyTorchFileReader(__file__),
    ):  # fmt: skip
        with pytest.raises(RuntimeError):
            call()


def test_file_reader_of_damaged_files(torch):
    buffer = io.BytesIO()
    torch.save({"a": torch.ones(3)}, buffer)
    content, numbers, refused = buffer.getvalue(), random.Random(1), 0
    for _ in range(300):
        damaged = bytearray(content[: numbers.randrange(len(content))] if numbers.random() < 0.1 else content)
        for _ in range(numbers.choice([1, 8]) if damaged else 0):
            damaged[numbers.randrange(len(damaged))] = numbers.choice([0, 255, numbers.randrange(256)])
        try:
            reader = torch.PyTorchFileReader(io.BytesIO(bytes(damaged)))
            for name in reader.get_all_records():
                reader.get_record_offset(name)
                reader.get_record(name)
            reader.serialization_id()
        except RuntimeError as error:
            assert type(error) is RuntimeError, error
            refused += 1
    assert refused > 50


def reader_of(torch, path):
    return torch.PyTorchFileReader(path)


def test_graphs_of_the_accelerator(torch):
    if not torch.accelerator.is_available():
        with pytest.raises(RuntimeError, match="without"):
            torch.accelerator.Graph()
        return
    x, graph = torch.ones(4, device="cuda"), torch.accelerator.Graph()
    with graph:
        y = x * 2
    x.fill_(3)
    graph.replay()
    assert y.tolist() == [6, 6, 6, 6] and len(graph.pool()) == 2
    graph.instantiate()
    graph.reset()
    with pytest.raises(RuntimeError):
        graph.replay()
