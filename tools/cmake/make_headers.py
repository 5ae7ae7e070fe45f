#!/usr/bin/env python3
"""Makes DIR/include for programs that build Ramet with themselves: the headers as ./tools/install makes them, and what it adds.

usage: make_headers.py --out DIR COMPONENT...   (DIR/components/COMPONENT.json; targets.py writes it)

Files that nothing changes in keep their times. DIR/headers.cmake says on which files of the tree they depend.
"""

import argparse
import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent.parent / "sdk"))
import headers  # noqa: E402
import make_tree  # noqa: E402


class BuildTree(make_tree.Tree):
    def write(self, name, text):
        path = self.path(name)
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("   (")[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("components", nargs="+")
    given = parser.parse_args()
    components = [json.loads((given.out / "components" / (name + ".json")).read_text()) for name in given.components]
    words = make_tree.words_of(components)
    tree = BuildTree(given.out)
    make_tree.add_headers(tree, components, words)
    there = set(tree.files)
    for path in sorted((given.out / "include").rglob("*")):
        if path.is_file() and str(path.relative_to(given.out)) not in there:
            path.unlink()
    for component in components:
        for source, name in make_tree.FILES.get(component["name"], ()):
            if name.startswith("include/"):
                tree.write(name, (make_tree.ROOT / source).read_text())
    tree.write("symbol.c", make_tree.filled("symbol.c", **words))
    read = set()
    for component in components:
        read.update(headers.public(make_tree.ROOT, component["headers"]))
    read = sorted(str(make_tree.ROOT / name) for name in read)
    tree.write("headers.cmake", "set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS\n  %s)\n" % "\n  ".join('"%s"' % r for r in read))


if __name__ == "__main__":
    main()
