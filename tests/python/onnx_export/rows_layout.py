"""Sizes, slices, indices, writes, new tensors, Fourier transforms, random numbers, control flow."""

from __future__ import annotations

from typing import Any

from .cases import Case


def _fn(function: Any, *inputs: str, **options: Any) -> Case:
    return Case(function, list(inputs), **options)


def _write(t: Any, x: Any, change: Any) -> Any:
    y = x.clone()
    change(y)
    return y


def _stft(t: Any, x: Any) -> Any:
    """Spectra with a window, as real numbers and as magnitudes."""
    found = t.stft(x, 16, 4, window=t.hann_window(16), return_complex=True)
    return t.view_as_real(found), found.abs()


def _istft(t: Any, x: Any) -> Any:
    """The signal again, in its length and as long as the windows are."""
    window = t.hann_window(16)
    spectra = t.stft(x, 16, 4, window=window, return_complex=True)
    return t.istft(spectra, 16, 4, window=window), t.istft(spectra * 2, 16, 4, window=window, length=37)


def _complex_layout(t: Any, x: Any) -> Any:
    """Complex numbers in another order, joined and selected."""
    z = t.fft.fft(x)
    made = (
        t.cat([z, z.flip(1)], 1).transpose(0, 1), t.stack([z, z], -1).permute(2, 0, 1)[0].unsqueeze(1), z[0].expand(2, 8),
        z.unsqueeze(0).squeeze(0), z.index_select(1, t.tensor([1, 3])),
    )  # fmt: skip
    return tuple(t.view_as_real(each) for each in made)


def _complex_arithmetic(t: Any, x: Any) -> Any:
    """Sums, quotients and means of complex numbers."""
    z = t.fft.fft(x)
    made = (z.sum(), z.sum(1, keepdim=True), z.mean(0), -z, z / 2, z / (x.abs() + 1), z / (z + 5), x / (z + 5))
    return tuple(t.view_as_real(each) for each in made)


ROWS: dict[str, Case] = {
    "reshape": _fn(lambda t, x: (x.reshape(-1), x.view(x.shape[0], -1), x.reshape(-1, 2, 3)), "f:n,3,4"),
    "reshape-products": _fn(lambda t, x: x.reshape(x.shape[0] * x.shape[1], 4), "f:n,m,4"),
    "reshape-quotients": _fn(lambda t, x: x.reshape(x.shape[0] * 2, x.shape[1] // 2), "f:n,6"),
    "flatten": _fn(lambda t, x: (x.flatten(), x.flatten(1), x.flatten(0, 1)), "f:n,3,4"),
    "unflatten": _fn(lambda t, x: x.unflatten(1, (2, 3)), "f:n,6"),
    "squeeze": _fn(lambda t, x: (x.squeeze(), x.squeeze(1), x.unsqueeze(0), x.unsqueeze(-1)), "f:n,1,4"),
    "permute": _fn(lambda t, x: (x.permute(2, 0, 1), x.transpose(0, 1), x[0].t(), x.movedim(0, 2), x.mT), "f:n,3,4"),
    "expand": _fn(lambda t, x, y: (x.expand(4, -1, 3), x.expand_as(y), x.broadcast_to(y.shape)), "f:n,1", "f:2,n,3"),
    "repeat": _fn(lambda t, x: (x.repeat(2, 1), x.repeat(2, 1, 3), x.tile(2)), "f:n,3"),
    "repeat_interleave": _fn(lambda t, x: (x.repeat_interleave(2, 0), x.repeat_interleave(3)), "f:n,3"),
    "cat": _fn(lambda t, x, y: (t.cat([x, y]), t.cat([x, x], 1), t.stack([x, x], 1), t.hstack([x, x]), t.vstack([x, y])), "f:n,3", "f:m,3"),
    "cat-promoted": _fn(lambda t, x, y: t.cat([x, y]), "f:n,3", "i:m,3"),
    "split": _fn(lambda t, x: (*x.split(2, 1), *x.split([1, 3], 1), *x.chunk(3, 1)), "f:n,4"),
    "split-uneven": _fn(lambda t, x: x.split(3, 1), "f:n,4"),
    "chunk-booleans": _fn(lambda t, x: x.chunk(2, 1), "b:n,4"),
    "tensor_split": _fn(lambda t, x: (*x.tensor_split(3, 1), *t.tensor_split(x, (1, 3), 1)), "f:n,4"),
    "unbind": _fn(lambda t, x: x.unbind(1), "f:n,3"),
    "slice": _fn(lambda t, x: (x[1:], x[:, 1:3], x[:, ::2], x[..., -2:], x[:-1], x[:, -3:-1]), "f:n,6"),
    "slice-by-size": _fn(lambda t, x: (x[: x.shape[0] // 2], x[:, x.shape[1] - 2 :], x[: x.shape[0] - 1]), "f:n,6"),
    "select": _fn(lambda t, x: (x[0], x[-1], x[:, 2], x.select(1, -1), x.narrow(1, 1, 2)), "f:n,6"),
    "none-and-ellipsis": _fn(lambda t, x: x[None, ..., None, 1:], "f:n,6"),
    "diagonal": _fn(lambda t, x: (x.diagonal(0, 1, 2), x.diagonal(1, 1, 2), x.diagonal(-1, 2, 1), x[0].diag(), x[0, 0].diag(1)), "f:n,3,4"),
    "diag_embed": _fn(lambda t, x: (t.diag_embed(x), t.diag_embed(x, 1), t.diag_embed(x, 0, 0, 2)), "f:n,3"),
    "unfold-tensor": _fn(lambda t, x: x.unfold(1, 3, 2), "f:n,7"),
    "unfold-dynamic": _fn(lambda t, x: x.unfold(0, 2, 1), "f:n,3"),
    "flip": _fn(lambda t, x: (x.flip(0), x.flip((0, 1)), x.fliplr()), "f:n,3"),
    "roll": _fn(lambda t, x: (x.roll(1, 0), x.roll(-2, 1), x.roll((1, 1), (0, 1)), x.roll(2)), "f:n,3"),
    "rot90": _fn(lambda t, x: (t.rot90(x), t.rot90(x, 2), t.rot90(x, -1, (0, 2))), "f:n,3,2"),
    "meshgrid": _fn(lambda t, x, y: (*t.meshgrid(x, y, indexing="ij"), *t.meshgrid(x, y, indexing="xy")), "f:n", "f:m"),
    "tril": _fn(lambda t, x: (x.tril(), x.tril(-1), x.triu(1)), "f:n,4"),
    "tril-kinds": _fn(lambda t, x, y: (x.tril(), y.triu()), "j:n,4", "b:n,4"),
    "broadcast_tensors": _fn(lambda t, x, y: t.broadcast_tensors(x, y), "f:n,1", "f:3"),
    "atleast": _fn(lambda t, x: (t.atleast_1d(x), t.atleast_2d(x), t.atleast_3d(x)), "f:n"),
    "sizes": _fn(lambda t, x: x * x.shape[0] + x.shape[1], "f:n,m"),
    "numel": _fn(lambda t, x: x / x.numel(), "f:n,m"),
    # Indices
    "gather": _fn(lambda t, x, i: (x.gather(1, i), x.gather(0, i * 0 + 1)), "f:n,5", "i5:n,3"),
    "take_along_dim": _fn(lambda t, x, i: t.take_along_dim(x, i, 1), "f:n,5", "i5:n,3"),
    "take": _fn(lambda t, x, i: t.take(x, i), "f:n,5", "i5:4"),
    "index_select": _fn(lambda t, x, i: x.index_select(1, i), "f:n,5", "i5:m"),
    "index-one": _fn(lambda t, x, i: (x[:, i], x[i.remainder(2)]), "f:n,5", "i5:m"),
    "index-two": _fn(lambda t, x, i: x[i.remainder(3), i], "f:3,5,2", "i5:m"),
    "index-separated": _fn(lambda t, x, i: x[i, :, i], "f:5,n,5", "i5:m"),
    "index-adjacent": _fn(lambda t, x, i: x[:, i, i], "f:n,5,5", "i5:m"),
    "index-broadcast": _fn(lambda t, x, i: x[i[:, None], i], "f:5,5", "i5:m"),
    "index-matrix": _fn(lambda t, x, i: x[:, i], "f:n,5", "i5:2,m"),
    "index-arange": _fn(lambda t, x, i: x[t.arange(x.shape[0]), i], "f:n,5", "i5:n"),
    "index-last-tokens": _fn(lambda t, x, i: x[t.arange(x.shape[0]), i.clamp(max=x.shape[1] - 1)], "f:n,m,2", "i5:n"),
    "scatter": _fn(
        lambda t, x, i, s: (x.scatter(1, i * 0 + t.arange(3), s), x.scatter(1, i, 2.0)), "f:n,5", "i5:n,3", "f:n,3"),
    "scatter-zeros": _fn(lambda t, i: t.zeros(3, 5).scatter(1, i, 1.0), "i5:3,1"),
    "scatter_add": _fn(lambda t, x, i, s: x.scatter_add(1, i, s), "f:n,5", "i5:n,3", "f:n,3"),
    "scatter_reduce": _fn(
        lambda t, x, i, s: tuple(x.scatter_reduce(1, i, s, reduce=r) for r in ("sum", "prod", "amax", "amin", "mean")),
        "f:n,5", "i5:n,3", "f:n,3"),
    "scatter_reduce-exclude": _fn(
        lambda t, x, i, s: tuple(x.scatter_reduce(1, i, s, reduce=r, include_self=False) for r in ("sum", "prod", "amax", "mean")),
        "f:n,5", "i5:n,3", "f:n,3"),
    "index_put": _fn(lambda t, x, i, s: t.index_put(x, (i.sort().values * 0 + t.arange(3),), s), "f:n,5", "i5:3", "f:5"),
    "index_put-accumulate": _fn(lambda t, x, i, s: t.index_put(x, (i, i), s, accumulate=True), "f:5,5", "i5:m", "f:m"),
    "index_add": _fn(lambda t, x, i, s: (x.index_add(1, i, s), x.index_add(1, i, s, alpha=2)), "f:n,5", "i5:3", "f:n,3"),
    "index_copy": _fn(lambda t, x, s: x.index_copy(1, t.tensor([0, 3]), s), "f:n,5", "f:n,2"),
    "index_fill": _fn(lambda t, x: x.index_fill(1, t.tensor([0, 3]), 7.0), "f:n,5"),
    "masked_scatter": _fn(lambda t, x, m, s: x.masked_scatter(m, s), "f:n,5", "b:n,5", "f:n,5"),
    "slice_scatter": _fn(lambda t, x, s: (t.slice_scatter(x, s, 1, 1, 3), t.slice_scatter(x, s, 1, 0, 4, 2)), "f:n,5", "f:n,2"),
    "select_scatter": _fn(lambda t, x, s: (t.select_scatter(x, s, 1, 2), t.select_scatter(x, s, 1, -1)), "f:n,5", "f:n"),
    "diagonal_scatter": _fn(lambda t, x, s: t.diagonal_scatter(x, s), "f:4,4", "f:4"),
    "one_hot": _fn(lambda t, i: t.nn.functional.one_hot(i, 5), "i5:n,2"),
    # Writes
    "write-slice": _fn(lambda t, x: _write(t, x, lambda y: y[:, 1:3].zero_()), "f:n,5"),
    "write-select": _fn(lambda t, x: _write(t, x, lambda y: y.__setitem__((slice(None), 0), 7.0)), "f:n,5"),
    "write-add": _fn(lambda t, x: _write(t, x, lambda y: y.add_(1).mul_(2)), "f:n,5"),
    "write-mask": _fn(lambda t, x: _write(t, x, lambda y: y.__setitem__(y > 0, 1.0)), "f:n,5"),
    "write-masked_fill": _fn(lambda t, x, m: _write(t, x, lambda y: y.masked_fill_(m, 0.5)), "f:n,5", "b:n,5"),
    "write-index": _fn(lambda t, x, s: _write(t, x, lambda y: y.__setitem__((slice(None), t.tensor([0, 2])), s)), "f:n,5", "f:n,2"),
    "write-in-view": _fn(lambda t, x: _write(t, x, lambda y: y.t()[0].copy_(y[:, 1])), "f:n,5"),
    "write-by-size": _fn(lambda t, x: _write(t, x, lambda y: y[: x.shape[0] - 1].mul_(x.shape[0])), "f:n,5"),
    "write-out": _fn(lambda t, x, y: t.atan2(x, y, out=t.empty_like(x)), "f:n,5", "f:n,5"),
    # New tensors
    "zeros": _fn(lambda t, x: (x + t.zeros(x.shape[0], 1), t.ones(2, x.shape[1]), t.full((x.shape[0],), 3)), "f:n,m"),
    "like": _fn(lambda t, x: (t.zeros_like(x), t.ones_like(x, dtype=t.int64), t.full_like(x, 2.5)), "f:n,3"),
    "new": _fn(lambda t, x: (x.new_zeros(2, x.shape[0]), x.new_ones(3), x.new_full((2,), 4.0)), "f:n,3"),
    "arange": _fn(lambda t, x: (t.arange(x.shape[0]), x + t.arange(3), t.arange(1, x.shape[0] + 1), t.arange(0, 1, 0.25)), "f:n,3"),
    "arange-float": _fn(lambda t, x: t.arange(x.shape[0], dtype=t.float32), "f:n,3"),
    "arange-steps": _fn(lambda t, x: (t.arange(0, x.shape[0], 2), t.arange(5, 0, -2)), "f:n,3"),
    "linspace": _fn(lambda t, x: (x + t.linspace(0, 1, 3), t.linspace(-1, 1, x.shape[0])), "f:n,3"),
    "eye": _fn(lambda t, x: (x @ t.eye(3), t.eye(x.shape[0]), t.eye(2, 3)), "f:n,3"),
    "windows": _fn(lambda t, x: x * t.hann_window(4) + t.hamming_window(4) - t.blackman_window(4), "f:n,4"),
    "causal-mask": _fn(lambda t, x: x.masked_fill(t.triu(t.ones(x.shape[1], x.shape[1], dtype=t.bool), 1), -1e9), "f:n,m,m"),
    "positions": _fn(lambda t, x: x + t.arange(x.shape[1]).unsqueeze(0).expand(x.shape[0], -1), "f:n,m"),
    # Fourier transforms
    "fft": _fn(lambda t, x: (t.view_as_real(t.fft.fft(x)), t.fft.fft(x).abs()), "f:n,8", tolerance=(1e-4, 1e-3)),
    "rfft": _fn(lambda t, x: (t.view_as_real(t.fft.rfft(x)), t.fft.rfft(x, norm="ortho").abs()), "f:n,8", tolerance=(1e-4, 1e-3)),
    "rfft-odd": _fn(lambda t, x: t.fft.rfft(x, 5).abs(), "f:n,8", tolerance=(1e-4, 1e-3)),
    "irfft": _fn(lambda t, x: (t.fft.irfft(t.fft.rfft(x)), t.fft.irfft(t.fft.rfft(x), 7)), "f:n,8", tolerance=(1e-4, 1e-3)),
    "ifft": _fn(lambda t, x: t.view_as_real(t.fft.ifft(t.fft.fft(x), norm="forward")), "f:n,8", tolerance=(1e-4, 1e-3)),
    "rfft2": _fn(lambda t, x: (t.fft.rfft2(x).abs(), t.fft.irfft2(t.fft.rfft2(x))), "f:n,4,6", tolerance=(1e-4, 1e-3)),
    "stft": _fn(_stft, "f:n,40", tolerance=(1e-4, 1e-3)),
    "stft-mono": _fn(lambda t, x: t.stft(x, 16, 4, 12, center=False, normalized=True, onesided=False, return_complex=True).abs(), "f:40",
                     tolerance=(1e-4, 1e-3)),
    "istft": _fn(_istft, "f:n,40", tolerance=(1e-3, 1e-3)),
    "complex-layout": _fn(_complex_layout, "f:n,8", tolerance=(1e-3, 1e-3)),
    "complex-arithmetic": _fn(_complex_arithmetic, "f:n,8", tolerance=(1e-3, 1e-3)),
    "fft-product": _fn(lambda t, x: t.fft.irfft(t.fft.rfft(x) * t.fft.rfft(x)), "f:n,8", tolerance=(1e-3, 1e-3)),
    "fftn": _fn(lambda t, x: t.view_as_real(t.fft.fftn(x, dim=(1, 2))), "f:n,4,3", tolerance=(1e-4, 1e-3)),
    "complex": _fn(
        lambda t, x: (t.view_as_complex(x).abs(), t.view_as_complex(x).angle(), t.view_as_complex(x).real, t.view_as_complex(x).imag,
                      t.view_as_real(t.view_as_complex(x) * t.view_as_complex(x).conj())), "f:n,4,2"),
    # Random numbers
    "rand": _fn(lambda t, x: (x + t.rand(x.shape), t.randn(2, 3), t.rand_like(x), t.randn_like(x)), "f:n,3", random=True, opsets=(18, 20)),
    "randperm": _fn(lambda t, x: x[t.randperm(x.shape[0])], "f:n,3", random=True, opsets=(18, 20)),
    "randint": _fn(lambda t, x: t.randint(0, 9, (x.shape[0],)), "f:n,3", random=True, opsets=(18, 20)),
    "bernoulli": _fn(lambda t, x: t.bernoulli(x), "q:n,3", random=True, opsets=(18, 20)),
    "multinomial": _fn(lambda t, x: t.multinomial(x, 3, replacement=True), "q:n,3", random=True, opsets=(18, 20)),
    "dropout-train": _fn(lambda t, x: t.nn.functional.dropout(x, 0.5, True), "f:n,3", random=True, opsets=(18, 20)),
    # Control flow
    "cond": _fn(lambda t, x: t.cond(x.sum() > 0, lambda a: a.sin() * 2, lambda a: a.cos(), (x,)), "f:n,3"),
    "cond-captured": _fn(lambda t, x, y: t.cond(x.sum() < 0, lambda a: a + y, lambda a: a, (x,)), "f:n,3", "f:n,3"),
    "cond-two-results": _fn(lambda t, x: t.cond(x.sum() > 0, lambda a: (a + 1, a.sum()), lambda a: (a, a.max()), (x,)), "f:n,3"),
    "cond-sizes": _fn(
        lambda t, x: t.cond(
            x.sum() > 0, lambda a: (t.zeros_like(a).flatten() + a.flatten(), a.var(0)), lambda a: (a.t().reshape(-1), a.mean(0)), (x,)
        ),
        "f:n,3",
    ),
    "cond-nested": _fn(
        lambda t, x: t.cond(
            x.sum() > 0, lambda a: t.cond(a.max() > 1, lambda b: b + x, lambda b: b * 3, (a,)), lambda a: a.cos(), (x,)
        ),
        "f:n,3",
    ),
    "while_loop-to-convergence": _fn(
        lambda t, x: t._higher_order_ops.while_loop(lambda a: a.abs().max() > 0.1, lambda a: (a * 0.5,), (x,)), "f:n,3"),
    "while_loop": _fn(
        lambda t, x: t._higher_order_ops.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * 1.5 + i), (t.tensor(0), x)), "f:n,3"),
    "scan": _fn(lambda t, x: t._higher_order_ops.scan(lambda c, a: (c + a, c * a), x[0] * 0, x), "f:n,3"),
    "map": _fn(lambda t, x, y: t._higher_order_ops.map(lambda a, b: a.sin() + b, x, y), "f:n,3", "f:3"),
    "no_grad": _fn(lambda t, x: _without_grad(t, x), "f:n,3"),
}  # fmt: skip


def _without_grad(t: Any, x: Any) -> Any:
    with t.no_grad():
        y = x * 2
    return y + 1
