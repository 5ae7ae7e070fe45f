#!/usr/bin/env python3
"""The search box of the reference (tools/docs/find.js) finds the name that is typed, in Node.js.

usage: find_test.py   (in the repository's root)
"""

import json
import shutil
import subprocess
import sys

NAMES = [
    "optim::Adam", "optim::AdamOptions", "optim::AdamW", "optim::Adam::step", "nn::MultiheadAttention", "linear", "bilinear", "nn::Linear",
    "nn::LinearImpl", "nn::functional::linear", "cross_entropy_loss", "nn::CrossEntropyLoss", "nn::functional::cross_entropy", "relu",
    "kLeakyReLU", "leaky_relu", "nn::ReLU", "autograd::backward", "Tensor::backward", "gelu_backward", "conv1d", "conv2d", "nn::Conv2d",
    "nn::ConstantPadOptions::value", "Tensor", "Tensor::sum", "sum", "autograd::recording", "see::Recording", "see::RecordingData",
]  # yapf: disable
# What is typed, and the names that come first.
FIRST = {
    "Adam": ["optim::Adam", "optim::AdamW", "optim::AdamOptions"],
    "linear": ["linear", "nn::Linear", "nn::functional::linear"],
    "cross_entropy": ["nn::functional::cross_entropy", "cross_entropy_loss"],
    "relu": ["relu", "nn::ReLU"],
    "backward": ["Tensor::backward", "autograd::backward", "gelu_backward"],
    "conv": ["conv1d", "conv2d", "nn::Conv2d"],
    "torch::nn::Linear": ["nn::Linear", "nn::functional::linear"],
    "Tensor.sum(0)": ["Tensor::sum"],
    "Recording": ["see::Recording", "autograd::recording", "see::RecordingData"],
    "recording": ["autograd::recording", "see::Recording"],
    "nn::": ["nn::ReLU", "nn::Conv2d", "nn::Linear"],
    "tens": ["Tensor"],
    "zzz": [],
    " ": [],
}
PROGRAM = """
const {find} = require(process.argv[1]);
const [names, typed] = JSON.parse(process.argv[2]);
console.log(JSON.stringify(typed.map((word) => find(names.map((name) => [name, "", ""]), word).map(([name]) => name))));
"""


def main():
    node = shutil.which("node") or shutil.which("nodejs")
    if not node:
        print("skipped: there is no Node.js (Debian's package is nodejs)")
        return 0
    answers = json.loads(
        subprocess.run([node, "-e", PROGRAM, "./tools/docs/find.js", json.dumps([NAMES, list(FIRST)])], stdout=subprocess.PIPE, check=True).stdout)
    wrong = 0
    for (typed, first), got in zip(FIRST.items(), answers):
        fits = got[:len(first)] == first and bool(got) == bool(first)
        if not fits:
            print("%r: got %s, expected first %s" % (typed, got[:5], first))
            wrong += 1
    print("%d searches, %d wrong" % (len(FIRST), wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
