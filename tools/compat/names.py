#!/usr/bin/env python3
"""Writes the lists of Ramet's public names in the compatibility headers, and LibTorch's headers that include these:

    tools/compat/names.py           writes them
    tools/compat/names.py --check   lists the files that it would change, and fails
    tools/compat/names.py --operations FOLDER
                                    writes <ATen/ops/NAME.h> only, below FOLDER

Run it after a public name was added. A name that LibTorch does not have goes into OWN of places.py first: public names
are LibTorch's unless they stand there.
"""

import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))

import headers  # noqa: E402
import places  # noqa: E402
import public_names  # noqa: E402

HERE = pathlib.Path(__file__).absolute().parent  # not where a link of a sandbox leads
ROOT = HERE.parent.parent
INCLUDE = HERE / "include"
INTERNAL = re.compile(r"(^|::)(detail|kernels|emulated|ptx|impl|internal)(::|$)")

NAMES = """// Ramet's public names in LibTorch's namespaces. Written by tools/compat/names.py: do not edit.
//
// Real namespaces, so that programs may open them again, and using-declarations, so that what they add stands beside what is
// here. They take what has been declared before them: ramet/compat/torch.h includes this last. Which namespace declares
// what is as in LibTorch: a program's own torch::relu(Tensor) hides at::relu, its own torch::zeros(MyShape) is an overload.
//
// What cannot be had: a class named here is Ramet's, so `namespace torch { class Tensor; }` declares another one (include the
// door instead), and its templates are specialised in namespace ramet.
#pragma once
#include "ramet.h"
"""
OWN_NAMES = """// Ramet's public names that LibTorch does not have, in torch too. Written by tools/compat/names.py: do not edit.
//
// Only for programs that ask for it by including this: a LibTorch program may have a class Checkpoint of its own beside its
// `using namespace torch`.
#pragma once
#include <ramet/compat/torch.h>
"""


def public(found):
    """{namespace below ramet: names}"""
    spaces = {}
    for space, names in found.items():
        if space.split("::")[0] == "ramet" and not INTERNAL.search(space) and names:
            spaces[space[len("ramet::"):]] = names
    return spaces


def is_own(space, name):
    return space.split("::")[0] in places.OWN_SPACES or name in places.OWN.get(space, ())


def block(target, source, names):
    """A namespace with a using-declaration of each name."""
    lines = ["", "namespace %s {" % target]
    for name in sorted(names):
        line = "using ::%s::%s;" % (source, name)
        if names[name]:  # Compilers show this line where a program declares the class again.
            line += "  // Ramet's class: include the door, no forward declaration"
        lines.append(line)
    return lines + ["}  // namespace " + target]


def joined(*parts):
    return "::".join(p for p in parts if p)


def names_header(spaces):
    lines = []
    root = {n: t for n, t in spaces[""].items() if not is_own("", n)}
    pick = lambda wanted: {n: t for n, t in root.items() if n in wanted}
    lines += block("c10", "ramet", pick(places.C10))
    lines += block("caffe2", "ramet", pick(places.CAFFE2))
    in_at = set(root) - set(places.C10) - set(places.TORCH) | set(places.TORCH_AND_AT)
    lines += ["", "namespace at {", "using namespace c10;", "}  // namespace at"]
    lines += block("at", "ramet", pick(in_at))
    lines += ["", "namespace torch {", "using namespace at;", "}  // namespace torch"]
    lines += block("torch", "ramet", pick(set(places.TORCH) | set(places.TORCH_AND_AT)))
    for space in sorted(spaces):
        names = {n: t for n, t in spaces[space].items() if not is_own(space, n)}
        if space and names:
            lines += block(joined("at" if space in places.AT_SPACES else "torch", space), joined("ramet", space), names)
    return NAMES + "\n".join(lines) + "\n"


def own_header(spaces):
    lines = []
    for space in sorted(spaces):
        names = {n: t for n, t in spaces[space].items() if is_own(space, n) and n not in places.NEVER.get(space, ())}
        if names:
            lines += block(joined("torch", space), joined("ramet", space), names)
    return OWN_NAMES + "\n".join(lines) + "\n"


def stale(spaces):
    """What places.py lists and no header declares."""
    for space, names in places.OWN.items():
        for name in names:
            if name not in spaces.get(space, {}):
                yield "places.py: OWN has %s, which is no public name" % joined("ramet", space, name)


def write(folder, files):
    for path, text in sorted(files.items()):
        file = folder / path
        if not file.exists() or file.read_text() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


def main(arguments):
    if arguments[:1] == ["--operations"]:
        write(pathlib.Path(arguments[1]), headers.operations())
        return 0
    spaces = public(public_names.scan(os.environ.get("CXX", "g++"), ROOT).found)
    wanted = {"ramet/compat/names.h": names_header(spaces), "ramet/compat/own_names.h": own_header(spaces)}
    wanted.update(headers.forwarding())
    problems = list(stale(spaces))
    if "--check" in arguments:
        for path, text in sorted(wanted.items()):
            file = INCLUDE / path
            if not file.exists() or file.read_text() != text:
                problems.append("%s is not what tools/compat/names.py writes: run it" % file.relative_to(ROOT))
    else:
        write(INCLUDE, {**wanted, **headers.operations()})
    for file in sorted(INCLUDE.rglob("*.h*")):
        path = str(file.relative_to(INCLUDE))
        if path not in wanted and not path.startswith(("ramet/", headers.OPERATIONS)) and not path in headers.WRITTEN:
            problems.append("%s: names.py does not write it, and headers.py does not name it" % file.relative_to(ROOT))
    print("\n".join(problems + ["names: %d namespaces, %d headers, %d problems" % (len(spaces), len(wanted), len(problems))]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
