"""nn.init: generators are used, and invalid arguments raise PyTorch's errors."""

from ..names.record import error

NAMES = "uniform_ normal_ trunc_normal_ xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ orthogonal_".split()


def case_generators(torch):
    """Whether two equal generators give equal numbers, and another one gives others."""
    results = []
    for name in NAMES:
        fill = getattr(torch.nn.init, name)
        a, b, c = (fill(torch.empty(3, 4), generator=torch.Generator().manual_seed(seed)) for seed in (3, 3, 4))
        results.append([name, bool((a == b).all()), bool((a == c).any())])
    a = torch.nn.init.sparse_(torch.empty(6, 4), 0.4, generator=torch.Generator().manual_seed(3))
    return [*results, (a == 0).sum(0)]


def case_errors(torch):
    init = torch.nn.init
    return [
        error(init.dirac_, torch.empty(3, 4)), error(init.dirac_, torch.empty(3, 4, 5), 2), error(init.orthogonal_, torch.empty(3)),
        error(init.eye_, torch.empty(3)), error(init.sparse_, torch.empty(3), 0.1), error(init.xavier_normal_, torch.empty(3)),
        init.orthogonal_(torch.empty(0, 3)),
    ]  # fmt: skip
