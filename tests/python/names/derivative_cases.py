"""First and second derivatives where functions are not smooth: at ties, zeros, equal rows and bounds of domains."""

import math

INF, NAN = math.inf, math.nan


def derivatives(torch, function, *arguments):
    """The first and second derivatives of the sum of a function's results with respect to lists of numbers."""
    inputs = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arguments]
    first = torch.autograd.grad(function(*inputs).sum(), inputs, create_graph=True)
    weighted = [(g * torch.arange(1, g.numel() + 1).view(g.shape)).sum() for g in first if g.requires_grad]
    second = torch.autograd.grad(sum(weighted), inputs, allow_unused=True) if weighted else [None] * len(inputs)
    return [list(first), [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, second)]]


def case_distances_of_equal_rows(torch):
    rows = [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 2.0, 1.0], [3.0, 1.0, -1.0]]
    found = [derivatives(torch, lambda a, b, p=p: torch.cdist(a, b, p), rows, rows[:2]) for p in (0.0, 1.0, 2.0, 3.0, INF)]
    for mode in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
        found.append(derivatives(torch, lambda a, b, m=mode: torch.cdist(a, b, compute_mode=m), rows, rows[:2]))
    ties = [[1.0, -1.0], [0.0, 0.0]]
    found.append(derivatives(torch, lambda a, b: torch.cdist(a, b, INF), ties, [[0.0, 0.0], [2.0, 2.0]]))
    found.append(derivatives(torch, lambda a: torch.nn.functional.pdist(a, 3), rows))
    return found


def case_norms_of_zero_rows(torch):
    rows = [[0.0, 0.0, 0.0], [1.0, 0.0, 2.0]]
    found = [derivatives(torch, lambda a, p=p: torch.linalg.vector_norm(a, p, 1), rows) for p in (3.0, 4.5)]
    found.append(derivatives(torch, lambda a: torch.dist(a, a.detach(), 4), [1.0, 2.0]))
    return found + [derivatives(torch, lambda a: a.norm(3, 1), rows)]


def case_special_functions_at_special_points(torch):
    s, found = torch.special, []
    for function in (s.i1, s.i1e, s.modified_bessel_i1, s.bessel_j1, s.i0, s.i0e, s.bessel_j0):
        found.append(derivatives(torch, function, [0.0, 0.05, 0.2, 1.0, -1.0, 20.0]))
    found.append(derivatives(torch, s.log_ndtr, [0.0, 1.0, -1.0, -0.99, 5.0, -20.0]))
    x = torch.tensor([30.0], dtype=torch.float64, requires_grad=True)
    first = torch.autograd.grad(s.log_ndtr(x), x, create_graph=True)[0]
    found.append([first.log(), (-torch.autograd.grad(first, x)[0]).log()])  # about exp(-450)
    found.append(derivatives(torch, torch.sinc, [0.05, 0.15, 0.3, 1.0]))
    x = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    return found + [torch.autograd.grad(f(x).sum(), x)[0] for f in (s.bessel_y0, s.bessel_y1)]


def case_logit_outside_its_domain(torch):
    inputs, found = [-1.0, -0.25, 0.0, 0.1, 0.5, 1.0, 2.0, INF, NAN], []
    for eps in (None, 0.1):
        x = torch.tensor(inputs, dtype=torch.float64, requires_grad=True)
        found.append(torch.autograd.grad(torch.special.logit(x, eps).sum(), x)[0])
    return found + [derivatives(torch, torch.logit, [0.1, 0.5, 0.75])]


def case_equal_eigenvalues(torch):
    found = []
    for rows in ([[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]):
        for dtype in (torch.float64, torch.complex128):
            for function in (torch.linalg.eigvalsh, torch.linalg.eigvals):
                x = torch.tensor(rows, dtype=dtype, requires_grad=True)
                found.append(torch.view_as_real(torch.autograd.grad(function(x).abs().sum() + function(x).real.sum(), x)[0] + 0j))
    for dtype in (torch.float64, torch.complex128):
        x = torch.tensor([[0.0, 0.0], [0.0, 0.0]], dtype=dtype, requires_grad=True)
        found.append(torch.view_as_real(torch.autograd.grad(torch.linalg.svdvals(x).sum(), x)[0].abs() + 0j))
    return found


def case_infinite_operands(torch):
    pairs = [INF, INF, -INF, -INF, 1.0, 1.0, 1.0], [INF, 1.0, -INF, 1.0, INF, -INF, 1.0]
    found = [derivatives(torch, f, *pairs)[0] for f in (torch.logaddexp, torch.logaddexp2)]
    x = torch.tensor([complex(INF, 1), complex(1, -INF)])
    parts = [torch.view_as_real(t) for t in (x + (1 + 2j), (1 + 2j) + x, 2 + x)]
    found += [*parts, derivatives(torch, lambda a: a.max(), [-INF, 1.0, NAN])[0]]
    found += [torch.gradient(torch.tensor([1.0, INF, 2.0, 5.0]), spacing=h)[0] for h in (1, 2.0)]
    matrix = torch.eye(70)[:, [1, 0, *range(2, 70)]]
    matrix[1, 0] = NAN  # below a pivot of 0
    return found + [bool(f(matrix).isnan().any()) for f in (torch.linalg.inv, torch.det, lambda m: torch.linalg.solve(m, m[0]))]


def case_losses_at_bounds(torch):
    functional = torch.nn.functional

    def cosine(target):
        return lambda a, b: functional.cosine_embedding_loss(a, b, torch.tensor(target), reduction="none")

    found = [derivatives(torch, cosine([1.0, -1.0, 0.5]), [[1.0, 3.0]] * 3, [[1.0, 2.0]] * 3)]
    found.append(derivatives(torch, cosine([-1.0]), [[0.0, 0.0]], [[0.0, 0.0]]))
    x = torch.tensor([0.0, 0.0, 1.0, 0.5], dtype=torch.float64)
    y = torch.tensor([0.0, 1.0, 1.0, 0.5], dtype=torch.float64, requires_grad=True)
    found.append(torch.autograd.grad(functional.binary_cross_entropy(x, y, reduction="sum"), y)[0])
    return found + [derivatives(torch, torch.nextafter, [1.0, 1.0, 0.0], [2.0, 1.0, -1.0])]


def case_random_numbers_are_constants(torch):
    x = torch.ones(2, 3, requires_grad=True)
    made = [torch.rand_like(x), torch.randn_like(x), torch.randint_like(x, 5), torch.randint_like(x, 5, requires_grad=True)]
    made += [torch.bernoulli(x.detach()), torch.zeros_like(x), torch.empty_like(x), x.new_ones(2)]
    return [[t.requires_grad, t.is_leaf, list(t.shape)] for t in made]


def case_eigenvectors(torch):
    """The gradient of eigenvectors is symmetric, whatever depends on them."""
    x = torch.tensor([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 3.0]], dtype=torch.float64, requires_grad=True)
    values, vectors = torch.linalg.eigh(x)
    logarithm = (vectors * values.log()) @ vectors.mT
    found = [torch.autograd.grad(logarithm[0, 1] + logarithm[2].square().sum(), x)[0]]
    hermitian = torch.complex(x.detach(), torch.tensor([[0.0, 0.2, 0.0], [-0.2, 0.0, 0.1], [0.0, -0.1, 0.0]]).double())
    hermitian.requires_grad_()
    values, vectors = torch.linalg.eigh(hermitian)
    root = (vectors * values.sqrt()) @ vectors.mH
    return found + [torch.view_as_real(torch.autograd.grad(root[0, 1].abs() + root[2, 0].real, hermitian)[0])]
