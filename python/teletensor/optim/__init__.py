"""Optimizers. A step of SGD, Adam and AdamW is one fused instruction per parameter group.

Each class is imported at its first use: a program needs one or two of them.
"""

from .._lazy import lazy_attributes

__all__ = [  # noqa: F822 - some are imported at their first use
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "SparseAdam", "functional", "lr_scheduler", "swa_utils", "swap_in_optimizer_params_and_state",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(
    globals(),
    (
        "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "functional", "lbfgs", "lr_scheduler", "nadam", "radam", "rmsprop",
        "optimizer", "rprop", "sgd", "sparse_adam", "swa_utils",
    ),
    {
        "_adafactor": "Adafactor", "_muon": "Muon", "_stateless": "swap_in_optimizer_params_and_state", "adadelta": "Adadelta",
        "adagrad": "Adagrad", "adam": "Adam", "adamax": "Adamax", "adamw": "AdamW", "asgd": "ASGD", "lbfgs": "LBFGS",
        "nadam": "NAdam", "optimizer": "Optimizer", "radam": "RAdam", "rmsprop": "RMSprop", "rprop": "Rprop", "sgd": "SGD",
        "sparse_adam": "SparseAdam",
    },
)  # fmt: skip
