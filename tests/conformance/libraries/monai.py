"""MONAI: networks for segmentation, losses, metrics, transforms with coordinates, and inference by windows."""

import numpy
import torch
from monai.data import MetaTensor
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss
from monai.metrics import ConfusionMatrixMetric, DiceMetric, HausdorffDistanceMetric, ROCAUCMetric
from monai.networks.nets import SwinUNETR, UNet
from monai.transforms import (
    Compose,
    EnsureChannelFirst,
    GaussianSmooth,
    Resize,
    Rotate,
    ScaleIntensity,
    Spacing,
    SpatialPad,
)

from .tools import fill, integers, randn, train


def transformer_forward():
    with torch.no_grad():
        return fill(SwinUNETR(in_channels=1, out_channels=2, feature_size=12, spatial_dims=2)).eval()(randn(1, 1, 64, 64))


def windows_forward():
    layer = fill(torch.nn.Conv2d(1, 2, 3, padding=1))
    with torch.no_grad():
        return sliding_window_inference(randn(1, 1, 20, 22), (8, 8), 4, layer, overlap=0.25, mode="gaussian")


def segmentation_training():
    net = fill(UNet(2, 1, 2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1, norm="batch"))
    images, labels, loss = randn(2, 1, 16, 16), integers(2, 2, 1, 16, 16), DiceCELoss(to_onehot_y=True, softmax=True)
    return train(net, lambda: loss(net(images), labels), steps=3)


def metrics_other():
    found = []
    predicted, labels = (randn(2, 2, 8, 8) > 0).float(), (randn(2, 2, 8, 8, seed=1) > 0).float()
    for metric in (DiceMetric(reduction="mean_batch"), HausdorffDistanceMetric(), ConfusionMatrixMetric(metric_name="f1 score")):
        metric(predicted, labels)
        found.append(metric.aggregate())
    area = ROCAUCMetric()
    area(randn(12), integers(2, 12))
    return [*found, area.aggregate()]


def transforms_other():
    steps = [EnsureChannelFirst(channel_dim="no_channel"), ScaleIntensity(), Resize((16, 16)), Rotate(0.3), SpatialPad((20, 20))]
    image = Compose([*steps, GaussianSmooth(1.0)])(numpy.random.default_rng(0).standard_normal((12, 10)).astype("float32"))
    spaced = Spacing(pixdim=(2.0, 2.0))(MetaTensor(randn(1, 6, 6), affine=torch.eye(3)))
    return [image.as_tensor(), type(image).__name__, spaced.as_tensor(), spaced.affine]
