"""pytorch_metric_learning: losses of embeddings, miners, distances, reducers, samplers and accuracy."""

import torch
from pytorch_metric_learning import distances, losses, miners, reducers, regularizers, samplers
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from pytorch_metric_learning.utils.inference import MatchFinder

from .tools import backward, fill, randn, train

PAIRS = (
    losses.ContrastiveLoss,
    losses.TripletMarginLoss,
    losses.MultiSimilarityLoss,
    losses.CircleLoss,
    losses.NTXentLoss,
    losses.SupConLoss,
    losses.LiftedStructureLoss,
    losses.GeneralizedLiftedStructureLoss,
    losses.IntraPairVarianceLoss,
    losses.SignalToNoiseRatioContrastiveLoss,
    losses.FastAPLoss,
    losses.AngularLoss,
    losses.NPairsLoss,
    losses.TupletMarginLoss,
    losses.InstanceLoss,
    losses.ThresholdConsistentMarginLoss,
    losses.RankedListLoss,
)
OPTIONS = {
    losses.InstanceLoss: {},
    losses.RankedListLoss: {"margin": 0.4, "Tn": 10},
}
CLASSES = (
    losses.ArcFaceLoss,
    losses.CosFaceLoss,
    losses.SphereFaceLoss,
    losses.NormalizedSoftmaxLoss,
    losses.ProxyAnchorLoss,
    losses.ProxyNCALoss,
    losses.SoftTripleLoss,
    losses.SubCenterArcFaceLoss,
    losses.LargeMarginSoftmaxLoss,
)
LABELS = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])


def pairs_backward():
    found = {}
    for kind in PAIRS:
        x = randn(8, 6).requires_grad_()
        value = kind(**OPTIONS.get(kind, {}))(x, LABELS)
        value.backward()
        found[kind.__name__] = [value, x.grad]
    return found


def classes_backward():
    found = {}
    for kind in CLASSES:
        loss = fill(kind(num_classes=4, embedding_size=6))
        x = randn(8, 6).requires_grad_()
        found[kind.__name__] = [*backward(loss, loss(x, LABELS)), x.grad]
    return found


def memory_backward():
    loss, x = losses.CrossBatchMemory(losses.NTXentLoss(), 6, memory_size=16), randn(8, 6).requires_grad_()
    for seed in range(3):
        loss(randn(8, 6, seed=seed), LABELS)
    value = loss(x, LABELS)
    value.backward()
    return [value, x.grad, loss.label_memory]


def miners_other():
    x = randn(8, 6)
    found = [
        miners.MultiSimilarityMiner(epsilon=0.3),
        miners.BatchHardMiner(),
        miners.BatchEasyHardMiner(),
        miners.AngularMiner(angle=20),
        miners.TripletMarginMiner(margin=0.4, type_of_triplets="semihard"),
        miners.PairMarginMiner(0.2, 0.9),
    ]
    return {type(miner).__name__: list(miner(x, LABELS)) for miner in found}


def distances_forward():
    kinds = (distances.CosineSimilarity, distances.LpDistance, distances.DotProductSimilarity, distances.SNRDistance)
    return [distance()(randn(5, 6), randn(4, 6, seed=1)) for distance in kinds]


def reducers_forward():
    x = randn(8, 6)
    kinds = (
        reducers.MeanReducer(),
        reducers.AvgNonZeroReducer(),
        reducers.ThresholdReducer(low=0.1),
        reducers.ClassWeightedReducer(torch.arange(4.0)),
        reducers.PerAnchorReducer(),
        reducers.SumReducer(),
    )
    options = {"embedding_regularizer": regularizers.LpRegularizer()}
    return {type(r).__name__: losses.ContrastiveLoss(reducer=r)(x, LABELS) for r in kinds} | {
        "norm": losses.ContrastiveLoss(**options)(x, LABELS)
    }


def accuracy_other():
    """Scores of embeddings that are compared with scikit-learn's neighbours."""
    x = randn(16, 6)
    labels = LABELS.repeat(2)

    def knn(query, k, reference, same):
        found = torch.cdist(query.float(), reference.float())
        if same:
            found.fill_diagonal_(float("inf"))
        return found.topk(k, largest=False)

    calculator = AccuracyCalculator(
        include=("precision_at_1", "mean_average_precision", "r_precision"),
        k=5,
        knn_func=knn,
        device=torch.device("cpu"),
    )
    return {name: float(value) for name, value in calculator.get_accuracy(x, labels).items()}


def matches_other():
    finder = MatchFinder(distance=distances.CosineSimilarity(), threshold=0.2)
    return [finder.get_matching_pairs(randn(6, 4)), finder.is_match(randn(4, 4), randn(4, 4, seed=1))]


def samplers_other():
    found = list(samplers.MPerClassSampler(LABELS, 2, batch_size=4, length_before_new_iter=8))
    labels = [int(LABELS[i]) for i in found]
    return [len(found), [labels[i] == labels[i + 1] for i in range(0, len(labels), 2)]]


def embeddings_training():
    model = fill(torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 6)))
    x, miner, loss = randn(8, 10), miners.BatchHardMiner(), losses.TripletMarginLoss(margin=0.5)

    def step():
        embeddings = model(x)
        return loss(embeddings, LABELS, miner(embeddings, LABELS))

    return train(model, step)
