"""The sources that mutants are made of, and the copy they are made in."""

import filecmp
import os
import pathlib
import re
import shutil

NOT_COPIED = (".git", "runs", "__pycache__")
# A header that more sources than this include, directly or not, compiles a good part of the folder again for each mutant.
MOST_INCLUDERS = 8

INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def sources(root, folder):
    """.cc and .h files of a folder, as paths below the root."""
    found = [p for p in (root / folder).rglob("*") if p.suffix in (".cc", ".h")]
    return sorted(p.relative_to(root).as_posix() for p in found)


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


def drawn_from(root, folder, wide):
    """The files of a folder that mutants are drawn from; `wide` adds the headers that nearly everything includes."""
    files = sources(root, folder)
    compiled = [f for f in files + sources(root, "tests/" + folder) if f.endswith(".cc")]
    count = included_by(root, compiled)
    return [f for f in files if wide or f.endswith(".cc") or count.get(f, 0) <= MOST_INCLUDERS]


def stem_test(root, file):
    """The test that mirrors a source: tests/<folder>/<stem>_test.cc; empty where there is none."""
    path = pathlib.PurePath(file)
    test = "tests/%s/%s_test.cc" % (path.parts[0], path.stem)
    return "//tests/%s:%s_test" % (path.parts[0], path.stem) if (root / test).is_file() else ""


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
