"""opacus: gradients per sample, private engines, accountants, validators and private training."""

import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.accountants import GaussianAccountant, PRVAccountant, RDPAccountant
from opacus.accountants.utils import get_noise_multiplier
from opacus.grad_sample import GradSampleModuleFastGradientClipping
from opacus.layers import DPGRU, DPLSTM, DPRNN, DPMultiheadAttention
from opacus.optimizers import DPOptimizer
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
from opacus.validators import ModuleValidator

from .tools import fill, integers, randn


class Mixed(torch.nn.Module):
    """Layers that have rules for gradients per sample."""

    def __init__(self):
        super().__init__()
        self.embedding, self.conv = torch.nn.Embedding(10, 6), torch.nn.Conv1d(6, 4, 3, padding=1)
        self.norm, self.layer_norm, self.head = torch.nn.GroupNorm(2, 4), torch.nn.LayerNorm(5), torch.nn.Linear(20, 3)

    def forward(self, tokens):
        x = self.norm(torch.tanh(self.conv(self.embedding(tokens).transpose(1, 2))))
        return self.head(torch.tanh(self.layer_norm(x)).flatten(1))


def _model():
    return fill(
        torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3),
            torch.nn.GroupNorm(2, 4),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(144, 3),
        )
    )


def _samples(module):
    return {name: p.grad_sample for name, p in module.named_parameters()}


def samples_backward():
    found, tokens, labels = {}, integers(10, 4, 5), integers(3, 4)
    for mode in ("hooks", "functorch", "ew"):
        model = GradSampleModule(fill(Mixed()), force_functorch=True) if mode == "functorch" else None
        if mode == "ew":
            from opacus.grad_sample import GradSampleModuleExpandedWeights

            model = GradSampleModuleExpandedWeights(fill(Mixed()))
        model = model or GradSampleModule(fill(Mixed()))
        torch.nn.functional.cross_entropy(model(tokens), labels).backward()
        found[mode] = _samples(model)
    return found


def recurrent_backward():
    found = {}
    for kind in (DPLSTM, DPGRU, DPRNN):
        model = GradSampleModule(fill(kind(5, 4, num_layers=2, bidirectional=True, batch_first=True)))
        output, _ = model(randn(3, 6, 5))
        output.square().mean().backward()
        found[kind.__name__] = [output, _samples(model)]
    return found


def attention_backward():
    model = GradSampleModule(fill(DPMultiheadAttention(8, 2)), batch_first=False)
    x = randn(5, 3, 8)
    output, weights = model(x, x, x)
    output.square().mean().backward()
    return [output, weights, _samples(model)]


def clipped_backward():
    """Gradients that are clipped without gradients per sample."""
    model = GradSampleModuleFastGradientClipping(_model(), max_grad_norm=0.1, use_ghost_clipping=True)
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), noise_multiplier=0.0, max_grad_norm=0.1, expected_batch_size=4
    )
    loss = DPLossFastGradientClipping(model, optimizer, torch.nn.CrossEntropyLoss())(
        model(randn(4, 3, 8, 8)), integers(3, 4)
    )
    loss.backward()
    return [loss.item(), model.get_norm_sample(), {name: p.grad for name, p in model.named_parameters()}]


def _private(noise=0.0, **options):
    model = _model()
    data = torch.utils.data.TensorDataset(randn(12, 3, 8, 8), integers(3, 12))
    engine = PrivacyEngine(accountant="rdp")
    parts = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(data, batch_size=4),
        noise_multiplier=noise,
        max_grad_norm=1.0,
        poisson_sampling=False,
        **options,
    )
    return engine, *parts


def _epochs(model, optimizer, loader, epochs=2):
    losses = []
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    return losses


def private_training():
    """Without noise: with clipped gradients per sample only."""
    found = {}
    for clipping, norm in (("flat", 1.0), ("per_layer", [1.0] * 6)):
        engine, model, optimizer, loader = _private(clipping=clipping) if clipping == "flat" else (None,) * 4
        if engine is None:
            model = GradSampleModule(_model())
            from opacus.optimizers import get_optimizer_class

            kind = get_optimizer_class(clipping=clipping, distributed=False)
            optimizer = kind(
                torch.optim.SGD(model.parameters(), lr=0.1),
                noise_multiplier=0.0,
                max_grad_norm=norm,
                expected_batch_size=4,
            )
            loader = torch.utils.data.DataLoader(
                torch.utils.data.TensorDataset(randn(12, 3, 8, 8), integers(3, 12)), batch_size=4
            )
        found[clipping] = [_epochs(model, optimizer, loader), {n: p.detach() for n, p in model.named_parameters()}]
    return found


def memory_training():
    """Batches that a manager divides into smaller ones."""
    _, model, optimizer, loader = _private()
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=2, optimizer=optimizer) as small:
        losses = _epochs(model, optimizer, small, 1)
    return [losses, dict(model.named_parameters())]


def noise_training():
    """What is spent, and whether the noise changes the gradients."""
    engine, model, optimizer, loader = _private(noise=1.1)
    losses = _epochs(model, optimizer, loader, 1)
    return [len(losses), round(engine.get_epsilon(1e-5), 3), all(bool(loss.isfinite()) for loss in losses)]


def accountants_other():
    found = {}
    for kind in (RDPAccountant, GaussianAccountant, PRVAccountant):
        accountant = kind()
        for _ in range(10):
            accountant.step(noise_multiplier=1.0, sample_rate=0.02)
        found[kind.__name__] = round(float(accountant.get_epsilon(delta=1e-5)), 3)
    return [
        found,
        round(
            get_noise_multiplier(target_epsilon=3.0, target_delta=1e-5, sample_rate=0.02, epochs=2, accountant="rdp"), 2
        ),
    ]


def validators_other():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.BatchNorm2d(32), torch.nn.LSTM(4, 4))
    fixed = ModuleValidator.fix(model)
    return [[type(e).__name__ for e in ModuleValidator.validate(model)], str(fixed), ModuleValidator.validate(fixed)]
