#!/usr/bin/env python3
"""Writes files of this folder that translations need: archives by PyTorch 2.15, and what they compute.

    tests/nn/script/goldens/make_frozen.py

frozen_tagger.pt is frozen by PyTorch. held.pt has attributes of all kinds, followed.pt devices and tensors that functions outside of
classes name. frozen_values.pt has for each its inputs and result.
"""

import warnings
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import nn, Tensor

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


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    rows: Dict[str, Any] = {}

    def add(name, module, inputs):
        torch.jit.save(module, str(HERE / (name + ".pt")))
        pack(HERE / (name + ".pt"))
        with torch.no_grad():
            rows[name] = {"inputs": inputs, "result": module(*inputs)}

    words, lengths = torch.randint(0, 11, (3, 6)), torch.tensor([4, 6, 1])
    add("frozen_tagger", torch.jit.freeze(torch.jit.script(Tagger().eval())), [words, lengths])
    add("held", torch.jit.script(Held().eval()), [torch.randn(3, 2)])
    add("followed", torch.jit.script(Followed().eval()), [torch.randn(2, 3)])
    torch.save(rows, HERE / "frozen_values.pt")
    pack(HERE / "frozen_values.pt")


if __name__ == "__main__":
    main()
