"""./tools/bench processes: all-reduces and data-parallel training steps over processes of one thread each.

usage: processes.py LAUNCH PROGRAM [--python PYTHON] [--only TEXT] [--rounds N]

For each row the best time with one process and with two, and what communication adds to a step of two ("exposed": the step less
one without synchronisation). Where PYTHON has a module torch, PyTorch's DistributedDataParallel is measured too, in turn: the
ratio is its time by ours with two processes (above 1: faster than PyTorch).
"""

import argparse
import os
import pathlib
import subprocess
import sys

SECONDS = "0.7"  # of each row and round


def measure(launch, processes, command, only):
    """{row: best ms} of one run."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", RAMET_NUM_THREADS="1")
    done = subprocess.run([sys.executable, launch, "--nproc", str(processes), "--no-prefix", "--", *command, SECONDS, only],
                          stdout=subprocess.PIPE, env=environment, check=False)
    if done.returncode:
        sys.exit("bench: FAILED: %s ended with exit code %d" % (command[0], done.returncode))
    lines = [line.split("\t") for line in done.stdout.decode().splitlines() if line.count("\t") == 2]
    return {name: float(best) for name, best, _ in lines}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("launch")
    parser.add_argument("program")
    parser.add_argument("--python", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    words = parser.parse_args()
    launch, only, python = words.launch, words.only, words.python
    arms = {"ramet": [words.program]}
    if python and subprocess.run([python, "-c", "import torch.distributed"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("bench: without PyTorch: %s has no module torch" % python, file=sys.stderr)
        python = ""
    if python:
        arms["torch"] = [python, str(pathlib.Path(__file__).with_name("processes_torch.py"))]
    best = {}
    for _ in range(words.rounds):
        for processes in (1, 2):
            for arm, command in arms.items():
                for row, ms in measure(launch, processes, command, only).items():
                    key = (arm, processes, row)
                    best[key] = min(ms, best.get(key, ms))
    rows = [row for arm, processes, row in best if arm == "ramet" and processes == 2]
    if not rows:
        sys.exit("bench: --only: got \"%s\", which is in no row's name" % only)

    def figures(arm, row):
        alone = best.get((arm, 2, row + ", alone"))
        two = best[arm, 2, row]
        return best[arm, 1, row], two, "%9.2f" % (two - alone) if alone else "        -"

    print("%-32s %9s %9s %9s%s" % ("ms", "1 process", "2", "exposed", "   PyTorch         2   exposed     ratio" if python else ""))
    for row in rows:
        if row.endswith(", alone"):
            continue
        line = "%-32s %9.3f %9.3f %s" % (row, *figures("ramet", row))
        if python:
            line += " %9.3f %9.3f %s %9.2f" % (*figures("torch", row), best["torch", 2, row] / best["ramet", 2, row])
        print(line)


main()
