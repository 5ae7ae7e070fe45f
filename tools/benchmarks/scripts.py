#!/usr/bin/env python3
"""Forwards of TorchScript files on this library and on LibTorch, in turn (./tools/bench script --torch PATH FILE...).

  scripts.py OURS PEER FILE... [--rounds N] [--threads N]

OURS and PEER are scripts.cc, compiled with each library. Each file runs in a process of its own of each; only one of the two works at a
time. A row has the largest difference of the results and the best time of a forward on both, with their ratio (above 1: faster than
LibTorch). Then come the median and the lowest of the ratios, of which 1.0 and 0.9 are the goals.
"""

import argparse
import os
import statistics
import sys
import tempfile

from real_models import Arm

# Results may differ by what rounding explains in a deep network.
DIFFERENCE = 1e-4
WARM_UP = 5  # LibTorch compiles in its first runs
LEAST_SECONDS = 0.02  # of a round: small models run several times


def best_times(arms, rounds):
    runs = 1
    best = [float("inf")] * 2
    for turn in range(rounds + WARM_UP):
        for i, arm in enumerate(arms):
            time = min(float(arm.ask("step")) for _ in range(runs))
            if turn >= WARM_UP:
                best[i] = min(best[i], time)
            elif turn == 1:
                runs = max(runs, min(200, int(LEAST_SECONDS / max(time, 1e-7))))
    return best


def measure(programs, path, arguments):
    """The ratio of the file's times, or None where it failed."""
    arms = []
    try:
        for program in programs:
            arms.append(Arm(program, path, arguments.threads))
        with tempfile.TemporaryDirectory() as folder:
            values = os.path.join(folder, "values")
            arms[1].ask("save " + values)
            difference = float(arms[0].ask("compare " + values))
        best = best_times(arms, arguments.rounds)
    finally:
        for arm in arms:
            arm.end()
    ratio = best[1] / best[0]
    name = os.path.basename(path)
    print(f"{name:32} {difference:9.1e}  {1e3 * best[0]:9.3f} {1e3 * best[1]:9.3f} {ratio:6.2f}", flush=True)
    if not difference <= DIFFERENCE:
        print("  FAILED: the results differ")
        return None
    return ratio


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs=2)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    print(f"{'file':32} {'differs':>9}  {'ms':>9} {'peer':>9} {'times':>6}")
    ratios = []
    for path in arguments.files:
        try:
            ratios.append(measure(arguments.programs, path, arguments))
        except RuntimeError as error:
            print(f"{os.path.basename(path):32} FAILED: {error}", flush=True)
            ratios.append(None)
    good = [r for r in ratios if r is not None]
    if good:
        print(f"median {statistics.median(good):.2f} (goal 1.0), lowest {min(good):.2f} (goal 0.9)")
    return 0 if len(good) == len(ratios) else 1


if __name__ == "__main__":
    sys.exit(main())
