#!/usr/bin/env python3
"""Lists the functions of the C library's mathematics that the library's archives call, and compares them with tools/libm.txt.

usage: check_libm.py FOLDER...   (each holds archives lib*.a; run in the repository's root)

The C library may compute such a function differently on another processor. So each call on the way of a value has a reason there.
"""

import pathlib
import subprocess
import sys

LIST = pathlib.Path("tools/libm.txt")
KINDS = ("exact", "same", "differs")


def mathematics():
    """The functions that the machine's libm.so.6 exports."""
    path = subprocess.run(["gcc", "-print-file-name=libm.so.6"], capture_output=True, text=True, check=True).stdout.strip()
    lines = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in lines.splitlines()}


def listed():
    """The committed list: {function: kind}."""
    kinds = {}
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        words = line.split(None, 2)
        if len(words) < 3 or words[1] not in KINDS:
            sys.exit(f"FAILED: {LIST}:{number}: expected a function, one of {', '.join(KINDS)}, and a reason: {line}")
        if words[0] in kinds:
            sys.exit(f"FAILED: {LIST}:{number}: {words[0]} is there twice")
        kinds[words[0]] = words[1]
    return kinds


def called(folders, functions):
    """{function: archives that call it}."""
    callers, archives = {}, 0
    for folder in folders:
        for archive in sorted(pathlib.Path(folder).glob("lib*.a")):
            archives += 1
            lines = subprocess.run(["nm", "-u", str(archive)], capture_output=True, text=True, check=True).stdout
            for line in lines.splitlines():
                words = line.split()
                if len(words) == 2 and words[0] == "U" and words[1] in functions:
                    callers.setdefault(words[1], set()).add(str(archive))
    if not archives:
        sys.exit(f"FAILED: no archives in {' '.join(folders)}")
    return callers


def main():
    kinds, callers = listed(), called(sys.argv[1:], mathematics())
    failed = False
    for name in sorted(set(callers) - set(kinds)):
        failed = True
        print(f"FAILED: {LIST} lacks {name}, which {', '.join(sorted(callers[name]))} calls: does it have the same bits everywhere?")
    # A compiler may have an instruction for an exact function.
    for name in sorted(set(kinds) - set(callers)):
        if kinds[name] != "exact":
            failed = True
            print(f"FAILED: {LIST} has {name}, which no archive calls")
    counts = [f"{sum(kinds[name] == kind for name in callers if name in kinds)} {kind}" for kind in KINDS]
    print(f"{len(callers)} functions of the C library are called: {', '.join(counts)}")
    return failed


sys.exit(main())
