#!/usr/bin/env python3
"""The LibTorch compatibility headers: their names are those of the headers, and programs compile with them, or are refused with a reason.

usage: compat_headers_test.py   (in the repository's root, or a copy with its headers)
"""

import concurrent.futures
import glob
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).absolute().parent
ROOT = HERE.parent.parent.parent
SCRIPTS = ROOT / "tools/compat"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPTS))

import cxx  # noqa: E402
import headers  # noqa: E402
import names  # noqa: E402

# Some of the headers of single operations: a function, a method, an in-place form, an out form, linalg, LibTorch's own.
OPERATIONS = ["ATen/ops/%s.h" % name for name in "matmul view uniform add linalg_norm size _sample_dirichlet".split()]
FLAGS = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-iquote", "."]
COMPAT = ["-Itools/compat/include", "-isystem", "."]  # and what names.py makes: made_headers()
LIBTORCH = ["-Itests/tools/compat/libtorch"]


def newest_clang():
    clangs = sorted(glob.glob("/usr/bin/clang++*"), key=lambda p: [int(n) for n in re.findall(r"\d+", p)])
    if not clangs:
        raise SystemExit("FAILED: no clang: run ./tools/setup.sh test")
    return clangs[-1]


def run(command, text=None):
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def names_have_places():
    code, said = run([sys.executable, "tools/compat/names.py", "--check"])
    problems = [said] if code else []
    # A name without a place is noticed, as is a place without a name.
    spaces = names.found()
    lost = {**spaces, "optim": {**spaces["optim"], "OptimizerOfTomorrow": True}}
    if list(names.unplaced(spaces)) or len(list(names.unplaced(lost))) != 1:
        problems.append("names.py: a public name without a place is not noticed")
    if list(names.stale(spaces)) or not list(names.stale({**spaces, "cuda": {}})):
        problems.append("names.py: a place without a public name is not noticed")
    return problems


def made_headers(folder):
    """What is wrong with the headers that names.py makes below a folder."""
    code, said = run([sys.executable, "tools/compat/names.py", "--lists", folder])
    more, also_said = run([sys.executable, "tools/compat/names.py", "--forwarding", folder])
    found = {str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*.h*")}
    if code or more or found != headers.paths() or len(found) < 1000 or not found.issuperset(OPERATIONS):
        return ["names.py: made %d headers\n%s" % (len(found), said + also_said)]
    return []


def forgotten_names(clang):
    """Public names that clang has seen declared and cxx.py has not, or the other way round."""
    code, said = run([clang, "-std=c++17", "-x", "c++", "-I.", "-fsyntax-only", "-Xclang", "-ast-list", "-"], '#include "ramet.h"')
    if code:
        return [said]
    lines = cxx.preprocessed(["ramet.h"], ROOT, clang)
    text = "\n".join(line[3] for line in lines)
    reader = cxx.Reader(lines, inside=lambda full: False)
    spaces = names.public(cxx.names(reader.entries))
    opened = {space for space in reader.namespaces if space.split("::")[0] == "ramet"}  # others are opened for overloads
    declared = {}
    for line in said.splitlines():
        space, _, name = line.rpartition("::")
        if space in opened and line not in opened and re.fullmatch(r"[A-Za-z_]\w*", name):
            declared.setdefault(space[len("ramet::"):], set()).add(name)
    problems = []
    for space, found in spaces.items():
        # clang lists the parameters of alias templates like the names: <class T, int N, template <class> class C = D>
        parameter = lambda name: re.search(r"([<,]\s*[\w:]+(\s*\.\.\.)?|>\s*class)\s+%s\s*[,>=]" % name, text)
        # From version 16 clang lists what only a friend declaration names, which no program sees.
        befriended = lambda name: set(re.findall(r"(\w+\s+)?\b(?:class|struct)\s+%s\b" % name, text)) == {"friend "}
        for name in sorted(declared[space] - set(found)):
            if not name.startswith("operator") and not parameter(name) and not befriended(name):
                problems.append("clang has seen %s, and tools/compat/cxx.py has not" % names.joined("ramet", space, name))
        for name in sorted(set(found) - declared[space]):
            problems.append("cxx.py takes %s for a name, and clang does not" % names.joined("ramet", space, name))
    if sum(map(len, spaces.values())) < 900:
        problems.append("few names: %d" % sum(map(len, spaces.values())))
    return problems


def accepted(compiler, standard):
    code, said = run([compiler, "-std=" + standard, *FLAGS, *COMPAT, "tests/tools/compat/accepted.cc"])
    return ["accepted.cc as %s with %s:\n%s" % (standard, compiler, said)] if code else []


def all_headers(compiler):
    """Each header by itself includes the LibTorch compatibility headers, or gives an error; one program includes all of the former."""
    wanted = set(headers.forwarding()) - set(headers.TRAPS) - set(headers.operations())
    text = "".join("#include <%s>\n" % path for path in sorted(wanted))
    code, said = run([compiler, "-std=c++17", "-x", "c++", *FLAGS, *COMPAT, "-"], text + "#include <ramet/compat/own_names.h>\n")
    return ["all headers with %s:\n%s" % (compiler, said)] if code else []


def operation_headers(compiler):
    """<ATen/ops/NAME.h>: one program includes all of them."""
    text = "".join("#include <%s>\n" % path for path in headers.operations())
    text += "at::Tensor x = at::matmul(at::ones({2, 2}), at::ones({2, 2})), y = at::add_out(x, x, x).view({at::size(x, 1) * 2});\n"
    text += "at::Tensor norm = at::linalg_norm(y);\n"
    code, said = run([compiler, "-std=c++17", "-x", "c++", *FLAGS, *COMPAT, "-"], text)
    return ["headers of operations with %s:\n%s" % (compiler, said)] if code else []


def refused(compiler, path, folders):
    code, said = run([compiler, "-std=c++17", *FLAGS, *folders, "tests/tools/compat/" + path])
    problems = [] if code else ["%s with %s: compiles" % (path, compiler)]
    for wanted in re.findall(r"says: (.*)", (HERE / path).read_text()):
        if not any(w in said for w in wanted.split(" | ")):
            problems.append("%s with %s: no word of: %s\n%s" % (path, compiler, wanted, said))
    return problems


def main():
    clang = newest_clang()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = made_headers(folder)
        COMPAT.insert(0, "-I" + folder)
        started = [pool.submit(names_have_places), pool.submit(forgotten_names, clang)]
        for compiler in ("g++", clang):
            started += [pool.submit(accepted, compiler, standard) for standard in ("c++17", "c++20")]
            started.append(pool.submit(all_headers, compiler))
            started.append(pool.submit(operation_headers, compiler))
            for path, folders in (
                ("refused.cc", COMPAT),
                ("alias_before.cc", COMPAT),
                ("extension.cc", COMPAT),
                ("libtorch_before.cc", LIBTORCH + COMPAT),
                ("libtorch_after.cc", LIBTORCH + COMPAT),
                ("libtorch_second.cc", COMPAT + LIBTORCH),
            ):
                started.append(pool.submit(refused, compiler, path, folders))
        problems += [problem for result in started for problem in result.result()]
    for problem in problems:
        print("FAILED: " + problem)
    print("%s: %d compilations, %d problems" % ("FAILED" if problems else "OK", len(started), len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
