"""Short-time Fourier transforms: from a signal to the spectra of its windows, and back."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .padding import pad

__all__ = ["istft", "stft"]

_torch = _C.torch


def _window_of(window: Tensor | None, win_length: int, n_fft: int, like: Tensor, name: str) -> Tensor:
    """The window, by default of ones, zero-padded on both sides to n_fft."""
    if window is None:
        window = _torch.ones(win_length, dtype=like.dtype.to_real(), device=like.device)
    if window.dim() != 1 or window.shape[0] != win_length:
        raise RuntimeError(f"{name}: expected a 1D window tensor of size equal to win_length={win_length}, but got window "
                           f"with size {list(window.shape)}")  # fmt: skip
    left = (n_fft - win_length) // 2
    return _C.ops.pad(window, [left, n_fft - win_length - left]) if win_length < n_fft else window


def _check_lengths(n_fft: int, hop_length: int, win_length: int, name: str) -> None:
    if hop_length <= 0:
        raise RuntimeError(f"{name}: expected hop_length > 0, but got hop_length={hop_length}")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(f"{name}: expected 0 < win_length <= n_fft, but got win_length={win_length}")


def _padded(signal: Tensor, by: int, mode: str) -> Tensor:
    return pad(signal.unsqueeze(1), [by, by], mode).squeeze(1)


def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
    center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
    return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    """The spectra, of size (frequencies, frames), of windows of n_fft samples that start hop_length samples apart."""
    complex_input = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None:
        if not complex_input:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return_complex = True
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    if input.dim() not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, but got {input.dim()}D tensor")
    _check_lengths(n_fft, hop_length, win_length, "stft")
    signal = input.unsqueeze(0) if input.dim() == 1 else input
    if center:
        signal = _padded(signal, n_fft // 2, pad_mode)
    span = win_length if align_to_window else n_fft
    if not 0 < n_fft <= signal.shape[1] + (n_fft - span):
        raise RuntimeError(f"stft: expected 0 < n_fft <= {signal.shape[1]}, but got n_fft={n_fft}")
    if align_to_window and win_length < n_fft:
        left = (n_fft - win_length) // 2
        signal = _C.ops.pad(signal, [left, n_fft - win_length - left])
    frames = signal.unfold(-1, n_fft, hop_length)
    if window is not None or win_length < n_fft:
        frames = frames * _window_of(window, win_length, n_fft, input, "stft")
    if onesided is None:
        onesided = not complex_input
    if onesided and complex_input:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    from .. import fft

    transform = fft.rfft if onesided else fft.fft
    result = transform(frames, norm="ortho" if normalized else None).transpose(1, 2)
    result = result.squeeze(0) if input.dim() == 1 else result
    return result if return_complex else _torch.view_as_real(result.contiguous())


def istft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
    center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None,
    return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """The signal with the given spectra, by least squares where windows overlap (Griffin and Lim 1984). Waits for the engine."""
    if not input.dtype.is_complex:
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with "
                           "return_complex=True.")  # fmt: skip
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    if input.dim() not in (2, 3):
        raise RuntimeError(f"istft: expected a tensor with 2 or 3 dimensions, but got {input.dim()}")
    if input.numel() == 0:
        raise RuntimeError("istft: input tensor cannot be empty")
    _check_lengths(n_fft, hop_length, win_length, "istft")
    spectra = input.unsqueeze(0) if input.dim() == 2 else input
    from .. import fft

    onesided = spectra.shape[1] != n_fft if onesided is None else onesided
    expected = n_fft // 2 + 1 if onesided else n_fft
    if spectra.shape[1] != expected:
        raise RuntimeError(f"istft: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 "
                           f"if onesided is True, otherwise n_fft: expected {expected}, but got {spectra.shape[1]}")  # fmt: skip
    if onesided and return_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    window = _window_of(window, win_length, n_fft, input, "istft")
    spectra, norm = spectra.transpose(1, 2), "ortho" if normalized else None
    if return_complex:
        frames = fft.ifft(spectra, norm=norm)
    else:
        frames = fft.irfft(spectra if onesided else spectra[..., : n_fft // 2 + 1], n_fft, norm=norm)
    count = frames.shape[1]
    signal = _overlapped(frames * window, hop_length)
    weight = _overlapped((window * window).expand(1, count, n_fft), hop_length)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else signal.shape[-1] - (n_fft // 2 if center else 0)
    kept = slice(start, min(end, signal.shape[-1]))
    signal, weight = signal[:, kept], weight[:, kept]
    from .assertions import _check as check

    check((weight.abs() > 1e-11).all().item(), "istft: window overlap add min: 1")
    signal = signal / weight
    if end > start + signal.shape[-1]:
        signal = _C.ops.pad(signal, [0, end - start - signal.shape[-1]])
    return signal.squeeze(0) if input.dim() == 2 else signal


def _overlapped(frames: Tensor, hop: int) -> Tensor:
    """Sums overlapping frames, of size (batch, count, length): frame i begins at sample i * hop."""
    batch, count, length = frames.shape
    total = length + hop * (count - 1)
    starts = _torch.arange(count, device=frames.device) * hop
    indices = starts.unsqueeze(1) + _torch.arange(length, device=frames.device)
    flat = frames.reshape(batch, count * length)
    zeros = _torch.zeros((batch, total), dtype=frames.dtype, device=frames.device)
    return zeros.index_add(1, indices.reshape(-1), flat)


Tensor.stft, Tensor.istft = stft, istft
