#!/usr/bin/env python3
"""Makes the compatibility headers that git does not have: the lists of Ramet's public names, and LibTorch's include paths.

    tools/compat/names.py                       writes them below tools/compat/include, for a bare -I
    tools/compat/names.py --lists FOLDER        writes the two lists alone, below FOLDER
    tools/compat/names.py --forwarding FOLDER   writes LibTorch's include paths alone, below FOLDER
    tools/compat/names.py --paths               prints the path of each
    tools/compat/names.py --check               writes nothing: fails where a public name has no place (places.py)

Names come from ramet.h through a compiler's preprocessor (CXX, else g++). Include paths come from headers.py and upstream.txt.
"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))

import cxx  # noqa: E402
import headers  # noqa: E402
import places  # noqa: E402
import upstream  # noqa: E402

HERE = pathlib.Path(__file__).absolute().parent  # not where a link of a sandbox leads
ROOT = HERE.parent.parent
INCLUDE = HERE / "include"

NAMES = """// Ramet's public names in LibTorch's namespaces. Written by tools/compat/names.py: do not edit.
//
// Real namespaces, so that programs may open them again, and using-declarations, so that what they add is in the same
// namespace. They take what has been declared before them: ramet/compat/torch.h includes this last. Which namespace declares
// what is as in LibTorch: a program's own torch::relu(Tensor) hides at::relu, its own torch::zeros(MyShape) is an overload.
//
// Not possible: a class named here is Ramet's, so `namespace torch { class Tensor; }` declares another one. Include a compatibility
// header instead. The templates of such a class are specialised in namespace ramet.
#pragma once
#include "ramet.h"
"""
OWN_NAMES = """// Ramet's public names that LibTorch does not have, in torch too. Written by tools/compat/names.py: do not edit.
//
// Only for programs that ask for it by including this: a LibTorch program may have a class Checkpoint of its own and
// `using namespace torch`.
#pragma once
#include <ramet/compat/torch.h>
"""


def public(found):
    """{namespace below ramet: names}"""
    return {space[len("ramet::"):]: names for space, names in found.items() if space.split("::")[0] == "ramet"}


def is_own(space, name):
    return space.split("::")[0] in places.OWN_SPACES or name in places.OWN.get(space, ())


def block(target, source, names):
    """A namespace with a using-declaration of each name."""
    lines = ["", "namespace %s {" % target]
    for name in sorted(names):
        line = "using ::%s::%s;" % (source, name)
        if names[name]:  # Compilers show this line where a program declares the class again.
            line += "  // Ramet's class: include a LibTorch compatibility header, no forward declaration"
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
    for title, listed in (("OWN", places.OWN), ("MORE", places.MORE)):
        for space, names in listed.items():
            for name in names:
                if name not in spaces.get(space, {}):
                    yield "places.py: %s has %s, which is no public name" % (title, joined("ramet", space, name))


def libtorchs():
    """{namespace below torch: LibTorch's names there} of upstream.txt and places.py."""
    areas, _, _ = upstream.stored()
    spaces = {"": {*places.C10, *places.TORCH, *places.TORCH_AND_AT, *places.CAFFE2}}
    for area, names in areas.items():
        space = "torch::autograd" if area == "autograd" else upstream.SPACES.get(area, ("torch",))[0]
        if area not in upstream.PYTHON:
            spaces.setdefault(space[len("torch::"):], set()).update(names)
    spaces["linalg"] = {name.replace("linalg_", "", 1) for name in areas["linear_algebra"]}
    for space, names in places.MORE.items():
        spaces.setdefault(space, set()).update(names)
    return spaces


def unplaced(spaces):
    """Public names that are neither LibTorch's nor in OWN. A module's Impl and an out form go with their name."""
    known = libtorchs()
    for space in sorted(set(spaces) - set(places.LIBTORCH_SPACES)):
        for name in sorted(spaces[space]):
            stems = {name, re.sub("(Impl|_out)$", "", name)}
            if not is_own(space, name) and not stems & known.get(space, set()):
                yield ("%s is not in upstream.txt: name it in OWN of places.py, or in MORE if LibTorch has it"
                       % joined("ramet", space, name))


def strays():
    """Headers below include/ that are neither made here nor named in headers.py."""
    made = headers.paths()
    for file in sorted(INCLUDE.rglob("*.h*")):
        path = str(file.relative_to(INCLUDE))
        if path not in made and not path.startswith("ramet/") and path not in headers.WRITTEN:
            yield "%s: names.py does not make it, and headers.py does not name it" % file.relative_to(ROOT)


def found():
    return public(cxx.names_of("ramet.h", ROOT))


def lists(spaces):
    """{path below include/: text} of the lists of names."""
    return dict(zip(headers.LISTS, (names_header(spaces), own_header(spaces))))


def write(folder, files):
    for path, text in sorted(files.items()):
        file = folder / path
        if not file.exists() or file.read_text() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


def main(arguments):
    if arguments[:1] == ["--paths"]:
        print("\n".join(sorted(headers.paths())))
        return 0
    if arguments[:1] == ["--forwarding"]:
        write(pathlib.Path(arguments[1]), headers.forwarding())
        return 0
    spaces = found()
    if arguments[:1] == ["--lists"]:
        write(pathlib.Path(arguments[1]), lists(spaces))
        return 0
    if "--check" not in arguments:
        write(INCLUDE, {**lists(spaces), **headers.forwarding()})
    problems = [*stale(spaces), *unplaced(spaces), *strays()]
    print("\n".join(problems + ["names: %d namespaces, %d headers, %d problems" % (len(spaces), len(headers.paths()), len(problems))]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
