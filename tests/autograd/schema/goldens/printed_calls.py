#!/usr/bin/env python3
"""Counts what printed TorchScript code calls. It needs PyTorch; with transformers installed it counts three of its models too.

    python3 tests/autograd/schema/goldens/printed_calls.py

It scripts and traces the networks below, reads the code in their archives and writes printed_calls.txt: an operator and how
often it is called, in as many lines. It also writes pytorch_schemas.txt: PyTorch's schemas of every operator that Ramet has (the
names are in the old file) or that is called. //tests/autograd/schema compares, and makes tools/compat/OPERATORS.md from both.
"""

import collections
import io
import math
import pathlib
import re
import sys
import warnings
import zipfile
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

HERE = pathlib.Path(__file__).resolve().parent
CALLS = HERE / "printed_calls.txt"
SCHEMAS = HERE / "pytorch_schemas.txt"
CORE = HERE / "core_operators.txt"
# Overloads that no printed code of a model has: writing into given results, other kinds of tensors, complex numbers.
LEFT_OUT = re.compile(r"\*, Tensor\(a!\)|Tensor\([a-z]!\) out\b|\bcomplex\b|Dimname|Stream|QScheme|Storage|\.out\b|_out\(")


class Block(nn.Module):
    """Of a ResNet."""

    def __init__(self, width, stride):
        super().__init__()
        self.a, self.b = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.na, self.nb, self.relu = nn.BatchNorm2d(width), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        self.down = nn.Sequential(nn.Conv2d(width, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.relu(self.na(self.a(x)))
        y = self.nb(self.b(y))
        y += self.down(x)
        return self.relu(y)


class ResNet(nn.Module):

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.layers = nn.Sequential(*[Block(8, 1 + i % 2) for i in range(4)])
        self.pool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(8, 10)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.layers(self.stem(x))), 1))


class Squeeze(nn.Module):
    """Squeeze and excitation, of MobileNet V3 and EfficientNet."""

    def __init__(self, width):
        super().__init__()
        self.pool, self.fc1, self.fc2 = nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, 4, 1), nn.Conv2d(4, width, 1)
        self.relu, self.scale = nn.ReLU(), nn.Hardsigmoid()

    def forward(self, x):
        return self.scale(self.fc2(self.relu(self.fc1(self.pool(x))))) * x


class MobileNet(nn.Module):

    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish(inplace=True)]
        for activation in (nn.ReLU6(inplace=True), nn.Hardswish(inplace=True), nn.SiLU(inplace=True)):
            layers += [nn.Conv2d(8, 8, 3, 1, 1, groups=8), nn.BatchNorm2d(8), activation, Squeeze(8)]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(8, 10))

    def forward(self, x):
        x = self.features(x)
        return self.classifier(nn.functional.adaptive_avg_pool2d(x, (1, 1)).reshape(x.shape[0], -1))


class DenseNet(nn.Module):

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(3 + 4 * i, 4, 3, padding=1) for i in range(3)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(3 + 4 * i) for i in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for layer, norm in zip(self.layers, self.norms):
            features.append(layer(F.relu(norm(torch.cat(features, 1)))))
        return F.avg_pool2d(torch.cat(features, 1), 2, 2)


class UNet(nn.Module):

    def __init__(self):
        super().__init__()
        self.down, self.middle = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.up, self.last = nn.ConvTranspose2d(8, 8, 2, 2), nn.Conv2d(16, 2, 1)

    def forward(self, x):
        a = F.leaky_relu(self.down(x), 0.1)
        b = torch.relu(self.middle(F.max_pool2d(a, 2)))
        up = self.up(b)
        dy, dx = a.size(2) - up.size(2), a.size(3) - up.size(3)
        up = F.pad(up, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return torch.sigmoid(self.last(torch.cat([a, up], dim=1)))


class DeepLab(nn.Module):

    def __init__(self):
        super().__init__()
        self.rates = nn.ModuleList([nn.Conv2d(3, 4, 3, padding=r, dilation=r) for r in (1, 2, 3)])
        self.pool, self.project = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(3, 4, 1)), nn.Conv2d(16, 5, 1)

    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        size = x.shape[-2:]
        parts: List[Tensor] = []
        for rate in self.rates:
            parts.append(rate(x))
        parts.append(F.interpolate(self.pool(x), size=size, mode="bilinear", align_corners=False))
        out: Dict[str, Tensor] = {}
        out["out"] = F.interpolate(self.project(torch.cat(parts, dim=1)), size=size, mode="bilinear", align_corners=False)
        return out


class ViT(nn.Module):

    def __init__(self):
        super().__init__()
        self.patch, self.cls = nn.Conv2d(3, 16, 4, 4), nn.Parameter(torch.zeros(1, 1, 16))
        self.place = nn.Parameter(torch.zeros(1, 5, 16))
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, 0.1, "gelu", batch_first=True), 2)
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], dim=1) + self.place
        return self.head(self.norm(self.encoder(x))[:, 0])


class GPT(nn.Module):

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(20, 16), nn.Embedding(8, 16)
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.register_buffer("mask", torch.tril(torch.ones(8, 8)).view(1, 1, 8, 8))

    def forward(self, ids: Tensor, targets: Optional[Tensor] = None) -> Tuple[Tensor, Optional[Tensor]]:
        b, t = ids.size()
        assert t <= 8, f"got {t} tokens"
        x = self.tokens(ids) + self.places(torch.arange(0, t, dtype=torch.long, device=ids.device))
        q, k, v = self.qkv(self.norm(x)).split(16, dim=2)
        k, q = k.view(b, t, 2, 8).transpose(1, 2), q.view(b, t, 2, 8).transpose(1, 2)
        v = v.view(b, t, 2, 8).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / float(k.size(-1))**0.5)
        att = F.softmax(att.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf")), dim=-1)
        y = (att @ v).transpose(1, 2).contiguous().view(b, t, 16)
        y = y + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, 16)
        logits = F.linear(F.gelu(self.out(y)), self.tokens.weight)
        loss: Optional[Tensor] = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss

    @torch.jit.export
    def generate(self, ids: Tensor, steps: int, temperature: float = 1.0, top_k: Optional[int] = None) -> Tensor:
        with torch.no_grad():
            for _ in range(steps):
                cut = ids if ids.size(1) <= 8 else ids[:, -8:]
                logits = self.forward(cut, None)[0][:, -1, :] / temperature
                if top_k is not None:
                    v, _i = torch.topk(logits, min(top_k, logits.size(-1)))
                    logits[logits < v[:, -1].unsqueeze(1)] = -float("inf")
                ids = torch.cat((ids, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)), dim=1)
        return ids


class Tagger(nn.Module):

    def __init__(self):
        super().__init__()
        self.embed, self.lstm = nn.Embedding(20, 8, padding_idx=0), nn.LSTM(8, 8, 2, bidirectional=True, batch_first=True, dropout=0.1)
        self.gru, self.rnn, self.fc = nn.GRU(16, 8), nn.RNN(8, 8), nn.Linear(8, 5)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(ids), lengths, batch_first=True, enforce_sorted=False)
        packed, (h, c) = self.lstm(packed)
        x, _ = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True, padding_value=0.0)
        x, _h = self.gru(x.transpose(0, 1))
        x, _h2 = self.rnn(x)
        return F.log_softmax(self.fc(x), dim=-1)


class Cell(nn.Module):

    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTMCell(4, 4), nn.GRUCell(4, 4)

    def forward(self, xs: List[Tensor]) -> Tensor:
        h, c = torch.zeros(2, 4), torch.zeros(2, 4)
        g = torch.zeros_like(h)
        out: List[Tensor] = []
        for i, x in enumerate(xs):
            h, c = self.lstm(x, (h, c))
            g = self.gru(x, g)
            out += [h + g if i % 2 == 0 else h.neg()]
        return torch.stack(out, dim=0)


class Beam(nn.Module):
    """A beam search over a table of scores."""

    def __init__(self):
        super().__init__()
        self.table, self.eos = nn.Parameter(torch.randn(12, 12)), 1

    def forward(self, start: int, width: int, steps: int) -> Tuple[List[List[int]], List[float]]:
        beams: List[Tuple[List[int], float]] = [([start], 0.0)]
        finished: Dict[str, float] = {}
        for step in range(steps):
            grown: List[Tuple[float, int, int]] = []
            for number, (tokens, score) in enumerate(beams):
                if tokens[-1] == self.eos:
                    finished[str(tokens)] = score / float(len(tokens))
                    continue
                logs = torch.log_softmax(self.table[tokens[-1]], dim=0)
                best, which = logs.topk(width)
                for k in range(width):
                    grown.append((score + float(best[k].item()), number, int(which[k].item())))
            if len(grown) == 0:
                break
            grown = sorted(grown)
            grown.reverse()
            longer: List[Tuple[List[int], float]] = []
            for score, number, token in grown[:width]:
                longer.append((beams[number][0] + [token], score))
            beams = longer
        while len(beams) > width:
            beams.pop()
        return [b[0] for b in beams], [b[1] for b in beams]


class Box(NamedTuple):
    box: Tensor
    score: float
    label: int


class Detector(nn.Module):
    """A detector's post-processing: anchors, decoding, suppression of doubles, dictionaries of results."""

    def __init__(self):
        super().__init__()
        self.threshold: float = 0.3
        self.names: List[str] = ["none", "cat", "dog"]

    def iou(self, a: Tensor, b: Tensor) -> Tensor:
        area = (a[:, 2] - a[:, 0]).clamp(min=0) * (a[:, 3] - a[:, 1])
        other = (b[2] - b[0]) * (b[3] - b[1])
        low, high = torch.max(a[:, :2], b[:2]), torch.min(a[:, 2:], b[2:])
        size = (high - low).clamp(min=0)
        inter = size[:, 0] * size[:, 1]
        return inter / (area + other - inter)

    def nms(self, boxes: Tensor, scores: Tensor) -> Tensor:
        order = scores.argsort(descending=True)
        keep: List[int] = []
        while order.numel() > 0:
            i = int(order[0])
            keep.append(i)
            if order.numel() == 1:
                break
            rest = order[1:]
            order = rest[self.iou(boxes[rest], boxes[i]) <= self.threshold]
        return torch.tensor(keep, dtype=torch.int64, device=boxes.device)

    def forward(self, deltas: List[Tensor], logits: Tensor, sizes: List[Tuple[int, int]]) -> List[Dict[str, Tensor]]:
        results: List[Dict[str, Tensor]] = []
        probs = F.softmax(logits, -1)
        for index, delta in enumerate(deltas):
            height, width = sizes[index]
            shift_x = torch.arange(0, width, dtype=torch.float32) * 4.0
            shift_y = torch.arange(0, height, dtype=torch.float32) * 4.0
            y, x = torch.meshgrid(shift_y, shift_x, indexing="ij")
            anchors = torch.stack((x.reshape(-1), y.reshape(-1), x.reshape(-1) + 8, y.reshape(-1) + 8), dim=1)
            wh = anchors[:, 2:] - anchors[:, :2]
            center = anchors[:, :2] + 0.5 * wh
            center = center + delta[:, :2] * wh
            half = torch.exp(torch.clamp(delta[:, 2:], max=4.0)) * wh * 0.5
            boxes = torch.cat((center - half, center + half), dim=1)
            boxes[..., 0::2] = boxes[..., 0::2].clamp(min=0, max=width)
            scores, labels = probs[index].max(dim=1)
            inside = torch.where(scores > 0.05)[0]
            boxes, scores, labels = boxes[inside], scores[inside], labels[inside]
            kept = self.nms(boxes, scores)[:10]
            found = torch.nonzero(labels[kept] > 0).squeeze(1)
            keep = kept[found]
            result = {"boxes": boxes[keep], "scores": scores[keep], "labels": labels[keep]}
            if torch.jit.is_scripting() and len(result) != 3:
                raise RuntimeError("no result for image {}".format(index))
            for key, value in result.items():
                if key in ["boxes"] and value.numel() == 0:
                    result[key] = value.new_zeros([0, 4])
            results.append(result)
        return results

    @torch.jit.export
    def texts(self, found: Dict[str, Tensor]) -> List[str]:
        out: List[str] = []
        for i in range(found["labels"].size(0)):
            box = Box(found["boxes"][i], float(found["scores"][i]), int(found["labels"][i]))
            name = self.names[box.label] if box.label < len(self.names) else "?"
            out.append("%s: %f" % (name.upper(), box.score))
        return [t.lower() if t.startswith("C") or t.find("DOG") > 0 else t for t in out]


class Pinn(nn.Module):

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        u = self.net(torch.cat([x, t], dim=1))
        ones: List[Optional[Tensor]] = [torch.ones_like(u)]
        ux = torch.autograd.grad([u], [x], grad_outputs=ones, create_graph=True)[0]
        ut = torch.autograd.grad([u], [t], grad_outputs=ones, create_graph=True)[0]
        assert ux is not None and ut is not None
        uxx = torch.autograd.grad([ux], [x], grad_outputs=ones, create_graph=True)[0]
        assert uxx is not None
        return torch.mean((ut + u * ux - 0.01 / 3.14 * uxx)**2) + torch.sum(torch.square(u)).sqrt()


class Relative(nn.Module):
    """T5's buckets of positions, and what else attention of text models computes."""

    def __init__(self):
        super().__init__()
        self.bias, self.weight = nn.Embedding(8, 2), nn.Parameter(torch.ones(16))
        self.q = nn.Linear(16, 16, bias=False)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        v = x.to(torch.float32).pow(2).mean(-1, keepdim=True)
        h = self.weight * (x * torch.rsqrt(v + 1e-6)).type_as(x)
        n = x.shape[1]
        place = torch.arange(n)[None, :] - torch.arange(n)[:, None]
        bucket = (place > 0).to(torch.long) * 4
        place = torch.abs(place)
        large = 2 + (torch.log(place.float().clamp(min=1) / 2) / 1.386 * 2).to(torch.long)
        large = torch.min(large, torch.full_like(large, 3))
        bucket += torch.where(place < 2, place, large)
        bias = self.bias(bucket).permute([2, 0, 1]).unsqueeze(0)
        q = self.q(h).view(x.size(0), -1, 2, 8).transpose(1, 2)
        scores = torch.matmul(q, q.transpose(3, 2))
        extended = (1.0 - mask[:, None, None, :].to(scores.dtype)) * -3.4e38
        scores += bias + extended
        out = torch.einsum("bhqk,bhkd->bhqd", F.softmax(scores.float(), dim=-1).type_as(scores), q)
        return F.dropout(out.transpose(1, 2).contiguous().flatten(-2), p=0.1, training=self.training)


class Everyday(nn.Module):
    """Functions that programs use everywhere."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleDict({"group": nn.GroupNorm(2, 4), "instance": nn.InstanceNorm2d(4, affine=True)})
        self.bag, self.prelu = nn.EmbeddingBag(10, 4, mode="sum"), nn.PReLU()
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x: Tensor, other: Optional[Tensor] = None, mode: str = "mean") -> Tensor:
        if other is None:
            other = x.clone().detach()
        self.steps += 1
        y = self.norms["group"](x)
        for norm in self.norms.values():
            y = norm(y)
        y = F.elu(y) + F.selu(y) + F.softplus(y) + F.mish(y) + self.prelu(y) + F.hardtanh(y, -2.0, 2.0) + torch.tanh(y)
        y = F.conv2d(F.pad(y, (1, 1, 1, 1), mode="reflect"), torch.ones(4, 1, 3, 3), groups=4)
        y = F.pixel_shuffle(y, 2) if y.size(1) % 4 == 0 else y
        y = y.flip([2]).roll(1, 2).repeat(1, 2, 1, 1).chunk(2, dim=1)[0]
        y = F.interpolate(y, scale_factor=2.0, mode="nearest")
        z = torch.zeros([2, 3], dtype=x.dtype, device=x.device).scatter_(1, torch.tensor([[0], [1]]), 1.0)
        z = z.gather(1, torch.zeros([2, 1], dtype=torch.int64)).index_select(0, torch.arange(2)).expand(2, 3).contiguous()
        z.copy_(torch.rand_like(z)).mul_(2.0).add_(z, alpha=0.5).clamp_(0.0, 1.0)
        z = z.masked_fill(z.gt(0.5) & ~z.isnan(), 0.0).triu().cumsum(dim=1).var(dim=0, keepdim=True)
        stats = torch.std(x) + x.norm(p=2, dim=1).max() + x.sum(dim=[2, 3]).min() + x.amax(dim=(1, 2)).prod()
        stats = stats + torch.logsumexp(x, dim=1).mean() + F.mse_loss(x, other) + F.l1_loss(x, other, reduction=mode)
        stats = stats + F.binary_cross_entropy_with_logits(x, other.sigmoid()) + F.smooth_l1_loss(x, other)
        stats = stats + self.bag(torch.tensor([1, 2, 3]), torch.tensor([0, 2])).sum() + torch.cdist(z, z).sum()
        values, places = x.sort(dim=-1, descending=True)
        one = F.one_hot(places.view(-1)[:2] % 3, 3).float()
        split = torch.split(x, 2, dim=1)
        a, b = split[0], split[1]
        cos = F.cosine_similarity(a.flatten(1), b.flatten(1)) + F.normalize(a.flatten(1)).sum(1)
        bins = torch.bucketize(x, torch.linspace(-1, 1, 5))
        left = torch.floor_divide(places, 2) + places.remainder(3) + places // 2 + places % 2
        logic = torch.logical_and(x > 0, other.lt(1)).any() | (x != other).all() | torch.isfinite(x).all()
        number = math_of(int(left.max()), float(stats.item()), bool(logic))
        if x.is_cuda or x.requires_grad or x.dtype == torch.float64:
            number += 1.0
        return y.mean() + stats + one.sum() + cos.sum() + torch.unique(bins).numel() + number + values.median() + z.sum() + y.T.sum()


def math_of(i: int, x: float, b: bool) -> float:

    total = math.sqrt(abs(x)) + math.floor(x) + math.ceil(x) + math.log(1.0 + abs(x)) + math.pi
    total += float(i // 3 + i % 3 + i**2) + max(x, 1.0) - min(x, 2.0) + round(x) - (-i) / 2
    numbers = [1, 2, 3]
    numbers.extend([4, 5])
    numbers.insert(0, i)
    numbers.reverse()
    numbers.sort()
    total += float(sum(numbers) + len(numbers) + numbers.index(2) + numbers[-1] + numbers.pop(0))
    total += 1.0 if (b and 3 in numbers and not i == 4) else 0.0
    names: Dict[str, int] = {"a": 1}
    names["b"] = names.get("a", 0) + 1
    names.update({"c": 3})
    for key in names.keys():
        total += float(names[key])
    total += float(sum(names.values())) + float(names.pop("c"))
    text = "a,b, c".strip().split(",")
    joined = "-".join(text).lower().replace("a", "x") + str(i)
    total += float(len(joined)) + float(int("12")) + (1.0 if joined.endswith("1") else 0.5)
    pair = (1, 2.5)
    first, second = pair
    return total + first + second


def networks():
    """(name, a function that makes the scripted or traced module)"""
    image, small = torch.randn(1, 3, 32, 32), torch.randn(1, 3, 8, 8)
    for make, example in ((ResNet, image), (MobileNet, image), (DenseNet, small), (UNet, small), (DeepLab, small), (ViT, small)):
        net = make().eval()
        if make is not DeepLab:
            yield make.__name__ + " traced", lambda: torch.jit.trace(net, example, check_trace=False)
        yield make.__name__ + " scripted", lambda: torch.jit.script(net)
        yield make.__name__ + " training", lambda: torch.jit.script(make().train())
    for make in (GPT, Tagger, Cell, Beam, Detector, Pinn, Relative, Everyday):
        yield make.__name__, lambda: torch.jit.script(make())
    yield "Tagger traced", lambda: torch.jit.trace(Tagger().eval(), (torch.ones(2, 4, dtype=torch.long), torch.tensor([4, 2])))
    yield "Transformer", lambda: torch.jit.trace(nn.Transformer(16, 2, 1, 1, 32, batch_first=True).eval(), (torch.randn(1, 3, 16),) * 2, check_trace=False)
    yield "Attention", lambda: torch.jit.script(nn.MultiheadAttention(16, 2))
    losses = (nn.CrossEntropyLoss, nn.NLLLoss, nn.BCELoss, nn.KLDivLoss, nn.HuberLoss, nn.MarginRankingLoss, nn.TripletMarginLoss,
              nn.CosineEmbeddingLoss, nn.HingeEmbeddingLoss, nn.SoftMarginLoss, nn.PoissonNLLLoss, nn.MultiMarginLoss,
              nn.CTCLoss)  # yapf: disable
    layers = (nn.AvgPool1d(2), nn.AvgPool3d(2), nn.MaxPool1d(2), nn.MaxPool3d(2), nn.AdaptiveMaxPool2d(2), nn.AdaptiveAvgPool3d(2),
              nn.Conv1d(2, 2, 3, padding="same"), nn.Conv3d(2, 2, 3), nn.ConvTranspose1d(2, 2, 3), nn.ConvTranspose3d(2, 2, 3),
              nn.Softmin(1), nn.GLU(), nn.Hardshrink(), nn.Softshrink(), nn.Tanhshrink(), nn.Softsign(), nn.LogSigmoid(), nn.CELU(),
              nn.Threshold(0.1, 0.0), nn.RReLU(), nn.LocalResponseNorm(2), nn.AlphaDropout(), nn.Dropout2d(), nn.Dropout3d(),
              nn.FeatureAlphaDropout(), nn.Unfold(2), nn.Fold((4, 4), 2), nn.PixelUnshuffle(2), nn.ChannelShuffle(2),
              nn.Upsample(scale_factor=2, mode="bicubic"), nn.ReflectionPad1d(1), nn.ReplicationPad2d(1), nn.ZeroPad2d(1),
              nn.ConstantPad1d(1, 0.0), nn.CircularPad2d(1), nn.Bilinear(2, 2, 2), nn.RMSNorm(4), nn.BatchNorm1d(4), nn.BatchNorm3d(4),
              nn.InstanceNorm1d(4), nn.Unflatten(1, (2, 2)), nn.Flatten(), nn.CosineSimilarity(), nn.PairwiseDistance())  # yapf: disable
    for layer in [loss() for loss in losses] + list(layers):
        yield type(layer).__name__, lambda: torch.jit.script(layer)
    try:
        import transformers
    except ImportError:
        print("without transformers: printed_calls.txt will lack its models")
        return
    ids = torch.ones(1, 5, dtype=torch.long)
    small = {"num_attention_heads": 2, "num_hidden_layers": 2, "hidden_size": 16, "intermediate_size": 32, "vocab_size": 50}
    for kind in ("eager", "sdpa"):
        bert = transformers.BertModel(transformers.BertConfig(**small, torchscript=True, attn_implementation=kind)).eval()
        yield "BERT " + kind, lambda: torch.jit.trace(bert, (ids, ids), strict=False)
    gpt = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=50, torchscript=True, use_cache=False))
    yield "GPT-2", lambda: torch.jit.trace(gpt.eval(), ids, strict=False)
    t5 = transformers.T5Model(transformers.T5Config(d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, vocab_size=50, torchscript=True, use_cache=False))
    yield "T5", lambda: torch.jit.trace(t5.eval(), (ids, ids, ids), strict=False)


def calls_of(module):
    """How often the code in a module's archive calls each operator."""
    archive, counts = io.BytesIO(), collections.Counter()
    torch.jit.save(module, archive)
    with zipfile.ZipFile(archive) as files:
        for name in files.namelist():
            if name.endswith(".py"):
                code = files.read(name).decode()
                counts.update("aten::" + found for found in re.findall(r"(?<![\w.])torch\.(\w+)\(", code))
                counts.update("::".join(found) for found in re.findall(r"(?<![\w.])ops\.(\w+)\.(\w+)\(", code))
                for word, operator in (("int", "aten::Int"), ("float", "aten::Float"), ("bool", "aten::Bool"), ("str", "aten::str")):
                    counts[operator] += len(re.findall(r"(?<![\w.\]])%s\(" % word, code))
    return counts


def core_operators():
    """The schemas of ATen's core: the operators into which torch.export decomposes all others."""
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads() if hasattr(packet, "overloads") else []:
            if torch.Tag.core in getattr(packet, overload).tags:
                yield str(getattr(packet, overload)._schema)


def main():
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    counts, failed = collections.Counter(), []
    for name, make in networks():
        try:
            counts += calls_of(make())
        except Exception as error:  # a network that this PyTorch does not script is said, and left out
            failed.append("%s: %s" % (name, str(error).strip().splitlines()[0][:100]))
    CALLS.write_text("".join("%d %s\n" % (n, name) for name, n in sorted(counts.items(), key=lambda x: (-x[1], x[0]))))
    ours = set(re.findall(r"^[\w]+::\w+", SCHEMAS.read_text(), flags=re.M)) if SCHEMAS.exists() else set()
    ours |= set(sys.argv[1:]) | set(counts)
    schemas = {str(s).replace("\n", "\\n") for s in torch._C._jit_get_all_schemas() if s.name in ours}
    SCHEMAS.write_text("".join(sorted(s + "\n" for s in schemas if not LEFT_OUT.search(s))))
    CORE.write_text("".join(sorted(s + "\n" for s in core_operators())))
    print("%d calls of %d operators; %d schemas" % (sum(counts.values()), len(counts), len(schemas)))
    print("\n".join(failed))


if __name__ == "__main__":
    main()
