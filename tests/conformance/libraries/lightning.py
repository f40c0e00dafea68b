"""lightning: a Trainer with callbacks, checkpoints and metrics, and Fabric."""

import tempfile
import warnings

import lightning
import torch
import torchmetrics
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

from .tools import EPSILON, fill, integers, randn


class Classifier(lightning.LightningModule):
    """A small network that logs its loss and accuracy."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(6, width), torch.nn.Tanh(), torch.nn.Linear(width, 3))
        self.accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=3)

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        loss = torch.nn.functional.cross_entropy(self(batch[0]), batch[1])
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        self.accuracy(self(batch[0]), batch[1])
        self.log("accuracy", self.accuracy, on_epoch=True)
        self.log("val_loss", torch.nn.functional.cross_entropy(self(batch[0]), batch[1]))

    test_step = validation_step

    def predict_step(self, batch, index):
        return self(batch[0]).argmax(1)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2, eps=EPSILON)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)}


def _loader():
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(randn(16, 6), integers(3, 16)), batch_size=4)


def _trainer(folder, **options):
    settings = {
        "max_epochs": 2,
        "accelerator": "cpu",
        "devices": 1,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    return lightning.Trainer(
        default_root_dir=folder, logger=CSVLogger(folder), log_every_n_steps=1, **settings, **options
    )


def fit_training():
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = ModelCheckpoint(folder, monitor="val_loss", filename="best")
        trainer = _trainer(
            folder, callbacks=[checkpoint, LearningRateMonitor(), EarlyStopping("val_loss")], gradient_clip_val=0.5
        )
        model = fill(Classifier())
        trainer.fit(model, _loader(), _loader())
        metrics = {k: v for k, v in sorted(trainer.callback_metrics.items())}
        tested = trainer.test(model, _loader(), verbose=False)
        predicted = trainer.predict(model, _loader())
        best = checkpoint.best_model_path.rpartition("/")[2]
    return [metrics, tested, predicted, best, dict(model.net.state_dict())]


def resume_training():
    """A checkpoint written by one Trainer continues in another."""
    with tempfile.TemporaryDirectory() as folder:
        model = fill(Classifier())
        trainer = _trainer(folder, enable_checkpointing=False)
        trainer.fit(model, _loader(), _loader())
        trainer.save_checkpoint(f"{folder}/last.ckpt")
        again = _trainer(folder, enable_checkpointing=False)
        again.fit_loop.max_epochs = 3
        restored = Classifier()
        again.fit(restored, _loader(), _loader(), ckpt_path=f"{folder}/last.ckpt")
        loaded = Classifier.load_from_checkpoint(f"{folder}/last.ckpt")
    return [again.global_step, dict(restored.net.state_dict()), loaded(randn(2, 6)), loaded.hparams.width]


def accumulated_training():
    with tempfile.TemporaryDirectory() as folder:
        model = fill(Classifier())
        _trainer(folder, accumulate_grad_batches=2, enable_checkpointing=False).fit(model, _loader())
    return dict(model.net.state_dict())


def fabric_training():
    fabric = lightning.Fabric(accelerator="cpu", devices=1)
    fabric.launch()
    model = fill(torch.nn.Linear(6, 3))
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    losses = []
    for x, y in fabric.setup_dataloaders(_loader()):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        fabric.backward(loss)
        fabric.clip_gradients(model, optimizer, max_norm=1.0)
        optimizer.step()
        losses.append(loss.detach())
    return [losses, dict(model.state_dict())]
