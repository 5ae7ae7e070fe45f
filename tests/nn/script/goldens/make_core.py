#!/usr/bin/env python3
"""Writes core.pt: calls of operators of ATen's core, and what PyTorch computes.

    tests/nn/script/goldens/make_core.py

A row is (name, overload, arguments, results, gradients): the gradients of the sum of the first result times cos(0, 1, 2, ...), of
each argument that requires one.
"""

import itertools
import pathlib
import zipfile

import torch

HERE = pathlib.Path(__file__).absolute().parent


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    rows = []

    def draw(*sizes, grad=False):
        return torch.randn(*sizes, dtype=torch.float64, requires_grad=grad)

    def add(name, *args, overload="default"):
        result = getattr(getattr(torch.ops.aten, name), overload)(*args)
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
        first = results[0]
        grads = []
        if leaves:
            weights = torch.cos(torch.arange(first.numel(), dtype=torch.float64)).view(first.shape)
            grads = list(torch.autograd.grad((first * weights).sum(), leaves))
        plain = [a.detach().clone() if isinstance(a, torch.Tensor) else a for a in args]
        needs = [isinstance(a, torch.Tensor) and a.requires_grad for a in args]
        rows.append((name, "" if overload == "default" else overload, plain, needs, [r.detach() for r in results if r is not None], grads))

    x, w, b = draw(2, 4, 5, 6), draw(6, 2, 3, 3), draw(6)
    y = torch.nn.functional.conv2d(x, w, b, 1, 1, 1, 2)
    add("convolution_backward", draw(*y.shape), x, w, [6], [1, 1], [1, 1], [1, 1], False, [0, 0], 2, [True, True, True])
    add("convolution_backward", draw(*y.shape), x, w, [6], [1, 1], [1, 1], [1, 1], False, [0, 0], 2, [True, False, True])
    t = draw(4, 3, 3, 3)
    y = torch.nn.functional.conv_transpose2d(x, t, None, 2, 1, 1)
    add("convolution_backward", draw(*y.shape), x, t, None, [2, 2], [1, 1], [1, 1], True, [1, 1], 1, [True, True, False])
    n, m, s = torch.ops.aten.native_layer_norm(x, [5, 6], draw(5, 6), draw(5, 6), 0.1)
    add("native_layer_norm_backward", draw(*x.shape), x, [5, 6], m, s, draw(5, 6), draw(5, 6), [True, True, True])
    add("native_layer_norm_backward", draw(*x.shape), x, [5, 6], m, s, None, None, [True, False, False])
    n, m, s = torch.ops.aten.native_group_norm(x, draw(4), draw(4), 2, 4, 30, 2, 0.1)
    add("native_group_norm_backward", draw(*x.shape), x, m, s, draw(4), 2, 4, 30, 2, [True, True, True])
    add("embedding_dense_backward", draw(2, 3, 4), torch.tensor([[0, 1, 1], [4, 2, 1]]), 5, 2, False)
    add("embedding_dense_backward", draw(2, 3, 4), torch.tensor([[0, 1, 1], [4, 2, 1]]), 5, -1, True)
    y, i = torch.ops.aten.max_pool2d_with_indices(x, [3, 2], [1, 1], [1, 0], [1, 2], False)
    add("max_pool2d_with_indices_backward", draw(*y.shape), x, [3, 2], [1, 1], [1, 0], [1, 2], False, i)
    y = torch.ops.aten.avg_pool2d(x, [3, 2], [2, 2], [1, 1], True, False, None)
    add("avg_pool2d_backward", draw(*y.shape), x, [3, 2], [2, 2], [1, 1], True, False, None)
    add("_adaptive_avg_pool2d_backward", draw(2, 4, 3, 2), x)
    bags = torch.tensor([0, 2, 4, 4, 1, 0]), torch.tensor([0, 2, 2, 5])
    for mode in (0, 1, 2):
        add("_embedding_bag", draw(5, 3, grad=True), *bags, False, mode, False, None, False, -1)
        add("_embedding_bag_forward_only", draw(5, 3), *bags, False, mode, False, None, False, 4)
    add("_trilinear", draw(2, 3, grad=True), draw(4, 3, 5, grad=True), draw(2, 5, grad=True), [1, 3], [0], [1, 2], [2, 3])
    for name, left in (("__lshift__", True), ("__rshift__", False)):
        add(name, torch.tensor([-5, 0, 9]), 2, overload="Scalar")
        add(name, torch.tensor([-5, 0, 9]), torch.tensor([1, 2, 3]), overload="Tensor")
    add("select_copy", x, 1, -1, overload="int")
    slope = (draw(3, 4, grad=True), torch.zeros(3, 4, dtype=torch.float64), 0.1, 0.3, False, None)
    add("rrelu_with_noise", *slope)
    add("rrelu_with_noise_functional", *slope)
    for mode, padding, align in itertools.product((0, 1, 2), (0, 1, 2), (False, True)):
        grid = torch.rand(2, 3, 4, 2, dtype=torch.float64) * 3.4 - 1.7
        grid[0, 0, 0, 0] = float("inf") if padding == 0 and mode < 2 else 0.3
        wants = mode != 1  # nearest: no gradient of the grid
        add("grid_sampler_2d" if mode else "grid_sampler", draw(2, 3, 5, 4, grad=True), grid.requires_grad_(wants), mode, padding, align)
        if mode < 2:
            grid = torch.rand(2, 2, 3, 2, 3, dtype=torch.float64) * 3.4 - 1.7
            add("grid_sampler_3d", draw(2, 2, 3, 4, 5, grad=True), grid.requires_grad_(wants), mode, padding, align)
    for padding, align in itertools.product((1, 2), (False, True)):  # at the border, and an image of one column
        grid = torch.tensor([-1.0, 1.0, 0.0, -3.0, 3.0], dtype=torch.float64)
        grid = torch.stack(torch.meshgrid(grid, grid, indexing="ij"), -1)[None]
        add("grid_sampler_2d", draw(1, 2, 4, 1, grad=True), grid, 0, padding, align)
        if padding == 1:
            add("grid_sampler_2d", draw(1, 1, 3, 3), grid.clone().requires_grad_(True), 0, padding, align)
    for align in (False, True):
        add("affine_grid_generator", draw(2, 2, 3, grad=True), [2, 3, 4, 5], align)
        add("affine_grid_generator", draw(1, 3, 4, grad=True), [1, 1, 1, 3, 2], align)
    path = HERE / "core.pt"
    torch.save(rows, path)
    with zipfile.ZipFile(path) as stored:
        entries = [(name, stored.read(name)) for name in stored.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, data in entries:
            packed.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    print(len(rows), "calls")


if __name__ == "__main__":
    main()
