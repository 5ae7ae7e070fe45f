#!/usr/bin/env python3
"""Writes the files in this folder: TorchScript archives by PyTorch 2.15, and what PyTorch computes with them.

    tests/nn/script/goldens/make_goldens.py

NAME.pt is an archive. values.pt holds for each NAME its inputs and, computed in float64: the outputs, the weights of the loss (the sum
of outputs times weights), the parameters' gradients; and the largest error of PyTorch's float32 against that, relative to the largest
element. The same script gives the same values on one machine.
"""

import copy
import enum
import pathlib
import warnings
import zipfile
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union

import torch
from torch import nn, Tensor
from torch.nn import functional as F

HERE = pathlib.Path(__file__).absolute().parent
AS_WRITTEN = ("mlp_scripted.pt", "shared.pt")
warnings.simplefilter("ignore")


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x):
        return F.log_softmax(self.layers(x), dim=-1)


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(6)
        self.conv2 = nn.Conv2d(6, 8, 3, stride=2, groups=2)
        self.norm2 = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.silu(self.norm2(self.conv2(x)))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(10, 4)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(words), lengths, batch_first=True, enforce_sorted=False)
        out, _ = self.lstm(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        return self.head(padded)


class Attention(nn.Module):
    def __init__(self, size: int, heads: int, causal: bool):
        super().__init__()
        self.heads = heads
        self.causal = causal
        self.qkv = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        n, t, c = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(n, t, c))


class Block(nn.Module):
    def __init__(self, size: int, heads: int, causal: bool):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention = Attention(size, heads, causal)
        self.feed = nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.feed(self.norm2(x))


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, stride=4)
        self.token = nn.Parameter(torch.randn(1, 1, 8) * 0.1)
        self.places = nn.Parameter(torch.randn(1, 5, 8) * 0.1)
        self.blocks = nn.Sequential(Block(8, 2, False), Block(8, 2, False))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.places
        return self.head(self.blocks(x)[:, 0])


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(13, 8), nn.Embedding(6, 8)
        self.blocks = nn.ModuleList([Block(8, 2, True) for _ in range(2)])
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 13, bias=False)
        self.head.weight = self.words.weight  # tied

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.size(1), device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)

    def forward(self, x):
        return self.layer(x)


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(2, 4, 3, padding=1)
        self.mid = nn.Conv2d(4, 6, 3, padding=1)
        self.up = nn.ConvTranspose2d(6, 4, 2, stride=2)
        self.norm = nn.GroupNorm(2, 8)
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = F.relu(self.down(x))
        b = F.leaky_relu(self.mid(F.avg_pool2d(a, 2)), 0.1)
        c = torch.cat([a, self.up(b)], dim=1)
        c = F.interpolate(self.norm(c), scale_factor=2.0, mode="bilinear", align_corners=False)
        return torch.sigmoid(self.out(c))


class Beam(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 5)
        self.cell = nn.GRUCell(5, 5)
        self.head = nn.Linear(5, 7)

    def forward(self, start: Tensor, width: int, steps: int) -> Tuple[List[List[int]], List[float], Dict[int, int]]:
        beams: List[Tuple[List[int], float, Tensor]] = [([1], 0.0, start)]
        seen: Dict[int, int] = {}
        for step in range(steps):
            found: List[Tuple[float, int, int]] = []
            states: List[Tensor] = []
            for i, (words, score, state) in enumerate(beams):
                state = self.cell(self.embed(torch.tensor([words[-1]])), state)
                states.append(state)
                values, indices = F.log_softmax(self.head(state), dim=1).topk(width, dim=1)
                for j in range(width):
                    found.append((-(score + float(values[0, j])), i, int(indices[0, j])))
            found.sort()
            made: List[Tuple[List[int], float, Tensor]] = []
            for negated, i, word in found[:width]:
                if word in seen:
                    seen[word] += 1
                else:
                    seen[word] = 1
                made.append((beams[i][0] + [word], -negated, states[i]))
            beams = made
            if len(beams[0][0]) > 20:
                break
        return [b[0] for b in beams], [b[1] for b in beams], seen


class Kind(enum.Enum):
    ADD = 1
    MUL = 2


class Pair(NamedTuple):
    left: Tensor
    right: Tensor
    count: int


@torch.jit.interface
class Step(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Double(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([1.5, -0.5]))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


@torch.jit.script
class Counter:
    def __init__(self, start: int):
        self.n = start
        self.names: List[str] = []

    def add(self, name: str) -> int:
        self.n += 1
        self.names.append(name)
        return self.n


class Types(nn.Module):
    step: Step
    limit: Final[int]

    def __init__(self):
        super().__init__()
        self.step = Scale()
        self.kind = Kind.MUL
        self.limit = 3
        self.names = ["a", "b"]
        self.table = {"a": [1.0, 2.0], "b": [3.0]}
        self.bias: Optional[Tensor] = None
        self.register_buffer("absent", None)

    def forward(self, x: Tensor, y: Optional[Tensor] = None) -> Tuple[Tensor, int, str]:
        counter = Counter(2)
        total = 0.0
        for name in self.names:
            counter.add(name.upper())
            for v in self.table[name]:
                total += v
        if y is not None:
            x = x + y
        elif self.bias is not None:
            x = x - 1
        assert x.dim() == 2, "two dimensions"
        pair = self.pair(x)
        if self.kind == Kind.MUL:
            z = pair.left * pair.right
        else:
            z = pair.left + pair.right
        return self.step(z) + total, counter.n + pair.count * self.limit, "-".join(counter.names)

    @torch.jit.export
    def pair(self, x: Tensor) -> Pair:
        return Pair(x, x.tanh(), x.size(0))


class Forked(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        future = torch.jit.fork(self.a, x)
        y = self.b(x)
        z = torch.jit.wait(future)
        with torch.no_grad():
            scale = z.abs().max()
        return z * y / scale


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        base = torch.randn(12)
        self.weight = nn.Parameter(torch.randn(4, 3).t())  # strided
        self.again = self.weight
        self.register_buffer("whole", base)
        self.register_buffer("part", base[2:8].view(2, 3))
        self.register_buffer("windows", base.as_strided((5, 3), (2, 1)))  # overlapping
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.register_buffer("sixteen", torch.arange(3).to(torch.bfloat16))

    def forward(self, x: Tensor) -> Tensor:
        self.calls = self.calls + 1
        y = x @ self.weight @ self.again.t()
        return y * self.windows.sum() + self.part.mean() * self.calls + self.whole[3]


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Double()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.inner(x))


def inner_before(self, inputs: Tuple[Tensor]) -> Tuple[Tensor]:
    return (inputs[0] + 1,)


def inner_after(self, inputs: Tuple[Tensor], output: Tensor) -> Tensor:
    return output - inputs[0] * 0.5


def outer_after(self, inputs: Tuple[Tensor], output: Tensor) -> Tensor:
    return output.sigmoid()


def hooked():
    net = Hooked()
    net.inner.register_forward_pre_hook(inner_before)
    net.inner.register_forward_hook(inner_after)
    net.register_forward_hook(outer_after)
    return net


class Blocks(nn.Module):
    """Blocks of `with`, dtypes that are new, and lists of a dictionary's values."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.register_buffer("sixteen", torch.tensor([1, 65535, 7]).to(torch.uint16))
        self.register_buffer("thirty_two", torch.tensor([4294967295, 5]).to(torch.uint32))

    def forward(self, x: Tensor, n: int) -> Tuple[Tensor, List[Tensor], List[int], bool]:
        with torch.autograd.profiler.record_function("inner"):
            y = self.inner(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = self.inner(x)
        with torch.autocast("cpu", enabled=False):
            y = y + self.inner(x)
        table: Dict[str, Tensor] = {}
        found = list(table.values())
        if n > 0:
            table["y"] = y
            found.extend(table.values())
        found.append(z.to(x.dtype))
        places: Dict[int, int] = {}
        keys = list(places.keys())
        keys.append(n)
        scale = self.sixteen.to(x.dtype).sum() / self.thirty_two.to(x.dtype).sum()
        return y * scale, found, keys, torch.is_autocast_cpu_enabled()


def tensors_of(value):
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_of(v)]
    return []


def plain(value):
    """Without named tuples, for torch.load(weights_only) and load_pt()."""
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value.detach().clone() if isinstance(value, Tensor) else value


def cast(value, dtype):
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() else value.clone()
    return value


def run(module, inputs, dtype, weights=None):
    module = copy.deepcopy(module).to(dtype)
    result = module(*[cast(i, dtype) for i in inputs])
    outputs = [t for t in tensors_of(result) if t.is_floating_point() and t.requires_grad]
    if weights is None:
        weights = [torch.cos(torch.arange(t.numel(), dtype=torch.float64)).view(t.shape) for t in outputs]
    if outputs:
        sum((t * w.to(dtype)).sum() for t, w in zip(outputs, weights)).backward()
    grads = {n: p.grad for n, p in module.named_parameters() if p.grad is not None}
    return result, outputs, weights, grads


def error(a, b):
    return float((a.double() - b).abs().max() / b.abs().max().clamp_min(1e-300)) if b.numel() else 0.0


class scale(nn.Module):  # noqa: N801 (a class, a member, a method and a variable have one name)
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.5, 2.0]))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight


def later(x: Tensor, k: int) -> Tensor:
    item = [k, k + 1][0]
    return x + item


def earlier(x: Tensor, k: int) -> Tensor:
    return later(x, k) * later(x, 1)


class Named(nn.Module):
    """What translations could get wrong: names that are alike, loops that read parameters, attributes that change."""

    def __init__(self):
        super().__init__()
        self.scale = scale()
        self.k = 2
        self.steps = 0
        self.default = 0.25
        self.register_buffer("total", torch.zeros(2))

    def mask(self, x: Tensor) -> Tensor:
        return (x > self.default).to(x.dtype)

    def forward(self, x: Tensor, k: int = 3) -> Tensor:
        self.steps += 1
        mask = self.mask(x)
        scale = self.scale(x)
        y = scale * k + self.k
        for i in range(self.k):
            if i < self.steps:
                y = y + x * i
        while k > 1:
            k -= 1
            y = later(earlier(y, k), self.k) * 0.5
        self.total = self.total + y.detach().sum(0)
        if self.training:
            y = y * 2
        return y * mask * self.steps + self.total


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.k = nn.Parameter(torch.ones(2)), 3
        self.register_buffer("b", torch.zeros(2))

    def forward(self, x):
        return x * self.w + self.b + self.k


class Frozen(nn.Module):
    """For freeze(): what forward() changes, what only another method uses, constants of all kinds."""

    size: Final[int]

    def __init__(self):
        super().__init__()
        self.sub, self.unused = Part(), Part()
        self.n, self.size, self.names, self.calls = 2, 7, ["a", "b"], 0
        self.register_buffer("count", torch.zeros(1))
        self.ml = nn.ModuleList([Part()])

    def forward(self, x):
        self.count.add_(1)
        self.calls += 1
        for m in self.ml:
            x = m(x)
        return self.sub(x) * self.n + self.size

    @torch.jit.export
    def other(self, x):
        return self.unused(x)


def add_one(x: Tensor):
    x.add_(1)


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))
        self.register_buffer("still", torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        self.seen.add_(1)
        return x + self.seen * self.still


class Changing(nn.Module):
    """For freeze(): attributes that forward() and a hook change in other ways than by name."""

    items: List[Tensor]

    def __init__(self):
        super().__init__()
        for name in ["cache", "viewed", "a", "b", "passed", "given", "hooked", "still", "held", "weight"]:
            self.register_buffer(name, torch.zeros(2, 2))
        self.items, self.n, self.first = [torch.zeros(2)], 0, Counted()
        self.second = self.first

    def last(self, x: Tensor):
        return x.view(-1)

    def forward(self, x: Tensor, c: bool = False) -> Tensor:
        self.cache[0] = x[0]
        view = self.viewed.t()
        for i in range(2):
            view[i].mul_(2)
            view = view.transpose(0, 1)
        y = self.a if c else self.b
        y.add_(1)
        t = self.training if c else True
        if t:
            self.n += 1
        if self.training:
            self.held.add_(1)
        add_one(self.passed)
        self.last(self.given).add_(1)
        self.items.append(x)
        z = torch.nn.functional.linear(x, self.weight)
        z.add_(1)
        torch.relu_(z)
        return self.first(x) + self.second(x) + self.still + z


def hook_of_changing(self, inputs: Tuple[Tensor, bool], output: Tensor) -> Tensor:
    self.hooked.add_(1)
    return output


def changing():
    net = Changing()
    net.register_forward_hook(hook_of_changing)
    return torch.jit.script(net.eval())


class Placed(nn.Module):
    """A device and a tensor that tracing makes constants of the code."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.5, 2.0, -1.0]))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.arange(3, device=torch.device("cpu")) + self.weight * torch.tensor([1.0, 2.0, 4.0])


class WithDevice(nn.Module):
    def __init__(self, traced):
        super().__init__()
        self.traced = traced
        self.place = torch.device("cpu")

    def forward(self, x: Tensor) -> Tensor:
        return self.traced(x)

    @torch.jit.export
    def device(self) -> torch.device:
        return torch.device("cpu")

    @torch.jit.export
    def attribute(self) -> torch.device:
        return self.place


@torch.jit.script
class Box:
    def __init__(self, size: float):
        self.size = size
        self.calls = 0
        self.history: List[float] = []

    def scale(self, x: Tensor, times: int) -> Tensor:
        self.calls += 1
        self.history.append(self.size * times)
        return x * self.size * times

    def twice(self, x: Tensor) -> Tensor:
        return self.scale(x, 2)

    def itself(self):
        return self


def boxed(box: Box, x: Tensor, times: int) -> Tensor:
    return box.scale(x, times)


@torch.jit.script
class Noted:
    def __init__(self, notes: List[str], name: str):
        self.notes = notes
        self.name = name

    def __enter__(self) -> int:
        self.notes.append("into " + self.name)
        return len(self.notes)

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self.notes.append("out of " + self.name)


class Cell(nn.Module):
    """Held in two places, with attributes that change."""

    seen: List[int]
    last: Optional[Tensor]

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.5, -1.0]))
        self.register_buffer("mean", torch.zeros(2))
        self.calls = 0
        self.seen = []
        self.last = None

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.seen.append(x.size(0))
        self.mean = self.mean * 0.5 + x.detach().mean(0)
        last = self.last
        if last is not None:
            x = x + last.sum()
        self.last = x.detach()[0]
        return x * self.weight + self.calls


class Quiet(nn.Module):
    """forward() gives nothing, and has a hook."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(2))
        self.calls = 0

    def forward(self, x: Tensor) -> None:
        self.total = self.total + x.sum(0)


def counted(self, inputs: Tuple[Tensor], output: None) -> None:
    self.calls += inputs[0].size(0)


def quiet():
    net = Quiet()
    net.register_forward_hook(counted)
    return torch.jit.script(net)


class Twice(nn.Module):
    """Holds one module under two names."""

    def __init__(self, inner):
        super().__init__()
        self.a = self.b = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.a(x)


def paths():
    """18 modules with 2^18 paths to the innermost. PyTorch takes time for each path."""
    net = torch.jit.script(Double())
    for _ in range(18):
        net = torch.jit.script(Twice(net))
    return net


class Holder(nn.Module):
    def __init__(self, cell: Cell):
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor) -> Tensor:
        return self.cell(x)


Deep = int
for _ in range(24):
    Deep = List[Deep]


def deep(levels: int):
    return [deep(levels - 1)] if levels > 0 else 1


class Language(nn.Module):
    """What of the language has no single word in C++."""

    totals: Dict[str, int]
    ranks: List[List[int]]
    deep: Deep

    def __init__(self):
        super().__init__()
        self.cell = Cell()
        self.holder = Holder(self.cell)
        self.box = Box(1.5)
        self.totals = {"a": 1}
        self.ranks = [[3, 1], [2]]
        self.deep = deep(24)
        self.linux, self.EOF, self.int64_t, self.M_PI = 2, 3, 4, 5
        self.register_buffer("major", torch.ones(()))

    def macros(self, unix: int) -> int:
        errno = [unix]
        errno += [self.linux, self.EOF]
        stdin = errno
        stdin += errno
        return errno[1] * self.int64_t + stdin[2] * self.M_PI + len(self.deep)

    def lists(self, n: int) -> Tuple[List[int], List[int], int, float, List[str]]:
        numbers: List[int] = []
        same = numbers
        for i in range(n):
            same.append(i * i % 7)
        numbers.insert(1, 40)
        numbers[-1] = 9
        numbers.extend(numbers[1:4])
        last = numbers.pop()
        first = numbers.pop(0)
        numbers.reverse()
        taken = numbers[::2] + [first] * 2
        taken.sort(reverse=True)
        del numbers[0]
        if 40 in numbers:
            numbers.remove(40)
        reals = [float(v) / 3 for v in numbers]
        texts = [str(v) for v in reals[:2]] + "x,y".split(",")
        texts.append("{} of {}".format(last, 2.0))
        texts.append("a\0b")
        if n == 99:
            texts.append("{} {}".format(n))
        return numbers, taken, numbers.index(9) + min(taken) + sum(taken) + taken.count(9), max(reals), texts

    def dicts(self, table: Dict[str, Tensor]) -> Tuple[List[str], List[Tensor], Dict[str, int]]:
        counts: Dict[str, int] = {}
        for key, value in table.items():
            counts[key] = counts.get(key, 10) + value.dim()
            self.totals[key] = self.totals.setdefault(key, 0) + 1
        other = {"z": 5}
        other.update(counts)
        if "w" in other:
            gone = other.pop("w")
            other["gone"] = gone
        return list(table.keys()), list(other_values(table)), other

    def half(self, x: Tensor, by: float = 2.0) -> Tensor:
        return x / by

    def numbers(self, value: Union[Tensor, List[int]]) -> int:
        if isinstance(value, Tensor):
            return value.dim()
        return len(value)

    def forward(self, x: Tensor, table: Dict[str, Tensor], n: int):
        notes: List[str] = []
        with Noted(notes, "all") as depth:
            with torch.no_grad():
                scale = x.abs().max()
            future = torch.jit.fork(self.half, x)
            with Noted(notes, "box"):
                y = self.box.twice(self.cell(x)) + self.holder(x)
            y = y + future.wait() * scale
        box = Box(0.25)
        other = box.itself()
        y = boxed(other, y, 3) + box.calls
        numbers, taken, total, largest, texts = self.lists(n)
        keys, values, counts = self.dicts(table)
        for v in values:
            y = y + v.sum()
        ranks = self.ranks
        ranks[0].append(n)
        rows: List[List[float]] = y.detach().tolist()
        count = self.numbers(y) + self.numbers(numbers) + self.macros(n)
        y = y * self.major
        table["y"] = y
        if y is x:
            count = -1
        made = torch.tensor([[float(v) for v in numbers[:2]], [1.0, 2.0]])
        result = (y, notes, depth, numbers, taken, total, largest, texts, keys, counts)
        return result, (table, rows, count, made, box.history, self.box.calls, self.totals, ranks, self.cell.seen)


def other_values(table: Dict[str, Tensor]) -> List[Tensor]:
    return list(table.values())


def language():
    """torch.jit.script() makes two of a module that has two places: here it is one."""
    net = torch.jit.script(Language().eval())
    net.holder._c.setattr("cell", net.cell._c)
    return net


def pack(path):
    """Deflates an archive's entries: the folder stays small. Both libraries read such files."""
    with zipfile.ZipFile(path) as old:
        entries = [(i.filename, old.read(i)) for i in old.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for name, data in entries:
            new.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    image, small = torch.randn(2, 3, 8, 8), torch.randn(4, 5)
    rows = {}

    def add(name, net, inputs, traced=False, train=False, extra=None):
        net.train(train)
        module = torch.jit.trace(net, tuple(inputs), check_trace=False) if traced else torch.jit.script(net)
        torch.jit.save(module, str(HERE / (name + ".pt")), _extra_files=extra or {})
        loaded = torch.jit.load(str(HERE / (name + ".pt")))
        result, outputs, weights, grads = run(loaded, inputs, torch.float64)
        _, outputs32, _, grads32 = run(loaded, inputs, torch.float32, weights)
        rows[name] = {
            "inputs": [plain(i) for i in inputs],
            "result": plain(result),
            "weights": weights,
            "grads": grads,
            "errors": [error(a.detach(), b.detach()) for a, b in zip(outputs32, outputs)],
            "grad_errors": {n: error(grads32[n], g) for n, g in grads.items()},
        }

    add("mlp_traced", Mlp(), [small], traced=True)
    add("mlp_scripted", Mlp(), [small], extra={"about.txt": "an MLP", "empty": ""})
    add("cnn_traced", Cnn(), [image], traced=True)
    add("cnn_scripted", Cnn(), [image], train=True)
    add("tagger", Tagger(), [torch.randint(0, 11, (3, 6)), torch.tensor([4, 6, 1])])
    add("vit_traced", Vit(), [image], traced=True)
    add("gpt_scripted", Gpt(), [torch.randint(0, 13, (2, 6))])
    add("encoder_traced", Encoder(), [torch.randn(2, 4, 8)], traced=True, train=True)
    add("unet", Unet(), [torch.randn(1, 2, 6, 6)], traced=True)
    add("beam", Beam(), [torch.randn(1, 5), 3, 4])
    add("types", Types(), [torch.randn(3, 2), torch.randn(3, 2)])
    add("forked", Forked(), [torch.randn(2, 3)])
    add("shared", Shared(), [torch.randn(2, 3)])
    add("hooked", hooked(), [torch.randn(2, 3)])
    add("blocks", Blocks(), [torch.randn(2, 3), 2])
    torch.jit.save(torch.jit.script(Named().eval()), str(HERE / "named.pt"))
    torch.jit.save(torch.jit.script(Frozen()), str(HERE / "frozen.pt"))
    torch.jit.save(changing(), str(HERE / "changing.pt"))


    torch.jit.save(torch.jit.script(WithDevice(torch.jit.trace(Placed(), (torch.randn(2, 3),)))), str(HERE / "placed.pt"))
    torch.jit.save(language(), str(HERE / "language.pt"))
    torch.jit.save(quiet(), str(HERE / "quiet.pt"))
    torch.jit.save(paths(), str(HERE / "paths.pt"))
    torch.save(rows, HERE / "values.pt")
    for path in HERE.glob("*.pt"):
        if path.name not in AS_WRITTEN:
            pack(path)


if __name__ == "__main__":
    main()
