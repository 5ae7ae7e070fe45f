#!/usr/bin/env python3
"""Writes the goldens: what PyTorch computes for every module of tests/modules and every function of nn::functional.

usage: make_goldens.py [--check] [NAME...]

It needs PyTorch; the tests read the files alone (tests/nn/module/goldens.h, which also says how they are written). With names:
shows those cases instead of writing files. --check: says whether PyTorch still gives what the files say, up to rounding.

A case is one module or function in one mode, in float64: inputs, the result, buffers after it, the gradients g of all inputs
and parameters for a cotangent, and for directions v the gradients of <g, v> by inputs, parameters and cotangent. A formula gives
parameters, buffers, cotangent, directions and inputs of modules (`drawn`), so no file has them, nor second derivatives that are
0. No tensor has more than 64 elements, all files together 2 MB.
"""

import pathlib
import sys
import warnings

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.dont_write_bytecode = True  # all of this folder is the tests' data
import golden_functions
import golden_modules

FOLDER = pathlib.Path(__file__).resolve().parent
ELEMENTS, BYTES, ROUNDING = 64, 2_000_000, 5e-14


class TooLarge(Exception):
    pass


def drawn(sizes, seed, kind="real", by=1.0, even=False):
    """Thousandths, by the powers of 7, which go through all numbers below 997: no two of a tensor are equal.

    A real one has an odd number of thousandths, or an even one, so that the difference of two tensors is no whole number and
    nothing lies on a kink. `by` multiplies it; of classes it is how many there are, of what is given the values. drawn() of
    tests/nn/module/goldens.cc is this formula, too.
    """
    count = 1
    for size in sizes:
        count *= size
    if kind == "given":
        return torch.tensor(by[:count], dtype=torch.float64 if isinstance(by[0], float) else torch.int64).view(sizes)
    u = [pow(7, i + 67 * seed + 5, 997) for i in range(count)]
    if kind == "index":
        return torch.tensor([k % by for k in u]).view(sizes)
    if kind == "sign":
        v = [1.0 if k % 2 else -1.0 for k in u]
    elif kind == "positive":
        v = [(k + 2) * by / 1000 for k in u]
    else:
        v = [round((2 * k - 997 - even) * by) / 1000 for k in u]
    return torch.tensor(v, dtype=torch.float64).view(sizes)


def number(v):
    """The shortest text that gives the number again."""
    return "%d" % v if v == int(v) and abs(v) < 1e9 else repr(v)


def line(what, tensor):
    if tensor.numel() > ELEMENTS:
        raise TooLarge("%s has %d elements, %d are allowed" % (what, tensor.numel(), ELEMENTS))
    sizes = "x".join(map(str, tensor.shape)) or "-"
    dtype = {torch.int64: "long", torch.float64: "double"}[tensor.dtype]
    return " ".join([what, dtype, sizes] + [number(v) for v in tensor.detach().reshape(-1).tolist()])


def near(a, b):
    return torch.allclose(a, b, rtol=ROUNDING, atol=ROUNDING)


def dense(gradient, of):
    """None and PyTorch's zeros without memory are zeros."""
    return torch.zeros_like(of) if gradient is None or gradient._is_zerotensor() else gradient


def derivatives(y, leaves, cotangent, directions):
    """The gradients for the cotangent, and those of <gradients, directions> by the leaves and the cotangent."""
    gradients = torch.autograd.grad(y, leaves, cotangent, create_graph=True, allow_unused=True)
    gradients = [dense(g, t) for g, t in zip(gradients, leaves)]
    along = sum((g * v).sum() for g, v in zip(gradients, directions))
    second = torch.autograd.grad(along, leaves + [cotangent], allow_unused=True)
    return gradients, [dense(g, t) for g, t in zip(second, leaves + [cotangent])]


def run(head, call, twin, inputs, written, state, buffers):
    """A case's lines. `call` and `twin` take the inputs, of which some are `written`; `state` are parameters that are
    not frozen, by name, `buffers` the module's."""
    lines = [head]
    lines += [line("input %d" % i, inputs[i]) for i in written]
    before = {name: t.clone() for name, t in buffers.items()}
    leaves = {"input.%d" % i: t for i, t in enumerate(inputs) if t.requires_grad} | state
    y = call(*inputs)
    lines.append(line("output", y))
    lines += [line("after " + name, t) for name, t in buffers.items() if not torch.equal(t, before[name])]
    if not y.requires_grad:
        return lines
    cotangent = drawn(y.shape, 40).requires_grad_()
    wanted = list(leaves.values())
    directions = [drawn(t.shape, 50 + i) for i, t in enumerate(wanted)]
    if twin is None:
        gradients, second = derivatives(y, wanted, cotangent, directions)
    else:
        gradients = torch.autograd.grad(y, wanted, cotangent)
        again, second = derivatives(twin(*inputs), wanted, cotangent, directions)
        if not all(map(near, [y, *gradients], [twin(*inputs), *again])):
            raise ValueError("the twin computes something else")
        try:
            _, own = derivatives(call(*inputs), wanted, cotangent, directions)
        except RuntimeError:
            own = None
        if own and all(map(near, own, second)):
            raise ValueError("PyTorch has these second derivatives: no twin is needed")
    if not any(g.any() for g in gradients):
        raise ValueError("all gradients are 0")
    lines += [line("gradient " + name, g) for name, g in zip(leaves, gradients)]
    return lines + [line("second " + name, g) for name, g in zip(list(leaves) + ["cotangent"], second) if not near(g, torch.zeros_like(g))]


def values_of(draws, batch, constants=()):
    """Inputs by their draws: (sizes behind the batch, keywords of `drawn`)."""
    out = []
    for i, (sizes, keywords) in enumerate(draws):
        t = drawn((batch,) * (batch > 0) + tuple(sizes), i, even=i % 2 == 1, **keywords)
        wants = t.is_floating_point() and keywords.get("kind") not in ("sign", "given") and i not in constants
        out.append(t.requires_grad_() if wants else t)
    return out


def of_module(row, batch):
    lines = []
    for mode in row.modes:
        module = row.make().double()
        module.train(mode == "train")
        with torch.no_grad():
            for i, p in enumerate(module.parameters()):
                p.copy_(drawn(p.shape, 12 + i))
            for i, (name, b) in enumerate(module.named_buffers()):
                kind = "positive" if name.endswith("var") else "real"
                b.copy_(drawn(b.shape, 30 + i, kind) if b.is_floating_point() else 3)
        inputs = values_of(row.draws, batch, row.constants)
        state, buffers = {name: p for name, p in module.named_parameters() if p.requires_grad}, dict(module.named_buffers())
        call = lambda *t: row.call(module, *t)
        twin = row.twin and (lambda *t: row.twin(module, *t))
        given = [i for i, (_, keywords) in enumerate(row.draws) if keywords.get("kind") == "given"]
        lines += run("module %s: %s" % (row.name, mode), call, twin, inputs, given, state, buffers)
    return lines


def case(row):
    """Of two samples, or of one where a tensor would be too large."""
    if row.make is None:
        inputs = values_of(row.draws, 0, row.constants)
        return run("function %s: both" % row.name, row.call, row.twin, inputs, range(len(inputs)), {}, {})
    try:
        return of_module(row, 2)
    except TooLarge:
        return of_module(row, 1)


def cases(rows):
    lines = []
    for row in rows:
        try:
            lines += case(row)
        except Exception as e:
            raise SystemExit("%s: %s: %s" % (row.name, type(e).__name__, e))
    return lines


def same(a, b):
    """Whether two lines differ by no more than rounding."""

    def word(s, t):
        try:
            return s == t or abs(float(s) - float(t)) <= ROUNDING * (1 + abs(float(t)))
        except ValueError:
            return False

    x, y = a.split(), b.split()
    return len(x) == len(y) and all(map(word, x, y))


def check(path, lines):
    old = path.read_text().splitlines()
    problems = ["%s: %d lines, not %d" % (path.name, len(old), len(lines))] if len(old) != len(lines) else []
    return problems + ["%s:%d: %s" % (path.name, n + 1, b[:60]) for n, (a, b) in enumerate(zip(old, lines)) if not same(a, b)]


def main(arguments):
    names = [a for a in arguments if a != "--check"]
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    files = golden_modules.FILES | golden_functions.FILES
    unknown = set(names) - {row.name for rows in files.values() for row in rows}
    if unknown:
        raise SystemExit("no such case: " + ", ".join(sorted(unknown)))
    with sdpa_kernel(SDPBackend.MATH):  # the fused ones are differentiable once
        if names:
            return print("\n".join(cases([row for rows in files.values() for row in rows if row.name in names])))
        made = {FOLDER / (stem + ".txt"): cases(rows) for stem, rows in files.items()}
    if "--check" in arguments:
        problems = [problem for path, lines in made.items() for problem in check(path, lines)]
        raise SystemExit("\n".join(problems) if problems else None)
    texts = {path: "\n".join(lines) + "\n" for path, lines in made.items()}
    total = sum(map(len, texts.values()))
    if total > BYTES:
        raise SystemExit("%d bytes, %d are allowed" % (total, BYTES))
    for path, text in texts.items():
        path.write_text(text)
    print("%d files, %d bytes, by PyTorch %s" % (len(texts), total, torch.__version__))


main(sys.argv[1:])
