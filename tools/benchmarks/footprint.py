#!/usr/bin/env python3
"""What a small program costs: compilation, start, memory, size.

  footprint.py limits HELLO PROGRAM          checks what does not depend on the machine's speed: memory, size, libraries
  footprint.py measure HELLO PROGRAM ROOT    and times compilation and start; ROOT holds ramet.h

HELLO is the program hello.cc, PROGRAM one that trains an MLP.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

RESIDENT_KIB = 10 * 1024
STRIPPED_BYTES = 3 * 1024 * 1024
LIBRARIES = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def start(hello):
    """Milliseconds from before the process exists to after its first backward(); KiB resident."""
    before = time.monotonic_ns()
    line = subprocess.run([hello], check=True, stdout=subprocess.PIPE, text=True).stdout
    now, resident = map(int, line.split())
    return (now - before) / 1e6, resident


def limits(hello, program):
    failures = []
    resident = start(hello)[1]
    print(f"hello-world: {resident} KiB resident after its first backward(), at most {RESIDENT_KIB}")
    if resident > RESIDENT_KIB:
        failures.append("resident memory")
    with tempfile.TemporaryDirectory() as folder:
        stripped = os.path.join(folder, "program")
        shutil.copy(program, stripped)
        os.chmod(stripped, 0o755)
        subprocess.run(["strip", stripped], check=True)
        size = os.path.getsize(stripped)
    print(f"MLP training program: {size} bytes stripped, at most {STRIPPED_BYTES}")
    if size > STRIPPED_BYTES:
        failures.append("size")
    dynamic = subprocess.run(["readelf", "-d", program], check=True, stdout=subprocess.PIPE, text=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic))
    print("it loads", " ".join(sorted(needed)))
    if not needed or needed - LIBRARIES:
        failures.append("libraries beyond the C++ runtime: " + " ".join(sorted(needed - LIBRARIES)))
    return failures


def measure(hello, root):
    source = os.path.join(root, "tools", "benchmarks", "hello.cc")
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(5):
            before = time.monotonic()
            subprocess.run(
                ["g++", "-std=c++17", "-O2", "-I", root, "-c", source, "-o", os.path.join(folder, "hello.o")], check=True
            )
            seconds.append(time.monotonic() - before)
    print(f"hello-world: compiled in {statistics.median(seconds):.2f} s (g++ -O2; {min(seconds):.2f} to {max(seconds):.2f}), goal 2 s")
    times = [start(hello)[0] for _ in range(21)]
    print(f"hello-world: first backward() {statistics.median(times):.2f} ms after start ({min(times):.2f} to {max(times):.2f}), goal 5 ms")


def main():
    what, hello, program = sys.argv[1:4]
    if what == "measure":
        measure(hello, sys.argv[4])
    failures = limits(hello, program)
    for failure in failures:
        print("FAILED:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
