#!/usr/bin/env python3
"""Each public header compiles alone, warnings as errors: as C++17, C++20 and C++23, with g++ and with the newest clang.

usage: check_headers.py [--quick] HEADER|FOLDER...   (paths from the repository's root, which is the working folder)

With --quick those that no source file begins with are compiled alone, by g++ as C++17, whose standard headers include the
fewest others (what C++20 and C++23 add, they only add), and so a forgotten #include shows there. The build compiles the rest
alone: x.cc begins with x.h. And six times one compilation includes all of them.

Nearly all the time goes into the standard library and into the few headers that everything includes. So the one that saves
most is precompiled once for each compiler and standard, and given only to headers that include it anyway. Nothing is hidden by
that: a header that includes it, itself or through others, before any line of its own code sees the same declarations either way,
and the headers in between are compiled by themselves too. All others are compiled without it, and so is the header itself.
"""

import collections
import concurrent.futures
import glob
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from check_layers import OPTIONAL, is_internal  # noqa: E402

STANDARDS = {"C++17": "c++17", "C++20": "c++20", "C++23": "c++2b"}
ALONE_IF_QUICK = ("g++", "C++17")
FLAGS = ["-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-I.", "-Itools/compat/include"]
# GCC forgets `#pragma GCC diagnostic` in precompiled headers. What runtime/base/array_ref.h switches off there is checked where
# no precompiled header is used, in runtime and in ramet.h.
FORGOTTEN = ["-Wno-init-list-lifetime"]


def begins_its_source(header):
    """Whether a source file of its name, next to it or in a folder below, begins with this header: it is compiled with nothing
    before it."""
    name = pathlib.Path(header)
    sources = [name.with_suffix(".cc"), *name.parent.glob("*/%s.cc" % name.stem)]
    firsts = [re.search(r"^#\s*include\s*(.*)$", s.read_text(), flags=re.M) for s in sources if s.exists()]
    return any(f and f.group(1).strip() == '"%s"' % header for f in firsts)


def leading_includes(path):
    """The files of this repository that a header includes before its first line of code, whatever is defined."""
    found = []
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    for line in text.splitlines():
        line = line.split("//")[0].strip()
        match = re.match(r'#\s*include\s*"([^"]+)"', line)
        if match:
            found.append(match.group(1))
        elif line and not re.match(r"#\s*(pragma\s+once|include\s*<)", line):
            break
    return found


def closure(header, seen=None):
    """All that leading_includes() reaches from `header`, without itself."""
    seen = set() if seen is None else seen
    for name in leading_includes(pathlib.Path(header)):
        if name not in seen and pathlib.Path(name).exists():
            seen.add(name)
            closure(name, seen)
    return seen


def shared_header(reached):
    """The header that saves most when it is precompiled: how many include it, times how much it includes."""
    users = collections.Counter(name for names in reached.values() for name in names)
    gain = {name: (count - 1) * (1 + len(closure(name))) for name, count in users.items() if count > 2}
    return max(sorted(gain), key=gain.get) if gain else None


def compile_headers(headers, compiler, standard, extra=()):
    """None, or what the compiler said. They are included from standard input: `#pragma once` stands in an included file."""
    command = [compiler, "-std=" + standard, "-x", "c++", "-fsyntax-only"] + FLAGS + list(extra) + ["-"]
    text = "".join('#include "%s"\n' % header for header in headers)
    run = subprocess.run(command, input=text, capture_output=True, text=True)
    if run.returncode == 0:
        return None
    # The compilation without it decides.
    return compile_headers(headers, compiler, standard) if extra else run.stdout + run.stderr


def precompile(header, compiler, standard, folder):
    """The options that make a compilation start with `header`, or None where it does not compile."""
    source = folder / ("%s_%s.h" % (pathlib.Path(compiler).name, standard))
    source.write_text('#include "%s"\n' % header)
    gcc = "clang" not in compiler
    target = str(source) + (".gch" if gcc else ".pch")
    command = [compiler, "-std=" + standard, "-x", "c++-header", str(source), "-o", target] + FLAGS + FORGOTTEN * gcc
    if subprocess.run(command, capture_output=True).returncode != 0:
        return None
    return FORGOTTEN + ["-Winvalid-pch", "-include", str(source)] if gcc else ["-include-pch", target]


def main(arguments):
    quick = "--quick" in arguments
    clangs = sorted(glob.glob("/usr/bin/clang++*"), key=lambda p: [int(n) for n in re.findall(r"\d+", p)])
    if not clangs:
        print("FAILED: no clang: run ./tools/setup.sh test")
        return 1
    headers = []
    for argument in [a for a in arguments if a != "--quick"]:
        # A folder without a header is not even there.
        files = [argument] if argument.endswith(".h") else glob.glob(argument + "/**/*.h", recursive=True)
        headers += sorted(f for f in files if not is_internal(f) and f not in OPTIONAL)
    if not headers:
        print("no headers in " + " ".join(arguments))
        return 0
    # A header that is not checked by itself may lean on what stands before it.
    reached = {h: closure(h) for h in headers}
    reached = {h: names for h, names in reached.items() if not any(is_internal(n) for n in names)}
    shared = shared_header(reached)
    failed = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:

        def compilations(compiler, family, name, standard):
            alone = headers
            if quick:
                yield "all", pool.submit(compile_headers, headers, compiler, standard)
                alone = [h for h in headers if not begins_its_source(h)] if (family, name) == ALONE_IF_QUICK else []
            extra = precompile(shared, compiler, standard, pathlib.Path(folder)) if shared and alone else None
            for header in alone:
                uses = extra is not None and shared in reached.get(header, ())
                yield header, pool.submit(compile_headers, [header], compiler, standard, extra if uses else ())

        started = [
            (what, name, compiler, result)
            for family, compiler in (("g++", "g++"), ("clang", clangs[-1]))
            for name, standard in STANDARDS.items()
            for what, result in compilations(compiler, family, name, standard)
        ]
        for what, name, compiler, result in started:
            if result.result() is not None:
                print("FAILED: %s as %s with %s\n%s" % (what, name, compiler, result.result()))
                failed += 1
    if failed:
        print("FAILED: %d, see above" % failed)
        return 1
    version = lambda *command: subprocess.run(command, capture_output=True, text=True).stdout.splitlines()[0]
    print(
        "OK: %d headers as %s (g++ %s, %s)"
        % (len(headers), ", ".join(STANDARDS), version("g++", "-dumpfullversion"), version(clangs[-1], "--version"))
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
