"""geoopt: manifolds, their maps and distances, optimizers and samplers."""

import geoopt
import torch

from .tools import randn

MANIFOLDS = {
    "sphere": lambda: geoopt.Sphere(),
    "ball": lambda: geoopt.PoincareBall(c=1.0),
    "lorentz": lambda: geoopt.Lorentz(k=1.0).double(),
    "stiefel": lambda: geoopt.Stiefel(),
    "canonical": lambda: geoopt.CanonicalStiefel(),
    "euclidean": lambda: geoopt.Euclidean(ndim=1),
    "spd": lambda: geoopt.SymmetricPositiveDefinite(),
    "birkhoff": lambda: geoopt.BirkhoffPolytope(),
    "stereographic": lambda: geoopt.Stereographic(k=-0.5),
    "spherical": lambda: geoopt.SphereProjection(),
    "scaled": lambda: geoopt.Scaled(geoopt.Sphere(), 2.0),
    "upper": lambda: geoopt.UpperHalf(),
}
SQUARE = ("stiefel", "canonical", "spd", "birkhoff", "upper")


def _point(name, manifold, seed=0):
    """A point of the manifold, and a tangent vector."""
    size = (2, 3, 3) if name in SQUARE else (2, 4)
    x, v = 0.3 * randn(*size, seed=seed).double(), 0.1 * randn(*size, seed=seed + 10).double()
    if name == "upper":
        x, v = (torch.complex(part + part.mT, part @ part.mT + torch.eye(3)) for part in (x, v))
    if name == "spd":
        x = x @ x.mT + torch.eye(3)
    if name == "birkhoff":
        x = x.abs() + 0.1
    x = manifold.projx(x)
    return x, manifold.proju(x, v)


def maps_forward():
    """Retractions, transport and inner products of tangent vectors."""
    found = {}
    for name, make in MANIFOLDS.items():
        manifold = make()
        x, v = _point(name, manifold)
        found[name] = [
            x,
            v,
            *manifold.retr_transp(x, v, v),
            manifold.inner(x, v),
            manifold.egrad2rgrad(x, v),
            manifold.check_point_on_manifold(x, atol=1e-4),
        ]
    return found


def distances_forward():
    found = {}
    for name in ("sphere", "ball", "lorentz", "spd", "stereographic", "spherical", "euclidean"):
        manifold = MANIFOLDS[name]()
        (x, v), (y, _) = _point(name, manifold), _point(name, manifold, 1)
        found[name] = [manifold.dist(x, y), manifold.logmap(x, y), manifold.expmap(x, v)]
    return found


def gyro_forward():
    ball = geoopt.PoincareBall(c=0.7)
    (x, v), (y, _) = _point("ball", ball), _point("ball", ball, 1)
    return [
        ball.mobius_add(x, y),
        ball.mobius_scalar_mul(torch.tensor(0.4, dtype=torch.float64), x),
        ball.mobius_matvec(randn(3, 4).double(), x),
        ball.geodesic(torch.tensor(0.3, dtype=torch.float64), x, y),
        ball.logmap0(x),
        ball.expmap0(v),
        ball.gyration(x, y, v),
        ball.dist2plane(x, y, v),
    ]


def distances_backward():
    found = {}
    for name in ("sphere", "ball", "lorentz", "spd", "stereographic"):
        manifold = MANIFOLDS[name]()
        x, y = (_point(name, manifold, seed)[0].requires_grad_() for seed in (0, 1))
        manifold.dist(x, y).sum().backward()
        found[name] = [x.grad, y.grad]
    return found


def products_other():
    manifold = geoopt.ProductManifold((geoopt.Sphere(), 4), (geoopt.PoincareBall(), 3))
    x = manifold.projx(0.3 * randn(2, 7))
    tensor = geoopt.ManifoldTensor(randn(3, 4), manifold=geoopt.Sphere()).proj_()
    return [
        x,
        manifold.component_inner(x, manifold.proju(x, randn(2, 7, seed=1))),
        str(manifold),
        tensor,
        str(tensor.manifold),
    ]


def _descend(make, steps=5):
    goal, found = randn(3, 4), {}
    for name in ("sphere", "ball", "stiefel"):
        manifold = MANIFOLDS[name]()
        start = 0.3 * randn(3, 4, seed=1)
        point = geoopt.ManifoldParameter(
            manifold.projx(start.mT.contiguous() if name == "stiefel" else start), manifold=manifold
        )
        optimizer, losses = make([point]), []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = (point - (goal.mT if name == "stiefel" else goal)).square().sum()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        found[name] = [losses, point.detach()]
    return found


def adam_training():
    return _descend(lambda points: geoopt.optim.RiemannianAdam(points, lr=0.05, amsgrad=True, eps=1e-4, stabilize=2))


def sgd_training():
    return _descend(lambda points: geoopt.optim.RiemannianSGD(points, lr=0.02, momentum=0.9, nesterov=True))


def drawn_other():
    """Whether drawn points are on their manifolds."""
    found = {}
    for name in ("sphere", "ball", "lorentz", "stiefel", "spd", "birkhoff"):
        manifold = MANIFOLDS[name]()
        draw = {"sphere": "random_uniform", "ball": "random", "lorentz": "random_normal"}.get(name, "random")
        x = getattr(manifold, draw)(*((2, 3, 3) if name in SQUARE else (2, 4)))
        found[name] = [list(x.shape), manifold.check_point_on_manifold(x, atol=1e-3), type(x).__name__]
    return found
