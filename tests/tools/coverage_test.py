#!/usr/bin/env python3
"""tools/compat/COVERAGE.md is what ./tools/coverage writes; a covered name that disappears fails, as does a page by hand. Every
module and optimizer is in the lists of the tests' matrix, and in C's. Every function is in the list of the goldens.

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
sys.path.insert(0, str(ROOT / "tools/compat"))

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


def matrix(modules, optimizers):
    """What tests/modules.cc and tests/optimizers.h have no line of."""
    listed = set(re.findall(r"^ *(?:MODULE|LOSS|OF_PLAIN)\((\w+)", modules, flags=re.M))
    listed |= {kind + d for kind in re.findall(r"^ *OF_ALL_RANKS\((\w+)", modules, flags=re.M) for d in ("1d", "2d", "3d")}
    nn, optim = names_in("nn"), names_in("optim")
    missing = ["tests/modules.cc has no line of nn::" + n for n in sorted(nn - listed) if n + "Impl" in nn]
    stepping = {n for n in optim if {n + "Options", n + "ParamState"} <= optim and not n.startswith("Optimizer")}
    listed = set(re.findall(r"optimizer_with<(?:optim::)?(\w+)>\(", optimizers))
    return missing + ["tests/optimizers.h has no line of optim::" + n for n in sorted(stepping - listed)]


# Modules that descriptions for C do not have: containers and what takes or gives more than one tensor; losses are functions there.
NOT_IN_C = set(
    """Bilinear CosineSimilarity PairwiseDistance MultiheadAttention RNNCell LSTMCell GRUCell Transformer TransformerDecoder
    TransformerDecoderLayer TransformerEncoder EmbeddingBag Functional Sequential ModuleList ModuleDict ParameterList
    ParameterDict BatchNormReLUMaxPool2d""".split()
)


def c_interface(rows, optimizers):
    """What neither tests/nn/c/module_rows.cc nor NOT_IN_C has, nor nn/c/optimizers.cc."""
    listed = set(re.findall(r'(?:PLAIN\(|ROW\(R"\("|"type": ")(\w+)', rows))
    nn, optim = names_in("nn"), names_in("optim")
    modules = {n for n in nn if n + "Impl" in nn and not n.endswith("Loss")}
    missing = ["tests/nn/c/module_rows.cc has no row of nn::%s, nor is it in NOT_IN_C" % n for n in sorted(modules - listed - NOT_IN_C)]
    missing += ["NOT_IN_C has nn::%s, which is in C, or nowhere" % n for n in sorted(NOT_IN_C & listed | NOT_IN_C - nn)]
    stepping = {n for n in optim if {n + "Options", n + "ParamState"} <= optim and not n.startswith("Optimizer")}
    listed = set(re.findall(r'OPTIMIZER\((\w+)|name == "(\w+)"', optimizers))
    listed = {n for pair in listed for n in pair}
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
modules, optimizers = (ROOT / "tests/modules.cc").read_text(), (ROOT / "tests/optimizers.h").read_text()
problems += matrix(modules, optimizers)
for name in ("Linear", "ReLU", "BCELoss", "ReflectionPad"):
    without = re.sub(r"\(%s\b" % name, "(Another", modules)
    if not any("nn::" + name in problem for problem in matrix(without, optimizers)):
        problems.append("a module that is not in tests/modules.cc is not noticed: " + name)
if "tests/optimizers.h has no line of optim::Lion" not in matrix(modules, optimizers.replace("<Lion>", "<Lyon>")):
    problems.append("an optimizer that is not in tests/optimizers.h is not noticed")

rows, steps = (ROOT / "tests/nn/c/module_rows.cc").read_text(), (ROOT / "nn/c/optimizers.cc").read_text()
problems += c_interface(rows, steps)
for name, texts in (("nn::Mish", (rows.replace("(Mish)", "(Mush)"), steps)), ("optim::Lion", (rows, steps.replace("Lion", "Lyon")))):
    if not any(name in problem for problem in c_interface(*texts)):
        problems.append("what C has not is not noticed: " + name)

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
