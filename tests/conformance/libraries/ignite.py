"""ignite: engines, events, metrics, handlers and their training."""

import tempfile

import torch
from ignite.engine import Engine, Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import (
    Checkpoint,
    CosineAnnealingScheduler,
    DiskSaver,
    EarlyStopping,
    EMAHandler,
    FastaiLRFinder,
    LRScheduler,
    PiecewiseLinear,
    Timer,
    create_lr_scheduler_with_warmup,
    global_step_from_engine,
)
from ignite.metrics import (
    PSNR,
    SSIM,
    Accuracy,
    ConfusionMatrix,
    EpochMetric,
    Fbeta,
    IoU,
    Loss,
    MeanAbsoluteError,
    MeanSquaredError,
    Precision,
    Recall,
    RootMeanSquaredError,
    RunningAverage,
    TopKCategoricalAccuracy,
)
from ignite.metrics.nlp import Bleu, Rouge
from ignite.metrics.regression import KendallRankCorrelation, PearsonCorrelation, R2Score
from ignite.utils import convert_tensor, to_onehot

from .tools import fill, integers, randn

BATCHES = [(randn(4, 6, seed=seed), integers(3, 4, seed=seed)) for seed in range(3)]


def _model():
    return fill(torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)))


def _trainer(model, **options):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return optimizer, create_supervised_trainer(model, optimizer, torch.nn.functional.cross_entropy, **options)


def supervised_training():
    model, losses = _model(), []
    _, trainer = _trainer(model)
    RunningAverage(output_transform=lambda loss: loss).attach(trainer, "average")
    evaluator = create_supervised_evaluator(
        model, {"accuracy": Accuracy(), "loss": Loss(torch.nn.functional.cross_entropy)}
    )

    @trainer.on(Events.EPOCH_COMPLETED)
    def evaluate(engine):
        evaluator.run(BATCHES)
        losses.append([engine.state.metrics["average"], dict(evaluator.state.metrics)])

    trainer.run(BATCHES, max_epochs=3)
    return [losses, dict(model.named_parameters())]


def accumulation_training():
    model = _model()
    _, trainer = _trainer(
        model, gradient_accumulation_steps=3, output_transform=lambda x, y, predicted, loss: loss.item()
    )
    state = trainer.run(BATCHES, max_epochs=2)
    return [state.output, state.iteration, dict(model.named_parameters())]


def handlers_training():
    """Rates, moving averages, checkpoints and early stopping during a training."""
    model, rates = _model(), []
    optimizer, trainer = _trainer(model)
    inner = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    trainer.add_event_handler(Events.ITERATION_STARTED, create_lr_scheduler_with_warmup(inner, 0.01, 3))
    trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda engine: rates.append(optimizer.param_groups[0]["lr"]))
    average = EMAHandler(model, momentum=0.2)
    average.attach(trainer, name="momentum", event=Events.ITERATION_COMPLETED)
    timer = Timer(average=True)
    timer.attach(trainer, resume=Events.ITERATION_STARTED, pause=Events.ITERATION_COMPLETED)
    stopping = EarlyStopping(2, lambda engine: -engine.state.epoch, trainer)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, stopping)
    with tempfile.TemporaryDirectory() as folder:
        saved = {"model": model, "optimizer": optimizer, "trainer": trainer}
        checkpoint = Checkpoint(
            saved, DiskSaver(folder, create_dir=True), n_saved=1, global_step_transform=global_step_from_engine(trainer)
        )
        trainer.add_event_handler(Events.EPOCH_COMPLETED, checkpoint)
        trainer.run(BATCHES, max_epochs=6)
        other = _model()
        again = {"model": other, "optimizer": _trainer(other)[0]}
        Checkpoint.load_objects(again, checkpoint=torch.load(checkpoint.last_checkpoint))
    return [rates, trainer.state.epoch, dict(average.ema_model.named_parameters()), other(BATCHES[0][0])]


def classes_other():
    """Metrics of classes over batches."""
    engine = Engine(lambda engine, batch: batch)
    confusion = ConfusionMatrix(3)
    metrics = {
        "accuracy": Accuracy(),
        "precision": Precision(average=False),
        "recall": Recall(average="macro"),
        "top": TopKCategoricalAccuracy(2),
        "confusion": confusion,
        "iou": IoU(confusion),
        "f": Fbeta(1.0),
        "rate": Precision() / (Recall() + 1),
        "epoch": EpochMetric(lambda predicted, y: float((predicted.argmax(1) == y).float().mean())),
    }
    for name, metric in metrics.items():
        metric.attach(engine, name)
    return engine.run([(randn(4, 3, seed=seed), integers(3, 4, seed=seed)) for seed in range(3)]).metrics


def numbers_other():
    engine = Engine(lambda engine, batch: batch)
    metrics = {
        "mse": MeanSquaredError(),
        "mae": MeanAbsoluteError(),
        "rmse": RootMeanSquaredError(),
        "r2": R2Score(),
        "pearson": PearsonCorrelation(),
        "kendall": KendallRankCorrelation(),
    }
    for name, metric in metrics.items():
        metric.attach(engine, name)
    found = dict(engine.run([(randn(8, seed=seed), randn(8, seed=seed + 5)) for seed in range(3)]).metrics)
    images = Engine(lambda engine, batch: batch)
    PSNR(data_range=1.0).attach(images, "psnr")
    SSIM(data_range=1.0).attach(images, "ssim")
    x = randn(2, 3, 16, 16).sigmoid()
    return [found, images.run([(x, (x * 0.9))]).metrics]


def words_other():
    bleu, rouge = Bleu(ngram=2, smooth="smooth1"), Rouge(variants=["L", 2])
    said, right = "the cat sat on a mat".split(), ["the cat is on the mat".split()]
    for metric in (bleu, rouge):
        metric.update(([said], [right]))
    return [bleu.compute(), rouge.compute()]


def schedules_other():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    cosine = CosineAnnealingScheduler.simulate_values(6, param_name="lr", start_value=1.0, end_value=0.1, cycle_size=4)
    linear = PiecewiseLinear.simulate_values(6, param_name="lr", milestones_values=[(1, 0.5), (4, 0.1)])
    steps = LRScheduler.simulate_values(6, torch.optim.lr_scheduler.StepLR(optimizer, 2))
    return [cosine, linear, steps]


def finder_training():
    model = _model()
    optimizer, trainer = _trainer(model)
    finder = FastaiLRFinder()
    with finder.attach(trainer, {"model": model, "optimizer": optimizer}, num_iter=6, end_lr=1.0) as finding:
        finding.run(BATCHES, max_epochs=2)
    return finder.get_results()


def tools_other():
    moved = convert_tensor({"a": [randn(2)], "b": (randn(1),)}, device="cpu", non_blocking=True)
    return [to_onehot(integers(3, 2, 4), 3), moved]
