"""What a case of the goldens is."""

import dataclasses
import typing

import torch


@dataclasses.dataclass
class Row:
    name: str
    call: typing.Callable  # takes the module, if it is one's, and the inputs
    draws: list  # of each input: its sizes (a module's: behind the batch), keywords of make_goldens.drawn
    make: typing.Callable = None  # the module
    modes: tuple = ("both",)
    constants: tuple = ()  # inputs of which PyTorch has no gradient, or which it writes
    twin: typing.Callable = None  # the same in other words, where PyTorch has no second derivative of `call`, or a wrong one


def entropy(x, y, w=1.0):
    """Of binary_cross_entropy, whose second derivative PyTorch divides by 1e-12 more than it should."""
    return -w * (y * x.log() + (1 - y) * (1 - x).log())


def joined(y):
    """All results of a module as one tensor, as joined() of tests/modules.cc has them."""
    if isinstance(y, torch.Tensor):
        return y
    first, second = y
    if isinstance(second, tuple):
        return joined((joined((first, second[0])), second[1]))
    if second.size(0) != first.size(0):
        second = second.transpose(0, 1)
    return torch.cat([first.flatten(1), second.flatten(1)], 1)


def alignments(log_probs, labels, steps, lengths, blank):
    """Of ctc_loss: -log of the sum over alignments of each sample, of which there are some."""
    losses = []
    for n, own in enumerate(labels):
        states = [blank] + [s for label in own[: lengths[n]].tolist() for s in (label, blank)]
        jumps = [i > 1 and s not in (blank, states[i - 2]) for i, s in enumerate(states)]
        ways = [1.0] + [0.0] * (len(states) - 1)  # before the first step: as if in the first blank
        for p in log_probs[: steps[n], n].exp():
            before = [0.0, 0.0] + ways
            ways = [p[s] * (before[i + 2] + before[i + 1] + jumps[i] * before[i]) for i, s in enumerate(states)]
        losses.append(-torch.log(sum(ways[-2:])))
    return torch.stack(losses)


def module(name, make, draws, modes=("both",), call=lambda m, *t: joined(m(*t)), twin=None):
    return Row(name, call, draws, make, modes, twin=twin)


def function(name, call, draws, constants=(), twin=None):
    return Row(name, call, draws, constants=constants, twin=twin)


def real(*sizes, by=1.0):
    return sizes, {"by": by}


def positive(*sizes, by=1.0):
    return sizes, {"kind": "positive", "by": by}


def signs(*sizes):
    return sizes, {"kind": "sign"}


def index(below, *sizes):
    return sizes, {"kind": "index", "by": below}
