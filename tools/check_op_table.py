#!/usr/bin/env python3
"""Checks that every public function returning a Tensor has a row in the operation table (tests/autograd/op_cases.cc).

Functions without one are listed below and counted. It fails on a function that is neither in the table nor in the list,
and on a name in the list that has a row by now or is no function.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ROOT / "autograd" / "ops"
TABLE = ROOT / "tests" / "autograd" / "op_cases.cc"

GAPS = set(
    """
    adaptive_avg_pool1d adaptive_avg_pool2d addcdiv addcmul addmm arange avg_pool1d avg_pool2d
    baddbmm batch_norm batch_norm_relu_max_pool2d bernoulli binary_cross_entropy
    binary_cross_entropy_with_logits bitwise_and bitwise_or bitwise_xor bmm clamp_max clamp_min
    clip concat conv1d conv2d cross_entropy_loss cumsum dot dropout embedding empty empty_like
    empty_strided expand eye feature_dropout floor_divide fmod from_blob full full_like gather
    gelu_backward hstack huber_loss index index_add index_put index_select isclose kl_div
    layer_norm leaky_relu_backward lerp linear linspace masked_fill masked_scatter masked_select
    matmul max max_pool1d max_pool2d min movedim multinomial mv native_dropout_backward nll_loss
    nll_loss2d nll_loss_nd nonzero normal one_hot ones ones_like outer rand rand_like randint
    randint_like randn randn_like randperm remainder repeat scalar_tensor scalar_to_tensor
    scatter scatter_add sigmoid_backward silu_backward smooth_l1_loss softplus_backward squeeze
    take tanh_backward threshold_backward unflatten view zeros zeros_like
""".split()
)


def functions():
    """Public functions returning a Tensor, with the header of each; not those that write into `out` or in place."""
    found = {}
    for path in sorted(HEADERS.glob("*.h")):
        if path.name in ("common.h", "composed.h") or path.name.endswith("_front.h"):
            continue
        text = re.sub(r"//[^\n]*", "", path.read_text())
        # Inside namespaces `autograd` and `detail` are the library's own.
        text = re.sub(r"^namespace (?:autograd|detail) \{.*?^\}", "", text, flags=re.S | re.M)
        for name in re.findall(r"\bRAMET_API\s+Tensor\s+(\w+)\s*\(", text):
            if name != "name":  # a macro's parameter
                found[name] = path.name
        for macro, body in re.findall(r"#define\s+(RAMET_\w+)\(name\)((?:[^\n]*\\\n)*[^\n]*)", text):
            if re.search(r"\bTensor name\b", body):
                for name in re.findall(rf"^{macro}\((\w+)\)", text, flags=re.M):
                    found[name] = path.name
    return found


def row_names():
    text = TABLE.read_text()
    text = re.sub(r"\s+", " ", text)
    names = re.findall(r"(?:\b(?:unary|binary|row)\( ?|\badd_row\( ?t, |\bname = (?:\w+ \? )?)\"([\w.]+)\"", text)
    names += re.findall(r"\bname = \w+ \? \"[\w.]+\" : \"([\w.]+)\"", text)
    names += re.findall(r"\bCOMPARE\((\w+), [^)]*\);", text)
    return {name.split(".")[0] for name in names}


def main():
    public, rows = functions(), row_names()
    errors = []
    for name in sorted(set(public) - rows - GAPS):
        errors.append(f"autograd/ops/{public[name]}: {name} has no row in {TABLE.relative_to(ROOT)}")
    for name in sorted(GAPS & rows):
        errors.append(f"{name} has a row: take it off the list in this script")
    for name in sorted(GAPS - set(public)):
        errors.append(f"{name} is in the list, but no public function")
    for name in sorted(rows - set(public)):
        errors.append(f"a row names {name}, which is no public function")
    for error in errors:
        print(error)
    gaps = sorted(GAPS & set(public) - rows)
    print(f"operation table: {len(set(public) & rows)} of {len(public)} functions have a row; {len(gaps)} gaps: {' '.join(gaps)}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
