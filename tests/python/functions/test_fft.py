"""torch.fft, stft and istft, compared with NumPy."""

from __future__ import annotations

import functools

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("device")

LENGTHS = (1, 2, 3, 4, 5, 7, 8, 12, 17, 30, 37, 64, 74, 97, 128, 210, 1009)


def signal(*shape, dtype="complex128"):
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.startswith("c") else x).astype(dtype)


@pytest.mark.parametrize("n", LENGTHS)
def test_every_length(torch, n):
    z, x = signal(3, n), signal(3, n, dtype="float64")
    for t, a, name in ((z, z, "fft"), (z, z, "ifft"), (x, x, "rfft"), (x, x, "ihfft")):
        expected = getattr(np.fft, name)(a)
        np.testing.assert_allclose(getattr(torch.fft, name)(torch.tensor(t)).cpu().numpy(), expected, atol=1e-12 * n, err_msg=name)
    half = signal(3, n // 2 + 1)
    np.testing.assert_allclose(torch.fft.irfft(torch.tensor(half), n).cpu().numpy(), np.fft.irfft(half, n), atol=1e-13)
    np.testing.assert_allclose(torch.fft.hfft(torch.tensor(half), n).cpu().numpy(), np.fft.hfft(half, n), atol=1e-12 * n)
    single = torch.fft.fft(torch.tensor(z.astype("complex64"))).cpu().numpy()
    assert single.dtype == np.complex64
    np.testing.assert_allclose(single, np.fft.fft(z), atol=2e-6 * n)


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 5, 16, 37])
@pytest.mark.parametrize("n", [22, 48, 128, 144, 240, 256, 320, 500, 1000, 1009, 1024, 4096, 5120])
def test_vectors_across_rows_and_elements(torch, lines, n):
    """Lengths and numbers of rows that are vectorised along a row, across rows, and with remainders."""
    exact = signal(lines, n)
    for dtype, tolerance in (("complex64", 1e-6), ("complex128", 1e-14)):
        for dim in (0, 1):
            z = np.ascontiguousarray(exact.T if dim == 0 else exact).astype(dtype)
            half = np.ascontiguousarray(np.take(z, range(n // 2 + 1), dim))
            wide, x = z.astype("complex128"), np.ascontiguousarray(z.real)
            for name, a, oracle in (("fft", z, np.fft.fft(wide, axis=dim)), ("ifft", z, np.fft.ifft(wide, axis=dim)),
                                    ("rfft", x, np.fft.rfft(x.astype("float64"), axis=dim)),
                                    ("irfft", half, np.fft.irfft(half.astype("complex128"), n, axis=dim))):  # fmt: skip
                arguments = {"n": n} if name == "irfft" else {}
                got = getattr(torch.fft, name)(torch.tensor(a), dim=dim, **arguments).cpu().numpy()
                limit = 10 * tolerance * np.sqrt(np.mean(np.abs(oracle) ** 2)) * np.log2(n)
                np.testing.assert_allclose(got, oracle, atol=limit, rtol=0, err_msg=f"{name} {dtype} dim={dim}")


@pytest.mark.slow
@pytest.mark.parametrize("n", [2**18, 3**12, 2 * 3**12, 65537, 131074])
def test_long_lines(torch, n):
    """Lengths that are divided into rows and columns, with and without remainders, and those with a large prime factor."""
    exact = signal(n)
    for dtype, tolerance in (("complex64", 1e-6), ("complex128", 1e-14)):
        z = exact.astype(dtype)
        x, half, wide = np.ascontiguousarray(z.real), z[: n // 2 + 1], z.astype("complex128")
        for name, a, oracle in (("fft", z, np.fft.fft(wide)), ("ifft", z, np.fft.ifft(wide)),
                                ("rfft", x, np.fft.rfft(x.astype("float64"))),
                                ("irfft", half, np.fft.irfft(half.astype("complex128"), n))):  # fmt: skip
            arguments = {"n": n} if name == "irfft" else {}
            got = getattr(torch.fft, name)(torch.tensor(a), **arguments).cpu().numpy()
            limit = 10 * tolerance * np.sqrt(np.mean(np.abs(oracle) ** 2)) * np.log2(n)
            np.testing.assert_allclose(got, oracle, atol=limit, rtol=0, err_msg=f"{name} {dtype}")


@pytest.mark.slow
@pytest.mark.parametrize("n", [2**18, 65537])
def test_long_lines_of_several_dimensions(torch, n):
    z, x = signal(2, n, 3), signal(2, n, 3, dtype="float64")
    limit = 1e-13 * n
    np.testing.assert_allclose(torch.fft.fft(torch.tensor(z), dim=1).cpu().numpy(), np.fft.fft(z, axis=1), atol=limit)
    np.testing.assert_allclose(torch.fft.rfft(torch.tensor(x), dim=1).cpu().numpy(), np.fft.rfft(x, axis=1), atol=limit)
    np.testing.assert_allclose(torch.fft.irfft(torch.tensor(z), dim=1).cpu().numpy(), np.fft.irfft(z, axis=1), atol=limit)
    spectra = np.fft.fftn(z, axes=(1, 0))
    np.testing.assert_allclose(torch.fft.fftn(torch.tensor(z), dim=(1, 0)).cpu().numpy(), spectra, atol=limit)
    np.testing.assert_allclose(torch.fft.ifftn(torch.tensor(spectra), dim=(1, 0)).cpu().numpy(), z, atol=1e-12)


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 5, 11])
def test_norms_and_lengths(torch, norm, n):
    z, x = signal(4, 8, 3), signal(4, 8, 3, dtype="float64")
    for name, a in (("fft", z), ("ifft", z), ("rfft", x), ("irfft", z), ("hfft", z), ("ihfft", x)):
        got = getattr(torch.fft, name)(torch.tensor(a), n, 1, norm).cpu().numpy()
        np.testing.assert_allclose(got, getattr(np.fft, name)(a, n, 1, norm), atol=1e-12, err_msg=name)


def test_several_dimensions(torch):
    z, x = signal(4, 6, 5), signal(4, 6, 5, dtype="float64")
    for name, a in (("fftn", z), ("ifftn", z), ("rfftn", x), ("irfftn", z)):
        f, g = getattr(torch.fft, name), getattr(np.fft, name)
        np.testing.assert_allclose(f(torch.tensor(a)).cpu().numpy(), g(a), atol=1e-11, err_msg=name)
        np.testing.assert_allclose(f(torch.tensor(a), dim=(2, 0)).cpu().numpy(), g(a, axes=(2, 0)), atol=1e-11, err_msg=name)
        np.testing.assert_allclose(f(torch.tensor(a), s=(3, 8)).cpu().numpy(), g(a, s=(3, 8), axes=(1, 2)), atol=1e-11, err_msg=name)
    for name, a in (("fft2", z), ("ifft2", z), ("rfft2", x), ("irfft2", z)):
        np.testing.assert_allclose(getattr(torch.fft, name)(torch.tensor(a)).cpu().numpy(), getattr(np.fft, name)(a), atol=1e-11)
    t = torch.tensor(x)
    np.testing.assert_allclose(torch.fft.hfftn(torch.fft.ihfftn(t), s=x.shape).cpu().numpy(), x, atol=1e-12)
    np.testing.assert_allclose(torch.fft.hfft2(torch.fft.ihfft2(t), s=x.shape[1:]).cpu().numpy(), x, atol=1e-12)


def test_views_and_dtypes(torch):
    z = signal(6, 8)
    np.testing.assert_allclose(torch.fft.fft(torch.tensor(z).t()[::2]).cpu().numpy(), np.fft.fft(z.T[::2]), atol=1e-12)
    assert torch.fft.fft(torch.arange(4)).dtype is torch.complex64
    assert torch.fft.rfft(torch.ones(4, dtype=torch.float64)).dtype is torch.complex128
    out = torch.empty(6, 8, dtype=torch.complex128)
    assert torch.fft.fft(torch.tensor(z), out=out) is out
    np.testing.assert_allclose(out.cpu().numpy(), np.fft.fft(z), atol=1e-12)


def test_frequencies_and_shifts(torch):
    for n in (1, 4, 5):
        np.testing.assert_allclose(torch.fft.fftfreq(n, 0.5).cpu().numpy(), np.fft.fftfreq(n, 0.5), rtol=1e-6)
        np.testing.assert_allclose(torch.fft.rfftfreq(n, 0.5).cpu().numpy(), np.fft.rfftfreq(n, 0.5), rtol=1e-6)
    x = np.arange(15.0).reshape(3, 5)
    np.testing.assert_array_equal(torch.fft.fftshift(torch.tensor(x)).cpu().numpy(), np.fft.fftshift(x))
    np.testing.assert_array_equal(torch.fft.ifftshift(torch.tensor(x), 1).cpu().numpy(), np.fft.ifftshift(x, 1))


@pytest.mark.parametrize(
    ("call", "match"),
    [(lambda f, t: f.fft(t(4), 0), r"\[fft\] Invalid number of data points \(0\) specified"),
     (lambda f, t: f.fft(t(4), norm="none"), 'Invalid normalization mode: "none"'),
     (lambda f, t: f.fftn(t(4, 4), dim=(0, -2)), r"\[fftn\] FFT dims must be unique"),
     (lambda f, t: f.fftn(t(4), s=(2, 2)), r"\[fftn\] Got shape with 2 values but input tensor only has 1 dimensions."),
     (lambda f, t: f.fft(t(4).half()), r"\[fft\] Unsupported dtype torch.float16")],
)  # fmt: skip
def test_errors(torch, call, match):
    with pytest.raises(RuntimeError, match=match):
        call(torch.fft, torch.ones)
    with pytest.raises(TypeError, match=r"\[rfft\] expects a real input tensor, but got torch.complex128"):
        torch.fft.rfft(torch.ones(4).to(complex))
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.fft.fft(torch.ones(3), dim=2)
    with pytest.raises(IndexError, match="Dimension specified as -1 but tensor has no dimensions"):
        torch.fft.rfft(torch.tensor(1.0))


def test_gradients(torch):
    check = torch.autograd.gradcheck
    z = torch.tensor(signal(2, 5)).requires_grad_()
    x = torch.tensor(signal(3, 6, dtype="float64")).requires_grad_()
    for name in ("fft", "ifft", "irfft", "hfft"):
        assert check(functools.partial(getattr(torch.fft, name), norm="ortho"), [z])
    assert check(lambda t: torch.fft.irfft(t, 7), [z])
    assert check(torch.fft.rfft, [x]) and check(lambda t: torch.fft.rfft(t, 5, 0), [x]) and check(torch.fft.rfft2, [x])
    assert torch.autograd.gradgradcheck(lambda t: torch.fft.irfft(t), [z])
    assert torch.autograd.gradgradcheck(lambda t: torch.fft.rfft(t), [x])


def test_stft_and_istft(torch):
    import scipy.signal

    x = np.random.default_rng(0).standard_normal((2, 400))
    window = torch.hann_window(64, dtype=torch.float64)
    spectra = torch.stft(torch.tensor(x), 64, 16, window=window, return_complex=True)
    assert spectra.shape == (2, 33, 26)
    frame = np.pad(x, ((0, 0), (32, 32)), "reflect")[:, 48:112] * window.cpu().numpy()
    np.testing.assert_allclose(spectra[:, :, 3].cpu().numpy(), np.fft.rfft(frame), atol=1e-12)
    _, _, expected = scipy.signal.stft(x[0], window="hann", nperseg=64, noverlap=48, padded=False, boundary=None, scaling="psd")
    scale = np.sqrt(np.sum(scipy.signal.get_window("hann", 64) ** 2))
    uncentered = torch.stft(torch.tensor(x[0]), 64, 16, window=window, center=False, return_complex=True)
    np.testing.assert_allclose(uncentered.cpu().numpy() / scale, expected, atol=1e-10)
    back = torch.istft(spectra, 64, 16, window=window, length=400)
    np.testing.assert_allclose(back.cpu().numpy(), x, atol=1e-12)
    real = torch.stft(torch.tensor(x[0]), 64, return_complex=False)
    assert real.shape == (33, 26, 2)
    with pytest.raises(RuntimeError, match="stft requires the return_complex parameter"):
        torch.stft(torch.tensor(x[0]), 64)
    with pytest.raises(RuntimeError, match="istft requires a complex-valued input"):
        torch.istft(real, 64)


@pytest.mark.parametrize("n", [37, 127, 1009, 262147])
def test_the_first_element_of_a_real_spectrum_is_real(torch, n):
    x = torch.tensor(signal(2, n, dtype="float32"))
    assert (torch.fft.rfft(x)[:, 0].imag == 0).all()
    assert (torch.fft.rfft(x.T, dim=0)[0].imag == 0).all()
