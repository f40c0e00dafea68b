"""Learning rate schedulers: rates, and states as PyTorch saves them."""

CHOICES = {
    "lambda": lambda s, o: s.LambdaLR(o, [lambda e: 0.95**e, lambda e: 1 / (1 + e)]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.95),
    "steps": lambda s, o: s.MultiStepLR(o, [2, 5, 5], 0.3),
    "linear": lambda s, o: s.LinearLR(o, 0.2, 0.9, 6),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 4, 0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01),
    "plateau": lambda s, o: s.ReduceLROnPlateau(o, patience=1, factor=0.5, cooldown=1, min_lr=[0.01, 0.02]),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 2, 3, mode="triangular2"),
    "one": lambda s, o: s.OneCycleLR(o, [0.1, 0.3], 20, three_phase=True),
    "sequence": lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9), s.StepLR(o, 2)], [3, 6]),
    "chain": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)], o),
}  # fmt: skip


def saved(value):
    """A state without functions."""
    if isinstance(value, dict):
        return {str(k): saved(v) for k, v in sorted(value.items(), key=str)}
    return [saved(v) for v in value] if isinstance(value, (list, tuple)) else None if callable(value) else value


def case_rates_and_states(torch):
    results = []
    for name, make in {**CHOICES, "averaging": None}.items():
        a, b = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
        optimizer = torch.optim.SGD([{"params": [a], "lr": 0.1}, {"params": [b], "lr": 0.2}], momentum=0.9)
        if make is None:
            scheduler = torch.optim.swa_utils.SWALR(optimizer, [0.05, 0.01], 3, "linear")
        else:
            scheduler = make(torch.optim.lr_scheduler, optimizer)
        rates = []
        for _ in range(9):
            optimizer.step()
            scheduler.step(*([1.0] if name == "plateau" else []))
            rates.append([*scheduler.get_last_lr(), *(g["momentum"] for g in optimizer.param_groups)])
        state = {k: v for k, v in scheduler.state_dict().items() if k not in ("_anneal_func", "anneal_func")}
        results.append([name, rates, saved(state), [sorted(g) for g in optimizer.param_groups]])
    return results
