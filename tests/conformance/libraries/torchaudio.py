"""torchaudio: spectra, filters, resampling, alignment, networks and their training."""

import torch
import torchaudio.compliance.kaldi
import torchaudio.functional as F
import torchaudio.transforms as T
from torchaudio.models import Conformer, ConvTasNet, DeepSpeech, Emformer, Wav2Letter, wav2vec2_model

from .tools import backward, fill, integers, randn, train

RATE = 16000


def _wave(seed=0):
    return 0.3 * randn(2, 4000, seed=seed)


def spectra_forward():
    x = _wave()
    kinds = {
        "power": T.Spectrogram(400),
        "mel": T.MelSpectrogram(RATE, n_fft=400, n_mels=20),
        "mfcc": T.MFCC(RATE, 13, melkwargs={"n_mels": 20, "n_fft": 400}),
        "lfcc": T.LFCC(RATE, n_lfcc=13),
        "db": torch.nn.Sequential(T.Spectrogram(400), T.AmplitudeToDB(top_db=80)),
        "centroid": T.SpectralCentroid(RATE),
        "deltas": T.ComputeDeltas(),
    }
    return {name: kind(x) for name, kind in kinds.items()}


def kaldi_forward():
    return [
        torchaudio.compliance.kaldi.fbank(_wave()[:1], num_mel_bins=10),
        torchaudio.compliance.kaldi.mfcc(_wave()[:1], num_mel_bins=23),
    ]


def filters_forward():
    x = _wave()
    return [
        F.lfilter(x, torch.tensor([1.0, -0.5, 0.3]), torch.tensor([0.2, 0.1, 0.4])),
        F.bass_biquad(x, RATE, 3.0),
        F.lowpass_biquad(x, RATE, 1000.0),
        F.highpass_biquad(x, RATE, 500.0),
        F.equalizer_biquad(x, RATE, 900.0, 2.0),
        F.overdrive(x),
        F.filtfilt(x, torch.tensor([1.0, -0.3]), torch.tensor([0.5, 0.2])),
        F.deemph_biquad(x, 44100),
        F.contrast(x),
        F.dcshift(x, 0.1),
        F.riaa_biquad(x, 44100),
        F.treble_biquad(x, RATE, 2.0),
    ]


def waves_forward():
    x = _wave()
    spectrum = torch.stft(x, 400, window=torch.hann_window(400), return_complex=True)
    return [
        T.Resample(RATE, 8000)(x),
        T.Resample(8000, 11025, resampling_method="sinc_interp_kaiser")(x),
        T.MuLawDecoding(64)(T.MuLawEncoding(64)(x)),
        T.TimeStretch(n_freq=201, fixed_rate=1.2)(spectrum).abs(),
        T.InverseSpectrogram(400)(T.Spectrogram(400, power=None)(x)),
        T.Fade(100, 200)(x),
        F.fftconvolve(x, x[:, :50]),
        F.preemphasis(x),
        F.loudness(x[None].repeat(1, 1, 4), RATE),
        F.add_noise(x, x.flip(-1), torch.tensor([3.0, 5.0])),
    ]


def alignment_other():
    scores = randn(1, 20, 6).log_softmax(-1)
    path, values = F.forced_align(scores, torch.tensor([[1, 2, 2, 5, 3]]))
    return [
        path,
        values,
        [[span.token, span.start, span.end, span.score] for span in F.merge_tokens(path[0], values[0])],
        F.edit_distance("abcd", "acbd"),
    ]


def filters_backward():
    x, a, b = (
        _wave().requires_grad_(),
        torch.tensor([1.0, -0.5, 0.3]).requires_grad_(),
        torch.tensor([0.2, 0.1, 0.4]).requires_grad_(),
    )
    F.lfilter(x, a, b, clamp=False).square().mean().backward()
    return [x.grad, a.grad, b.grad]


def transducer_backward():
    found, lengths = [], torch.tensor([6, 5], dtype=torch.int32)
    for fused in (True, False):
        x = randn(2, 6, 4, 5).log_softmax(-1).requires_grad_()
        loss = T.RNNTLoss(blank=0, fused_log_softmax=fused)
        value = loss(x, 1 + integers(4, 2, 3).int(), lengths, torch.tensor([3, 2], dtype=torch.int32))
        value.backward()
        found.append([value, x.grad])
    return found


def mel_backward():
    x = _wave().requires_grad_()
    (T.MelSpectrogram(RATE, n_fft=400, n_mels=20)(x) + 1).log().sum().backward()
    return x.grad


def beams_forward():
    x, mask = torch.complex(randn(3, 9, 12), randn(3, 9, 12, seed=1)), randn(9, 12, seed=2).sigmoid()
    speech, noise = T.PSD()(x, mask), T.PSD()(x, 1 - mask)
    weights = F.mvdr_weights_souden(speech, noise, 0)
    return [speech, F.apply_beamforming(weights, x), F.rtf_power(speech, noise, 0).abs()]


def networks_forward():
    lengths = torch.tensor([20, 14])
    with torch.no_grad():
        return [
            list(fill(Conformer(8, 2, 16, 1, 7)).eval()(randn(2, 20, 8), lengths)),
            fill(
                ConvTasNet(2, 16, 16, msk_num_feats=8, msk_num_hidden_feats=16, msk_num_layers=2, msk_num_stacks=1)
            ).eval()(randn(1, 1, 400)),
            fill(DeepSpeech(8, 16, 5)).eval()(randn(2, 1, 20, 8)),
            fill(Wav2Letter(5, "mfcc", 8)).eval()(randn(2, 8, 60)),
            list(fill(Emformer(8, 2, 16, 1, 4, right_context_length=2)).eval()(randn(2, 22, 8), lengths)),
        ]


def _speech():
    return fill(
        wav2vec2_model(
            extractor_mode="group_norm",
            extractor_conv_layer_config=[(8, 10, 5), (8, 3, 2)],
            extractor_conv_bias=False,
            encoder_embed_dim=16,
            encoder_projection_dropout=0.0,
            encoder_pos_conv_kernel=4,
            encoder_pos_conv_groups=2,
            encoder_num_layers=1,
            encoder_num_heads=2,
            encoder_attention_dropout=0.0,
            encoder_ff_interm_features=32,
            encoder_ff_interm_dropout=0.0,
            encoder_dropout=0.0,
            encoder_layer_norm_first=False,
            encoder_layer_drop=0.0,
            aux_num_out=6,
        )
    )


def speech_backward():
    model = _speech()
    return backward(model, model(_wave()[:, :800])[0].square().mean())


def speech_training():
    model, x, targets = _speech(), _wave()[:, :800], 1 + integers(5, 2, 4)

    def loss():
        scores = model(x)[0].log_softmax(-1).transpose(0, 1)
        sizes = torch.full((2,), scores.shape[0], dtype=torch.long)
        return torch.nn.functional.ctc_loss(scores, targets, sizes, torch.tensor([4, 3]))

    return train(model, loss, steps=3)
