"""open_clip: models of images and texts, their tokenizer, losses and preprocessing."""

import open_clip
import torch
from open_clip.loss import ClipLoss, CoCaLoss, SigLipLoss
from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg
from open_clip.transformer import AttentionalPooler, LayerNormFp32, ResidualAttentionBlock
from PIL import Image

from .tools import backward, fill, integers, randn, train

TEXT = {"context_length": 12, "vocab_size": 200, "width": 32, "heads": 2, "layers": 2}
IMAGE = {"layers": 2, "width": 32, "head_width": 16, "patch_size": 8, "image_size": 32}


def _model(**image):
    return fill(CLIP(24, CLIPVisionCfg(**{**IMAGE, **image}), CLIPTextCfg(**TEXT)))


def _inputs(count=4):
    texts = integers(198, count, 12) + 1
    texts[:, -1] = 199
    return randn(count, 3, 32, 32), texts


def _both(model):
    model.eval()
    with torch.no_grad():
        image, text, scale = model(*_inputs())
        return [image, text, scale, *model.get_logits(*_inputs())]


def vit_forward():
    return _both(_model())


def resnet_forward():
    return _both(_model(layers=(1, 1, 1, 1), width=8, head_width=16))


def quick_forward():
    model = fill(CLIP(24, CLIPVisionCfg(**IMAGE), CLIPTextCfg(**TEXT), quick_gelu=True))
    return _both(model)


def layers_forward():
    x = randn(2, 5, 16)
    return [
        fill(ResidualAttentionBlock(16, 2))(x), fill(LayerNormFp32(16))(x.to(torch.bfloat16)),
        fill(AttentionalPooler(16, 16, n_head=2, n_queries=3))(x),
    ]  # fmt: skip


def losses_forward():
    image, text = (torch.nn.functional.normalize(randn(4, 8, seed=seed), dim=-1) for seed in range(2))
    scale = torch.tensor(5.0)
    logits, labels = randn(4, 6, 20), integers(20, 4, 6)
    coca = CoCaLoss(caption_loss_weight=2.0, clip_loss_weight=1.0)(image, text, logits, labels, scale)
    return [ClipLoss()(image, text, scale), SigLipLoss()(image, text, scale, torch.tensor(-1.0)), list(coca)]


def contrast_backward():
    model = _model()
    return backward(model, ClipLoss()(*model(*_inputs())))


def contrast_training():
    model = _model()
    return train(model, lambda: ClipLoss()(*model(*_inputs())))


def checkpoints_training():
    model = _model()
    model.set_grad_checkpointing()
    return train(model, lambda: ClipLoss()(*model(*_inputs())), steps=2)


def locked_training():
    model = _model()
    model.lock_image_tower(unlocked_groups=1)
    learned = [name for name, p in model.named_parameters() if p.requires_grad]
    return [learned, train(model, lambda: ClipLoss()(*model(*_inputs())), steps=2)]


def tokenizer_other():
    tokenizer = open_clip.SimpleTokenizer()
    return [tokenizer(["a photo of a cat", "two dogs, running!"])[:, :10], tokenizer.decode(tokenizer.encode("hello world"))]


def preprocessing_other():
    picture = Image.frombytes("RGB", (40, 30), bytes(range(256)) * 14 + bytes(16))
    return open_clip.image_transform(32, is_train=False)(picture)


def models_other():
    names = open_clip.list_models()
    return [len(names) > 50, "ViT-B-32" in names, open_clip.get_model_config("ViT-B-32")["embed_dim"]]
