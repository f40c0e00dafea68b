"""Records results of PyTorch for the tests of the C++ client: `python tests/client/api/record.py` with PyTorch installed.

Writes modules.pt (inputs, states, outputs, gradients of modules and losses), functions.pt (of linalg, fft, special, einsum and others)
and optimizers.pt (parameters after steps).
With --check, prints written_by_cpp.pt, which the tests of the C++ client write.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn

HERE = Path(__file__).parent


def values(*sizes, shift=0.0):
    count = torch.Size(sizes).numel()
    return (torch.sin(torch.arange(count, dtype=torch.float32) * 1.7 + shift) * 0.8).reshape(sizes)


def bags():
    return torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 2, 5])


MODULES = {
    "Linear": (nn.Linear(4, 3), [values(2, 4)]),
    "LinearNoBias": (nn.Linear(4, 3, bias=False), [values(2, 4)]),
    "Conv1d": (nn.Conv1d(2, 4, 3, stride=2, padding=1), [values(2, 2, 7)]),
    "Conv2d": (nn.Conv2d(2, 4, 3, stride=2, padding=(1, 0), groups=2), [values(2, 2, 6, 6)]),
    "Conv3d": (nn.Conv3d(1, 2, 2), [values(1, 1, 3, 3, 3)]),
    "ConvTranspose2d": (nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1), [values(1, 2, 4, 4)]),
    "BatchNorm1d": (nn.BatchNorm1d(3), [values(4, 3)]),
    "BatchNorm2d": (nn.BatchNorm2d(3), [values(2, 3, 4, 4)]),
    "LayerNorm": (nn.LayerNorm([3, 4]), [values(2, 3, 4)]),
    "GroupNorm": (nn.GroupNorm(2, 4), [values(2, 4, 5)]),
    "Embedding": (nn.Embedding(6, 3, padding_idx=1), [torch.tensor([[0, 1, 5], [2, 2, 1]])]),
    "EmbeddingBag": (nn.EmbeddingBag(6, 3), list(bags())),
    "EmbeddingBagSum": (nn.EmbeddingBag(6, 3, mode="sum"), [torch.tensor([[0, 1, 5], [2, 2, 1]])]),
    "ReLU": (nn.ReLU(), [values(2, 3)]),
    "GELU": (nn.GELU(), [values(2, 3)]),
    "GELUTanh": (nn.GELU(approximate="tanh"), [values(2, 3)]),
    "SiLU": (nn.SiLU(), [values(2, 3)]),
    "LeakyReLU": (nn.LeakyReLU(0.2), [values(2, 3)]),
    "ELU": (nn.ELU(), [values(2, 3)]),
    "PReLU": (nn.PReLU(), [values(2, 3)]),
    "Softplus": (nn.Softplus(), [values(2, 3)]),
    "Sigmoid": (nn.Sigmoid(), [values(2, 3)]),
    "Tanh": (nn.Tanh(), [values(2, 3)]),
    "Softmax": (nn.Softmax(dim=1), [values(2, 3)]),
    "LogSoftmax": (nn.LogSoftmax(dim=1), [values(2, 3)]),
    "MaxPool2d": (nn.MaxPool2d(2, stride=1), [values(1, 2, 4, 4)]),
    "AvgPool2d": (nn.AvgPool2d(3, padding=1), [values(1, 2, 6, 6)]),
    "AdaptiveAvgPool2d": (nn.AdaptiveAvgPool2d((2, 3)), [values(1, 2, 5, 7)]),
    "Flatten": (nn.Flatten(), [values(2, 3, 4)]),
    "Sequential": (nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2)), [values(3, 4)]),
    "LSTM": (nn.LSTM(3, 4, num_layers=2, bidirectional=True), [values(5, 2, 3)]),
    "GRU": (nn.GRU(3, 4, batch_first=True), [values(2, 5, 3)]),
    "RNN": (nn.RNN(3, 4, nonlinearity="relu"), [values(5, 2, 3)]),
    "LSTMUnbatched": (nn.LSTM(3, 4), [values(5, 3)]),
    "MultiheadAttention": (nn.MultiheadAttention(6, 2), [values(4, 2, 6), values(5, 2, 6, shift=1), values(5, 2, 6, shift=2)]),
    "TransformerEncoderLayer": (nn.TransformerEncoderLayer(6, 2, 8, dropout=0, batch_first=True), [values(2, 4, 6)]),
    "TransformerEncoderLayerNormFirst": (
        nn.TransformerEncoderLayer(6, 2, 8, dropout=0, activation="gelu", norm_first=True), [values(4, 2, 6)],
    ),
    "MSELoss": (nn.MSELoss(), [values(2, 3), values(2, 3, shift=1)]),
    "L1Loss": (nn.L1Loss(reduction="sum"), [values(2, 3), values(2, 3, shift=1)]),
    "SmoothL1Loss": (nn.SmoothL1Loss(), [values(2, 3), values(2, 3, shift=1)]),
    "HuberLoss": (nn.HuberLoss(delta=0.5), [values(2, 3), values(2, 3, shift=1)]),
    "CrossEntropyLoss": (nn.CrossEntropyLoss(label_smoothing=0.1), [values(4, 3), torch.tensor([0, 2, -100, 1])]),
    "NLLLoss": (nn.NLLLoss(), [values(4, 3), torch.tensor([0, 2, 2, 1])]),
    "BCELoss": (nn.BCELoss(), [values(2, 3).sigmoid(), values(2, 3, shift=1).sigmoid()]),
    "BCEWithLogitsLoss": (
        nn.BCEWithLogitsLoss(pos_weight=torch.tensor([2.0, 1.0, 0.5])), [values(2, 3), values(2, 3, shift=1).sigmoid()],
    ),
    "KLDivLoss": (nn.KLDivLoss(reduction="batchmean"), [values(2, 3), values(2, 3, shift=1).softmax(1)]),
    "MaxPool1d": (nn.MaxPool1d(3, stride=2, padding=1), [values(2, 3, 7)]),
    "AvgPool1d": (nn.AvgPool1d(2, ceil_mode=True), [values(2, 3, 7)]),
    "MaxPool3d": (nn.MaxPool3d(2), [values(1, 2, 4, 4, 4)]),
    "AvgPool3d": (nn.AvgPool3d(2, stride=1), [values(1, 2, 3, 4, 4)]),
    "AdaptiveAvgPool1d": (nn.AdaptiveAvgPool1d(3), [values(2, 3, 7)]),
    "AdaptiveAvgPool3d": (nn.AdaptiveAvgPool3d((1, 2, 3)), [values(1, 2, 3, 4, 5)]),
    "AdaptiveMaxPool1d": (nn.AdaptiveMaxPool1d(3), [values(2, 3, 7)]),
    "AdaptiveMaxPool2d": (nn.AdaptiveMaxPool2d(2), [values(1, 2, 5, 4)]),
    "AdaptiveMaxPool3d": (nn.AdaptiveMaxPool3d(2), [values(1, 2, 3, 4, 5)]),
    "LPPool1d": (nn.LPPool1d(2, 3, stride=2), [values(2, 3, 8).abs()]),
    "LPPool2d": (nn.LPPool2d(3, 2), [values(1, 2, 4, 4).abs()]),
    "Unfold": (nn.Unfold((2, 3), padding=1, stride=2), [values(1, 2, 5, 6)]),
    "Fold": (nn.Fold((4, 5), (2, 2)), [values(1, 8, 12)]),
    "UpsampleNearest": (nn.Upsample(scale_factor=2), [values(1, 2, 3, 4)]),
    "UpsampleBilinear": (nn.Upsample(size=(5, 7), mode="bilinear", align_corners=True), [values(1, 2, 3, 4)]),
    "UpsampleBicubic": (nn.Upsample(scale_factor=(1.5, 2.5), mode="bicubic"), [values(1, 2, 4, 4)]),
    "UpsampleLinear": (nn.Upsample(scale_factor=1.7, mode="linear"), [values(1, 2, 9)]),
    "ReflectionPad1d": (nn.ReflectionPad1d((2, 1)), [values(2, 3, 4)]),
    "ReflectionPad2d": (nn.ReflectionPad2d((1, 2, 0, 1)), [values(1, 2, 3, 4)]),
    "ReplicationPad3d": (nn.ReplicationPad3d(1), [values(1, 2, 2, 3, 2)]),
    "ZeroPad2d": (nn.ZeroPad2d((1, -1, 2, 0)), [values(1, 2, 3, 4)]),
    "ConstantPad1d": (nn.ConstantPad1d((1, 2), 3.5), [values(2, 3, 4)]),
    "InstanceNorm1d": (nn.InstanceNorm1d(3, affine=True), [values(2, 3, 5)]),
    "InstanceNorm2d": (nn.InstanceNorm2d(2, track_running_stats=True), [values(2, 2, 3, 4)]),
    "LocalResponseNorm": (nn.LocalResponseNorm(3, alpha=0.2), [values(2, 5, 3, 3)]),
    "Bilinear": (nn.Bilinear(3, 4, 2), [values(5, 3), values(5, 4, shift=1)]),
    "CosineSimilarity": (nn.CosineSimilarity(dim=1), [values(4, 3), values(4, 3, shift=1)]),
    "PairwiseDistance": (nn.PairwiseDistance(keepdim=True), [values(4, 3), values(4, 3, shift=1)]),
    "PixelShuffle": (nn.PixelShuffle(2), [values(1, 8, 2, 3)]),
    "PixelUnshuffle": (nn.PixelUnshuffle(2), [values(1, 2, 4, 6)]),
    "Softmin": (nn.Softmin(dim=1), [values(2, 3)]),
    "Softshrink": (nn.Softshrink(0.3), [values(2, 3)]),
    "Hardshrink": (nn.Hardshrink(0.3), [values(2, 3)]),
    "Threshold": (nn.Threshold(0.1, 20), [values(2, 3)]),
    "Softmax2d": (nn.Softmax2d(), [values(2, 3, 2, 2)]),
    "RNNCell": (nn.RNNCell(3, 4, nonlinearity="relu"), [values(2, 3)]),
    "GRUCell": (nn.GRUCell(3, 4), [values(2, 3)]),
    "LSTMCell": (nn.LSTMCell(3, 4), [values(2, 3)]),
    "GRUCellUnbatched": (nn.GRUCell(3, 4), [values(3)]),
    "TransformerDecoderLayer": (
        nn.TransformerDecoderLayer(6, 2, 8, dropout=0, batch_first=True), [values(2, 4, 6), values(2, 5, 6, shift=1)],
    ),
    "TransformerEncoder": (
        nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, dropout=0, batch_first=True), 2, norm=nn.LayerNorm(6)), [values(2, 4, 6)],
    ),
    "Transformer": (
        nn.Transformer(6, 2, 1, 2, 8, dropout=0, batch_first=True, norm_first=True), [values(2, 4, 6), values(2, 5, 6, shift=1)],
    ),
    "PoissonNLLLoss": (nn.PoissonNLLLoss(full=True), [values(2, 3), values(2, 3, shift=1).abs() * 4]),
    "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss(margin=0.7), [values(2, 3), values(2, 3, shift=1).sign()]),
    "SoftMarginLoss": (nn.SoftMarginLoss(), [values(2, 3), values(2, 3, shift=1).sign().long()]),
    "MultiMarginLoss": (nn.MultiMarginLoss(p=2, margin=0.8), [values(4, 3), torch.tensor([0, 2, 2, 1])]),
    "CosineEmbeddingLoss": (nn.CosineEmbeddingLoss(margin=0.1), [values(2, 3), values(2, 3, shift=1), torch.tensor([1.0, -1.0])]),
    "MarginRankingLoss": (nn.MarginRankingLoss(margin=0.1), [values(4), values(4, shift=1), values(4, shift=2).sign()]),
    "TripletMarginLoss": (nn.TripletMarginLoss(swap=True), [values(4, 3), values(4, 3, shift=1), values(4, 3, shift=2)]),
}  # fmt: skip


def complex_values(*sizes):
    return torch.complex(values(*sizes), values(*sizes, shift=1))


def square(n=4, shift=0.0, dtype=torch.float64):
    return values(2, n, n, shift=shift).to(dtype) + 2 * torch.eye(n, dtype=dtype)


def positive():
    a = square()
    return a @ a.mT + torch.eye(4, dtype=a.dtype)


L, S, X = torch.linalg, torch.special, torch.fft
V, W = values(6).double(), values(3, 4).double()
FUNCTIONS = {
    "inv": (L.inv, [square()]),
    "inverse of a complex matrix": (torch.inverse, [complex_values(3, 3).to(torch.complex128) + 2 * torch.eye(3)]),
    "det": (L.det, [square()]),
    "slogdet": (L.slogdet, [square()]),
    "logdet": (torch.logdet, [positive()]),
    "solve": (L.solve, [square(), values(2, 4, 3, shift=2).double()]),
    "solve of a vector": (L.solve, [square()[0], values(4).double()]),
    "solve from the right": (lambda a, b: L.solve(a, b, left=False), [square(), values(2, 3, 4).double()]),
    "solve that broadcasts": (L.solve, [square()[0], values(2, 4, 3).double()]),
    "solve_triangular": (lambda a, b: L.solve_triangular(a, b, upper=False), [square(), values(2, 4, 3).double()]),
    "lu": (L.lu, [square()]),
    "lu_solve": (lambda a, b: L.lu_solve(*L.lu_factor(a), b), [square(), values(2, 4, 3).double()]),
    "adjoint lu_solve": (lambda a, b: L.lu_solve(*L.lu_factor(a), b, adjoint=True), [square(), values(2, 4, 3).double()]),
    "cholesky": (L.cholesky, [positive()]),
    "upper cholesky": (lambda a: L.cholesky(a, upper=True), [positive()]),
    "cholesky_solve": (lambda a, b: torch.cholesky_solve(b, L.cholesky(a)), [positive(), values(2, 4, 3).double()]),
    "cholesky_inverse": (lambda a: torch.cholesky_inverse(L.cholesky(a)), [positive()]),
    "qr": (lambda a: tuple(t.abs() for t in L.qr(a)), [square()]),
    "householder_product": (L.householder_product, [values(4, 3).double(), values(3, shift=1).double()]),
    "eigvalsh": (L.eigvalsh, [positive()]),
    "eigh": (lambda a: (lambda v, q: (q * v.unsqueeze(-2).sqrt()) @ q.mT)(*L.eigh(a)), [positive()]),
    "eigvals": (lambda a: L.eigvals(a).abs().sort().values, [square()]),
    "svdvals": (L.svdvals, [W]),
    "svd": (lambda a: (lambda u, s, v: u @ (s.sqrt().unsqueeze(-1) * v))(*L.svd(a, full_matrices=False)), [W]),
    "pinv": (L.pinv, [W + torch.eye(3, 4)]),
    "hermitian pinv": (lambda a: L.pinv(a, hermitian=True), [positive()]),
    "matrix_rank": (L.matrix_rank, [torch.ones(3, 4).double()]),
    "lstsq": (
        lambda a, b: L.lstsq(a, b, driver="gels").solution, [values(5, 3).double() + torch.eye(5, 3), values(5, 2, shift=1).double()],
    ),
    "vector_norm": (lambda x: L.vector_norm(x, 3, dim=1, keepdim=True), [W]),
    "matrix_norm": (L.matrix_norm, [W]),
    "matrix_norm 1": (lambda x: L.matrix_norm(x, 1), [W]),
    "matrix_norm -inf": (lambda x: L.matrix_norm(x, -torch.inf, keepdim=True), [W]),
    "matrix_norm 2": (lambda x: L.matrix_norm(x, 2), [W]),
    "matrix_norm nuc": (lambda x: L.matrix_norm(x, "nuc"), [W]),
    "norm": (L.norm, [W]),
    "cond": (L.cond, [square()]),
    "cond fro": (lambda a: L.matrix_norm(a) * L.matrix_norm(L.inv(a).clone()), [square()]),
    "matrix_power": (lambda a: L.matrix_power(a, -2), [square()]),
    "matrix_power 0": (lambda a: L.matrix_power(a, 0), [square()]),
    "multi_dot": (lambda a, b, c, d: L.multi_dot([a, b, c, d]), [V, values(6, 2).double(), values(2, 5).double(), values(5).double()]),
    "cross": (L.cross, [values(2, 3).double(), values(1, 3, shift=1).double()]),
    "vecdot": (L.vecdot, [W, values(3, 4, shift=1).double()]),
    "vander": (L.vander, [V]),
    "tensorinv": (lambda a: L.tensorinv(a, 1), [values(6, 2, 3).double() + torch.eye(6).double().reshape(6, 2, 3)]),
    "tensorsolve": (L.tensorsolve, [values(2, 3, 6).double() + torch.eye(6).double().reshape(2, 3, 6), values(2, 3).double()]),
    "fft": (X.fft, [V]),
    "ifft": (lambda x: X.ifft(x, 8, norm="ortho"), [complex_values(3, 6).to(torch.complex128)]),
    "rfft": (lambda x: X.rfft(x, 4, dim=0), [values(6, 2).double()]),
    "irfft": (lambda x: X.irfft(x, 7), [complex_values(2, 4).to(torch.complex128)]),
    "hfft": (X.hfft, [complex_values(2, 4).to(torch.complex128)]),
    "ihfft": (X.ihfft, [V]),
    "fft2": (X.fft2, [W]),
    "rfftn": (lambda x: X.rfftn(x, dim=(0, 1), norm="forward"), [values(3, 4, 2).double()]),
    "irfftn": (lambda x: X.irfftn(x, (3, 5)), [complex_values(2, 3, 4).to(torch.complex128)]),
    "fftfreq": (lambda x: X.fftfreq(7, 0.5) + 0 * x.float(), [torch.zeros(7)]),
    "rfftfreq": (lambda x: X.rfftfreq(7) + 0 * x, [torch.zeros(4)]),
    "fftshift": (X.fftshift, [W]),
    "ifftshift": (lambda x: X.ifftshift(x, 1), [values(2, 5).double()]),
    "expit": (S.expit, [V]),
    "gammaln": (S.gammaln, [V.abs() + 1]),
    "psi": (S.psi, [V.abs() + 1]),
    "multigammaln": (lambda x: S.multigammaln(x, 2), [V.abs() + 2]),
    "gammainc": (lambda x: S.gammainc(x.detach() * 0 + 1.5, x), [V.abs()]),
    "einsum matmul": (lambda a, b: torch.einsum("ij,jk", a, b), [W, values(4, 2).double()]),
    "einsum batched": (lambda a, b: torch.einsum("bij,bkj->bik", a, b), [values(2, 3, 4).double(), values(2, 5, 4).double()]),
    "einsum diagonal": (lambda a: torch.einsum("bii->ib", a), [square()]),
    "einsum trace": (lambda a: torch.einsum("ii", a), [square()[0]]),
    "einsum dots": (lambda a, b: torch.einsum("...ij,...jk->...ik", a, b), [values(2, 1, 3, 4).double(), values(5, 4, 2).double()]),
    "einsum implicit dots": (lambda a, b: torch.einsum("...i, ...i", a, b), [W, values(3, 4, shift=1).double()]),
    "einsum chain": (lambda a, b, c: torch.einsum("ij,jk,kl->il", a, b, c), [W, values(4, 5).double(), values(5, 2).double()]),
    "einsum outer": (lambda a, b: torch.einsum("i,j->ji", a, b), [V, values(3).double()]),
    "einsum sum": (lambda a, b: torch.einsum("ij,kl->k", a, b), [W, values(2, 3).double()]),
    "einsum that broadcasts": (lambda a, b: torch.einsum("ij,ij->i", a, b), [W, values(3, 1).double()]),
    "tensordot": (lambda a, b: torch.tensordot(a, b, ([1, 0], [0, 1])), [W, values(4, 3, 2).double()]),
    "broadcast_tensors": (torch.broadcast_tensors, [values(3, 1), values(2, 1, 4), values(4)]),
    "meshgrid": (lambda *v: torch.meshgrid(*v, indexing="ij"), [values(2), values(3), values(4)]),
    "meshgrid of x and y": (lambda *v: torch.meshgrid(*v, indexing="xy"), [values(2), values(3), values(4)]),
    "cartesian_prod": (torch.cartesian_prod, [values(2), values(3)]),
    "block_diag": (torch.block_diag, [values(2, 3), values(2), values(3, 1)]),
    "column_stack": (lambda *v: torch.column_stack(v), [values(3), values(3, 2)]),
    "row_stack": (lambda *v: torch.row_stack(v), [values(3), values(2, 3)]),
    "dstack": (lambda *v: torch.dstack(v), [values(3), values(1, 3)]),
    "atleast_3d": (torch.atleast_3d, [values(3)]),
    "hsplit": (lambda v: torch.hsplit(v, 2), [values(3, 4)]),
    "vsplit": (lambda v: torch.vsplit(v, 3), [values(3, 4)]),
    "dsplit": (lambda v: torch.dsplit(v, 2), [values(3, 4, 2)]),
    "fliplr": (torch.fliplr, [values(3, 4)]),
    "flipud": (torch.flipud, [values(3)]),
    "interpolate": (
        lambda x: torch.nn.functional.interpolate(x, scale_factor=1.5, mode="bilinear", recompute_scale_factor=True), [values(1, 2, 3, 5)],
    ),
    "circular pad": (lambda x: torch.nn.functional.pad(x, (1, 2, 2, -1), mode="circular"), [values(1, 2, 3, 4)]),
    "max_unpool2d": (
        lambda x: torch.nn.functional.max_unpool2d(*torch.nn.functional.max_pool2d(x, 2, return_indices=True), 2), [values(1, 2, 4, 4)],
    ),
    "max_unpool1d to a size": (
        lambda x: torch.nn.functional.max_unpool1d(*torch.nn.functional.max_pool1d(x, 2, return_indices=True), 2, output_size=[7]),
        [values(1, 2, 7)],
    ),
    "ctc_loss": (
        lambda x: torch.nn.functional.ctc_loss(x.log_softmax(2), torch.tensor([[1, 2], [2, 0]]), [5, 5], [2, 1]), [values(5, 2, 3)],
    ),
}  # fmt: skip


def as_real(t):
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def record_function(function, inputs):
    inputs = [t.clone().requires_grad_() for t in inputs]
    outputs = [as_real(t) for t in leaves(function(*inputs))]
    graded = [t for t in outputs if t.requires_grad]
    if graded:
        sum((t * t).sum() for t in graded).backward()
    return {
        "inputs": [t.detach() for t in inputs],
        "outputs": [t.detach() for t in outputs],
        "grads": [as_real(t.grad) if t.grad is not None else None for t in inputs],
    }


def leaves(output):
    return (
        [output]
        if isinstance(output, torch.Tensor)
        else [t for part in output if part is not None for t in leaves(part)]
    )


def record_module(module, inputs):
    for i, parameter in enumerate(module.parameters()):
        with torch.no_grad():
            parameter.copy_(values(*parameter.shape, shift=i))
    state = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    inputs = [t.clone().requires_grad_() if t.is_floating_point() else t for t in inputs]
    outputs = leaves(module(*inputs))
    sum((t * t).sum() for t in outputs if t.requires_grad).backward()
    return {
        "state": state,
        "inputs": [t.detach() for t in inputs],
        "outputs": [t.detach() for t in outputs],
        "grads": {name: p.grad for name, p in module.named_parameters() if p.grad is not None},
        "input_grad": inputs[0].grad if inputs[0].is_floating_point() else None,
        "state_after": dict(module.state_dict()),
    }


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGDMomentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "SGDNesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.01),
    "AdamAMSGrad": lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True, betas=(0.8, 0.99)),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.1, momentum=0.5, centered=True, weight_decay=0.01),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.2),
}
STEPS, SAVED = 6, 3  # the state is recorded after SAVED steps


def record_optimizer(make):
    parameters = [values(3, 2).requires_grad_(), values(4, shift=1).requires_grad_()]
    optimizer, result = make(parameters), {}
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for step in range(STEPS):
        if step == SAVED:
            result["middle"] = [p.detach().clone() for p in parameters]
            state = optimizer.state_dict()
            result["state"] = {
                "state": {k: {n: t.clone() for n, t in s.items()} for k, s in state["state"].items()},
                "param_groups": state["param_groups"],
            }
        optimizer.zero_grad()
        sum((p**3).sum() for p in parameters).backward()
        optimizer.step()
        scheduler.step()
    result["end"] = [p.detach() for p in parameters]
    result["lr"] = optimizer.param_groups[0]["lr"]
    return result


def check():
    print(torch.load(HERE / "written_by_cpp.pt", weights_only=True))


if __name__ == "__main__":
    if "--check" in sys.argv:
        check()
    else:
        torch.save({name: record_module(*row) for name, row in MODULES.items()}, HERE / "modules.pt")
        torch.save({name: record_function(*row) for name, row in FUNCTIONS.items()}, HERE / "functions.pt")
        torch.save({name: record_optimizer(make) for name, make in OPTIMIZERS.items()}, HERE / "optimizers.pt")
