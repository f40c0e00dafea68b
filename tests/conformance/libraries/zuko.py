"""zuko: normalizing flows, transforms, distributions and their training."""

import torch
import zuko
from zuko.distributions import BoxUniform, DiagNormal, GeneralizedNormal, Maximum, Minimum, Mixture, NormalizingFlow
from zuko.transforms import (
    CircularShiftTransform,
    CosTransform,
    FreeFormJacobianTransform,
    LULinearTransform,
    MonotonicAffineTransform,
    MonotonicRQSTransform,
    PermutationTransform,
    RotationTransform,
    SignedPowerTransform,
    SinTransform,
    SoftclipTransform,
    SOSPolynomialTransform,
)

from .tools import backward, fill, randn, train

FLOWS = {
    "NICE": {},
    "MAF": {},
    "NSF": {"bins": 4},
    "NCSF": {"bins": 4},
    "SOSPF": {"degree": 2, "polynomials": 2},
    "NAF": {"signal": 4},
    "UNAF": {"signal": 4},
    "CNF": {},
    "GF": {"components": 3},
    "BPF": {"degree": 4},
    "RealNVP": {},
}


def _flow(name="MAF", **options):
    layers = {} if name == "CNF" else {"transforms": 2}
    return fill(
        getattr(zuko.flows, name)(features=3, context=2, hidden_features=(8,), **layers, **FLOWS[name], **options)
    )


def flows_forward():
    found, x, context = {}, 0.5 * randn(4, 3), randn(4, 2, seed=1)
    with torch.no_grad():
        for name in FLOWS:
            if name != "CNF":  # its trace is estimated from random numbers
                found[name] = _flow(name)(context).log_prob(x)
    return found


def exact_forward():
    flow = _flow("CNF", exact=True)
    with torch.no_grad():
        return flow(randn(4, 2)).log_prob(0.5 * randn(4, 3))


def inverses_forward():
    """Points that were transformed and transformed back."""
    found, x = {}, 0.5 * randn(4, 3)
    with torch.no_grad():
        for name in ("NICE", "MAF", "NSF", "GF", "UNAF"):
            transform = _flow(name)(randn(4, 2)).transform
            z = transform(x)
            found[name] = [z, transform.inv(z).sub(x).abs().max() < 1e-3]
    return found


def flows_backward():
    found = {}
    for name in ("RealNVP", "NSF", "SOSPF", "NAF", "BPF"):
        flow = _flow(name)
        found[name] = backward(flow, -flow(randn(4, 2)).log_prob(0.5 * randn(4, 3)).mean())
    return found


def transforms_forward():
    x = 0.5 * randn(4, 3)
    kinds = {
        "shift": CircularShiftTransform(2.0),
        "cos": CosTransform(),
        "sin": SinTransform(),
        "clip": SoftclipTransform(2.0),
        "power": SignedPowerTransform(torch.tensor(0.3)),
        "affine": MonotonicAffineTransform(randn(3), randn(3, seed=1)),
        "spline": MonotonicRQSTransform(randn(3, 4), randn(3, 4, seed=1), randn(3, 3, seed=2)),
        "sos": SOSPolynomialTransform(randn(3, 2, 3), randn(3)),
        "permutation": PermutationTransform(torch.tensor([2, 0, 1])),
        "rotation": RotationTransform(randn(3, 3)),
        "lu": LULinearTransform(randn(3, 3)),
        "free": FreeFormJacobianTransform(
            lambda t, y: torch.tanh(y) * t, torch.tensor(0.0), torch.tensor(1.0), exact=True
        ),
    }
    found = {}
    for name, transform in kinds.items():
        given = x.abs() if name == "cos" else x
        y, logarithm = transform.call_and_ladj(given)
        found[name] = [y, logarithm, transform.inv(y)]
    return found


def distributions_forward():
    x, mixture = randn(4, 3), Mixture(DiagNormal(randn(2, 3), torch.ones(2, 3)), torch.zeros(2))
    normal = torch.distributions.Normal(torch.zeros(3), torch.ones(3))
    flow = NormalizingFlow(
        zuko.transforms.ComposedTransform(MonotonicAffineTransform(randn(3), randn(3, seed=1))),
        DiagNormal(torch.zeros(3), torch.ones(3)),
    )
    return [
        mixture.log_prob(x),
        BoxUniform(-torch.ones(3), torch.ones(3)).log_prob(x.tanh()),
        GeneralizedNormal(torch.tensor(1.5)).log_prob(x),
        Maximum(normal, 2).log_prob(x),
        Minimum(normal, 3).log_prob(x),
        list(mixture.sample((5,)).shape),
        list(flow.rsample((6,)).shape),
    ]


def lazy_other():
    flow = zuko.flows.Flow(
        [
            zuko.flows.MaskedAutoregressiveTransform(3, passes=2, hidden_features=(8,)),
            zuko.flows.UnconditionalTransform(RotationTransform, torch.eye(3)),
        ],
        zuko.flows.UnconditionalDistribution(DiagNormal, torch.zeros(3), torch.ones(3), buffer=True),
    )
    return [fill(flow)().log_prob(randn(4, 3)), str(flow), [list(v.shape) for v in flow.state_dict().values()]]


def likelihood_training():
    flow, x, context = _flow("NSF"), 0.5 * randn(16, 3), randn(16, 2)
    return train(flow, lambda: -flow(context).log_prob(x).mean())
