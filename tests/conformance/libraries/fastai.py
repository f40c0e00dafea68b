"""fastai: its data loaders (processes or threads), learner, optimizers and tensors of several types."""

import fastai.callback.progress  # noqa: F401 - defines Learner.no_bar()
import torch
from fastai.data.core import DataLoaders, TfmdDL
from fastai.learner import Learner
from fastai.losses import CrossEntropyLossFlat
from fastai.optimizer import SGD, Adam, Lamb, RAdam, RMSProp
from fastai.torch_core import TensorCategory, TensorImage, TensorMask

from .tools import fill, integers, randn


def _loaders(workers):
    pairs = list(zip(randn(32, 5), integers(3, 32)))
    return DataLoaders(*(TfmdDL(pairs, bs=8, shuffle=False, num_workers=workers) for _ in range(2)))


def loaders_other():
    """The order of batches, in two epochs."""
    return [[list(batch) for batch in _loaders(workers).train] for workers in (0, 2) for _ in range(2)]


def learner_training():
    found = []
    for optimizer in (SGD, Adam, RMSProp, Lamb, RAdam):
        loaders = _loaders(2)
        net = fill(torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)))
        learner = Learner(loaders, net, loss_func=CrossEntropyLossFlat(), opt_func=optimizer)
        with learner.no_bar(), learner.no_logging():
            learner.fit(2, 1e-2)
            predictions, targets = learner.get_preds(dl=loaders.valid)
        found.append([list(learner.validate()), predictions, targets, {n: p.detach() for n, p in net.named_parameters()}])
    return found


def tensors_other():
    """The types of results of operators on subclasses of tensors."""
    image, mask = TensorImage(randn(3, 4, 4)), TensorMask(integers(2, 4, 4))
    results = [image * 2 + 1, image.mean(), image[0], image == image, torch.cat([image, image]), mask.float(), torch.relu(image)]
    return [[type(result).__name__, result.as_subclass(torch.Tensor)] for result in results] + [repr(TensorCategory(torch.tensor([1])))]
