"""schedulefree: optimizers without a schedule, by single parameters and by lists of them."""

import schedulefree
import torch

from .tools import fill, randn

OPTIMIZERS = {
    "AdamW": lambda p: schedulefree.AdamWScheduleFree(p, lr=0.01, warmup_steps=2),
    "AdamW of single parameters": lambda p: schedulefree.AdamWScheduleFree(p, lr=0.01, foreach=False),
    "SGD": lambda p: schedulefree.SGDScheduleFree(p, lr=0.1),
    "RAdam": lambda p: schedulefree.RAdamScheduleFree(p, lr=0.01),
}


def optimizers_training():
    found = {}
    for name, make in OPTIMIZERS.items():
        net = fill(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))
        optimizer = make(net.parameters())
        optimizer.train()
        for _ in range(4):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(net(randn(8, 4)), randn(8, 1, seed=1))
            loss.backward()
            optimizer.step()
        optimizer.eval()
        found[name] = [loss, net(randn(8, 4))]
    return found
