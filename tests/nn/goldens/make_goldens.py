#!/usr/bin/env python3
"""Writes the goldens: what PyTorch computes for every module of tests/modules.cc and every function of nn::functional.

usage: make_goldens.py [--check] [NAME...]

It needs PyTorch; the tests read the files alone (tests/nn/module/goldens.h, which also says how they are written). With names:
shows those cases instead of writing files. --check: says whether PyTorch still gives what the files say, up to rounding.

A case is one module or function in one mode, in float64: inputs, parameters and buffers by a formula (`drawn`), what comes
out, buffers behind it, the gradients g of all inputs and parameters for a fixed cotangent, and for fixed directions v the
gradients of <g, v> by inputs, parameters and cotangent. No tensor has more than 64 elements, all files together 2 MB.
"""

import pathlib
import sys
import warnings

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import golden_functions
import golden_modules

FOLDER = pathlib.Path(__file__).resolve().parent
ELEMENTS, BYTES = 64, 2_000_000


def drawn(sizes, seed, kind="real", by=1.0, even=False):
    """Thousandths, by the powers of 7, which go through all numbers below 997: no two of a tensor are equal.

    A real one has an odd number of thousandths, or an even one, so that the difference of two tensors is no whole number and
    nothing lies on a kink. `by` multiplies it; for a class it is how many there are.
    """
    count = 1
    for size in sizes:
        count *= size
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
    return str(v) if isinstance(v, int) else "%d" % v if v == int(v) and abs(v) < 1e9 else repr(v)


def line(what, tensor):
    if tensor.numel() > ELEMENTS:
        raise SystemExit("%s has %d elements, %d are allowed" % (what, tensor.numel(), ELEMENTS))
    sizes = "x".join(map(str, tensor.shape)) or "-"
    dtype = {torch.int64: "long", torch.bool: "bool"}.get(tensor.dtype, "double")
    values = tensor.to(torch.int64) if dtype == "bool" else tensor
    return " ".join([what, dtype, sizes] + [number(v) for v in values.detach().reshape(-1).tolist()])


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


def run(head, call, twin, inputs, state, buffers):
    """A case's lines. `call` and `twin` take the inputs; `state` are parameters by name, `buffers` the module's."""
    lines = [head]
    lines += [line("input %d" % i, t) for i, t in enumerate(inputs)]
    lines += [line("state " + name, t) for name, t in (state | buffers).items()]
    before = {name: t.clone() for name, t in buffers.items()}
    leaves = {"input.%d" % i: t for i, t in enumerate(inputs) if t.requires_grad} | state
    y = call(*inputs)
    lines.append(line("output", y))
    lines += [line("after " + name, t) for name, t in buffers.items() if not torch.equal(t, before[name])]
    if not leaves or not y.requires_grad:
        return lines
    cotangent = drawn(y.shape, 40).requires_grad_()
    lines.append(line("cotangent", cotangent))
    directions = [drawn(t.shape, 50 + i) for i, t in enumerate(leaves.values())]
    wanted = list(leaves.values())
    own = None
    try:
        own = derivatives(y, wanted, cotangent, directions)
    except RuntimeError:
        if twin is None:
            raise
    gradients, second = own if twin is None else derivatives(twin(*inputs), wanted, cotangent, directions)
    if twin is not None:
        first = torch.autograd.grad(call(*inputs), wanted, cotangent)
        for a, b in zip((y,) + first, [twin(*inputs)] + gradients):
            torch.testing.assert_close(a, b, rtol=1e-13, atol=1e-13)
        if own and all(torch.allclose(a, b, rtol=1e-13, atol=1e-13) for a, b in zip(own[1], second)):
            raise SystemExit("%s has right second derivatives: it needs no twin" % head)
    lines += [line("gradient " + name, g) for name, g in zip(leaves, gradients)]
    lines += [line("direction " + name, v) for name, v in zip(leaves, directions)]
    return lines + [line("second " + name, g) for name, g in zip(list(leaves) + ["cotangent"], second)]


def values_of(draws, batch, constants=()):
    """Inputs by their draws: (sizes behind the batch, keywords of `drawn`)."""
    out = []
    for i, (sizes, keywords) in enumerate(draws):
        t = drawn((batch,) * (batch > 0) + tuple(sizes), i, even=i % 2 == 1, **keywords)
        wants = t.is_floating_point() and keywords.get("kind") != "sign" and i not in constants
        out.append(t.requires_grad_() if wants else t)
    return out


def of_module(row, batch):
    lines = []
    for mode in row.modes:
        module = row.make().double()
        module.train(mode == "train")
        with torch.no_grad():
            for i, p in enumerate(module.parameters()):
                p.copy_(drawn(p.shape, 10 + i))
            for i, (name, b) in enumerate(module.named_buffers()):
                kind = "positive" if name.endswith("var") else "real"
                b.copy_(drawn(b.shape, 30 + i, kind) if b.is_floating_point() else 3)
        inputs = values_of(row.draws, batch, row.constants)
        state, buffers = dict(module.named_parameters()), dict(module.named_buffers())
        call = lambda *t: row.call(module, *t)
        twin = row.twin and (lambda *t: row.twin(module, *t))
        lines += run("module %s: %s" % (row.name, mode), call, twin, inputs, state, buffers)
    return lines


def case(row):
    """Of two samples, or of one where a tensor would be too large."""
    if row.make is None:
        inputs = values_of(row.draws, 0, row.constants)
        return run("function %s: both" % row.name, row.call, row.twin, inputs, {}, {})
    try:
        return of_module(row, 2)
    except SystemExit as e:
        if "elements" not in str(e):
            raise
    try:
        return of_module(row, 1)
    except SystemExit as e:
        raise SystemExit("%s: %s" % (row.name, e))


def far(a, b):
    """Whether two lines differ by more than rounding."""
    x, y = a.split(), b.split()
    if len(x) != len(y):
        return True
    for s, t in zip(x, y):
        if s != t:
            try:
                if abs(float(s) - float(t)) > 1e-13 * (1 + abs(float(t))):
                    return True
            except ValueError:
                return True
    return False


def main(arguments):
    check, names = "--check" in arguments, [a for a in arguments if a != "--check"]
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    total, problems = 0, []
    with sdpa_kernel(SDPBackend.MATH):  # the fused ones are differentiable once
        for stem, rows in (golden_modules.FILES | golden_functions.FILES).items():
            rows = [r for r in rows if not names or r.name in names]
            lines = []
            for row in rows:
                try:
                    lines += case(row)
                except Exception as e:
                    raise SystemExit("%s: %s" % (row.name, e))
            if names:
                print("\n".join(lines), end="\n" if lines else "")
                continue
            path = FOLDER / (stem + ".txt")
            if check:
                old = path.read_text().splitlines()
                if len(old) != len(lines):
                    problems.append("%s: %d lines, not %d" % (path.name, len(old), len(lines)))
                problems += ["%s:%d: %s" % (path.name, n + 1, b[:60]) for n, (a, b) in enumerate(zip(old, lines)) if far(a, b)]
                continue
            text = "\n".join(lines) + "\n"
            total += len(text)
            path.write_text(text)
            print("%s: %d cases, %d bytes" % (path.name, len(rows), len(text)))
    if total > BYTES:
        raise SystemExit("%d bytes, %d are allowed" % (total, BYTES))
    if problems:
        raise SystemExit("\n".join(problems))
    if not names:
        print("%d bytes by PyTorch %s" % (total, torch.__version__) if not check else "as PyTorch %s" % torch.__version__)


main(sys.argv[1:])
