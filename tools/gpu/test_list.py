#!/usr/bin/env python3
"""Writes tests.list for tools/gpu_check: which cases of gpu_tests belong together in one process, and to which parts.

  gpu_tests --gtest_list_tests --gtest_output=json:FILE; test_list.py FILE LABELS >tests.list

LABELS: a file with the labels of all tests tagged "cuda" and not "emulated_only"; one whose cases are not in the program is an
error. Lines "name<TAB>parts<TAB>filter", by the files that the cases stand in; the operation table in pieces.
"""

import json
import sys

PIECE = 40  # cases of the operation table in one process
# What compute-sanitizer runs: kernels alone, not what several threads or devices do with them.
KERNEL_TESTS = ("autograd/gpu/", "nn/gpu/")
# Ranks in one program: NCCL needs a GPU for each.
SEVERAL_CARDS = "parallel/distributed/"


def file_of(case):
    """The file that a case stands in, below tests/ and without its ending."""
    return case["file"].split("tests/", 1)[-1].rsplit(".", 1)[0]


def is_for_cpus(file):
    """Cases that stand beside the rows of the operation table, which GPUs have from elsewhere."""
    return file.startswith("autograd/table/op_table_")


def without_room(file, packages):
    """The name of a file's test: a package's folders are its rooms, and its tests' names do not have them."""
    package = max((p for p in packages if file.startswith(p + "/")), key=len, default=None)
    return file if package is None else package + "/" + file.rsplit("/", 1)[1]


def groups(listing, labels):
    packages = {package_and_name(label)[0] for label in labels}
    cases = {}
    for suite in listing["testsuites"]:
        for case in suite["testsuite"]:
            file = file_of(case)
            table = suite["name"].startswith("Rows/") and file.endswith("op_gpu_suite")
            if is_for_cpus(file):
                continue
            name = "op_table/" + case["name"].split("/")[0] if table else without_room(file, packages)
            cases.setdefault(name, []).append("%s.%s" % (suite["name"], case["name"]))
    return cases


def package_and_name(label):
    return label.replace("//tests/", "").split(":")


def group_of(label):
    """The group that has the cases of this test."""
    package, name = package_and_name(label)
    if name.startswith("op_gpu_"):
        return "op_table/GpuValuesAndGradients"
    if package == "parallel":
        name = name.replace("_gpus_test", "_test")
    return package + "/" + name


def main():
    with open(sys.argv[2]) as f:
        labels = f.read().split()
    with open(sys.argv[1]) as f:
        found = groups(json.load(f), labels)
    missing = [label for label in labels if group_of(label) not in found]
    if missing or not labels:
        sys.exit("test_list: not in gpu_tests (gpu_cases of ramet_tests puts them there): " + (" ".join(missing) or "no labels"))
    for name, cases in sorted(found.items()):
        table = name.startswith("op_table/")
        if name.startswith(SEVERAL_CARDS):
            parts = "cards"
        elif name.startswith("parallel/"):
            parts = "scenarios"
        elif name.startswith(KERNEL_TESTS) or name == "op_table/GpuValuesAndGradients":
            parts = "tests,sanitizer"
        else:
            parts = "tests"
        size = PIECE if table else len(cases)
        for start in range(0, len(cases), size):
            label = "%s.%d" % (name, start // size + 1) if table else name
            print("\t".join([label, parts, ":".join(cases[start : start + size])]))


if __name__ == "__main__":
    main()
