"""diffusers: networks that remove noise, autoencoders, schedulers, pipelines and their training."""

import numpy
import torch
from diffusers import (
    AutoencoderKL,
    DDIMPipeline,
    DDIMScheduler,
    DDPMScheduler,
    DiTTransformer2DModel,
    DPMSolverMultistepScheduler,
    EulerAncestralDiscreteScheduler,
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    FluxTransformer2DModel,
    HeunDiscreteScheduler,
    LMSDiscreteScheduler,
    PNDMScheduler,
    SD3Transformer2DModel,
    UNet2DConditionModel,
    UNet2DModel,
    UniPCMultistepScheduler,
    VQModel,
)
from diffusers.models.attention_processor import AttnProcessor
from diffusers.training_utils import EMAModel

from .tools import backward, fill, integers, randn, train

SCHEDULERS = (
    DDIMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    HeunDiscreteScheduler,
    LMSDiscreteScheduler,
    PNDMScheduler,
    UniPCMultistepScheduler,
    FlowMatchEulerDiscreteScheduler,
)


def _unet():
    return fill(
        UNet2DModel(
            sample_size=8,
            in_channels=3,
            out_channels=3,
            layers_per_block=1,
            block_out_channels=(8, 16),
            norm_num_groups=4,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
            attention_head_dim=4,
        )
    )


def _conditional():
    return fill(
        UNet2DConditionModel(
            sample_size=8,
            in_channels=4,
            out_channels=4,
            layers_per_block=1,
            block_out_channels=(8, 16),
            norm_num_groups=4,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
            cross_attention_dim=12,
            attention_head_dim=4,
        )
    )


def _autoencoder():
    return fill(
        AutoencoderKL(
            in_channels=3,
            out_channels=3,
            block_out_channels=(8, 16),
            layers_per_block=1,
            latent_channels=4,
            norm_num_groups=4,
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
        )
    )


def unconditional_forward():
    return _unet()(randn(2, 3, 8, 8), torch.tensor([3, 700])).sample


def conditional_forward():
    model = _conditional().eval()
    inputs = (randn(2, 4, 8, 8), torch.tensor([3, 700]), randn(2, 5, 12, seed=1))
    with torch.no_grad():
        first = model(*inputs).sample
        model.set_attn_processor(AttnProcessor())
        return [first, model(*inputs).sample]


def transformers_forward():
    dit = fill(
        DiTTransformer2DModel(
            num_attention_heads=2,
            attention_head_dim=4,
            in_channels=3,
            out_channels=3,
            num_layers=2,
            norm_num_groups=1,
            sample_size=8,
            patch_size=2,
            num_embeds_ada_norm=10,
        )
    ).eval()
    sd3 = fill(
        SD3Transformer2DModel(
            sample_size=8,
            patch_size=2,
            in_channels=4,
            num_layers=2,
            attention_head_dim=4,
            num_attention_heads=2,
            joint_attention_dim=12,
            caption_projection_dim=8,
            pooled_projection_dim=6,
            out_channels=4,
            pos_embed_max_size=8,
        )
    ).eval()
    with torch.no_grad():
        time = torch.tensor([3, 700])
        return [
            dit(randn(2, 3, 8, 8), time, class_labels=torch.tensor([1, 4])).sample,
            sd3(randn(2, 4, 8, 8), randn(2, 5, 12), randn(2, 6), time).sample,
        ]


def flux_forward():
    model = fill(
        FluxTransformer2DModel(
            patch_size=1,
            in_channels=4,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=12,
            pooled_projection_dim=6,
            axes_dims_rope=(4, 4, 8),
        )
    ).eval()
    places = torch.zeros(9, 3)
    places[:, 1], places[:, 2] = torch.arange(9) // 3, torch.arange(9) % 3
    with torch.no_grad():
        return model(
            hidden_states=randn(2, 9, 4),
            encoder_hidden_states=randn(2, 5, 12),
            pooled_projections=randn(2, 6),
            timestep=torch.tensor([0.1, 0.7]),
            img_ids=places,
            txt_ids=torch.zeros(5, 3),
        ).sample


def autoencoders_forward():
    model = _autoencoder().eval()
    quantized = fill(VQModel(block_out_channels=(8,), norm_num_groups=4, num_vq_embeddings=6, latent_channels=3)).eval()
    x = randn(2, 3, 16, 16)
    with torch.no_grad():
        posterior = model.encode(x).latent_dist
        model.enable_tiling()
        model.enable_slicing()
        return [posterior.mean, posterior.kl(), model.decode(posterior.mode()).sample, quantized(x).sample]


def unet_backward():
    model = _unet()
    return backward(model, model(randn(2, 3, 8, 8), torch.tensor([3, 700])).sample.square().mean())


def checkpointed_backward():
    model = _conditional()
    model.enable_gradient_checkpointing()
    model.train()
    return backward(
        model, model(randn(2, 4, 8, 8), torch.tensor([3, 700]), randn(2, 5, 12, seed=1)).sample.square().mean()
    )


def schedulers_other():
    """The images after the steps of deterministic schedulers, of a model that returns a part of the image."""
    found = {}
    for kind in SCHEDULERS:
        scheduler, x = kind(), randn(2, 3, 4, 4)
        scheduler.set_timesteps(5)
        for time in scheduler.timesteps:
            given = scheduler.scale_model_input(x, time) if hasattr(scheduler, "scale_model_input") else x
            x = scheduler.step(0.3 * given, time, x).prev_sample
        found[kind.__name__] = [scheduler.timesteps, x]
    return found


def noise_other():
    x, noise, time = randn(2, 3, 4, 4), randn(2, 3, 4, 4, seed=1), torch.tensor([10, 900])
    scheduler = DDPMScheduler(beta_schedule="squaredcos_cap_v2")
    drawn = EulerAncestralDiscreteScheduler()
    drawn.set_timesteps(4)
    step = drawn.step(x, drawn.timesteps[0], x, generator=torch.Generator().manual_seed(0))
    return [scheduler.add_noise(x, noise, time), scheduler.get_velocity(x, noise, time), list(step.prev_sample.shape)]


def pipeline_other():
    """The images of a pipeline, from noise that is given by a network which returns zero."""
    model = _unet()
    for p in model.conv_out.parameters():
        torch.nn.init.zeros_(p)
    pipe = DDIMPipeline(model, DDIMScheduler(clip_sample=True))
    pipe.set_progress_bar_config(disable=True)
    images = pipe(
        batch_size=2, num_inference_steps=2, output_type="np", generator=torch.Generator().manual_seed(0)
    ).images
    return [list(images.shape), bool(numpy.isfinite(images).all()), float(images.min()) >= 0, float(images.max()) <= 1]


def saved_other():
    import tempfile

    model = _unet()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = UNet2DModel.from_pretrained(folder, low_cpu_mem_usage=False)
    return [again(randn(2, 3, 8, 8), 5).sample, again.num_parameters()]


def denoising_training():
    model, scheduler, x, noise = _unet(), DDPMScheduler(), randn(4, 3, 8, 8), randn(4, 3, 8, 8, seed=1)
    time = integers(1000, 4)
    noisy = scheduler.add_noise(x, noise, time)
    average = EMAModel(model.parameters(), decay=0.9)
    found = train(model, lambda: torch.nn.functional.mse_loss(model(noisy, time).sample, noise))
    average.step(model.parameters())
    return [found, average.shadow_params[0]]


def autoencoder_training():
    model, x = _autoencoder(), randn(2, 3, 16, 16)

    def loss():
        posterior = model.encode(x).latent_dist
        return (model.decode(posterior.mode()).sample - x).square().mean() + 1e-3 * posterior.kl().mean()

    return train(model, loss)
