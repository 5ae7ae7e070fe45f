"""The models of ./tools/compat/compare_models: how each is made, what it gets, and in which kinds it is written."""

import dataclasses
from typing import Any, Callable, Dict, List, Sequence

import torch
from torch import nn

import networks

KINDS = ("traced", "scripted", "exported", "exported core")


@dataclasses.dataclass
class Model:
    make: Callable[[], nn.Module]
    inputs: Callable[[], List[Any]]
    kinds: Sequence[str] = KINDS
    loss: str = "squares"  # "squares", "burgers" (second derivatives), "none" (a result without gradients)
    parallel: bool = False  # small: also on several devices, ranks and emulated GPUs
    rate: float = 0.01
    timed: Callable[[], List[Any]] = None  # inputs with batch 1, for a comparison of times


class Wrapped(nn.Module):
    """One of transformers' models: tensors in, one tensor out."""

    def __init__(self, net, pick):
        super().__init__()
        self.net, self.pick = net, pick

    def forward(self, *tensors):
        return self.pick(self.net, *tensors)


def vision(name: str, **how) -> Callable[[], nn.Module]:
    def make():
        import torchvision

        return torchvision.models.get_model(name, weights=None, **how)

    return make


def segmentation():
    import torchvision

    net = torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)
    for part in net.modules():
        if isinstance(part, torch.nn.Dropout):  # it has no option for that
            part.p = 0.0
    return net


def vit():
    from torchvision.models import VisionTransformer

    net = VisionTransformer(image_size=32, patch_size=8, num_layers=4, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=10)
    nn.init.normal_(net.heads.head.weight, std=0.1)  # zeros at first
    return net


def bert():
    from transformers import BertConfig, BertModel

    c = BertConfig(vocab_size=120, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=64, max_position_embeddings=40,
                   hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return Wrapped(BertModel(c), lambda net, ids, mask: net(input_ids=ids, attention_mask=mask, return_dict=False)[0])


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    c = GPT2Config(vocab_size=120, n_positions=40, n_embd=32, n_layer=3, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    return Wrapped(GPT2LMHeadModel(c), lambda net, ids: net(input_ids=ids, use_cache=False, return_dict=False)[0])


def t5_norm(self, x):
    """T5LayerNorm's, in the input's dtype. The library's own rounds to float32 in float64 too, where no sum has one value."""
    return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


def t5(part: str):
    from transformers import T5Config, T5ForConditionalGeneration
    from transformers.models.t5.modeling_t5 import T5LayerNorm

    T5LayerNorm.forward = t5_norm
    c = T5Config(vocab_size=120, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_decoder_layers=2, num_heads=4, feed_forward_proj="gated-gelu", dropout_rate=0.0)
    net = T5ForConditionalGeneration(c)
    if part == "encoder":
        return Wrapped(net.get_encoder(), lambda net, ids, mask: net(input_ids=ids, attention_mask=mask, return_dict=False)[0])
    return Wrapped(
        net,
        lambda net, states, mask, ids: net(
            encoder_outputs=(states,), attention_mask=mask, decoder_input_ids=ids, use_cache=False, return_dict=False
        )[0],
    )


def image(size: int, batch: int = 2, channels: int = 3):
    return lambda: [torch.randn(batch, channels, size, size, dtype=torch.float64)]


def words(length: int, batch: int = 2):
    return lambda: [torch.randint(1, 120, (batch, length))]


def masked_words(length: int, batch: int = 2):
    def make():
        ids = torch.randint(1, 120, (batch, length))
        mask = torch.ones(batch, length, dtype=torch.int64)
        if batch > 1:
            mask[1, length - 4 :] = 0
        return [ids, mask]

    return make


def decoder_inputs(length: int, batch: int = 2):
    def make():
        mask = masked_words(length, batch)()[1]
        return [torch.randn(batch, length, 32, dtype=torch.float64), mask, torch.randint(1, 120, (batch, length - 3))]

    return make


def sentences(batch: int = 5):
    def make():
        lengths = torch.tensor([7, 3, 9, 1, 5])[:batch]
        return [torch.where(torch.arange(9) < lengths[:, None], torch.randint(1, 50, (batch, 9)), 0), lengths]

    return make


CODE = ("traced", "scripted")
MODELS: Dict[str, Model] = {
    "ResNet-18": Model(vision("resnet18"), image(64), rate=1e-4, timed=image(224, 1)),
    "MobileNetV2": Model(vision("mobilenet_v2", dropout=0.0), image(64), rate=1e-4, timed=image(224, 1)),
    "MobileNetV3-small": Model(vision("mobilenet_v3_small", dropout=0.0), image(64), rate=1e-4, timed=image(224, 1)),
    "DenseNet-121": Model(vision("densenet121"), image(64), rate=1e-4, timed=image(224, 1)),
    "EfficientNet-B0": Model(vision("efficientnet_b0", dropout=0.0, stochastic_depth_prob=0.0), image(64), rate=1e-4, timed=image(224, 1)),
    "Inception v3": Model(vision("inception_v3", aux_logits=False, init_weights=False, dropout=0.0), image(139), rate=2e-5, timed=image(299, 1)),
    "U-Net": Model(networks.Unet, image(19), rate=1e-4, parallel=True, timed=image(128, 1)),
    "DeepLab v3": Model(segmentation, image(64), rate=1e-4, timed=image(224, 1)),
    "ViT": Model(vit, image(32), parallel=True, timed=image(32, 1)),
    "BERT": Model(bert, masked_words(16), timed=masked_words(32, 1)),
    "GPT-2": Model(gpt2, words(16), parallel=True, timed=words(32, 1)),
    "T5 encoder": Model(lambda: t5("encoder"), masked_words(16), timed=masked_words(32, 1)),
    "T5 decoder": Model(lambda: t5("decoder"), decoder_inputs(16), timed=decoder_inputs(32, 1)),
    "LSTM tagger": Model(networks.Tagger, sentences(), timed=sentences(1)),
    "Beam search": Model(networks.Beam, lambda: [torch.randn(1, 16, dtype=torch.float64), 4, 12], ("scripted",), loss="none"),
    "Detections": Model(networks.Detections, image(6, 2, 8), ("scripted",), timed=image(6, 1, 8)),
    "PINN": Model(networks.Pinn, lambda: [torch.rand(40, 2, dtype=torch.float64)], loss="burgers", parallel=True),
}
