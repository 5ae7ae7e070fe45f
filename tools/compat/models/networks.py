"""The networks that are written here, because no library has them: a U-Net, a tagger, a beam search, a detector's end, a PINN."""

from typing import Dict, List, Tuple

import torch
from torch import nn, Tensor
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, into: int, out: int):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(into, out, 3, padding=1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.norm2 = nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm1(self.conv1(x)), inplace=True)
        return F.relu(self.norm2(self.conv2(x)), inplace=True)


class Unet(nn.Module):
    """Ronneberger's U-Net with three levels. Sizes that are not even are padded on the way up."""

    def __init__(self, width: int = 6):
        super().__init__()
        self.down = nn.ModuleList([Block(3, width), Block(width, 2 * width)])
        self.middle = Block(2 * width, 4 * width)
        self.grow = nn.ModuleList([nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2), nn.ConvTranspose2d(2 * width, width, 2, stride=2)])
        self.up = nn.ModuleList([Block(4 * width, 2 * width), Block(2 * width, width)])
        self.out = nn.Conv2d(width, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept: List[Tensor] = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for grow, block in zip(self.grow, self.up):
            x = grow(x)
            skip = kept.pop()
            x = F.pad(x, [0, skip.shape[-1] - x.shape[-1], 0, skip.shape[-2] - x.shape[-2]])
            x = block(torch.cat([skip, x], dim=1))
        return self.out(x)


class Tagger(nn.Module):
    """A bidirectional LSTM over packed sequences, with a word and a character part."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 24, padding_idx=0)
        self.lstm = nn.LSTM(24, 20, num_layers=2, bidirectional=True, batch_first=True, dropout=0.0)
        self.head = nn.Linear(40, 9)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(words), lengths, batch_first=True, enforce_sorted=False)
        out, _ = self.lstm(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=words.size(1))
        return F.log_softmax(self.head(padded), dim=-1)


class Beam(nn.Module):
    """Beam search over a GRU decoder: lists of tuples that are sorted, dictionaries, early ends."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 16)
        self.cell = nn.GRUCell(16, 16)
        self.head = nn.Linear(16, 30)

    def step(self, word: int, state: Tensor) -> Tuple[Tensor, Tensor]:
        state = self.cell(self.embed(torch.tensor([word])), state)
        return F.log_softmax(self.head(state), dim=1), state

    def forward(self, start: Tensor, width: int, steps: int) -> Tuple[List[List[int]], List[float], Dict[int, int], Tensor]:
        beams: List[Tuple[List[int], float, Tensor]] = [([1], 0.0, start)]
        done: List[Tuple[float, int]] = []  # a score, and the place of its words in ended
        ended: List[List[int]] = []
        seen: Dict[int, int] = {}
        states: List[Tensor] = []
        for _ in range(steps):
            found: List[Tuple[float, int, int]] = []
            states = []
            for i, (words, score, state) in enumerate(beams):
                scores, state = self.step(words[-1], state)
                states.append(state)
                values, indices = scores.topk(width, dim=1)
                for j in range(width):
                    found.append((score + float(values[0, j]), i, int(indices[0, j])))
            found.sort(reverse=True)
            made: List[Tuple[List[int], float, Tensor]] = []
            for score, i, word in found[:width]:
                seen[word] = seen.get(word, 0) + 1
                words = beams[i][0] + [word]
                if word == 2:
                    done.append((score / len(words), len(ended)))
                    ended.append(words)
                    continue
                made.append((words, score, states[i]))
            if len(made) == 0:
                break
            beams = made
        for words, score, _ in beams:
            done.append((score / len(words), len(ended)))
            ended.append(words)
        done.sort(reverse=True)
        return [ended[i] for _, i in done], [s for s, _ in done], seen, torch.cat([s for _, _, s in beams])


def overlaps(box: Tensor, boxes: Tensor) -> Tensor:
    corner = torch.maximum(box[:2], boxes[:, :2])
    end = torch.minimum(box[2:], boxes[:, 2:])
    common = (end - corner).clamp(min=0).prod(dim=1)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(dim=1)
    return common / (area + (box[2:] - box[:2]).prod() - common)


def keep_best(boxes: Tensor, scores: Tensor, most: float) -> Tensor:
    """Non-maximum suppression, as torchvision::nms."""
    order = scores.argsort(descending=True, stable=True)
    kept: List[int] = []
    while order.numel() > 0:
        first = int(order[0])
        kept.append(first)
        order = order[1:]
        order = order[overlaps(boxes[first], boxes[order]) <= most]
    return torch.tensor(kept, dtype=torch.int64)


class Detections(nn.Module):
    """What follows a detector's heads: boxes of anchors, a threshold, suppression for each class, the best of each image."""

    def __init__(self):
        super().__init__()
        self.head = nn.Conv2d(8, 3 * (4 + 5), 1)
        self.register_buffer("anchors", torch.tensor([[8.0, 8.0], [16.0, 8.0], [12.0, 24.0]]))
        self.names = ["background", "cat", "dog", "bird", "car"]
        self.limits: Dict[str, float] = {"cat": 0.22, "dog": 0.2, "bird": 0.21}

    def boxes(self, deltas: Tensor, height: int, width: int) -> Tensor:
        y, x = torch.meshgrid(torch.arange(height, device=deltas.device), torch.arange(width, device=deltas.device), indexing="ij")
        centre = (torch.stack([x, y], dim=-1).to(deltas.dtype).unsqueeze(2) + 0.5) * 8
        middle = centre + deltas[..., :2] * self.anchors
        size = self.anchors * deltas[..., 2:].clamp(max=4.0).exp()
        return torch.cat([middle - size / 2, middle + size / 2], dim=-1).view(-1, 4)

    def forward(self, features: Tensor) -> List[Dict[str, Tensor]]:
        n, _, height, width = features.shape
        heads = self.head(features).view(n, 3, 9, height, width).permute(0, 3, 4, 1, 2)
        found: List[Dict[str, Tensor]] = []
        for image in heads.unbind(0):
            boxes = self.boxes(image[..., :4], height, width).clamp(0, 8 * max(height, width))
            scores = image[..., 4:].softmax(-1).view(-1, 5)
            all_boxes: List[Tensor] = []
            all_scores: List[Tensor] = []
            labels: List[Tensor] = []
            for k, name in enumerate(self.names):
                if name == "background":
                    continue
                limit = self.limits[name] if name in self.limits else 0.23
                chosen = torch.where(scores[:, k] > limit)[0]
                if chosen.numel() == 0:
                    continue
                kept = chosen[keep_best(boxes[chosen], scores[chosen, k], 0.5)]
                all_boxes.append(boxes[kept])
                all_scores.append(scores[kept, k])
                labels.append(torch.full([kept.numel()], k, dtype=torch.int64))
            joined = torch.cat(all_scores)
            best = joined.topk(min(20, joined.numel())).indices
            found.append({"boxes": torch.cat(all_boxes)[best], "scores": joined[best], "labels": torch.cat(labels)[best]})
        return found


class Pinn(nn.Module):
    """A network of a physics-informed loss: u(x, t) of Burgers' equation. The program makes the derivatives."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 24), nn.SiLU(), nn.Linear(24, 1))
        self.register_buffer("scale", torch.tensor([1.0, 0.5]))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x * self.scale)


class LibraryNms(nn.Module):
    """Calls torchvision's own operator: torchvision::nms."""

    def forward(self, boxes: Tensor, scores: Tensor) -> Tensor:
        return torch.ops.torchvision.nms(boxes, scores, 0.5)
