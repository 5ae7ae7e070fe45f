#!/usr/bin/env python3
"""Checks the machine code of the kernels (kernels/*.cu): no kernel keeps anything on a stack or spills registers, and the
kernels of rows, pointwise operations and optimizer steps read float32 and bfloat16 16 bytes at a time.

It compiles each file to PTX, looks for the loads there, and assembles it for sm_90a with ptxas -v. Kernels that are
excused stand below, each with its reason; an excuse that nobody needs fails too. Without a toolkit (CUDA_PATH, else
/usr/local/cuda) it prints so and succeeds.

  tools/cuda/check_ptx.py                # all files, as many at a time as there are cores (RAMET_JOBS)
  tools/cuda/check_ptx.py softmax.cu     # some
  tools/cuda/check_ptx.py --folder DIR   # those of another folder
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OPTIONS = ["-std=c++20", "-O2", "-fmad=false", "-I", str(ROOT), "-gencode", "arch=compute_90a,code=compute_90a"]

# (file, part of the kernel's name): why it has a stack frame. Nothing excuses spills.
TUPLES = "coordinates of a tuple of any rank, for any number of index tensors"
EXCUSED = {
    ("batch_norm_relu_pool.cu", "sums_kernel"): "which of a window's four pixels is known only there",
    ("pointwise_unary.cu", "INS1_3CosE"): "the toolkit's reduction of large angles",
    ("pointwise_unary.cu", "INS1_3SinE"): "the toolkit's reduction of large angles",
    ("index.cu", "few_kernel"): TUPLES,
    ("index.cu", "get_kernel"): TUPLES,
    ("index.cu", "nonzero_kernel"): TUPLES,
    ("index.cu", "places_kernel"): TUPLES,
    ("index.cu", "sorted_kernel"): TUPLES,
}

# File -> parts of the names of kernels that must read 16 bytes at a time.
WIDE = {
    "layer_norm.cu": ["forward_kernelIf", "forward_kernelINS1_10BfloatBits", "backward_kernelIf",
                      "backward_kernelINS1_10BfloatBits"],
    "softmax.cu": ["forward_kernelIf", "forward_kernelINS1_10BfloatBits", "backward_kernelIf",
                   "backward_kernelINS1_10BfloatBits"],
    "cross_entropy.cu": ["statistics_kernelIf", "statistics_kernelINS1_10BfloatBits", "consume_kernelIf",
                         "consume_kernelINS1_10BfloatBits", "backward_kernelIf", "backward_kernelINS1_10BfloatBits"],
    "matmul.cu": ["row_sums_kernelIffLi8", "row_sums_kernelINS1_10BfloatBitsEfLi8"],
    "optimizer_step.cu": ["sgd_kernelIf", "adam_kernelIf", "limit_norm_kernelIf"],
    "copy_tensors.cu": ["copy_tensors_kernel"],
    "nary_sum.cu": ["sum_kernelIfLi4", "sum_kernelIfLi8"],  # with more summands a thread has one element
    "reduce.cu": ["columns_kernelIf", "sequences_kernelIf"],
    "pointwise_arithmetic.cu": ["dense_kernel"],
    "pointwise_activation.cu": ["dense_kernel"],
    "pointwise_unary.cu": ["dense_kernel"],
}
LOAD = re.compile(r"\bld\.global(?:\.\w+)*\.(?:v4\.\w?(?:32)|v2\.\w?64)\b")


def toolkit():
    home = pathlib.Path(os.environ.get("CUDA_PATH", "/usr/local/cuda"))
    return home / "bin" if (home / "bin" / "nvcc").exists() else None


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed on {command[-3]}:\n{done.stderr}")
    return done.stdout + done.stderr


def check(tools, source, scratch):
    """Complaints about one file, and the excuses it used."""
    ptx = scratch / (source.name + ".ptx")
    run([tools / "nvcc", "-ptx", *OPTIONS, source, "-o", ptx])
    text = ptx.read_text()
    entries = dict(re.findall(r"\.entry (\w+)\((.*?)(?=\.entry |\Z)", text, flags=re.S))
    complaints, used = [], set()
    for part in WIDE.get(source.name, []):
        found = [name for name in entries if part in name]
        if not found:
            complaints.append(f"{source.name}: no kernel named ...{part}...")
        complaints += [f"{source.name}: {name} has no 16-byte load" for name in found if not LOAD.search(entries[name])]
    if entries:
        report = run([tools / "ptxas", "-v", "-arch=sm_90a", ptx, "-o", scratch / (source.name + ".cubin")])
        pattern = r"Function properties for (\w+)\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
        for name, stack, stores, loads in re.findall(pattern, report):
            if name not in entries or stack == stores == loads == "0":
                continue
            excuses = [key for key in EXCUSED if key[0] == source.name and key[1] in name]
            used.update(excuses)
            if not excuses or stores != "0" or loads != "0":
                complaints.append(f"{source.name}: {name} has {stack} bytes of stack, spills {stores} and {loads} bytes")
    return complaints, used, len(entries)


def main():
    tools = toolkit()
    if not tools:
        print("check_ptx: not run: no nvcc (CUDA_PATH, /usr/local/cuda)")
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "kernels")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    sources = sorted(p for p in given.folder.glob("*.cu") if not given.names or p.name in given.names)
    wanted = {p.name for p in sources}
    unknown = set(given.names) - wanted
    if unknown or not sources:
        parser.error("no such file in %s: %s" % (given.folder, ", ".join(sorted(unknown)) or "*.cu"))
    jobs = int(os.environ.get("RAMET_JOBS", os.cpu_count() or 1))
    complaints, used, kernels = [], set(), 0
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for some, excuses, count in pool.map(lambda s: check(tools, s, pathlib.Path(scratch)), sources):
            complaints += some
            used |= excuses
            kernels += count
    complaints += [f"EXCUSED: {key[0]} {key[1]} needs no excuse" for key in EXCUSED
                   if key not in used and key[0] in wanted]
    for line in complaints:
        print("check_ptx:", line)
    for (name, part), reason in sorted(EXCUSED.items()):
        if name in wanted:
            print(f"  {name}: {part}: a stack frame: {reason}")
    print(f"check_ptx: {kernels} kernels in {len(sources)} files, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
