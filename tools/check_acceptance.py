#!/usr/bin/env python3
"""Checks tests/ACCEPTANCE.md: what is claimed there is shown by a test that ran and passed.

The table has the columns `| # | sentence | shown by | state |`. The state is `done` or `open`. "Shown by" is one or more
entries, separated by commas or <br>, with or without backquotes:

  autograd/engine_test:Engine.DeepChain   a GoogleTest case of //tests/autograd:engine_test; `*` matches anything, and
                                          instances of parametrised and typed cases belong to their plain name
  tests/headers                           a whole test target
  tools/examples/first_program            an example: a program that must end well
  tools/check_layers.py                   a check of the tree that tools/test runs
  autograd/x_test:Suite.Case [asan]       the same in the ASan build, or [check] in the checker's, where `./tools/test` made one
  ./tools/train --data fashion-mnist      a command: its script must exist and be executable

A row that is done must name at least one entry, and each must have run and passed. Cases of a *_long_test, which only
`./tools/test --long` runs, and of builds that were not made must at least stand in the source. A command shows nothing by
itself: its row says `seen by hand: ` and when, with which numbers, and names a test besides. Rows that are open are counted.

Alone (`tools/check_acceptance.py`) this checks the form and the sources only; tools/test calls check() with results.
"""

import fnmatch
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STATES = ("done", "open")
ENTRY = re.compile(r"^(?P<target>[A-Za-z0-9_/]+)(:(?P<case>[A-Za-z0-9_/*]+\.[A-Za-z0-9_/*]+))?( \[(?P<build>asan|check)\])?$")
CHECK = re.compile(r"^tools/check_(?P<name>\w+)\.(py|sh)$")


def rows(text):
    """(line number, number, sentence, entries, state) of each row of the table, or a string that says what is wrong."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            continue
        cells = [c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if not cells or cells[0] == "#" or set(cells[0]) <= set("-: "):
            continue
        if len(cells) != 4:
            yield "line %d: %d cells, expected 4: # | sentence | shown by | state" % (number, len(cells))
            continue
        entries = [e.strip().strip("`").strip() for e in re.split(r",|<br>|;", cells[2])]
        yield number, cells[0], cells[1], [e for e in entries if e and e != "-"], cells[3].strip("`* ").lower()


def plain_name(name):
    """Suite.Case of Instance/Suite.Case/3 and of Suite/0.Case."""
    suite, _, case = name.partition(".")
    parts = suite.split("/")
    if len(parts) > 1 and parts[-1].isdigit():
        parts = parts[:-1]
    return "%s.%s" % (parts[-1], case.split("/")[0])


def label_of(target):
    """`autograd/engine_test` and `tests/headers` as Bazel labels."""
    parts = target.split("/")
    if parts[0] == "tools":
        return "//%s:%s" % ("/".join(parts[:-1]), parts[-1])
    if parts[0] != "tests":
        parts = ["tests"] + parts
    # The package is the deepest folder with a BUILD file; tests/<folder> where none is seen.
    depths = [d for d in range(1, len(parts)) if ROOT.joinpath(*parts[:d], "BUILD").exists()]
    depth = max(depths + [min(2, len(parts) - 1)])
    return "//%s:%s" % ("/".join(parts[:depth]), "/".join(parts[depth:]))


def source_has(target, case):
    """Whether tests/<target>.cc defines the case."""
    path = ROOT / (target + ".cc") if target.startswith("tools/") else ROOT / "tests" / (re.sub("^tests/", "", target) + ".cc")
    # A test carries the name of its file, which may stand in a room (a sub-folder) of its package.
    path = next((p for p in [path, *path.parent.glob("*/" + path.name)] if p.exists()), None)
    if path is None:
        # A program of others' cases has no file of its own.
        build = ROOT / "tests" / pathlib.Path(target).parent / "BUILD"
        return not case and build.is_file() and 'name = "%s"' % pathlib.Path(target).name in build.read_text()
    if not case:
        return True
    # x_test.cc, and the program's other parts: x_*.cc.
    text = "".join(p.read_text() for p in [path, *path.parent.glob(re.sub("_test$", "", path.stem) + "_*.cc")])
    names = re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", text)
    names += re.findall(r"\bTYPED_TEST(?:_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", text)
    return any(fnmatch.fnmatchcase("%s.%s" % name, case) for name in names)


def is_command(entry):
    return entry.startswith(("./", ".ci/"))


def problem_of(entry, results):
    """What is wrong with one entry, or None. `results` is {label: [(case, outcome, run)]}, or None without a run."""
    if is_command(entry) or CHECK.match(entry):
        script = ROOT / entry.split()[0]
        if not script.is_file() or not os.access(script, os.X_OK):
            return "no such program: " + entry.split()[0]
        if is_command(entry) or results is None:
            return None
        name = CHECK.match(entry).group("name")
        return None if (name, "passed") in [r[:2] for r in results.get("", [])] else "%s: did not run and pass" % entry
    match = ENTRY.match(entry)
    if not match:
        return "neither a test nor a command: " + entry
    target, case, build = match.group("target"), match.group("case"), match.group("build")
    ran = (results or {}).get(label_of(target), [])
    if case:
        ran = [r for r in ran if fnmatch.fnmatchcase(r[0], case) or fnmatch.fnmatchcase(plain_name(r[0]), case)]
    not_made = False
    if build:
        ran = [r for r in ran if r[2] == build]
        not_made = not any(r[2] == build for rs in (results or {}).values() for r in rs)
    if not ran:
        if results is None and not case:
            return None
        if (results is None or not_made or target.endswith("_long_test")) and source_has(target, case):
            return None
        return "%s: did not run" % entry if results is not None else "%s: no such case" % entry
    outcomes = {r[1] for r in ran}
    if "failed" in outcomes:
        return "%s: failed" % entry
    return None if "passed" in outcomes else "%s: was skipped" % entry


def check(path, cases):
    """(problems, summary) of the table in the file `path`; `cases` is [(label, case, outcome, run)], or None without one."""
    results = None
    if cases is not None:
        results = {}
        for label, name, outcome, run in cases:
            results.setdefault(label, []).append((name, outcome, run))
    path = pathlib.Path(path)
    if not path.exists():
        return ["%s is missing" % path], "no table"
    problems = []
    count = dict.fromkeys(STATES, 0)
    seen = set()
    for row in rows(path.read_text()):
        if isinstance(row, str):
            problems.append(row)
            continue
        line, number, sentence, entries, state = row
        where = "row %s (line %d): " % (number, line)
        if number in seen:
            problems.append(where + "number used twice")
        seen.add(number)
        if state not in STATES:
            problems.append(where + "state %r is neither done nor open" % state)
            continue
        count[state] += 1
        if not sentence:
            problems.append(where + "no sentence")
        if state == "done":
            if not entries:
                problems.append(where + "done, but shown by nothing")
            elif any(is_command(e) for e in entries):
                if all(is_command(e) for e in entries):
                    problems.append(where + "a command shows nothing by itself: name a test that runs, too")
                if "seen by hand: " not in sentence:
                    problems.append(where + "a command shows nothing by itself: what was `seen by hand: `, and when?")
            problems += [where + p for p in (problem_of(e, results) for e in entries) if p]
    if not seen:
        problems.append("%s has no row" % path)
    return problems, "%d done, %d open, %d problems" % (count["done"], count["open"], len(problems))


def main():
    problems, summary = check(ROOT / "tests" / "ACCEPTANCE.md", None)
    for problem in problems:
        print(problem)
    print("acceptance: " + summary)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
