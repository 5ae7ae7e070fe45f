#!/usr/bin/env python3
"""Writes mersenne.txt: what PyTorch draws on the CPU, for the calls of tests/autograd/ops/mersenne_test.cc.

Needs PyTorch 2.15, on a processor of AMD with AVX2 or AVX-512 (tools/compat/RANDOM.md). A line is `call dtype size digest next`: the
digest of the result's bytes, row by row (FNV-1a), and the next draw of 27 bits, which shows how many numbers the call took. The seed
is the size plus 1000. `states` follow: the digest of all bytes of the generator's state after some draws.
"""

import pathlib
import sys

import torch
from torch.nn import functional as F

SIZES = (1, 7, 15, 16, 17, 1000)
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
NUMBERS = FLOATS + INTEGERS
ALL = NUMBERS + (torch.bool,)
WIDE = (torch.float32, torch.float64)


def parts(n, dtype):
    """Eleven different numbers from 0 to 10/11."""
    return torch.arange(n, dtype=torch.float64).mul(7).remainder(11).div(11).to(dtype)


def ones(n, dtype):
    return torch.ones(n, dtype=dtype)


def empty(n, dtype):
    return torch.empty(n, dtype=dtype)


def turned(n, dtype):
    """A transposed tensor of 3 times n elements, and a view of it with gaps."""
    return torch.empty(n, 3, dtype=dtype).t()


def multinomial(n, dtype, samples, replacement):
    return torch.multinomial(parts(3 * (n + 11), dtype).view(3, n + 11).add(0.125), samples, replacement)


CALLS = {
    "rand": (FLOATS, lambda n, t: torch.rand(n, dtype=t)),
    "uniform_": (FLOATS, lambda n, t: empty(n, t).uniform_(-0.3, 1.9)),
    "uniform_.turned": (FLOATS, lambda n, t: turned(n, t).uniform_()),
    "uniform_.gaps": (FLOATS, lambda n, t: empty(2 * n, t)[::2].uniform_()),
    "randn": (FLOATS, lambda n, t: torch.randn(n, dtype=t)),
    "normal_": (FLOATS, lambda n, t: empty(n, t).normal_(0.5, 0.7)),
    "normal_.turned": (FLOATS, lambda n, t: turned(n, t).normal_(0.5, 0.7)),
    "normal_.gaps": (FLOATS, lambda n, t: empty(2 * n, t)[::2].normal_()),
    "normal_.after_one": (FLOATS, lambda n, t: (empty(1, torch.float32).normal_(), empty(n, t).normal_())[1]),
    "normal.mean": (FLOATS, lambda n, t: torch.normal(parts(n, t), 0.7)),
    "normal.std": (FLOATS, lambda n, t: torch.normal(0.7, parts(n, t))),
    "normal.both": (FLOATS, lambda n, t: torch.normal(parts(n, t), parts(n, t))),
    "randint.10": (ALL[:-1], lambda n, t: torch.randint(0, 10, (n,), dtype=t)),
    "randint.2_28": ((torch.int32, torch.int64, torch.float64), lambda n, t: torch.randint(-5, 2**28 - 5, (n,), dtype=t)),
    "randint.below_2_28": ((torch.int32, torch.int64, torch.float64), lambda n, t: torch.randint(-5, 2**28 - 6, (n,), dtype=t)),
    "randint.2_33": ((torch.int64, torch.float64), lambda n, t: torch.randint(-7, 2**33, (n,), dtype=t)),
    "random_": (ALL, lambda n, t: empty(n, t).random_()),
    "random_.to": (ALL[:-1], lambda n, t: empty(n, t).random_(100)),
    "random_.from": ((torch.int32, torch.int64), lambda n, t: empty(n, t).random_(5, None)),
    "random_.all": ((torch.int64,), lambda n, t: empty(n, t).random_(-2**63, None)),
    "bernoulli_": (ALL, lambda n, t: empty(n, t).bernoulli_(0.3)),
    "bernoulli_.turned": (ALL, lambda n, t: turned(n, t).bernoulli_(0.3)),
    "bernoulli": (FLOATS, lambda n, t: torch.bernoulli(parts(n, t))),
    "bernoulli_.tensor": (FLOATS, lambda n, t: turned(n, torch.float32).bernoulli_(parts(n, t))),
    "exponential_": (FLOATS, lambda n, t: empty(n, t).exponential_(1.5)),
    "log_normal_": (FLOATS, lambda n, t: empty(n, t).log_normal_(0.5, 0.7)),
    "cauchy_": (FLOATS, lambda n, t: empty(n, t).cauchy_(0.5, 0.7)),
    "geometric_": (NUMBERS, lambda n, t: empty(n, t).geometric_(0.3)),
    "randperm": ((torch.int64, torch.int32, torch.float32), lambda n, t: torch.randperm(n, dtype=t)),
    "multinomial.one": (FLOATS, lambda n, t: multinomial(n, t, 1, False)),
    "multinomial.different": (WIDE, lambda n, t: multinomial(n, t, 9, False)),
    "multinomial.again": (FLOATS, lambda n, t: multinomial(n, t, 9, True)),
    "poisson": (FLOATS, lambda n, t: torch.poisson(parts(n, t).mul(40))),
    "binomial": (WIDE, lambda n, t: torch.binomial(parts(n, t).mul(33).round(), parts(n, t).flip(0))),
    "_sample_dirichlet": (WIDE, lambda n, t: torch._sample_dirichlet(parts(2 * n, t).view(n, 2).add(0.125))),
    "dropout": (FLOATS, lambda n, t: F.dropout(parts(n, t), 0.3)),
    "dropout.turned": (FLOATS, lambda n, t: F.dropout(parts(3 * n, t).view(n, 3).t(), 0.3)),
    "dropout.all": (FLOATS, lambda n, t: F.dropout(parts(n, t), 1.0)),
    "dropout2d": (FLOATS, lambda n, t: F.dropout2d(parts(24 * n, t).view(2, n, 3, 4), 0.3)),
    "alpha_dropout": (FLOATS, lambda n, t: F.alpha_dropout(parts(n, t), 0.3, training=True)),
    "feature_alpha_dropout": (FLOATS, lambda n, t: F.feature_alpha_dropout(parts(24 * n, t).view(2, n, 3, 4), 0.3, training=True)),
    "rrelu": (WIDE, lambda n, t: F.rrelu(parts(n, t).sub(0.5), 0.125, 0.3, training=True)),
}


def digest(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return "%016x" % value


def digest_of(tensor):
    rows = torch.empty(tensor.numel(), dtype=tensor.dtype).copy_(tensor.reshape(-1))
    return digest(bytes(rows.view(torch.uint8).numpy()))


def state_after(draw):
    torch.manual_seed(2**40 + 9)
    draw()
    return digest(bytes(torch.get_rng_state().numpy()))


def main():
    if not torch.__version__.startswith("2.15."):
        sys.exit("make_mersenne: got PyTorch %s, expected 2.15" % torch.__version__)
    lines = []
    for name, (dtypes, call) in CALLS.items():
        for dtype in dtypes:
            for size in SIZES:
                torch.manual_seed(1000 + size)
                result = call(size, dtype)
                after = torch.randint(0, 2**27, (1,)).item()
                lines.append("%s %s %d %s %d" % (name, str(dtype)[len("torch."):], size, digest_of(result), after))
    lines.append("states %s %s %s" % (
        state_after(lambda: None), state_after(lambda: torch.rand(7)), state_after(lambda: torch.randn(3))))
    path = pathlib.Path(__file__).with_name("mersenne.txt")
    path.write_text("\n".join(lines) + "\n")
    print("%s: %d lines" % (path.name, len(lines)))


if __name__ == "__main__":
    main()
