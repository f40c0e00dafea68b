"""captum: attributions of inputs, layers and neurons, perturbations and metrics."""

import torch
from captum.attr import (
    LRP,
    DeepLift,
    FeatureAblation,
    FeaturePermutation,
    GuidedBackprop,
    GuidedGradCam,
    InputXGradient,
    IntegratedGradients,
    LayerActivation,
    LayerConductance,
    LayerDeepLift,
    LayerGradCam,
    LayerIntegratedGradients,
    NeuronGradient,
    NoiseTunnel,
    Occlusion,
    Saliency,
    ShapleyValues,
    configure_interpretable_embedding_layer,
    remove_interpretable_embedding_layer,
)
from captum.concept import Concept
from captum.metrics import infidelity, sensitivity_max
from captum.robust import FGSM, PGD

from .tools import fill, integers, randn

TARGET = [0, 2]


class Images(torch.nn.Module):
    """A small convolutional network."""

    def __init__(self):
        super().__init__()
        self.conv, self.relu = torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU()
        self.pool, self.head = torch.nn.MaxPool2d(2), torch.nn.Linear(64, 3)

    def forward(self, x):
        return self.head(self.pool(self.relu(self.conv(x))).flatten(1))


class Words(torch.nn.Module):
    """A classifier of sequences of words."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = torch.nn.Embedding(20, 8), torch.nn.Linear(8, 3)

    def forward(self, tokens):
        return self.head(torch.tanh(self.embedding(tokens)).mean(1))


def _images():
    return fill(Images()).eval(), randn(2, 3, 8, 8)


def gradients_other():
    model, x = _images()
    kinds = (Saliency, InputXGradient, GuidedBackprop)
    return {kind.__name__: kind(model).attribute(x, target=TARGET) for kind in kinds}


def integrated_other():
    model, x = _images()
    values, delta = IntegratedGradients(model).attribute(x, target=TARGET, n_steps=8, return_convergence_delta=True)
    split = IntegratedGradients(model).attribute(
        x, torch.ones_like(x), target=TARGET, n_steps=6, internal_batch_size=4, method="riemann_left"
    )
    return [values, delta.abs() < 0.1, split]


def deep_other():
    model, x = _images()
    values = DeepLift(model).attribute(x, 0.1 * torch.ones_like(x), target=TARGET)
    return [values, LRP(model).attribute(x, target=TARGET)]


def layers_other():
    model, x = _images()
    return [
        LayerActivation(model, model.conv).attribute(x),
        LayerGradCam(model, model.conv).attribute(x, target=TARGET),
        LayerConductance(model, model.relu).attribute(x, target=TARGET, n_steps=5),
        LayerDeepLift(model, model.pool).attribute(x, target=TARGET),
        GuidedGradCam(model, model.conv).attribute(x, target=TARGET),
        NeuronGradient(model, model.conv).attribute(x, (1, 2, 2)),
    ]


def perturbations_other():
    model, x = _images()
    groups = torch.arange(4).repeat_interleave(2).repeat(8, 1).expand(1, 3, 8, 8)
    return [
        Occlusion(model).attribute(x, target=TARGET, sliding_window_shapes=(3, 4, 4), strides=(3, 4, 4)),
        FeatureAblation(model).attribute(x, target=TARGET, feature_mask=groups, perturbations_per_eval=2),
        ShapleyValues(fill(torch.nn.Linear(3, 1))).attribute(randn(2, 3)),
        list(FeaturePermutation(model).attribute(x, target=TARGET, feature_mask=groups).shape),
    ]


def words_other():
    model, tokens = fill(Words()).eval(), integers(20, 2, 5)
    layer = LayerIntegratedGradients(model, model.embedding).attribute(
        tokens, torch.zeros_like(tokens), target=TARGET, n_steps=6
    )
    embedding = configure_interpretable_embedding_layer(model, "embedding")
    values = IntegratedGradients(model).attribute(embedding.indices_to_embeddings(tokens), target=TARGET, n_steps=6)
    remove_interpretable_embedding_layer(model, embedding)
    return [layer, values, model(tokens)]


def noise_other():
    model, x = _images()
    tunnel = NoiseTunnel(Saliency(model)).attribute(x, nt_type="smoothgrad_sq", nt_samples=3, stdevs=0.0, target=TARGET)
    return tunnel


def metrics_other():
    model, x = _images()

    def perturb(inputs):
        noise = 0.01 * torch.ones_like(inputs)
        return noise, inputs - noise

    values = Saliency(model).attribute(x, target=TARGET)
    return [
        infidelity(model, perturb, x, values, target=TARGET, n_perturb_samples=3),
        sensitivity_max(Saliency(model).attribute, x, lambda inputs: inputs + 0.01, target=TARGET, n_perturb_samples=2),
    ]


def attacks_other():
    model, x = _images()
    target = torch.tensor(TARGET)
    return [
        FGSM(model).perturb(x, 0.05, target),
        PGD(model).perturb(x, 0.1, 0.03, 3, target),
        str(Concept(0, "stripes", None)),
    ]
