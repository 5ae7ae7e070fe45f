"""The sources that mutants are made of, and the copy they are made in."""

import filecmp
import os
import pathlib
import re
import shutil

# Where the files of a part are, and the tests that are to notice, where these are not in the folder of the part's name.
FOLDERS = {"gpu": "kernels"}
TESTS = {
    # What only an operation calls (linear algebra, resampling, bags of rows) is tested through it.
    "kernels": "//tests/kernels/... //tests/autograd/...",
    "gpu": "--test_tag_filters=cuda,-takes_long //tests/...",
    # Captured steps, and the backward passes with buckets of gradients and other processes, have their tests elsewhere.
    "autograd": "//tests/autograd/... //tests/capture/... //tests/parallel/...",
}
# The second build that a survivor meets: what is instrumented.
SECOND_BUILDS = {"gpu": "check"}
NOT_COPIED = (".git", "runs", "__pycache__")
# A header that more sources than this include, directly or not, compiles a good part of the folder again for each mutant.
MOST_INCLUDERS = 8

INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def part_of(file):
    """Which part of the library a file belongs to: its folder, or "gpu" for what runs on GPUs alone."""
    path = pathlib.PurePath(file)
    on_gpus = path.suffix == ".cu" or "gpu" in path.stem.split("_")
    return "gpu" if path.parts[0] == "kernels" and on_gpus else path.parts[0]


def sources(root, part):
    """The source files and headers of a part, as paths below the root."""
    found = [p.relative_to(root).as_posix() for p in (root / FOLDERS.get(part, part)).rglob("*") if p.suffix in (".cc", ".cu", ".h")]
    return sorted(p for p in found if p.startswith("tests/") or part_of(p) == part)


def included_by(root, files):
    """{header: how many of `files` include it, directly or not}."""
    known = {}

    def reach(file):
        if file not in known:
            known[file] = set()
            path = root / file
            for header in INCLUDE.findall(path.read_text()) if path.is_file() else ():
                known[file] |= {header} | reach(header)
        return known[file]

    count = {}
    for file in files:
        for header in reach(file):
            count[header] = count.get(header, 0) + 1
    return count


def drawn_from(root, part, wide):
    """The files of a part that mutants are drawn from; `wide` adds the headers that nearly everything includes."""
    files = sources(root, part)
    compiled = [f for f in files + sources(root, "tests/" + part) if not f.endswith(".h")]
    count = included_by(root, compiled)
    return [f for f in files if wide or not f.endswith(".h") or count.get(f, 0) <= MOST_INCLUDERS]


def stem_test(root, file):
    """The label of the test that mirrors a source, tests/<folder>/<stem>_test.cc; empty where there is none. Of GPUs, the rows of the
    operation table that are called as the file begins."""
    path = pathlib.PurePath(file)
    if part_of(file) == "gpu":
        group = path.stem.split("_")[0]
        table = "tests/autograd/table/op_table_%s_test.cc" % group
        return "//tests/autograd/gpu:op_gpu_test" if (root / table).is_file() else ""
    test = root / "tests" / path.parent / ("%s_test.cc" % path.stem)
    if not test.is_file():
        return ""
    # A sub-folder is no package.
    package = next(folder for folder in test.parents if (folder / "BUILD").is_file() or folder.parent.name == "tests")
    return "//%s:%s_test" % (package.relative_to(root).as_posix(), path.stem)


def synchronise(source, copy):
    """Makes `copy` the same as `source`. Files that are equal keep their dates, so that Bazel looks at nothing twice."""
    copy.mkdir(parents=True, exist_ok=True)
    wanted = set()
    for entry in os.scandir(source):
        if entry.name in NOT_COPIED or entry.name.startswith("bazel-"):
            continue
        wanted.add(entry.name)
        target = copy / entry.name
        if entry.is_dir(follow_symlinks=False):
            synchronise(pathlib.Path(entry.path), target)
        elif not target.is_file() or not filecmp.cmp(entry.path, target, shallow=False):
            shutil.copy2(entry.path, target)
    for entry in os.scandir(copy):
        if entry.name not in wanted and not entry.name.startswith("bazel-"):
            shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)
