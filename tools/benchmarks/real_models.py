#!/usr/bin/env python3
"""Ten real models on this library and on LibTorch, in turn (./tools/bench real).

  real_models.py OURS PEER [--only TEXT] [--rounds N] [--threads N]

OURS and PEER are real_models.cc, compiled with each library. Each model runs in a process of its own of each; only one of the two
works at a time. A row has the largest differences of the outputs and of the gradients of one step with the same weights, and those of
both in float64. Then come the best time of a training step and the memory that it takes, on both, with their ratios.
"""

import argparse
import os
import subprocess
import sys
import tempfile

# Differences that rounding explains. Where an input of a ReLU is near 0, rounding decides whether a gradient goes through: in float32
# that changes a channel's gradients by per cents. So gradients are compared in float64.
FORWARD, DOUBLE = 1e-4, 1e-9


class Arm:
    """A process of one library that answers commands."""

    def __init__(self, program, model, threads, *options):
        self.process = subprocess.Popen([program, model, str(threads), *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().rstrip("\n")
        if not answer:
            raise RuntimeError(f"{self.process.args[0]} ended with {self.process.wait()} at \"{command.split()[0]}\"")
        return answer

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def differences(programs, model, threads, precision):
    """The largest of outputs and of gradients, and the name of the parameter with the latter."""
    with tempfile.TemporaryDirectory() as folder:
        path, answer = os.path.join(folder, "values"), ""
        for program, command in zip(programs, ("save ", "compare ")):
            arm = Arm(program, model, threads, precision)
            answer = arm.ask(command + path)
            arm.end()
    forward, gradient, name = answer.split(" ", 2)
    return float(forward), float(gradient), name


def measure(programs, model, arguments):
    forward, gradient, _ = differences(programs, model, arguments.threads, "float")
    exact = differences(programs, model, arguments.threads, "double")
    arms = [Arm(program, model, arguments.threads, "float") for program in programs]
    try:
        seconds = [[], []]
        for turn in range(arguments.rounds + 1):  # the first warms up
            for arm, of in zip(arms, seconds):
                time = float(arm.ask("step"))
                if turn > 0:
                    of.append(time)
        best = [min(of) for of in seconds]
        memory = [int(arm.ask("memory")) / 1024 for arm in arms]
    finally:
        for arm in arms:
            arm.end()
    print(f"{model:21} {forward:9.1e} {gradient:9.1e} {max(exact[:2]):9.1e}  {1e3 * best[0]:8.1f} {1e3 * best[1]:8.1f} {best[1] / best[0]:6.2f}  "
          f"{memory[0]:7.0f} {memory[1]:7.0f} {memory[0] / memory[1]:6.2f}", flush=True)
    if not (forward <= FORWARD and max(exact[:2]) <= DOUBLE):
        print(f"  FAILED: the values differ; of gradients in float64, that of {exact[2]} does most")
        return False
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    models = subprocess.run([arguments.programs[0]], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    chosen = [m for m in models if arguments.only in m]
    if not chosen:
        print(f"no model's name contains \"{arguments.only}\"; there are {', '.join(models)}")
        return 2
    print("model                   forward  gradient   float64   step, ms     peer  times   memory    peer  parts")
    good = True
    for model in chosen:
        try:
            good = measure(arguments.programs, model, arguments) and good
        except RuntimeError as error:
            print(f"{model:21} FAILED: {error}", flush=True)
            good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
