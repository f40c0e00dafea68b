"""torchvision: models, transforms and the operators written in Python."""

import torch
import torchvision
from torchvision import models, ops
from torchvision.transforms import v2

from .tools import backward, fill, integers, randn, train

CLASSIFIERS = (
    "resnet18",
    "mobilenet_v3_small",
    "shufflenet_v2_x0_5",
    "squeezenet1_1",
    "mnasnet0_5",
    "regnet_y_400mf",
    "efficientnet_b0",
)


def _classifier(name, **options):
    return fill(getattr(models, name)(weights=None, num_classes=6, **options))


def classifiers_forward():
    return {name: _classifier(name).eval()(randn(2, 3, 64, 64)) for name in CLASSIFIERS}


def vit_forward():
    model = fill(models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=5)).eval()
    return model(randn(2, 3, 32, 32))


def swin_forward():
    model = fill(models.SwinTransformer([4, 4], 16, [1, 1], [2, 4], [4, 4], num_classes=5)).eval()
    return model(randn(2, 3, 32, 32))


def segmentation_forward():
    model = fill(
        models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=4)
    ).eval()
    return dict(model(randn(1, 3, 64, 64)))


def video_forward():
    return fill(models.video.r3d_18(weights=None, num_classes=4)).eval()(randn(1, 3, 4, 32, 32))


def resnet_backward():
    model = _classifier("resnet18")
    return backward(model, torch.nn.functional.cross_entropy(model(randn(4, 3, 48, 48)), integers(6, 4)))


def resnet_training():
    model = fill(models.ResNet(models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=4))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    return train(
        model, lambda: torch.nn.functional.cross_entropy(model(randn(4, 3, 48, 48)), integers(4, 4)), optimizer, 3
    )


def features_forward():
    from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names

    model = _classifier("resnet18").eval()
    extractor = create_feature_extractor(model, {"layer1": "first", "layer3.1.relu_1": "third"})
    return [dict(extractor(randn(1, 3, 64, 64))), get_graph_node_names(model)[1][:20]]


def transforms_other():
    image = (torch.sigmoid(randn(3, 20, 24)) * 255).to(torch.uint8)
    resize = v2.Compose(
        [v2.ToDtype(torch.float32, scale=True), v2.Resize((10, 14), antialias=True), v2.Normalize([0.5] * 3, [0.2] * 3)]
    )
    f = v2.functional
    real = f.to_dtype(image, torch.float32, scale=True)
    return [
        resize(image),
        f.horizontal_flip(image),
        f.center_crop(image, [8, 9]),
        f.pad(image, [1, 2, 3, 4], padding_mode="reflect"),
        f.rotate(real, 30.0),
        f.affine(real, 10.0, [2, 1], 1.2, [5.0, 0.0]),
        f.perspective(real, [[0, 0], [23, 0], [23, 19], [0, 19]], [[1, 1], [20, 2], [22, 18], [2, 17]]),
        f.gaussian_blur(real, [5, 5], [1.0, 1.0]),
        f.adjust_brightness(real, 1.3),
        f.adjust_hue(real, 0.1),
        f.adjust_saturation(real, 0.4),
        f.adjust_contrast(real, 1.7),
        f.rgb_to_grayscale(real),
        f.equalize(image),
        f.posterize(image, 3),
        f.solarize(image, 100),
        f.invert(image),
        f.autocontrast(real),
        f.adjust_sharpness(real, 2.0),
        f.resize(real, [9, 9], antialias=False),
        f.five_crop(image, [8, 8]),
        f.elastic(real, randn(1, 20, 24, 2) * 0.05),
    ]


def random_transforms_other():
    """Drawn transforms differ between the libraries; their results' sizes must be valid."""
    torch.manual_seed(0)
    image = (torch.sigmoid(randn(3, 20, 24)) * 255).to(torch.uint8)
    chain = v2.Compose([
        v2.RandomResizedCrop(12, antialias=True), v2.RandomHorizontalFlip(), v2.ColorJitter(0.2, 0.2, 0.2, 0.1), v2.RandAugment(),
        v2.TrivialAugmentWide(), v2.AugMix(), v2.ToDtype(torch.float32, scale=True), v2.RandomErasing(p=1.0), v2.RandomRotation(20),
    ])  # fmt: skip
    out = chain(image)
    mixed, labels = v2.MixUp(num_classes=4)(torch.stack([out, out.flip(1)]), torch.tensor([0, 1]))
    return [
        list(out.shape),
        str(out.dtype),
        list(mixed.shape),
        bool(((out >= 0) & (out <= 1)).all()),
        round(float(labels.sum()), 4),
    ]


def tv_tensors_other():
    from torchvision import tv_tensors

    boxes = tv_tensors.BoundingBoxes([[1, 2, 6, 8], [3, 3, 9, 10]], format="XYXY", canvas_size=(12, 14))
    image, mask = tv_tensors.Image(randn(3, 12, 14)), tv_tensors.Mask(integers(2, 12, 14))
    flipped = v2.functional.horizontal_flip(boxes)
    resized = v2.Resize((6, 7), antialias=True)(image, boxes, mask)
    return [
        type(flipped).__name__,
        torch.as_tensor(flipped),
        [torch.as_tensor(r) for r in resized],
        [type(r).__name__ for r in resized],
        list(resized[1].canvas_size),
    ]


def ops_other():
    boxes = torch.tensor([[0.0, 0, 5, 5], [1, 1, 6, 7], [8, 8, 10, 12]])
    other = torch.tensor([[0.0, 1, 4, 6], [7, 7, 11, 11]])
    return [
        ops.box_iou(boxes, other),
        ops.generalized_box_iou(boxes, other),
        ops.distance_box_iou(boxes, other),
        ops.complete_box_iou(boxes, other),
        ops.box_area(boxes),
        ops.box_convert(boxes, "xyxy", "cxcywh"),
        ops.clip_boxes_to_image(boxes, (6, 9)),
        ops.remove_small_boxes(boxes, 4.5),
        ops.sigmoid_focal_loss(randn(5), torch.tensor([0.0, 1, 1, 0, 1]), reduction="mean"),
        ops.generalized_box_iou_loss(boxes[:2], other, reduction="sum"),
        ops.masks_to_boxes(torch.tensor([[[0, 1, 1], [0, 0, 1]]])),
        fill(ops.SqueezeExcitation(4, 2))(randn(1, 4, 3, 3)),
        fill(ops.FeaturePyramidNetwork([3, 6], 4))({"a": randn(1, 3, 8, 8), "b": randn(1, 6, 4, 4)}),
        ops.stochastic_depth(randn(2, 2), 0.5, "row", training=False),
        fill(ops.Conv2dNormActivation(3, 5))(randn(1, 3, 6, 6)),
        fill(ops.MLP(4, [6, 2]))(randn(3, 4)),
        fill(ops.Permute([1, 0]))(randn(2, 3)),
    ]


def detection_forward():
    """RetinaNet up to the losses, which need no compiled operators."""
    torch.manual_seed(0)
    model = fill(
        models.detection.retinanet_resnet50_fpn(
            weights=None, weights_backbone=None, num_classes=4, min_size=64, max_size=96
        )
    )
    targets = [{"boxes": torch.tensor([[4.0, 5, 40, 50]]), "labels": torch.tensor([2])}]
    return dict(model.train()([torch.sigmoid(randn(3, 64, 80))], targets))


def utilities_other():
    images = torch.sigmoid(randn(4, 3, 8, 8))
    drawn = torchvision.utils.draw_bounding_boxes(
        (images[0] * 255).to(torch.uint8), torch.tensor([[1, 1, 5, 6]]), colors="red"
    )
    pil = v2.functional.to_pil_image(images[0])
    return [torchvision.utils.make_grid(images, nrow=2), drawn, v2.functional.pil_to_tensor(pil)]
