"""The modules of tests/modules in PyTorch's words, and what they are called with."""

import functools
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

from golden_rows import alignments, entropy, joined, module

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent))
import module_table


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


class LoRALinear(nn.Linear):
    """As the paper and PEFT have it."""

    def __init__(self, inner, outer, rank, alpha):
        super().__init__(inner, outer)
        self.requires_grad_(False)
        self.lora_A, self.lora_B = nn.Linear(inner, rank, bias=False), nn.Linear(rank, outer, bias=False)
        self.scaling = alpha / rank

    def forward(self, x):
        return super().forward(x) + self.lora_B(self.lora_A(x)) * self.scaling


# What the table's words are, where PyTorch has another name or wants other arguments.
WORDS = vars(nn) | {
    "true": True,
    "false": False,
    "null": None,
    "own": torch.ones,
    "tanh": torch.tanh,
    "Functional": Called,
    "BatchNormReLUMaxPool2d": BatchNormReLUMaxPool2d,
    "LoRALinear": LoRALinear,
    "ModuleList": lambda *m: nn.ModuleList(m),
    "ModuleDict": lambda **m: nn.ModuleDict(m),
    "ParameterList": lambda *p: nn.ParameterList(p),
    "ParameterDict": lambda **p: nn.ParameterDict(p),
    "Unflatten": lambda dim, sizes: nn.Unflatten(dim, tuple(sizes)),
    "Upsample": lambda scale_factor, **more: nn.Upsample(scale_factor=tuple(scale_factor), **more),
    "TransformerEncoder": functools.partial(nn.TransformerEncoder, enable_nested_tensor=False),
}


def multi_margin(x, y):
    others = 1 - F.one_hot(y, x.size(1))
    return ((1 - x.gather(1, y[:, None]) + x).clamp(min=0) * others).sum(1) / x.size(1)


def multilabel_margin(x, y):
    others = [sorted(set(range(x.size(1))) - set(row.tolist())) for row in y]
    pairs = [[(1 - x[n, j] + x[n, i]).clamp(min=0) for j in row for i in others[n]] for n, row in enumerate(y)]
    return torch.stack([sum(row, 0 * x[n].sum()) for n, row in enumerate(pairs)]) / x.size(1)


# Of modules without a forward of their inputs.
CALLS = {
    "ModuleList": lambda m, x: m[1](m[0](x)),
    "ModuleDict": lambda m, x: m["two"](x) * m["one"](x),
    "ParameterList": lambda m, x: x * m[0] + m[1],
    "ParameterDict": lambda m, x: x * m["one"],
    "CTCLoss": lambda m, x, *t: m(x.transpose(0, 1).log_softmax(2), *t),
}
# The same in other words, where PyTorch has no second derivative, or a wrong one.
TWINS = {
    "EmbeddingBag": lambda m, x: F.embedding(x, m.weight).mean(1),
    "BCELoss": lambda m, x, y: entropy(x, y),
    "MultiMarginLoss": lambda m, x, y: multi_margin(x, y),
    "MultiLabelMarginLoss": lambda m, x, y: multilabel_margin(x, y),
    "CTCLoss": lambda m, x, *t: alignments(x.transpose(0, 1).log_softmax(2), *t, 5),
}


def draw(given):
    """Sizes behind the batch, and keywords of make_goldens.drawn; `golden` are constants, one for each sample."""
    if given.golden:
        return (), {"kind": "given", "by": given.golden}
    if given.kind == "Index":
        return given.sizes, {"kind": "index", "by": given.below}
    return given.sizes, {"kind": given.kind.lower(), "by": given.by}


def row(example):
    name, _, inputs = example.matrix
    checks = {check for check, _ in example.lacks}
    # What is random in training has numbers in evaluation alone.
    modes = ("eval",) if "Repeats" in checks else ("train", "eval") if "TrainIsEval" in checks else ("both",)
    call = CALLS.get(example.type, lambda m, *t: joined(m(*t)))
    return module(name, lambda: eval(example.text, dict(WORDS)), list(map(draw, inputs)), modes, call, TWINS.get(example.type))


FILES = {}
for example in module_table.read().examples:
    if example.matrix:
        FILES.setdefault(example.matrix[1], []).append(row(example))
