#!/usr/bin/env python3
"""Looks at what tools/gpu_package has put together, as the machine will find it that it goes to.

  check_package.py [--this_machine] ARCHIVE

Unpacked into a new folder, with an empty environment: the files are those that gpu_check wants; the programs need glibc and what
lies in lib/, nothing else; gpu_tests lists its cases, and tests.list has each of them once that is for GPUs, and no other; every
part of gpu_check has something to run; both programs hold machine code for sm_90a and PTX (with
--this_machine some kernel files have no PTX); VERSION says what the machine must have; gpu_check --help works.
"""

import json
import os
import re
import struct
import subprocess
import sys
import tarfile
import tempfile

sys.dont_write_bytecode = True
import test_list

PROGRAMS = ("gpu_tests", "gpu_bench")
FILES = {"VERSION", "gpu_check", "run_group", "tests.list", "bench/drive.py", "bench/torch_rows.py"} | set(PROGRAMS)
PARTS = ("tests", "scenarios", "cards", "sanitizer")
GLIBC = re.compile(r"(lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux\S*|linux-vdso\S*)$")


def run(words, **more):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={"PATH": "/usr/bin:/bin"}, **more)


def files(folder):
    found = set()
    for path, _, names in os.walk(folder):
        found |= {os.path.relpath(os.path.join(path, name), folder) for name in names}
    own = {f for f in found if not f.startswith("lib/")}
    for name in sorted(FILES - own):
        yield "%s is missing" % name
    for name in sorted(own - FILES):
        yield "%s is in it, and nothing wants it" % name
    for name in PROGRAMS + ("gpu_check", "run_group"):
        if not os.access(os.path.join(folder, name), os.X_OK):
            yield "%s cannot be executed" % name


def libraries(folder):
    for name in PROGRAMS:
        done = run(["ldd", os.path.join(folder, name)])
        if done.returncode:
            yield "ldd %s: %s" % (name, done.stdout.strip())
        for line in done.stdout.splitlines():
            library, _, place = line.strip().partition(" => ")
            if not GLIBC.search(library.split(" ")[0]) and not place.startswith(folder + "/lib/"):
                yield "%s asks the machine for %s" % (name, line.strip())


def section(elf, wanted):
    offset, = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, offset + i * size) for i in range(count)]
    for name, _, _, _, at, length in headers:
        text = headers[names][4] + name
        if elf[text : elf.index(b"\0", text)] == wanted:
            return elf[at : at + length]
    return b""


def gpu_codes(elf):
    """Of each kernel file in a program, what it is compiled to: "PTX 80", "code 90a".

    A container is a magic number, its own and its contents' size; in it each entry has its kind (1: PTX, 2: machine code), the
    size of its header and of its data, at 28 the architecture, and in the bits at 40 whether that is the "a" variant. NVIDIA
    describes none of this; a toolkit need not have cuobjdump, which would say the same.
    """
    fat, at, found = section(elf, b".nv_fatbin"), 0, []
    while at + 16 <= len(fat):
        magic, _, header, size = struct.unpack_from("<IHHQ", fat, at)
        if magic != 0xBA55ED50:
            at += 8
            continue
        entry, at, codes = at + header, at + header + size, set()
        while entry < at:
            kind, _, header, size, arch, bits = struct.unpack_from("<HHIQ12xI8xQ", fat, entry)
            codes.add({1: "PTX ", 2: "code "}.get(kind, "? ") + str(arch) + ("a" if bits >> 20 & 1 else ""))
            entry += header + size
        found.append(codes)
    return found


def machine_code(folder, some_without_ptx):
    for name in PROGRAMS:
        with open(os.path.join(folder, name), "rb") as f:
            found = gpu_codes(f.read())
        if not found:
            yield "%s has no kernels" % name
        elif not any("PTX 80" in codes for codes in found):
            yield "%s has no PTX" % name
        for codes in found:
            if codes != {"code 90a", "PTX 80"} and not (some_without_ptx and codes == {"code 90a"}):
                yield "%s: a kernel file is compiled to %s" % (name, " and ".join(sorted(codes)))


def cases_of(program):
    """The cases of a program that are for GPUs, and those for CPUs."""
    with tempfile.TemporaryDirectory() as work:
        listing = os.path.join(work, "listing.json")
        run([program, "--gtest_list_tests", "--gtest_output=json:" + listing])
        if not os.path.exists(listing):
            return set(), set()
        with open(listing) as f:
            suites = json.load(f)["testsuites"]
    cases = {True: set(), False: set()}
    for suite in suites:
        for case in suite["testsuite"]:
            cases[test_list.is_for_cpus(test_list.file_of(case))].add("%s.%s" % (suite["name"], case["name"]))
    return cases[False], cases[True]


def lists(folder):
    with open(os.path.join(folder, "tests.list")) as f:
        lines = [line.rstrip("\n").split("\t") for line in f]
    listed = [case for _, _, filters in lines for case in filters.split(":")]
    cases, of_cpus = cases_of(os.path.join(folder, "gpu_tests"))
    if not cases:
        yield "gpu_tests lists no cases"
    for case in sorted(set(listed)):
        if listed.count(case) > 1:
            yield "tests.list has %s twice" % case
    for case in sorted(set(listed) - cases):
        yield "tests.list has %s, %s" % (case, "a case for CPUs" if case in of_cpus else "gpu_tests has not")
    forgotten = sorted(cases - set(listed))
    if forgotten:
        yield "tests.list is without %d of %d cases: %s ..." % (len(forgotten), len(cases), " ".join(forgotten[:5]))
    for part in PARTS:
        if not any(part in parts.split(",") for _, parts, _ in lines):
            yield "tests.list has nothing for the part %s" % part


def texts(folder):
    with open(os.path.join(folder, "VERSION")) as f:
        version = f.read()
    for wanted in (r"^Ramet \S+", r"^glibc \d+\.\d+ or newer$", r"^CUDA \d+\.\d+, driver \d+ or newer, "):
        if not re.search(wanted, version, re.MULTILINE):
            yield "VERSION has no line %s" % wanted
    done = run([os.path.join(folder, "gpu_check"), "--help"])
    if done.returncode or "--only PART" not in done.stdout:
        yield "gpu_check --help: exit code %d: %s" % (done.returncode, done.stdout.strip()[:200])


def main():
    *options, archive = sys.argv[1:]
    with tempfile.TemporaryDirectory() as work:
        with tarfile.open(archive) as tar:
            tar.extractall(work)
        folder = os.path.join(os.path.realpath(work), "ramet-gpu")
        problems = list(files(folder))
        if not problems:
            problems = [*libraries(folder), *machine_code(folder, options == ["--this_machine"]), *lists(folder), *texts(folder)]
    for problem in problems:
        print("check_package: " + problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
