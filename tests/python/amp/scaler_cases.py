"""A training run with a GradScaler in which some gradients are infinite or NaN, for several optimizers."""

from __future__ import annotations

import math
from typing import Any

# The factor of the loss in each step; the second parameter has no gradient in steps with an odd factor.
FACTORS = (math.inf, 2.0, 4.0, math.nan, 1.0, 2.0, -math.inf, 8.0, 3.0)

OPTIMIZERS = {
    "SGD": "SGD(parameters, lr=0.5)",
    "SGD with momentum": "SGD(parameters, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)",
    "SGD with dampening": "SGD(parameters, lr=0.1, momentum=0.9, dampening=0.5)",
    "Adam": "Adam(parameters, lr=0.1)",
    "Adam, amsgrad": "Adam(parameters, lr=0.1, amsgrad=True, maximize=True)",
    "AdamW": "AdamW(parameters, lr=0.1)",
    "AdamW of two groups": "AdamW([{'params': parameters[:1]}, {'params': parameters[1:], 'lr': 0.01}], lr=0.1)",
    "RMSprop": "RMSprop(parameters, lr=0.01, eps=0.1)",
    "Adagrad": "Adagrad(parameters, lr=0.1)",
}
# The optimizers with which no call of the scaler waits for the engine.
NEVER_WAITING = [name for name in OPTIMIZERS if name.startswith(("SGD", "Adam")) and "dampening" not in name]


def run(torch: Any, optimizer: str, clip: bool) -> Any:
    """Yields the scaler, the optimizer and the parameters after each step."""
    parameters = [torch.tensor([1.0, -2.0, 3.0], requires_grad=True), torch.tensor([[0.5, 2.0]], requires_grad=True)]
    stepped = eval(f"optim.{OPTIMIZERS[optimizer]}", {"optim": torch.optim, "parameters": parameters})
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    for factor in FACTORS:
        stepped.zero_grad()
        loss = (parameters[0].square() * factor).sum()
        if factor % 2 == 0:
            loss = loss + parameters[1].exp().sum()
        scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(stepped)
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        scaler.step(stepped)
        scaler.update()
        yield scaler, stepped, parameters


def history(torch: Any, optimizer: str, clip: bool) -> list:
    """After each step, the parameters' values, the scaler's state, and the optimizer's step numbers."""
    values = []
    for scaler, stepped, parameters in run(torch, optimizer, clip):
        state = scaler.state_dict()
        steps = [float(s["step"]) for _, s in sorted(stepped.state_dict()["state"].items()) if "step" in s]
        values.append([[p.tolist() for p in parameters], [state["scale"], state["_growth_tracker"]], steps])
    return values
