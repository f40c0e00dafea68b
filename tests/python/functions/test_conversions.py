"""result_type, type_as and asarray."""

import pytest


def test_result_type_of_numbers(torch):
    numbers = [True, 2, 2.5, 1j]
    dtypes = [torch.bool, torch.int64, torch.float32, torch.complex64]
    for i, a in enumerate(numbers):
        for j, b in enumerate(numbers):
            assert torch.result_type(a, b) is dtypes[max(i, j)]


def test_result_type_of_tensors(torch):
    half, double, integer = (torch.ones(2, dtype=d) for d in (torch.float16, torch.float64, torch.int32))
    assert torch.result_type(half, double.sum()) is torch.float16
    assert torch.result_type(half.sum(), double) is torch.float64
    assert torch.result_type(integer, 2) is torch.int32 and torch.result_type(True, integer) is torch.int32
    assert torch.result_type(integer, 2.5) is torch.float32 and torch.result_type(double, 1j) is torch.complex128
    assert torch.result_type(torch.ones(2), torch.ones(3, dtype=torch.float64)) is torch.float64  # sizes do not matter
    assert torch.result_type(tensor=half, other=1) is torch.float16
    for pair in (("a", 1), (1, None)):
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            torch.result_type(*pair)


def test_functions_of_different_dtypes(torch):
    """Functions composed of others promote their operands first."""
    i, f, d = torch.tensor([1, 2, 3]), torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
    h, zero_dim = torch.tensor([1, 2, 3], dtype=torch.float16), torch.tensor(0.3, dtype=torch.float64)
    for function, a, b, dtype, value in (
        ("logaddexp2", i, d, torch.float64, 1.6190718204),
        ("logaddexp2", i, zero_dim, torch.float64, 1.6920452287),
        ("logaddexp2", i, h, torch.float16, 2),
        ("logaddexp2", f, d, torch.float64, 1.1),
        ("ldexp", i, d, torch.float64, 1.0717734625),
        ("ldexp", i, h, torch.float16, 2),
        ("ldexp", h, f, torch.float32, 1.0717734),
        ("ldexp", h, i, torch.float16, 2),
        ("dist", i, d, torch.float64, 3.3674916481),
        ("dist", f, i, torch.float32, 3.3674917),
    ):
        result = getattr(torch, function)(a, b)
        assert result.dtype is dtype, (function, a.dtype, b.dtype)
        assert result.flatten()[0].item() == pytest.approx(value, rel=1e-8 if dtype is torch.float64 else 1e-6), function
    assert f.lerp(f + 1, zero_dim).dtype is torch.float32 and f[0].lerp(f[1], zero_dim).dtype is torch.float64
    with pytest.raises(RuntimeError, match="same dtype"):
        f.lerp(f, d)
    for function in (torch.ldexp, torch.logaddexp2):
        with pytest.raises(TypeError, match="must be Tensor, not int"):
            function(f, 2)
    with pytest.raises(NotImplementedError):
        torch.logaddexp2(i, i)
    assert torch.where(i > 1, h, 1e300).tolist() == [float("inf"), 2, 3]


def test_type_as_moves_to_the_device(torch):
    x, target = torch.ones(2), torch.empty(1, dtype=torch.int32, device="meta")
    assert x.type_as(target).device.type == "meta" and x.type_as(target).dtype is torch.int32
    assert x.type_as(torch.zeros(1)) is x
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        x.type_as(3)


def test_asarray(torch):
    np = pytest.importorskip("numpy")
    x, leaf = torch.ones(2), torch.ones(2, requires_grad=True)
    assert torch.asarray(x) is x and torch.asarray(x, dtype=torch.float32, copy=False) is x
    copy = torch.asarray(x, copy=True)
    assert copy is not x and not copy.is_set_to(x)
    assert torch.asarray(leaf, requires_grad=True) is leaf and torch.asarray(leaf, copy=True).grad_fn is not None
    assert torch.asarray([1.0], requires_grad=True).is_leaf and torch.asarray([1.0], requires_grad=True).requires_grad
    assert torch.asarray(np.ones(2), requires_grad=True).dtype is torch.float64
    for obj, options in ((x, {"dtype": torch.int64}), (x, {"device": "meta"}), ([1], {}), (np.ones(2), {})):
        with pytest.raises(ValueError, match="can't alias"):
            torch.asarray(obj, copy=False, **options)
    with pytest.raises(RuntimeError, match="floating point and complex dtype can require gradients"):
        torch.asarray([1, 2], requires_grad=True)
    with pytest.raises(TypeError):
        torch.asarray([1], copy=3)


def test_objects_with_buffers(torch):
    """tensor() reads their elements as Python's numbers; asarray() reads their bytes."""
    import array

    for data in (bytearray(b"abcd"), memoryview(b"abcd")):
        for make in (torch.tensor, torch.as_tensor):
            assert make(data).dtype == torch.int64
            assert make(data, dtype=torch.float32).tolist() == [97, 98, 99, 100]
        assert torch.asarray(data).dtype == torch.uint8
        assert torch.asarray(data, dtype=torch.int16).tolist() == [25185, 25699]
    assert torch.asarray(b"abcd", dtype=torch.int16).tolist() == [25185, 25699]
    numbers = array.array("i", [1, 2])
    assert torch.tensor(numbers).dtype == torch.int64
    assert torch.asarray(numbers).dtype == torch.int32
    assert torch.asarray(array.array("f", [1.0]), dtype=torch.int32).tolist() == [0x3F800000]
