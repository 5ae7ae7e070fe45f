"""The modules of tests/modules.cc in PyTorch's words, by its names, and what they are called with."""

import torch
from torch import nn
from torch.nn import functional as F

from golden_rows import alignments, entropy, given, index, module, positive, real, signs

PLAIN, LINES, PLANES, VOLUMES, STEPS = [real(6)], [real(2, 6)], [real(2, 4, 4)], [real(2, 2, 2, 2)], [real(3, 4)]
TWO, THREE, CLASSES = [real(6)] * 2, [real(6)] * 3, [real(6), index(6)]
POSITIVE, SIGNED = [real(6), positive(6)], [real(6), signs(6)]
STATISTICS, EVAL = ("train", "eval"), ("eval",)


class Called(nn.Module):
    """A function of one's own, as Functional has it."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class BatchNormReLUMaxPool2d(nn.BatchNorm2d):
    def forward(self, x):
        return F.max_pool2d(F.relu(super().forward(x)), 2)


GENERAL = [
    module("Linear", lambda: nn.Linear(6, 3), PLAIN),
    module("Identity", nn.Identity, PLAIN),
    module("Flatten", nn.Flatten, PLANES),
    module("Unflatten", lambda: nn.Unflatten(1, (2, 3)), PLAIN),
    module("Functional", lambda: Called(torch.tanh), PLAIN),
    module("Sequential", lambda: nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3)), PLAIN),
    module("ModuleList", lambda: nn.ModuleList([nn.Linear(6, 4), nn.Linear(4, 3)]), PLAIN, call=lambda m, x: m[1](m[0](x))),
    module(
        "ModuleDict",
        lambda: nn.ModuleDict({"one": nn.Linear(6, 4), "two": nn.Linear(6, 4)}),
        PLAIN,
        call=lambda m, x: m["two"](x) * m["one"](x),
    ),
    module("ParameterList", lambda: nn.ParameterList([torch.ones(6)] * 2), PLAIN, call=lambda m, x: x * m[0] + m[1]),
    module("ParameterDict", lambda: nn.ParameterDict({"one": torch.ones(6)}), PLAIN, call=lambda m, x: x * m["one"]),
    module("Embedding", lambda: nn.Embedding(6, 3), [index(6, 2)]),
    module("EmbeddingBag", lambda: nn.EmbeddingBag(6, 3), [index(6, 2)], twin=lambda m, x: F.embedding(x, m.weight).mean(1)),
    module("Bilinear", lambda: nn.Bilinear(4, 5, 3), [real(4), real(5)]),
    module("CosineSimilarity", nn.CosineSimilarity, TWO),
    module("PairwiseDistance", nn.PairwiseDistance, TWO),
    # What is random in training has numbers in evaluation alone.
    module("Dropout", lambda: nn.Dropout(0.25), PLAIN, EVAL),
    module("Dropout2d", lambda: nn.Dropout2d(0.25), PLANES, EVAL),
    module("Dropout3d", lambda: nn.Dropout3d(0.25), VOLUMES, EVAL),
    module("AlphaDropout", lambda: nn.AlphaDropout(0.25), PLAIN, EVAL),
    module("FeatureAlphaDropout", lambda: nn.FeatureAlphaDropout(0.25), PLANES, EVAL),
]

CONVOLUTIONS = [
    module("Conv1d", lambda: nn.Conv1d(2, 4, 3, padding=1), LINES),
    module("Conv2d", lambda: nn.Conv2d(2, 3, 3, padding=1, stride=2), PLANES),
    module("Conv2d in groups", lambda: nn.Conv2d(2, 4, 3, groups=2, bias=False), PLANES),
    module("Conv2d with reflected borders", lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"), PLANES),
    module("Conv3d", lambda: nn.Conv3d(2, 2, 2, padding=1, padding_mode="circular"), VOLUMES),
    module("ConvTranspose1d", lambda: nn.ConvTranspose1d(2, 4, 3, stride=2), LINES),
    module("ConvTranspose2d", lambda: nn.ConvTranspose2d(2, 2, 3, groups=2, output_padding=1, stride=2), [real(2, 1, 3)]),
    module("ConvTranspose3d", lambda: nn.ConvTranspose3d(2, 2, 2), VOLUMES),
    module("Upsample", lambda: nn.Upsample(scale_factor=(2, 1.5), mode="bilinear"), [real(2, 4, 3)]),
    module("PixelShuffle", lambda: nn.PixelShuffle(2), [real(4, 2, 2)]),
    module("PixelUnshuffle", lambda: nn.PixelUnshuffle(2), PLANES),
    module("Unfold", lambda: nn.Unfold(2, padding=1), [real(1, 3, 3)]),
    module("Fold", lambda: nn.Fold((3, 3), 2), [real(8, 4)]),
]

POOLS = [
    module("MaxPool1d", lambda: nn.MaxPool1d(2), LINES),
    module("MaxPool2d", lambda: nn.MaxPool2d(3, stride=1), PLANES),
    module("MaxPool3d", lambda: nn.MaxPool3d(2, stride=1), VOLUMES),
    module("AvgPool1d", lambda: nn.AvgPool1d(2), LINES),
    module("AvgPool2d", lambda: nn.AvgPool2d(3, stride=1), PLANES),
    module("AvgPool3d", lambda: nn.AvgPool3d(2, stride=1, padding=1), VOLUMES),
    module("AdaptiveAvgPool1d", lambda: nn.AdaptiveAvgPool1d(4), LINES),
    module("AdaptiveAvgPool2d", lambda: nn.AdaptiveAvgPool2d(3), PLANES),
    module("AdaptiveAvgPool3d", lambda: nn.AdaptiveAvgPool3d(3), VOLUMES),
    module("AdaptiveMaxPool1d", lambda: nn.AdaptiveMaxPool1d(4), LINES),
    module("AdaptiveMaxPool2d", lambda: nn.AdaptiveMaxPool2d(3), PLANES),
    module("AdaptiveMaxPool3d", lambda: nn.AdaptiveMaxPool3d(1), VOLUMES),
]

NORMS = [
    module("BatchNorm1d", lambda: nn.BatchNorm1d(6), PLAIN, STATISTICS),
    module("BatchNorm2d", lambda: nn.BatchNorm2d(2), PLANES, STATISTICS),
    module("BatchNorm3d", lambda: nn.BatchNorm3d(2), VOLUMES, STATISTICS),
    module("BatchNormReLUMaxPool2d", lambda: BatchNormReLUMaxPool2d(2), PLANES, STATISTICS),
    module("InstanceNorm1d", lambda: nn.InstanceNorm1d(2, affine=True), LINES),
    module("InstanceNorm2d", lambda: nn.InstanceNorm2d(2), PLANES),
    module("InstanceNorm3d", lambda: nn.InstanceNorm3d(2), VOLUMES),
    module("LocalResponseNorm", lambda: nn.LocalResponseNorm(2), PLANES),
    module("RMSNorm", lambda: nn.RMSNorm(6), PLAIN),
    module("LayerNorm", lambda: nn.LayerNorm(6), PLAIN),
    module("GroupNorm", lambda: nn.GroupNorm(2, 6), PLAIN),
    module("GroupNorm of planes", lambda: nn.GroupNorm(1, 2), PLANES),
]

# Their inputs reach the parts of which they are made.
ACTIVATIONS = [
    module(name, getattr(nn, name), [real(6, by=by)])
    for name, by in {
        "ReLU": 1,
        "ReLU6": 9,
        "LeakyReLU": 1,
        "ELU": 3,
        "SELU": 3,
        "CELU": 3,
        "GELU": 3,
        "GLU": 3,
        "SiLU": 3,
        "Mish": 3,
        "Tanh": 3,
        "Sigmoid": 3,
        "LogSigmoid": 9,
        "Softplus": 29,
        "Softsign": 3,
        "Tanhshrink": 3,
        "Hardshrink": 1,
        "Softshrink": 1,
        "Hardtanh": 3,
    }.items()
] + [
    module("Threshold", lambda: nn.Threshold(0.1, 0.5), PLAIN),
    module("PReLU", lambda: nn.PReLU(6), PLAIN),
    module("RReLU", nn.RReLU, PLAIN, EVAL),
    module("Softmax", lambda: nn.Softmax(1), PLAIN),
    module("Softmin", lambda: nn.Softmin(1), PLAIN),
    module("LogSoftmax", lambda: nn.LogSoftmax(1), PLAIN),
    module("Softmax2d", nn.Softmax2d, PLANES),
]


def multi_margin(x, y):
    others = 1 - F.one_hot(y, x.size(1))
    return ((1 - x.gather(1, y[:, None]) + x).clamp(min=0) * others).sum(1) / x.size(1)


def multilabel_margin(x, y):
    others = [sorted(set(range(x.size(1))) - set(row.tolist())) for row in y]
    pairs = [[(1 - x[n, j] + x[n, i]).clamp(min=0) for j in row for i in others[n]] for n, row in enumerate(y)]
    return torch.stack([sum(row, 0 * x[n].sum()) for n, row in enumerate(pairs)]) / x.size(1)


def of_all_ranks(kind, *more):
    sizes = {"1d": ((1, 2), LINES), "2d": ((2, 0, 0, 1), PLANES), "3d": ((1, 0, 0, 1, 1, 0), VOLUMES)}
    return [module(kind + d, lambda d=d, pad=pad: getattr(nn, kind + d)(pad, *more), draws) for d, (pad, draws) in sizes.items()]


PADDING = of_all_ranks("ReflectionPad") + of_all_ranks("ReplicationPad") + of_all_ranks("ZeroPad") + of_all_ranks("ConstantPad", 0.5)

CTC = {
    "make": lambda: nn.CTCLoss(blank=5, reduction="none", zero_infinity=True),
    "call": lambda m, x, *t: m(x.transpose(0, 1).log_softmax(2), *t),
    "twin": lambda m, x, *t: alignments(x.transpose(0, 1).log_softmax(2), *t, 5),
}
LOSSES = [
    module(name, **({"make": lambda name=name: getattr(nn, name)(reduction="none"), "draws": draws} | more))
    for name, draws, more in (
        ("L1Loss", TWO, {}),
        ("MSELoss", TWO, {}),
        ("SmoothL1Loss", TWO, {}),
        ("HuberLoss", TWO, {}),
        ("BCELoss", [positive(6)] * 2, {"twin": lambda m, x, y: entropy(x, y)}),
        ("BCEWithLogitsLoss", POSITIVE, {}),
        ("KLDivLoss", POSITIVE, {}),
        ("PoissonNLLLoss", POSITIVE, {}),
        ("NLLLoss", CLASSES, {}),
        ("CrossEntropyLoss", CLASSES, {}),
        ("MultiMarginLoss", CLASSES, {"twin": lambda m, x, y: multi_margin(x, y)}),
        ("CTCLoss", [real(4, 6), index(5, 3), given(4, 3), given(2, 1)], CTC),
        ("MultiLabelMarginLoss", [real(6), index(6, 6)], {"twin": lambda m, x, y: multilabel_margin(x, y)}),
        ("MultiLabelSoftMarginLoss", POSITIVE, {}),
        ("SoftMarginLoss", SIGNED, {}),
        ("HingeEmbeddingLoss", SIGNED, {}),
        ("MarginRankingLoss", [real(6), real(6), signs(6)], {}),
        ("CosineEmbeddingLoss", [real(6), real(6), given(1.0, -1.0)], {}),
        ("TripletMarginLoss", THREE, {}),
        ("TripletMarginWithDistanceLoss", THREE, {}),
    )
]


def encoder(p):
    return nn.TransformerEncoderLayer(4, 2, dim_feedforward=6, dropout=p, batch_first=True)


def decoder():
    return nn.TransformerDecoderLayer(4, 2, dim_feedforward=6, dropout=0, batch_first=True)


TWO_STEPS = [real(3, 4), real(2, 4)]
SEQUENCES = [
    module("RNN", lambda: nn.RNN(4, 3, batch_first=True), STEPS),
    module("LSTM", lambda: nn.LSTM(4, 3, batch_first=True, num_layers=2, proj_size=2), STEPS),
    module("GRU", lambda: nn.GRU(4, 3, batch_first=True, bidirectional=True), STEPS),
    module("LSTM with dropout", lambda: nn.LSTM(4, 3, batch_first=True, num_layers=2, dropout=0.5), STEPS, EVAL),
    module("RNNCell", lambda: nn.RNNCell(6, 3), PLAIN),
    module("LSTMCell", lambda: nn.LSTMCell(6, 2), PLAIN),
    module("GRUCell", lambda: nn.GRUCell(6, 3), PLAIN),
    module(
        "MultiheadAttention",
        lambda: nn.MultiheadAttention(4, 2, batch_first=True, add_bias_kv=True),
        [real(2, 4), real(3, 4), real(3, 4)],
    ),
    module("TransformerEncoderLayer", lambda: encoder(0), STEPS),
    module("TransformerEncoderLayer with dropout", lambda: encoder(0.5), STEPS, EVAL),
    module("TransformerDecoderLayer", decoder, TWO_STEPS),
    module(
        "TransformerEncoder",
        lambda: nn.TransformerEncoder(encoder(0), 2, norm=nn.LayerNorm(4), enable_nested_tensor=False),
        STEPS,
    ),
    module("TransformerDecoder", lambda: nn.TransformerDecoder(decoder(), 2), TWO_STEPS),
    module("Transformer", lambda: nn.Transformer(4, 2, 1, 1, dim_feedforward=6, dropout=0, batch_first=True), TWO_STEPS),
]

FILES = {
    "general": GENERAL,
    "convolutions": CONVOLUTIONS,
    "pools": POOLS,
    "norms": NORMS,
    "activations": ACTIVATIONS,
    "padding": PADDING,
    "losses": LOSSES,
    "sequences": SEQUENCES,
}
