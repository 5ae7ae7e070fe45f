#!/usr/bin/env python3
"""Writes parameters/mersenne.txt: the parameters with which PyTorch makes the modules of tests/modules after a seed.

Needs PyTorch 2.15. A line is `digest next name`: the digest of all parameters, float32, sorted by name (FNV-1a), and the next draw of
27 bits, which shows how many numbers the module took. tests/nn/module/mersenne_modules_test.cc makes the same modules.
"""

import pathlib
import sys

import torch

sys.dont_write_bytecode = True  # all of this folder is the tests' data
import golden_modules

SEED = 2026


def digest(parameters):
    value = 0xCBF29CE484222325
    for _, parameter in sorted(parameters):
        for byte in bytes(parameter.detach().contiguous().reshape(-1).view(torch.uint8).numpy()):
            value = (value ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return "%016x" % value


def main():
    if not torch.__version__.startswith("2.15."):
        sys.exit("make_mersenne: got PyTorch %s, expected 2.15" % torch.__version__)
    lines = []
    for example in golden_modules.module_table.read().examples:
        if not example.matrix:
            continue
        torch.manual_seed(SEED)
        module = eval(example.text, dict(golden_modules.WORDS))
        after = torch.randint(0, 2**27, (1,)).item()
        lines.append("%s %d %s" % (digest(list(module.named_parameters())), after, example.matrix[0]))
    path = pathlib.Path(__file__).with_name("parameters") / "mersenne.txt"
    path.write_text("\n".join(lines) + "\n")
    print("%s: %d lines" % (path.name, len(lines)))


if __name__ == "__main__":
    main()
