"""skorch: classifiers and regressors of scikit-learn's interface, callbacks, grid search and checkpoints."""

import tempfile

import numpy
import torch
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetBinaryClassifier, NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import Checkpoint, EarlyStopping, EpochScoring, GradientNormClipping, LRScheduler
from skorch.dataset import Dataset, ValidSplit
from skorch.helper import SliceDataset, predefined_split

from .tools import fill


class Classes(torch.nn.Module):
    """A network that returns probabilities."""

    def __init__(self, hidden=8, outputs=3):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(5, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, outputs))
        fill(self)

    def forward(self, x):
        return self.layers(x).softmax(-1)


class Numbers(Classes):
    """A network that returns logits or numbers."""

    def __init__(self, hidden=8):
        super().__init__(hidden, 1)

    def forward(self, x):
        return self.layers(x)


class Logits(Numbers):
    """A network of one class."""

    def forward(self, x):
        return super().forward(x).squeeze(-1)


def _data():
    random = numpy.random.default_rng(0)
    x = random.standard_normal((24, 5)).astype(numpy.float32)
    return x, (x[:, 0] * 2 + x[:, 1]).astype(numpy.float32)


def _labels():
    x, y = _data()
    return x, numpy.digitize(y, [-0.8, 0.8]).astype(numpy.int64)


def _net(kind=NeuralNetClassifier, module=Classes, **options):
    defaults = {"max_epochs": 3, "lr": 0.1, "verbose": 0, "train_split": None, "iterator_train__shuffle": False}
    return kind(module, **{**defaults, **options})


def _history(net, *names):
    return [[round(float(value), 4) for value in row] for row in net.history[:, names]]


def classifier_training():
    x, y = _labels()
    net = _net(train_split=ValidSplit(3)).fit(x, y)
    return [
        _history(net, "train_loss", "valid_loss", "valid_acc"),
        net.predict_proba(x),
        net.predict(x),
        dict(net.module_.named_parameters()),
    ]


def regressor_training():
    x, y = _data()
    net = _net(NeuralNetRegressor, Numbers, optimizer=torch.optim.Adam, optimizer__eps=1e-4, batch_size=8).fit(
        x, y[:, None]
    )
    return [_history(net, "train_loss"), net.predict(x), net.score(x, y[:, None])]


def binary_training():
    x, y = _data()
    net = _net(NeuralNetBinaryClassifier, Logits, criterion__pos_weight=torch.tensor(1.5)).fit(
        x, (y > 0).astype(numpy.float32)
    )
    net.partial_fit(x, (y > 0).astype(numpy.float32))
    return [_history(net, "train_loss"), net.predict_proba(x), net.predict(x)]


def callbacks_training():
    x, y = _labels()
    callbacks = [
        ("rate", LRScheduler("StepLR", step_size=2, gamma=0.5)),
        ("clip", GradientNormClipping(0.1)),
        ("stop", EarlyStopping(patience=2)),
        ("score", EpochScoring("f1_macro", lower_is_better=False)),
    ]
    net = _net(callbacks=callbacks, train_split=predefined_split(Dataset(x[:8], y[:8])), max_epochs=5).fit(x, y)
    return [_history(net, "train_loss", "f1_macro"), net.history[-1, "event_lr"]]


def search_training():
    x, y = _labels()
    search = GridSearchCV(_net(), {"lr": [0.01, 0.5], "module__hidden": [4, 8]}, cv=2, scoring="accuracy").fit(x, y)
    pipeline = make_pipeline(StandardScaler(), _net()).fit(x, y)
    crossed = cross_val_predict(_net(), SliceDataset(Dataset(x, y)), y, cv=2)
    return [search.best_params_, search.cv_results_["mean_test_score"], pipeline.predict_proba(x), crossed]


def files_other():
    x, y = _labels()
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(dirname=folder, monitor="train_loss_best")
        net = _net(callbacks=[checkpoint]).fit(x, y)
        again = _net().initialize()
        again.load_params(checkpoint=checkpoint)
        net.save_params(f_params=f"{folder}/weights.safetensors", use_safetensors=True)
        other = _net().initialize()
        other.load_params(f_params=f"{folder}/weights.safetensors", use_safetensors=True)
    return [again.predict_proba(x), other.predict_proba(x)]


def copies_other():
    """A net after pickling and after changes of its parameters."""
    import pickle

    x, y = _labels()
    net = pickle.loads(pickle.dumps(_net().fit(x, y)))
    first = net.predict_proba(x)
    net.set_params(module__hidden=4)
    net.initialize()
    return [first, net.predict_proba(x)]
