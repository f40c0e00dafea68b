"""torchmetrics: metrics of classification, regression, images, texts and retrieval, over several batches."""

import torch
import torchmetrics
from torchmetrics import functional as F

from .tools import integers, randn

METRICS = {
    "accuracy": lambda: torchmetrics.Accuracy(task="multiclass", num_classes=5),
    "top2": lambda: torchmetrics.Accuracy(task="multiclass", num_classes=5, top_k=2),
    "f1": lambda: torchmetrics.F1Score(task="multiclass", num_classes=5, average="macro"),
    "auroc": lambda: torchmetrics.AUROC(task="multiclass", num_classes=5),
    "average precision": lambda: torchmetrics.AveragePrecision(task="multiclass", num_classes=5),
    "confusion": lambda: torchmetrics.ConfusionMatrix(task="multiclass", num_classes=5),
    "calibration": lambda: torchmetrics.CalibrationError(task="multiclass", num_classes=5),
    "matthews": lambda: torchmetrics.MatthewsCorrCoef(task="multiclass", num_classes=5),
}
REGRESSION = (
    "MeanSquaredError",
    "MeanAbsoluteError",
    "R2Score",
    "PearsonCorrCoef",
    "SpearmanCorrCoef",
    "ExplainedVariance",
    "KendallRankCorrCoef",
)


def _update(metric, batches):
    rows = [metric(*batch) for batch in batches]
    total = metric.compute()
    metric.reset()
    return [rows, total]


def classification_other():
    batches = [(randn(20, 5, seed=i).softmax(1), integers(5, 20, seed=i + 10)) for i in range(3)]
    return {name: _update(make(), batches) for name, make in METRICS.items()}


def binary_other():
    scores, target = torch.sigmoid(randn(40)), integers(2, 40)
    return [
        F.roc(scores, target, task="binary"),
        F.precision_recall_curve(scores, target, task="binary", thresholds=5),
        F.auroc(scores, target, task="binary"),
        F.stat_scores(scores, target, task="binary"),
        F.fbeta_score(scores, target, task="binary", beta=0.5),
        F.hamming_distance(scores, target, task="binary"),
    ]


def regression_other():
    batches = [(randn(16, seed=i), randn(16, seed=i) * 0.5 + randn(16, seed=i + 20)) for i in range(2)]
    return {name: _update(getattr(torchmetrics, name)(), batches) for name in REGRESSION}


def images_other():
    a, b = torch.sigmoid(randn(2, 3, 48, 48)), torch.sigmoid(randn(2, 3, 48, 48, seed=1))
    image = F.image
    return [
        image.structural_similarity_index_measure(a, b, data_range=1.0),
        image.peak_signal_noise_ratio(a, b, data_range=1.0),
        image.total_variation(a),
        image.spectral_angle_mapper(a, b),
        image.universal_image_quality_index(a, b),
    ]


def texts_other():
    predicted, target = ["the cat sat on a mat", "hello there"], [["the cat is on the mat"], ["hello there my friend"]]
    return [
        F.text.bleu_score(predicted, target),
        F.text.char_error_rate(predicted, [t[0] for t in target]),
        F.text.word_error_rate(predicted, [t[0] for t in target]),
        F.text.perplexity(randn(2, 6, 7), integers(7, 2, 6)),
        F.text.chrf_score(predicted, target),
    ]


def retrieval_other():
    scores, target, index = torch.sigmoid(randn(24)), integers(2, 24), torch.arange(24) // 6
    names = ("RetrievalMAP", "RetrievalMRR", "RetrievalNormalizedDCG", "RetrievalPrecision")
    return {name: getattr(torchmetrics.retrieval, name)()(scores, target, indexes=index) for name in names}


def collection_other():
    metrics = torchmetrics.MetricCollection({"mse": torchmetrics.MeanSquaredError(), "r2": torchmetrics.R2Score()})
    metrics.update(randn(10), randn(10, seed=1))
    state = torchmetrics.MeanMetric()
    state.persistent(True)
    state.update(randn(5))
    return [metrics.compute(), dict(state.state_dict()), repr(metrics)]


def loss_backward():
    """Metrics that are differentiable."""
    x = randn(2, 3, 32, 32).sigmoid().requires_grad_()
    (
        1 - F.image.structural_similarity_index_measure(x, torch.sigmoid(randn(2, 3, 32, 32, seed=3)), data_range=1.0)
    ).backward()
    return x.grad
