#!/usr/bin/env python3
"""Checks the machine code of the kernels (kernels/**/*.cu): no kernel keeps anything on a stack or spills registers, none divides
integers in an inner loop (a GPU has no instruction for it: kernels/gpu/divisor.h), the kernels of rows, pointwise operations
and optimizer steps read float32 and bfloat16 16 bytes at a time, ptxas finds no product of a warpgroup whose registers are
used before they are waited for and ignores no setmaxnreg, and no hot kernel costs more than its budget (budgets.py, a table of
which is printed).

It compiles each file to PTX, looks for the loads and divisions there, and assembles it for sm_90a with ptxas -v. Kernels that
are excused stand below, each with its reason; an excuse that nobody needs fails too. Without a toolkit (CUDA_PATH, else
/usr/local/cuda) it prints so and succeeds.

  tools/cuda/check_ptx.py                # all files, as many at a time as there are cores (RAMET_JOBS)
  tools/cuda/check_ptx.py softmax.cu     # some
  tools/cuda/check_ptx.py --folder DIR   # those of another folder
  tools/cuda/check_ptx.py --counts       # and what each kernel has: instructions, divisions, registers
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import budgets
import ptx_loops
import sass

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OPTIONS = ["-std=c++20", "-O2", "-fmad=false", "-I", str(ROOT), "-gencode", "arch=compute_90a,code=compute_90a"]

# (file, part of the kernel's name): why it has a stack frame. Nothing excuses spills.
TUPLES = "coordinates of a tuple of any rank, for any number of index tensors"
LONG = "eight times its body would be too much code, and so the elements of a pack have addresses"
EXCUSED = {
    ("batch_norm_relu_pool.cu", "sums_kernel"): "which of a window's four pixels is known only there",
    ("pointwise_unary.cu", "INS1_3CosE"): "the toolkit's reduction of large angles",
    ("pointwise_unary.cu", "INS1_3SinE"): "the toolkit's reduction of large angles",
    ("pointwise_unary.cu", "INS1_6LgammaE"): LONG,
    ("pointwise_unary.cu", "INS1_9PolygammaE"): LONG,
    ("index.cu", "few_kernel"): TUPLES,
    ("index.cu", "get_kernel"): TUPLES,
    ("index.cu", "keys_kernel"): TUPLES,
    ("index.cu", "move_kernel"): TUPLES,
    ("index.cu", "pieces_kernel"): TUPLES,
    ("index.cu", "runs_sum_kernel"): TUPLES,
    ("index.cu", "sorted_kernel"): TUPLES,
}

# File -> parts of the names of kernels that must read 16 bytes at a time.
WIDE = {
    "layer_norm.cu": ["forward_kernelIf", "forward_kernelINS1_10BfloatBits", "backward_kernelIf",
                      "backward_kernelINS1_10BfloatBits"],
    "group_norm.cu": ["statistics_kernelIf", "statistics_kernelINS1_10BfloatBits", "forward_kernelIf",
                      "forward_kernelINS1_10BfloatBits", "11sums_kernelIf", "11sums_kernelINS1_10BfloatBits", "backward_kernelIf",
                      "backward_kernelINS1_10BfloatBits"],
    "softmax.cu": ["forward_kernelIf", "forward_kernelINS1_10BfloatBits", "backward_kernelIf",
                   "backward_kernelINS1_10BfloatBits"],
    "cross_entropy.cu": ["statistics_kernelIf", "statistics_kernelINS1_10BfloatBits", "rows_kernelIf",
                         "rows_kernelINS1_10BfloatBits", "backward_kernelIf", "backward_kernelINS1_10BfloatBits"],
    "index.cu": ["get_kernelI5uint4", "move_kernelI5uint4", "pieces_kernelIfLi8"],
    "matmul.cu": ["row_sums_kernelIffLi8", "row_sums_kernelINS1_10BfloatBitsEfLi8"],
    "optimizer_step.cu": ["SgdStep", "AdamStep", "RmspropStep", "AdagradStep", "AdamaxStep", "RAdamStep", "AdadeltaStep",
                          "RpropStep", "LionStep", "NAdamStep", "AsgdStep", "limit_norm_kernelIf"],
    "copy_tensors.cu": ["copy_tensors_kernel"],
    "nary_sum.cu": ["sum_kernelIfLi4", "sum_kernelIfLi8"],  # with more summands a thread has one element
    "reduce.cu": ["columns_kernelIf", "sequences_kernelIf"],
    "reduce_rows.cu": ["rows_kernelIf", "rows_kernelINS1_8HalfBits", "rows_kernelINS1_10BfloatBits"],
    "pointwise_arithmetic.cu": ["dense_kernel"],
    "pointwise_activation.cu": ["dense_kernel"],
    "pointwise_unary.cu": ["dense_kernel"],
}

# The most integer divisions and remainders in the inner loops of a kernel (ptx_loops.py says which those are), and in all of it.
# The second kind belongs to a task, or to a thread before its loops.
IN_LOOPS, AT_ALL = 0, 20
# (file, part of the kernel's name): the most in inner loops, the most at all, and why.
OPERATION = "dividing integers is what the operation does"
DIVIDING = {
    ("attention.cu", "attention_plain_backward_kernel"): (0, 68, "rows of a task, each of a head and a batch"),
    ("pointwise_arithmetic.cu", "dense_kernel"): (40, 40, OPERATION),
    ("pointwise_arithmetic.cu", "strided_kernel"): (4, 20, OPERATION),
    ("pointwise_pair.cu", "INS1_3GcdElE"): (20, 20, OPERATION),
    ("pointwise_pair.cu", "INS1_3LcmElE"): (40, 40, OPERATION),
    ("pool2d.cu", "avg_forward_kernelIl"): (4, 20, OPERATION),
    ("pool2d.cu", "avg_backward_kernelIl"): (24, 24, OPERATION),
}
# What ptxas says where it puts waits of its own between products of warpgroups.
WAITS = re.compile(r"\(C75\d\d\) (.*(?:serialized|injected).*) in (?:the )?function '(\w+)'")
# The registers of a kernel's roles: where they are ignored, all roles have those of the largest.
IGNORED = re.compile(r"\(C75\d\d\) .*('setmaxnreg' ignored[^\n]*)")
LOAD = re.compile(r"\bld\.global(?:\.\w+)*\.(?:v4\.\w?(?:32)|v2\.\w?64)\b")


def toolkit():
    home = pathlib.Path(os.environ.get("CUDA_PATH", "/usr/local/cuda"))
    return home / "bin" if (home / "bin" / "nvcc").exists() else None


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed on {command[-3]}:\n{done.stderr}")
    return done.stdout + done.stderr


def divisions(source, counts):
    """Complaints about the divisions of a file's kernels, and the excuses it used."""
    complaints, used = [], set()
    for name, loops in counts.items():
        if loops.inner <= IN_LOOPS and loops.divisions <= AT_ALL:
            continue
        excuses = [key for key in DIVIDING if key[0] == source.name and key[1] in name]
        used.update(("DIVIDING", key) for key in excuses)
        inner, at_all = max([(IN_LOOPS, AT_ALL)] + [DIVIDING[key][:2] for key in excuses])
        if loops.inner > inner or loops.divisions > at_all:
            complaints.append(f"{source.name}: {name} has {loops.inner} integer divisions in its inner loops and "
                              f"{loops.divisions} in all, expected at most {inner} and {at_all}")
    return complaints, used


def print_counts(source, counts, report):
    registers = dict(re.findall(r"Function properties for (\w+)\n.*\n.*Used (\d+) registers", report))
    for name, loops in sorted(counts.items()):
        fma = f" for {loops.fmas} multiply-adds" if loops.fmas else ""
        print(f"{source.name}: {name}: {loops.instructions} instructions, {loops.hot} in the hottest loop{fma}, divisions "
              f"{loops.inner} in inner loops of {loops.divisions}, registers {registers.get(name, '?')}")


def check(tools, source, scratch, show):
    """Complaints about one file, the excuses it used, its number of kernels, and its lines of the table of budgets."""
    ptx = scratch / (source.name + ".ptx")
    run([tools / "nvcc", "-ptx", *OPTIONS, source, "-o", ptx])
    text = ptx.read_text()
    entries = dict(re.findall(r"\.entry (\w+)\((.*?)(?=\.entry |\Z)", text, flags=re.S))
    complaints, used, table = [], set(), []
    for part in WIDE.get(source.name, []):
        found = [name for name in entries if part in name]
        if not found:
            complaints.append(f"{source.name}: no kernel named ...{part}...")
        complaints += [f"{source.name}: {name} has no 16-byte load" for name in found if not LOAD.search(entries[name])]
    counts = ptx_loops.kernels(text)
    if counts.keys() != entries.keys():
        complaints.append(f"{source.name}: {len(entries)} kernels, of which {len(counts)} were understood")
    dividing, excused = divisions(source, counts)
    complaints += dividing
    used |= excused
    if entries:
        report = run([tools / "ptxas", "-v", "-arch=sm_90a", ptx, "-o", scratch / (source.name + ".cubin")])
        pattern = r"Function properties for (\w+)\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
        for name, stack, stores, loads in re.findall(pattern, report):
            if name not in entries or stack == stores == loads == "0":
                continue
            excuses = [key for key in EXCUSED if key[0] == source.name and key[1] in name]
            used.update(("EXCUSED", key) for key in excuses)
            if not excuses or stores != "0" or loads != "0":
                complaints.append(f"{source.name}: {name} has {stack} bytes of stack, spills {stores} and {loads} bytes")
        complaints += [f"{source.name}: {name}: {what}" for what, name in WAITS.findall(report)]
        complaints += [f"{source.name}: {what}" for what in IGNORED.findall(report)]
        table, dear = budgets.check(source.name, sass.kernels(scratch / (source.name + ".cubin")), report)
        complaints += dear
        if show:
            print_counts(source, counts, report)
    return complaints, used, len(entries), table


def main():
    tools = toolkit()
    if not tools:
        print("check_ptx: not run: no nvcc (CUDA_PATH, /usr/local/cuda)")
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "kernels")
    parser.add_argument("--counts", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    sources = sorted(p for p in given.folder.rglob("*.cu") if not given.names or p.name in given.names)
    wanted = {p.name for p in sources}
    unknown = set(given.names) - wanted
    if unknown or not sources:
        parser.error("no such file in %s: %s" % (given.folder, ", ".join(sorted(unknown)) or "*.cu"))
    jobs = int(os.environ.get("RAMET_JOBS", os.cpu_count() or 1))
    complaints, used, kernels, table = [], set(), 0, []
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for some, excuses, count, lines in pool.map(lambda s: check(tools, s, pathlib.Path(scratch), given.counts), sources):
            complaints += some
            used |= excuses
            kernels += count
            table += lines
    for title, excuses in (("EXCUSED", EXCUSED), ("DIVIDING", DIVIDING)):
        complaints += [f"{title}: {key[0]} {key[1]} needs no excuse" for key in excuses
                       if (title, key) not in used and key[0] in wanted]
    for line in complaints:
        print("check_ptx:", line)
    for line in table:
        print(line)
    for (name, part), reason in sorted(EXCUSED.items()):
        if name in wanted:
            print(f"  {name}: {part}: a stack frame: {reason}")
    for (name, part), (inner, at_all, reason) in sorted(DIVIDING.items()):
        if name in wanted:
            print(f"  {name}: {part}: {inner} divisions in inner loops, {at_all} in all: {reason}")
    print(f"check_ptx: {kernels} kernels in {len(sources)} files, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
