#!/usr/bin/env python3
"""tools/compat/COVERAGE.md is what ./tools/coverage writes; a covered name that disappears fails, as does a page by hand. Every
module is in the table of modules, every optimizer in the tests' list and in C's, every function in the list of the goldens.

usage: coverage_test.py   (in the repository's root, or a copy with its headers)
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).absolute().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools/compat"), str(ROOT / "tests")]

import module_table  # noqa: E402
import names as compat_names  # noqa: E402

FOUND = compat_names.found()
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
    """The tree; its tools may be changed."""
    root = pathlib.Path(folder)
    for path in ROOT.iterdir():
        if path.name != "tools":
            (root / path.name).symlink_to(path)
    for name in ("compat", "compare"):
        shutil.copytree(ROOT / "tools" / name, root / "tools" / name)
    shutil.copy(ROOT / "tools/coverage", root / "tools/coverage")
    return root


def names_in(space):
    """Public names of a namespace, with what LibTorch has not."""
    return set(FOUND[space])


def modules_without(table):
    """What tests/modules lacks. The table itself refuses a module without a row of the matrix or of C's interface."""
    nn = names_in("nn")
    try:
        return ["tests/modules has no row of nn::" + n for n in module_table.Table(table).missing(n for n in nn if n + "Impl" in nn)]
    except module_table.TableError as e:
        return [str(e)]


def optimizers_without(steps, in_c):
    """What tests/optimizers.h and nn/c/optimizers.cc lack."""
    optim = names_in("optim")
    stepping = {n for n in optim if {n + "Options", n + "ParamState"} <= optim and not n.startswith("Optimizer")}
    stepped = set(re.findall(r"optimizer_with<(?:optim::)?(\w+)>\(", steps))
    listed = {n for pair in re.findall(r'OPTIMIZER\((\w+)|name == "(\w+)"', in_c) for n in pair}
    missing = ["tests/optimizers.h has no line of optim::" + n for n in sorted(stepping - stepped)]
    return missing + ["nn/c/optimizers.cc has no line of optim::" + n for n in sorted(stepping - listed)]


def goldens(functions):
    """What tests/nn/module/golden_functions.cc has no row of."""
    listed = set(re.findall(r'(?:ROW\(|\{)\s*"(\w+)', functions))
    missing = {n for n in names_in("nn::functional") if n[0].islower()} - listed
    return ["tests/nn/module/golden_functions.cc has no row of functional::" + n for n in sorted(missing)]


functions = (ROOT / "tests/nn/module/golden_functions.cc").read_text()
problems += goldens(functions)
for name in ("relu", "embedding_bag", "gumbel_softmax"):
    if goldens(re.sub(r'"%s\b' % name, '"another', functions)) != ["tests/nn/module/golden_functions.cc has no row of functional::" + name]:
        problems.append("a function that is not in tests/nn/module/golden_functions.cc is not noticed: " + name)
table = module_table.text_of(ROOT / "tests/modules")
problems += modules_without(table)
for pattern, part in (
    (r"^Linear\(.*\n", "no row of nn::Linear"),
    (r"^GroupNorm\(.*-> matrix.*\n", "no row of the matrix: GroupNorm"),
    (r"^Mish\(.*\n", "no row of nn::Mish"),
    (r"^PixelUnshuffle.*-> c .*\n", "no row of C's interface, and not in not_in_c: PixelUnshuffle"),
    (r"^not_in_c losses.*\n", "no row of C's interface, and not in not_in_c: BCELoss"),
):
    without = re.sub(pattern, "", table, flags=re.M)
    if without == table or not any(part in problem for problem in modules_without(without)):
        problems.append("what tests/modules lacks is not noticed: " + part)
steps, in_c = (ROOT / "tests/optimizers.h").read_text(), (ROOT / "nn/c/optimizers.cc").read_text()
problems += optimizers_without(steps, in_c)
for name, texts in (
    ("tests/optimizers.h has no line of optim::Lion", (steps.replace("<Lion>", "<Lyon>"), in_c)),
    ("nn/c/optimizers.cc has no line of optim::Lion", (steps, in_c.replace("Lion", "Lyon"))),
):
    if optimizers_without(*texts) != [name]:
        problems.append("an optimizer that is in no list is not noticed: " + name)

wants("the tree", ROOT, ["--check"], 0, ", 0 problems")
with tempfile.TemporaryDirectory() as folder:
    root = copied(folder)
    compat = root / "tools/compat"
    page, places, stored = compat / "COVERAGE.md", compat / "places.py", compat / "upstream.txt"
    before = page.read_text()
    edit(places, " kInlineRank ", " relu kInlineRank ")
    wants("a function that disappeared", root, ["--check"], 1, "Functions: relu was covered and is not any more")
    wants("and it is not written away", root, [], 1, "relu was covered")
    if page.read_text() != before:
        problems.append("a page without relu was written")
    wants("it is let go", root, ["--forget", "relu"], 0, "# What Ramet has")
    wants("what was written", root, ["--check"], 0, ", 0 problems")
    edit(places, " FlatParameters\n", " FlatParameters Linear\n")
    wants("a module that disappeared", root, ["--check"], 1, "Modules: Linear was covered and is not any more")
    edit(places, " FlatParameters Linear\n", " FlatParameters\n")
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
