"""kornia: colours, filters, geometry, features, losses and augmentations of images."""

import kornia
import torch
from kornia import augmentation, color, enhance, feature, filters, geometry, losses, morphology

from .tools import backward, fill, randn, train


def _image(count=2, height=12, width=16):
    return (randn(count, 3, height, width) * 0.25 + 0.5).clamp(0, 1)


def colours_forward():
    x = _image()
    names = ("rgb_to_grayscale", "rgb_to_hsv", "rgb_to_hls", "rgb_to_lab", "rgb_to_luv", "rgb_to_ycbcr", "rgb_to_yuv", "rgb_to_xyz")
    return {name: getattr(color, name)(x) for name in names} | {"back": color.hsv_to_rgb(color.rgb_to_hsv(x))}


def filters_forward():
    x = _image()
    return [
        filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)), filters.sobel(x), filters.laplacian(x, 3), filters.box_blur(x, (3, 3)),
        filters.median_blur(x, (3, 3)), filters.spatial_gradient(x), filters.unsharp_mask(x, (3, 3), (1.0, 1.0)),
        filters.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)), filters.motion_blur(x, 5, 30.0, 0.5),
    ]  # fmt: skip


def canny_forward():
    return list(filters.canny(_image(1)))


def filters_backward():
    x = _image().requires_grad_()
    filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)).square().sum().backward()
    return x.grad


def enhancements_forward():
    x = _image()
    return [
        enhance.adjust_brightness(x, 0.2), enhance.adjust_contrast(x, 0.7), enhance.adjust_gamma(x, 1.5), enhance.adjust_hue(x, 0.3),
        enhance.adjust_saturation(x, 1.3), enhance.normalize(x, torch.tensor([0.5]), torch.tensor([0.2])), enhance.posterize(x, 3),
        enhance.solarize(x, 0.6), enhance.sharpness(x, 0.5), enhance.equalize(x), enhance.equalize_clahe(x, grid_size=(2, 2)),
    ]  # fmt: skip


def warps_forward():
    x = _image()
    angle, centre = torch.tensor([20.0, -35.0]), torch.tensor([[8.0, 6.0], [4.0, 3.0]])
    matrix = geometry.get_rotation_matrix2d(centre, angle, torch.ones(2, 2) * 1.2)
    corners = torch.tensor([[[0.0, 0], [15, 0], [15, 11], [0, 11]]])
    perspective = geometry.get_perspective_transform(corners, corners + torch.tensor([[[1.0, 2], [-2, 1], [0, -3], [2, 0]]]))
    return [
        matrix, geometry.warp_affine(x, matrix, (12, 16)), geometry.rotate(x, angle), geometry.scale(x, torch.tensor([[1.5, 0.5]])),
        geometry.translate(x, torch.tensor([[2.0, -1.0]])), geometry.resize(x, (6, 9)), geometry.hflip(x), perspective,
        geometry.warp_perspective(x[:1], perspective, (12, 16)), geometry.pyrdown(x),
    ]  # fmt: skip


def warps_backward():
    x, angle = _image(), torch.tensor([20.0, -35.0], requires_grad=True)
    geometry.rotate(x, angle).square().sum().backward()
    return angle.grad


def cameras_forward():
    axis = randn(4, 3)
    rotation = geometry.axis_angle_to_rotation_matrix(axis)
    points = randn(2, 5, 3)
    camera = torch.tensor([[[10.0, 0, 5], [0, 10, 6], [0, 0, 1]]]).repeat(2, 1, 1)
    projected = geometry.project_points(points.abs() + 1, camera.unsqueeze(1))
    return [
        rotation, geometry.rotation_matrix_to_axis_angle(rotation), geometry.axis_angle_to_quaternion(axis), projected,
        geometry.convert_points_to_homogeneous(points), geometry.transform_points(torch.eye(4).repeat(2, 1, 1), points),
    ]  # fmt: skip


def homographies_forward():
    points = torch.tensor([[[0.0, 0], [4, 0], [4, 3], [0, 3], [1, 2], [3, 1]]])
    moved = points * torch.tensor([1.5, 0.8]) + torch.tensor([2.0, -1.0])
    found = geometry.find_homography_dlt(points, moved)
    return found / found[:, 2:, 2:]


def features_forward():
    x = _image(1, 24, 24)
    grey = color.rgb_to_grayscale(x)
    return [
        feature.harris_response(grey, 0.04), feature.hessian_response(grey), feature.gftt_response(grey), feature.dog_response_single(grey),
        *feature.match_nn(randn(4, 8), randn(5, 8, seed=1)), *feature.match_mnn(randn(4, 8), randn(5, 8, seed=1)),
    ]  # fmt: skip


def losses_forward():
    x, y = _image(), _image().flip(0)
    logits, target = randn(2, 4, 5, 5), torch.arange(50).reshape(2, 5, 5) % 4
    return [
        losses.ssim_loss(x, y, 5), losses.psnr_loss(x, y, 1.0), losses.total_variation(x), losses.dice_loss(logits, target),
        losses.focal_loss(logits, target, 0.5, 2.0, "mean"), losses.tversky_loss(logits, target, 0.4, 0.6),
        losses.lovasz_softmax_loss(logits, target), losses.charbonnier_loss(x, y, "mean"), kornia.metrics.ssim(x, y, 5),
    ]  # fmt: skip


def losses_backward():
    x = _image().requires_grad_()
    losses.ssim_loss(x, _image().flip(0), 5).backward()
    return x.grad


def morphology_forward():
    x, kernel = _image(), torch.ones(3, 3)
    functions = ("dilation", "erosion", "opening", "closing", "gradient", "top_hat", "bottom_hat")
    return {name: getattr(morphology, name)(x, kernel) for name in functions}


def augmentations_other():
    """Sizes and bounds of random augmentations, and whether their parameters reproduce the images."""
    x = _image()
    pipeline = augmentation.AugmentationSequential(
        augmentation.RandomHorizontalFlip(p=1.0), augmentation.RandomAffine(20.0, p=1.0),
        augmentation.ColorJitter(0.2, 0.2, 0.2, 0.1, p=1.0), augmentation.RandomErasing(p=1.0), data_keys=["input", "mask"],
    )  # fmt: skip
    images, masks = pipeline(x, (x[:, :1] > 0.5).float())
    again, _ = pipeline(x, (x[:, :1] > 0.5).float(), params=pipeline._params)
    same = [(images - again).abs().max() < 1e-5, (augmentation.RandomHorizontalFlip(p=1.0)(x) == x.flip(-1)).all()]
    return [list(images.shape), list(masks.shape), [bool(s) for s in same]]


def descriptors_backward():
    model = fill(feature.HardNet(pretrained=False)).eval()
    return backward(model, (model(randn(2, 1, 32, 32)) * randn(2, 128, seed=1)).sum())


def registration_training():
    """A homography that is fitted to an image, as a module's parameter."""
    model = torch.nn.Module()
    model.angle = torch.nn.Parameter(torch.tensor([10.3, 7.1]))
    x, goal = _image(), geometry.rotate(_image(), torch.tensor([3.0, -2.0]))
    return train(model, lambda: (geometry.rotate(x, model.angle) - goal).square().mean())
