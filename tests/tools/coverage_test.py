#!/usr/bin/env python3
"""tools/compat/COVERAGE.md is what ./tools/coverage writes; a covered name that disappears fails, as does a page by hand.

usage: coverage_test.py   (in the repository's root, or a copy with its headers)
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).absolute().parent.parent.parent
problems = []


def run(root, *options):
    done = subprocess.run([sys.executable, root / "tools/coverage", *options], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def wants(what, root, options, code, *texts):
    got, said = run(root, *options)
    if got != code or any(text not in said for text in texts):
        problems.append("%s: exit code %d with:\n%s" % (what, got, said[-3000:]))


def edit(path, old, new):
    text = path.read_text()
    if old not in text:
        raise SystemExit("FAILED: %s has no %r" % (path, old))
    path.write_text(text.replace(old, new, 1))


def copied(folder):
    """The tree, whose tools may be changed."""
    root = pathlib.Path(folder)
    for path in ROOT.iterdir():
        if path.name != "tools":
            (root / path.name).symlink_to(path)
    for name in ("compat", "compare"):
        shutil.copytree(ROOT / "tools" / name, root / "tools" / name)
    shutil.copy(ROOT / "tools/coverage", root / "tools/coverage")
    return root


wants("the tree", ROOT, ["--check"], 0, ", 0 problems")
with tempfile.TemporaryDirectory() as folder:
    root = copied(folder)
    compat = root / "tools/compat"
    page, names, stored = compat / "COVERAGE.md", compat / "include/ramet/compat/names.h", compat / "upstream.txt"
    before = page.read_text()
    edit(names, "using ::ramet::relu;\n", "")
    wants("a function that disappeared", root, ["--check"], 1, "Functions: relu was covered and is not any more")
    wants("and it is not written away", root, [], 1, "relu was covered")
    if page.read_text() != before:
        problems.append("a page without relu was written")
    wants("it is let go", root, ["--forget", "relu"], 0, "# What Ramet has of LibTorch")
    wants("what was written", root, ["--check"], 0, ", 0 problems")
    edit(names, "using ::ramet::nn::Linear;", "using ::ramet::nn::Identity;")
    wants("a module that disappeared", root, ["--check"], 1, "Modules: Linear was covered and is not any more")
    edit(names, "using ::ramet::nn::Identity;", "using ::ramet::nn::Linear;")
    edit(page, "Covered", "Some of them")
    wants("a page by hand", root, ["--check"], 1, "COVERAGE.md is not what ./tools/coverage writes")
    wants("is written anew", root, [], 0)
    edit(stored, "[functions]\n", "[functions]\nfunction_of_tomorrow\n")
    wants("a name that upstream gets", root, ["--check"], 1, "COVERAGE.md is not what ./tools/coverage writes")
    edit(root / "tools/coverage", '("no dtype of that kind"', '("none", False, "globals", "nothing"), ("no dtype of that kind"')
    wants("a needless reason", root, ["--check"], 1, "ABSENT: no absent name is of: none")
    wants("no LibTorch", root, ["--torch", folder], 1, "no LibTorch in " + folder)

for problem in problems:
    print("FAILED: " + problem)
print("%s: %d problems" % ("FAILED" if problems else "OK", len(problems)))
sys.exit(1 if problems else 0)
