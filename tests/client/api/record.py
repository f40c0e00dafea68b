"""Records results of PyTorch for the tests of the C++ client: `python tests/client/api/record.py` with PyTorch installed.

Writes modules.pt (inputs, states, outputs, gradients of modules and losses) and optimizers.pt (parameters after steps).
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
}  # fmt: skip


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
        torch.save({name: record_optimizer(make) for name, make in OPTIMIZERS.items()}, HERE / "optimizers.pt")
