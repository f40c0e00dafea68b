"""Sparse gradients of embeddings and optimizers that use them: results as lists, of PyTorch or teletensor."""

from __future__ import annotations

from typing import Any


def _weight(torch: Any) -> Any:
    return (torch.arange(15.0).reshape(5, 3) / 7 - 1).requires_grad_()


def _sparse(gradient: Any) -> list:
    return [str(gradient.layout), gradient.is_coalesced(), gradient._indices().tolist(), gradient._values().tolist()]


def embeddings(torch: Any) -> dict:
    """Gradients of F.embedding and F.embedding_bag."""
    F = torch.nn.functional  # noqa: N806
    index, found = torch.tensor([[1, 4, 1], [0, 2, 2]]), {}
    scale = torch.arange(18.0).reshape(2, 3, 3)
    for padding in (None, 2, -1):
        weight = _weight(torch)
        (F.embedding(index, weight, padding_idx=padding, sparse=True) * scale).sum().backward()
        found[f"padding {padding}"] = _sparse(weight.grad)
    weight = _weight(torch)
    for _ in range(2):
        (F.embedding(index, weight, sparse=True) * scale).sum().backward()
    found["twice"] = weight.grad.to_dense().tolist()
    weight = _weight(torch)
    ((F.embedding(index, weight, sparse=True) * scale).sum() + (weight * 2).sum()).backward()
    found["with a strided gradient"] = [str(weight.grad.layout), weight.grad.tolist()]
    weight = _weight(torch)
    (gradient,) = torch.autograd.grad((F.embedding(index, weight, sparse=True) * scale).sum(), [weight])
    found["grad()"] = [_sparse(gradient), weight.grad is None]
    weight, seen = _weight(torch), []
    weight.register_hook(lambda g: seen.append(str(g.layout)) or g * 3)
    (F.embedding(index, weight, sparse=True) * scale).sum().backward()
    found["hook"] = [seen, weight.grad.to_dense().tolist()]
    for mode in ("sum", "mean"):
        for padding in (None, 2):
            weight = _weight(torch)
            out = F.embedding_bag(index, weight, mode=mode, padding_idx=padding, sparse=True)
            (out * scale[:, 0]).sum().backward()
            found[f"bag {mode} {padding}"] = [str(weight.grad.layout), weight.grad.to_dense().tolist(), out.tolist()]
    weight = _weight(torch)
    share = torch.tensor([[1.0, 2, 3], [4, 5, 6]], requires_grad=True)
    F.embedding_bag(index, weight, mode="sum", per_sample_weights=share, sparse=True).sum().backward()
    found["per sample weights"] = [weight.grad.to_dense().tolist(), share.grad.tolist()]
    module = torch.nn.Embedding(5, 3, sparse=True, _weight=_weight(torch).detach())
    module(index).sum().backward()
    norm = torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
    found["clip_grad_norm_"] = [float(norm), str(module.weight.grad.layout), module.weight.grad.to_dense().tolist()]
    module.zero_grad()
    found["zero_grad"] = module.weight.grad is None
    return found


OPTIMIZERS = {
    "SparseAdam": ("SparseAdam", {"lr": 0.1}), "SparseAdam maximize": ("SparseAdam", {"lr": 0.1, "maximize": True}),
    "SparseAdam betas": ("SparseAdam", {"lr": 0.05, "betas": (0.5, 0.7), "eps": 1e-4}), "SGD": ("SGD", {"lr": 0.1}),
    "SGD momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}), "SGD nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "SGD maximize": ("SGD", {"lr": 0.1, "maximize": True}), "Adagrad": ("Adagrad", {"lr": 0.1}),
    "Adagrad decay": ("Adagrad", {"lr": 0.1, "lr_decay": 0.5, "initial_accumulator_value": 0.3}),
    "SGD weight decay": ("SGD", {"lr": 0.1, "weight_decay": 0.1}), "Adagrad weight decay": ("Adagrad", {"lr": 0.1, "weight_decay": 0.1}),
    "Adam": ("Adam", {"lr": 0.1}), "RMSprop": ("RMSprop", {"lr": 0.1}), "AdamW": ("AdamW", {"lr": 0.1}),
}  # fmt: skip


def optimizers(torch: Any) -> dict:
    """Parameters after three steps with sparse gradients, or the class of the exception."""
    found: dict = {}
    for name, (kind, options) in OPTIMIZERS.items():
        weight = _weight(torch)
        optimizer = getattr(torch.optim, kind)([weight], **options)
        try:
            for step in range(3):
                optimizer.zero_grad()
                index = torch.tensor([step, 4, step])
                (torch.nn.functional.embedding(index, weight, sparse=True).square() * (step + 1)).sum().backward()
                optimizer.step()
        except Exception as error:  # noqa: BLE001 - the class is what is recorded
            found[name] = {"error": type(error).__name__}
            continue
        found[name] = weight.tolist()
    return found


def scattered(torch: Any) -> list:
    """A step of SparseAdam with a gradient of two sparse dimensions."""
    weight = _weight(torch)
    weight.grad = torch.sparse_coo_tensor([[0, 2, 2], [1, 0, 0]], [1.0, 2.0, 3.0], (5, 3))
    torch.optim.SparseAdam([weight], lr=0.1).step()
    return weight.tolist()


def everything(torch: Any) -> dict:
    """All results."""
    return {"embeddings": embeddings(torch), "optimizers": optimizers(torch), "scattered": scattered(torch)}
