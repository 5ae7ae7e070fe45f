#!/usr/bin/env python3
"""Writes an archive by an older LibTorch, for which this Python may be too new: its C++ library compiles the text.

    make_old_goldens.py TORCH NAME.pt

TORCH is the folder `torch` of a wheel of that version (pip download --no-deps --python-version 3.8 torch==1.7.1, unpacked).
old_1_5.pt is by 1.5.1, which writes format 2; old_1_10.pt by 1.10.2. It prints what that version computes.
"""

import pathlib
import subprocess
import sys
import tempfile

TEXT = """
def forward(self, n, x):
    # type: (Tensor, Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, str]
    a = n / 2
    b = torch.div(n, torch.full_like(n, 2))
    c = x / 2
    %s
    d = torch.full([2], 3)
    e = torch.linspace(0, 1)
    f = torch.logspace(0, 1)
    g = self.below.forward(torch.gelu(x).view(2, 3) * self.weight)
    return a, b, c, d, e, f, g, self.names[0]
"""
PROGRAM = r"""
#include <torch/script.h>
#include <iostream>
int main(int, char** argv) {
  torch::jit::Module m("Old"), below("Below");
  m.register_parameter("weight", torch::arange(6, torch::kFloat).view({2, 3}), false);
  m.register_buffer("count", torch::tensor({7, 8, 9}, torch::kLong));
  m.register_attribute("names", c10::ListType::create(c10::StringType::get()), c10::List<std::string>({"a", "b"}));
  below.register_parameter("bias", torch::ones({3}), false);
  below.define("def forward(self, x):\n    return x + self.bias\n");
  m.register_module("below", below);
  m.define(argv[1]);
  m.eval();
  const auto r = m.forward({torch::arange(-3, 3).to(torch::kLong), torch::linspace(-1, 1, 6)});
  for (const auto& v : r.toTuple()->elements()) std::cout << v << "\n";
  m.save(argv[2]);
}
"""


def main(torch, name):
    torch = pathlib.Path(torch).absolute()
    # Before 1.6 an integer may be divided in place.
    text = TEXT % ("n.div_(2)" if "1.5" in name or "1_5" in name else "pass")
    with tempfile.TemporaryDirectory() as work:
        source = pathlib.Path(work) / "old.cc"
        source.write_text(PROGRAM)
        command = ["g++", "-w", "-O0", "-std=c++14", "-fpermissive", "-D_GLIBCXX_USE_CXX11_ABI=0", str(source), "-o", work + "/old"]
        command += ["-I%s/include" % torch, "-I%s/include/torch/csrc/api/include" % torch, "-L%s/lib" % torch]
        command += ["-Wl,--unresolved-symbols=ignore-all", "-ltorch_cpu", "-lc10", "-Wl,-rpath,%s/lib" % torch, "-lpthread"]
        subprocess.run(command, check=True)
        subprocess.run([work + "/old", text, name], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
