"""Writes the archives of one model, and what PyTorch computes with it.

    make.py FOLDER MODEL

FOLDER gets KIND_64.pt and KIND_32.pt (exported ones: .pt2) for each kind that PyTorch can write, and values.pt: for three
inputs the outputs, the gradients and the buffers after one forward in float64; PyTorch's own errors in float32; the losses of 20 steps
in both.
What PyTorch cannot write is in values.pt too, with its reason.
"""

import copy
import pathlib
import re
import sys
import warnings

import torch
from torch import Tensor

import zoo

STEPS = 20
DRAWS = 3  # of inputs
warnings.simplefilter("ignore")


def cast(value, dtype):
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() else value.clone()
    return value


def tensors_of(value):
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in tensors_of(v)] if isinstance(value, (list, tuple)) else []


def plain(value):
    if isinstance(value, (list, tuple)):
        return type(value)(plain(v) for v in value)
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value.detach().double() if isinstance(value, Tensor) and value.is_floating_point() else value


def loss_of(model, net, inputs):
    """The outputs, and the loss that both libraries form of them."""
    if model.loss == "burgers":
        points = inputs[0].clone().requires_grad_()
        u = net(points)
        (du,) = torch.autograd.grad(u.sum(), points, create_graph=True)
        (second,) = torch.autograd.grad(du[:, 0].sum(), points, create_graph=True)
        rest = du[:, 1:] + u * du[:, :1] - 0.01 * second[:, :1]
        return [u, du, second], rest.square().mean() + (u - points[:, :1].sin()).square().mean()
    result = net(*inputs)
    outputs = [t for t in tensors_of(result) if t.is_floating_point() and t.requires_grad]
    loss = sum((t - torch.cos(torch.arange(t.numel(), dtype=t.dtype)).view(t.shape)).square().mean() for t in outputs)
    return outputs, loss


def computed(model, net, inputs, dtype):
    net = copy.deepcopy(net).to(dtype)
    if dtype == torch.float64:
        # The gradient of PyTorch's hardsigmoid has a sixth of float32, which is 3e-8 off.
        for module in net.modules():
            if isinstance(module, torch.nn.Hardsigmoid):
                module.forward = lambda x: torch.nn.functional.relu6(x + 3) / 6
    outputs, loss = loss_of(model, net, [cast(i, dtype) for i in inputs])
    loss.backward()
    grads = {n: p.grad.double() for n, p in net.named_parameters() if p.grad is not None}
    buffers = {n: b.double() for n, b in net.named_buffers() if b.is_floating_point()}
    return [t.detach().double() for t in outputs], grads, buffers


def error(got, want):
    """The largest difference of float32, relative to each tensor's largest element. A gradient that is zero but for rounding (of a bias
    before a batch norm) has no such size. So at least a ten-thousandth of the largest of all counts."""
    least = 1e-4 * max((float(w.abs().max()) for w in want if w.numel()), default=0.0)
    return max((float((g - w).abs().max()) / max(float(w.abs().max()), least, 1e-300) for g, w in zip(got, want) if w.numel()), default=0.0)


def trained(model, net, inputs, dtype):
    net = copy.deepcopy(net).to(dtype)
    sgd = torch.optim.SGD(net.parameters(), lr=model.rate)
    losses = []
    for _ in range(STEPS):
        sgd.zero_grad()
        loss = loss_of(model, net, [cast(i, dtype) for i in inputs])[1]
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return losses


def written(kind, net, inputs, path, parallel=False):
    net, inputs = copy.deepcopy(net), [cast(i, None) if not isinstance(i, Tensor) else i.clone() for i in inputs]
    if kind == "traced":
        before = {n: b.clone() for n, b in net.named_buffers()}
        traced = torch.jit.trace(net, tuple(inputs), strict=False, check_trace=False)
        for n, b in traced.named_buffers():  # tracing runs the network, which changes them
            b.copy_(before[n])
        torch.jit.save(traced, str(path))
    elif kind == "scripted":
        torch.jit.save(torch.jit.script(net), str(path))
    else:
        # The batch's size is free where the batch is cut over devices.
        sizes = tuple({0: torch.export.Dim.DYNAMIC} for _ in inputs) if parallel else None
        if parallel and isinstance(net, zoo.Wrapped):  # forward(*tensors)
            sizes = (sizes,)
        program = torch.export.export(net, tuple(inputs), dynamic_shapes=sizes)
        if kind == "exported core":
            program = program.run_decompositions()
        torch.export.save(program, str(path))


def file_of(folder, kind, bits):
    return folder / f"{kind.replace(' ', '_')}_{bits}.{'pt2' if kind.startswith('exported') else 'pt'}"


def reason(e):
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    text = re.sub(r" at 0x[0-9a-f]+", "", lines[0]) if lines else ""
    return f"{type(e).__name__}: {text[:160]}"


def main(folder, name):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = zoo.MODELS[name]
    net = model.make().train()
    # Weights and inputs that float32 has too.
    net = net.float().double()
    draws = [[cast(cast(i, torch.float32), torch.float64) for i in model.inputs()] for _ in range(DRAWS)]
    inputs = draws[0]
    values = {"inputs": inputs, "loss": model.loss, "rate": model.rate, "parallel": model.parallel, "absent": {}}
    if model.loss == "none":
        values["result"] = plain(copy.deepcopy(net)(*inputs))
    else:
        values["draws"], errors = [], []
        for drawn in draws:
            outputs, grads, buffers = computed(model, net, drawn, torch.float64)
            low = computed(model, net, drawn, torch.float32)
            values["draws"].append({"inputs": drawn, "outputs": outputs, "grads": grads, "buffers": buffers})
            errors.append((error(low[0], outputs), error([low[1][n] for n in grads], list(grads.values()))))
        # Where float32 moves a value over a corner of ReLU, gradients jump: so the least of several inputs shows how exact it is.
        values["error32"] = {"outputs": min(e[0] for e in errors), "grads": min(e[1] for e in errors), "most": max(e[1] for e in errors)}
        values.update(losses=trained(model, net, inputs, torch.float64), losses32=trained(model, net, inputs, torch.float32))
    for kind in zoo.KINDS:
        if kind not in model.kinds:
            continue
        for bits, dtype in ((64, torch.float64), (32, torch.float32)):
            try:
                written(kind, copy.deepcopy(net).to(dtype), [cast(i, dtype) for i in inputs], file_of(folder, kind, bits), model.parallel)
            except Exception as e:  # PyTorch cannot write it
                values["absent"][kind] = reason(e)
                break
    torch.save(values, folder / "values.pt")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
