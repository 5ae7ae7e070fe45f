#!/usr/bin/env python3
"""Writes exported/*.pt2 and exported/values_*.pt: programs of torch.export by the PyTorch that runs this, and what they compute.

    tests/nn/script/goldens/make_exported.py 2.15        all programs, by PyTorch 2.15
    tests/nn/script/goldens/make_exported.py 2.5         by an older PyTorch, those that it exports: cnn, gpt

NAME_VERSION.pt2 is an archive. values_VERSION.pt holds for each NAME, computed in float64 by the module in Python: the arguments, the
result, the weights of the loss (the sum of trained outputs times weights), the parameters' gradients, and the buffers afterwards.
"""

import collections
import copy
import math
import pathlib
import sys
import warnings
import zipfile

import torch
from torch import nn
from torch.nn import functional as F

HERE = pathlib.Path(__file__).absolute().parent / "exported"
warnings.simplefilter("ignore")


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
        self.conv = nn.Conv2d(4, 6, 3, groups=2, padding=1)
        self.head = nn.Linear(6, 3)
        self.register_buffer("scale", torch.tensor([0.5, 1.0, 2.0]), persistent=False)

    def forward(self, x):
        x = F.silu(self.conv(self.features(x)))
        return F.log_softmax(self.head(x.mean((2, 3))) * self.scale * torch.tensor([1.0, 2.0, 3.0], dtype=x.dtype), dim=1)


class Block(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.feed = nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size))

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, t, c))
        return x + self.feed(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(11, 8), nn.Embedding(6, 8)
        self.blocks = nn.ModuleList([Block(8, 2) for _ in range(2)])
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.words.weight  # tied

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Tagger(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.cells = kind(4, 3, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(6, 4)

    def forward(self, words):
        return self.head(self.cells(self.embed(words))[0])


class Control(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x, n):
        y = torch.cond(x.sum() > 0, lambda x: self.linear(x).sin(), lambda x: x.cos() - self.linear(x), (x,))
        i, a = torch._higher_order_ops.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * 0.5 + self.linear(a)), (torch.tensor(0), y))
        with torch.no_grad():
            most = a.abs().max()
        return a / most, i


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        base = torch.randn(12, dtype=torch.float64)
        self.register_buffer("total", torch.zeros(3))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.register_buffer("windows", base.as_strided((5, 3), (2, 1)))
        self.register_buffer("part", base[2:8].view(2, 3))
        self.weight = nn.Parameter(torch.randn(4, 3).t())

    def forward(self, pair, more, mask=None, *, scale=2.0):
        a, (b, c) = pair
        self.total.mul_(0.9).add_(a.detach().mean(0))
        self.calls += 1
        x = (a @ self.weight)[:, :3] * more["x"] + more["list"][0]
        if mask is not None:
            x = x * mask
        c.add_(1)
        return {"y": x * self.total * scale, "rest": [b + self.windows.sum(0), (self.part * 1, self.calls * 1)], "none": None, "k": 3}


class Sizes(nn.Module):
    def forward(self, x, y, n):
        b, c = x.shape
        k = n.item()
        torch._check(k >= 2)
        torch._check(k <= 10)
        halves = x.reshape(b * c).view(b, c)[:, : c // 2]
        return torch.cat([x, y], 0) * math.sqrt(3), halves, torch.ones(k, dtype=x.dtype) * x.sum() / b, torch.zeros((b * 2 + 1) // 2, dtype=x.dtype)


class Casts(nn.Module):
    """Whole numbers, so that bfloat16 holds all values and gradients."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)
        for p in self.parameters():
            p.data = torch.randint(-3, 4, p.shape).float()

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = F.relu(self.first(x))
            with torch.autocast("cpu", enabled=False):
                z = self.second(y.float())
        return z, y, x @ x.t()


class Loops(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))

    def forward(self, start, xs):
        def step(carried, x):
            y = carried[0] * self.weight + x
            return [y, carried[1] * 0.5 + y.sum()], [y.sin(), y * 2]

        last, made = torch._higher_order_ops.scan(step, [start, start[0, 0] * 1], xs, dim=1, reverse=True)
        mapped = torch._higher_order_ops.map(lambda x, w: (x * w).cos(), xs, self.weight)
        return last, made, mapped


class Sums(nn.Module):
    def forward(self, xs):
        return torch._higher_order_ops.associative_scan(lambda a, b: a + b, xs, dim=1, combine_mode="pointwise", reverse=True)


class Guarded(nn.Module):
    def forward(self, x, more):
        y = more["y"][0]
        return (x * 2).sum() + y.sum() if x.shape[0] > y.shape[0] else x.sum() - y.sum()


Pair = collections.namedtuple("Pair", "first second")
torch.utils._pytree._register_namedtuple(Pair, serialized_type_name="fields.Pair")


class Fields(nn.Module):
    def forward(self, pair, **more):
        y = more["y"]["{}"]
        return pair.first * 2 if pair.second.shape[0] > y.shape[0] else pair.first - 1


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in tensors_of(v)] if isinstance(value, (list, tuple)) else []


def plain(value):
    if isinstance(value, (list, tuple)):
        return (list if isinstance(value, list) else tuple)(plain(v) for v in value)
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def pack(path):
    """Deflates an archive's entries: the folder stays small."""
    with zipfile.ZipFile(path) as old:
        entries = [(i.filename, old.read(i)) for i in old.infolist() if "sample_inputs" not in i.filename and "example_inputs" not in i.filename]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for name, data in entries:
            if name.endswith(".json"):  # lines of Python without the folders of this machine
                for folder in (HERE.parent, pathlib.Path(torch.__file__).parent.parent):
                    data = data.replace(str(folder).encode() + b"/", b"")
            new.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def main(version):
    assert torch.__version__.startswith(version + "."), torch.__version__
    HERE.mkdir(exist_ok=True)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    rows = {}

    def add(name, net, args, kwargs=None, core=False, train=False, strict=False, whole=False, **how):
        kwargs = kwargs or {}
        net = (net if whole else net.double()).train(train)
        exported = torch.export.export(copy.deepcopy(net), copy.deepcopy(args), copy.deepcopy(kwargs), strict=strict, **how)
        if core:
            exported = exported.run_decompositions()
        path = HERE / f"{name}_{version}.pt2"
        torch.export.save(exported, str(path))
        pack(path)
        row = {"args": plain(list(args)), "kwargs": plain(kwargs)}
        result = net(*copy.deepcopy(args), **copy.deepcopy(kwargs))
        outputs = [t for t in tensors_of(result) if t.requires_grad]
        weights = [torch.arange(t.numel(), dtype=torch.float64).view(t.shape) for t in outputs]
        weights = [w % 5 - 2 if whole else torch.cos(w) for w in weights]
        if outputs:
            sum((t * w).sum() for t, w in zip(outputs, weights)).backward()
        row.update(result=plain(result), weights=weights, buffers=plain(dict(net.named_buffers())))
        row["grads"] = {n: p.grad for n, p in net.named_parameters() if p.grad is not None}
        rows[name] = row

    Dim = torch.export.Dim
    image, ids = torch.randn(3, 2, 6, 6, dtype=torch.float64), torch.randint(0, 11, (2, 5))
    batch = {"dynamic_shapes": ({0: Dim("batch", min=2, max=16)},)}
    length = {"dynamic_shapes": ({1: Dim("length", min=3, max=6)},)}
    add("cnn", Cnn(), (image,), train=True, **batch)
    add("gpt", Gpt(), (ids,), **length)
    if version == "2.15":
        add("cnn_strict", Cnn(), (image,), strict=True, **batch)
        add("cnn_core", Cnn(), (image,), core=True, train=True, **batch)
        add("cnn_core_eval", Cnn(), (image,), core=True)
        add("gpt_core", Gpt(), (ids,), core=True, **length)
        add("encoder", nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (torch.randn(2, 4, 8, dtype=torch.float64),), train=True)
        add("lstm", Tagger(nn.LSTM), (torch.randint(0, 7, (2, 5)),))
        add("gru_core", Tagger(nn.GRU), (torch.randint(0, 7, (2, 5)),), core=True)
        add("control", Control(), (torch.randn(2, 3, dtype=torch.float64), torch.tensor(3)))
        a = torch.randn(2, 3, dtype=torch.float64)
        add("nested", Nested(), ((a, (a[0] * 2, a + 1)), {"x": a * 3, "list": [a - 1]}), {"scale": 2.0})
        b, c = Dim("b", min=2, max=100), 2 * Dim("half", min=2)
        sizes = (torch.randn(4, 6, dtype=torch.float64), torch.randn(5, 6, dtype=torch.float64), torch.tensor(4))
        add("sizes", Sizes(), sizes, dynamic_shapes=({0: b, 1: c}, {0: Dim("d"), 1: c}, None))
        add("casts", Casts(), (torch.randint(-3, 4, (2, 3)).float(),), train=True, whole=True)
        add("loops", Loops(), (torch.randn(2, 3, dtype=torch.float64), torch.randn(2, 4, 3, dtype=torch.float64)))
        xs, auto = torch.randn(3, 5, dtype=torch.float64), Dim.AUTO
        add("sums", Sums(), (xs,))
        add("guarded", Guarded(), (xs, {"y": [xs[:2]]}), dynamic_shapes=({0: auto}, {"y": [{0: auto}]}))
        sizes = {"pair": Pair({0: auto}, {0: auto}), "more": {"y": {"{}": {0: auto}}}}
        add("fields", Fields(), (Pair(a, xs),), {"y": {"{}": xs[:2]}}, dynamic_shapes=sizes)
    torch.save(rows, HERE / f"values_{version}.pt")
    pack(HERE / f"values_{version}.pt")


if __name__ == "__main__":
    main(sys.argv[1])
