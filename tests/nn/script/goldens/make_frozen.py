#!/usr/bin/env python3
"""Writes the files of this folder that freeze() and translations need: archives by PyTorch 2.15, and what its freeze() computes.

    tests/nn/script/goldens/make_frozen.py

frozen_tagger.pt is frozen by PyTorch. held.pt has attributes of all kinds, followed.pt devices and tensors that functions outside of
classes name. folded_scripted.pt and folded_traced.pt have batch norms after convolutions. frozen_values.pt has for each its inputs and
result; for the folded ones what PyTorch's frozen module gives.
"""

import warnings
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import nn, Tensor
from torch.nn import functional as F

from make_goldens import HERE, Tagger, pack

warnings.simplefilter("ignore")


class Held(nn.Module):
    """Attributes of all kinds, with tensors in them."""

    lists: Dict[str, List[int]]
    maybe: Optional[Tensor]
    number: Optional[int]
    nested: List[Tuple[str, Optional[Tensor]]]
    any: Dict[str, Any]

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0]))
        self.tensors = [torch.tensor([3.0, 4.0]), torch.tensor([5.0, 6.0])]
        self.pair = (torch.tensor([7.0, 8.0]), 2, [1.5, 2.5])
        self.table = {"a": torch.tensor([9.0, 1.0]), "b": torch.tensor([2.0, 3.0])}
        self.lists = {"x": [1, 2], "y": []}
        self.flags = [True, False]
        self.maybe = None
        self.number = 3
        self.dtype = torch.float64
        self.place = torch.device("cpu")
        self.text = "é\n\"x\""
        self.nested = [("p", torch.tensor([0.5, 0.25])), ("q", None)]
        self.any = {"ints": [1, 2], "pair": (1, 2.5), "t": torch.tensor([1.0, 0.5]), "none": None, "text": "t", "table": {"a": 1}}

    def forward(self, x: Tensor):
        y = x * self.weight + self.tensors[0] * self.tensors[1]
        a, n, factors = self.pair
        y = y + a * n * factors[1] + self.table["a"] - self.table["b"]
        maybe = self.maybe
        if maybe is not None:
            y = y + maybe
        for name, t in self.nested:
            if t is not None:
                y = y * t
        number = self.number
        if number is not None:
            y = y + number + len(self.lists["x"]) + int(self.flags[0])
        made = torch.zeros(2, dtype=self.dtype, device=self.place)
        return y + made, self.text, self.lists, self.any


def traced_part(x):
    return x * torch.tensor([1.0, 2.0, 4.0]) + torch.arange(3)


TRACED = torch.jit.trace(traced_part, (torch.randn(2, 3),))


@torch.jit.script
def with_constant(x: Tensor) -> Tensor:
    return TRACED(x) + 1


@torch.jit.script
def on_cpu(n: int) -> Tensor:
    return torch.arange(n, device=torch.device("cpu"))


def numbers(x: Tensor) -> Tensor:
    n = x.size(1) * 1.0
    first = x.sum().item()
    second = (first + 1) * 2 - n
    third = -(second // 3) + second % 4
    if third > first:
        return x * third
    return x + float(third) * (first / 2)


class Places(nn.Module):
    """No tensor of its own."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.ones(3, device=torch.device("cpu"))


class Followed(nn.Module):
    def __init__(self):
        super().__init__()
        self.places = Places()
        self.layer = nn.Linear(3, 3)
        self.place = torch.device("cpu")

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(self.places(with_constant(x)))
        y = y + on_cpu(3) + torch.ones(3, device=self.place)
        return numbers(y)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(6, 6, 3, padding=1, groups=3)
        self.norm = nn.BatchNorm2d(6)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.conv(x))) + x


class Folded(nn.Module):
    """Batch norms that can be folded, and below them those that cannot."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 6, 3, bias=False), nn.BatchNorm2d(6), nn.ReLU6())
        self.blocks = nn.ModuleList([Block(), Block()])
        self.up = nn.ConvTranspose2d(6, 4, 3, stride=2, groups=2)
        self.up_norm = nn.BatchNorm2d(4, eps=1e-3, affine=False)
        self.line = nn.Sequential(nn.Conv1d(4, 5, 3, bias=False), nn.BatchNorm1d(5))
        self.solid = nn.Sequential(nn.Conv3d(1, 2, 2), nn.BatchNorm3d(2))
        self.back = nn.Sequential(nn.ConvTranspose1d(5, 4, 2, bias=False), nn.BatchNorm1d(4))
        # Not these: one convolution for two norms, an output that is used twice, a norm of batch statistics, a norm before.
        self.shared = nn.Conv2d(4, 4, 1)
        self.norm1 = nn.BatchNorm2d(4)
        self.norm2 = nn.BatchNorm2d(4)
        self.twice = nn.Conv2d(4, 4, 1)
        self.norm3 = nn.BatchNorm2d(4)
        self.plain = nn.Conv2d(4, 4, 1)
        self.norm4 = nn.BatchNorm2d(4, track_running_stats=False)
        self.before = nn.BatchNorm2d(4)
        self.after = nn.Conv2d(4, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        x = self.up_norm(self.up(x))
        x = self.norm2(self.shared(F.relu(self.norm1(self.shared(x)))))
        y = self.twice(x)
        x = y + self.norm3(y)
        x = self.norm4(self.plain(x))
        x = self.after(self.before(x))
        line = self.back(self.line(x.flatten(2)))
        solid = self.solid(x.unsqueeze(1))
        return torch.cat([line.flatten(1), solid.flatten(1)], 1)


def randomized(net):
    for module in net.modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)) and module.running_mean is not None:
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
            if module.affine:
                nn.init.normal_(module.weight)
                nn.init.normal_(module.bias)
    return net.eval()


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    rows: Dict[str, Any] = {}

    def add(name, module, inputs, result=None):
        torch.jit.save(module, str(HERE / (name + ".pt")))
        pack(HERE / (name + ".pt"))
        with torch.no_grad():
            rows[name] = {"inputs": inputs, "result": module(*inputs) if result is None else result}

    words, lengths = torch.randint(0, 11, (3, 6)), torch.tensor([4, 6, 1])
    add("frozen_tagger", torch.jit.freeze(torch.jit.script(Tagger().eval())), [words, lengths])
    add("held", torch.jit.script(Held().eval()), [torch.randn(3, 2)])
    add("followed", torch.jit.script(Followed().eval()), [torch.randn(2, 3)])
    net, x = randomized(Folded()), torch.randn(2, 3, 8, 8)
    for name, module in (("folded_scripted", torch.jit.script(net)), ("folded_traced", torch.jit.trace(net, (x,)))):
        with torch.no_grad():
            frozen = torch.jit.freeze(module)
            batch_norms = str(frozen.graph).count("aten::batch_norm")
            print(f"{name}: PyTorch leaves {batch_norms} batch norms")
            add(name, module, [x], frozen(x))
    torch.save(rows, HERE / "frozen_values.pt")
    pack(HERE / "frozen_values.pt")


if __name__ == "__main__":
    main()
