"""Runs a compiler that makes a precompiled header, and lists the inputs that it did not read: their changes then make nothing again.

usage: precompile.py INPUTS UNUSED DEPENDENCIES COMMAND...   (INPUTS: a file with a path on each line; the others are written)
"""

import ctypes
import subprocess
import sys

ADDR_NO_RANDOMIZE = 0x0040000  # <sys/personality.h>


def fix_addresses():
    """GCC writes addresses of its own into the header. The same ones each time make the same file, and so the same cache keys."""
    ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)


inputs, unused, dependencies, *command = sys.argv[1:]
command += ["-frandom-seed=0", "-MD", "-MF", dependencies]
code = subprocess.call(command, preexec_fn=fix_addresses)
if code == 0:
    with open(dependencies) as made:
        read = set(made.read().replace("\\\n", " ").split())
    with open(inputs) as given, open(unused, "w") as out:
        out.writelines(line for line in given if line.rstrip("\n") not in read)
sys.exit(code)
