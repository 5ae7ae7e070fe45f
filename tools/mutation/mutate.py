#!/usr/bin/env python3
"""Changes one token of the library at a time, in a copy, and sees whether its tests notice.

  ./tools/mutate                       60 mutants: a quarter each of kernels, kernels on GPUs, autograd and parallel
  ./tools/mutate --seed 7 --count 9    other ones
  ./tools/mutate --list                says which, and runs nothing
  ./tools/mutate --only ID [ID...]     these, by the names that --list and the report give

A mutant is an operator, a comparison, a bound or a start off by one, a sign, a `!`, or min for max. It is killed when a
test of tests/<folder>, for some folders of others too (tree.py), fails, crashes or runs into the time limit, in the
default build or else under ASan and UBSan (of kernels on GPUs: a test of emulated GPUs, in the default build or else under
their checker), and survives when all pass.
Mutants that do not compile are drawn again. What survives must stand in tools/mutation/explained.txt with the reason why no
test can see it; the exit code is 0 only then. Headers that nearly every file includes are left out (each would compile
everything again) unless --wide asks for them. The working tree is never written to.
"""

import argparse
import collections
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import mutants  # noqa: E402
import tree  # noqa: E402

PARTS = ("kernels", "gpu", "autograd", "parallel")
NAMES = {"asan": "ASan, UBSan", "check": "the checker of emulated GPUs"}
KILLED, SURVIVED, EXPLAINED, BROKEN = "killed", "SURVIVED", "explained", "does not compile"
Result = collections.namedtuple("Result", "mutant outcome by seconds")


def say(text):
    print("mutate: " + text, file=sys.stderr, flush=True)


def die(text):
    say("FAILED: " + text)
    sys.exit(1)


def read_explained(path):
    """{(file, marked line): reason}. Blocks between empty lines: the file, the line with its change, the reason."""
    explained = {}
    text = path.read_text() if path.is_file() else ""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for block in "\n".join(lines).split("\n\n"):
        parts = [line.strip() for line in block.strip().splitlines()]
        if not parts:
            continue
        if len(parts) < 3:
            die("%s: a block of %d lines, expected the file, the line and the reason: %s" % (path, len(parts), parts[0]))
        explained[parts[0], parts[1]] = " ".join(parts[2:])
    return explained


class Runner:
    """Runs the tests of one folder in the copy; the exit code says how it went, as Bazel's does."""

    def __init__(self, command, copy, log):
        self.command, self.copy, self.log = command, copy, log
        self.checked = set()

    def __call__(self, targets, file="", first_test="", build="default"):
        arguments = [self.command, targets, file, first_test, build]
        started = time.monotonic()
        with open(self.log, "w") as log:
            code = subprocess.call(arguments, cwd=self.copy, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        by = ""
        for line in open(self.log, errors="replace"):
            words = line.split()
            if len(words) > 2 and words[0].startswith("//tests/") and words[2] != "TO":  # FAILED TO BUILD
                if words[1] in ("FAILED", "TIMEOUT"):
                    by = words[0] + (" (time limit)" if words[1] == "TIMEOUT" else "")
        return code, by, time.monotonic() - started

    def check_unchanged(self, targets, build="default"):
        """Dies unless these tests pass as they are; once for each build."""
        if (targets, build) in self.checked:
            return
        self.checked.add((targets, build))
        say("%s without a change, %s build" % (targets, build))
        code, by, seconds = self(targets, build=build)
        if code != 0:
            print(self.tail(), file=sys.stderr)
            die("%s does not pass as it is%s" % (targets, by and ": " + by))
        say("%s: passes (%.0f s)" % (targets, seconds))

    def tail(self):
        return "".join(open(self.log, errors="replace").readlines()[-30:])


def run_one(m, root, runner, explained):
    """Changes the copy, tests, and puts the copy back. What survives and is not explained meets the sanitizers,
    or the checker of emulated GPUs."""
    path = runner.copy / m.file
    original = path.read_text()
    first_test = tree.stem_test(root, m.file)
    part = tree.part_of(m.file)
    targets = tree.TESTS.get(part, "//tests/%s/..." % part)
    second = tree.SECOND_BUILDS.get(part, "asan")
    runner.check_unchanged(targets)
    for build in ("default", second):
        path.write_text(m.apply(original))
        try:
            code, by, seconds = runner(targets, m.file, first_test, build)
        finally:
            path.write_text(original)
        if code != 0 or m.key in explained:
            break
    if by and build == second:  # all of them would take long: only the test that fails
        runner.check_unchanged(by.split()[0], build)
    outcomes = {0: EXPLAINED if m.key in explained else SURVIVED, 1: BROKEN, 3: KILLED}
    if code not in outcomes or (code == 1 and build == second):
        print(runner.tail(), file=sys.stderr)
        die("the tests of %s could not run: exit code %d" % (m.id, code))
    return Result(m, outcomes[code], by + (" (%s)" % NAMES[second] if by and build == second else ""), seconds)


def line_of(result):
    m = result.mutant
    text = "%-16s %5.0f s  %-44s %s" % (result.outcome, result.seconds, m.id, m.change)
    return text + ("  by " + result.by if result.by else "")


def report(results, explained):
    """The table, the survivors with their lines, and the counts; returns the exit code."""
    count = collections.Counter(r.outcome for r in results)
    print("\n%-16s %7s  %-44s %s" % ("outcome", "time", "mutant", "change"))
    for r in sorted(results, key=lambda r: (r.mutant.file, r.mutant.start)):
        print(line_of(r))
    for r in results:
        if r.outcome == EXPLAINED:
            print("\nexplained: %s\n  %s\n  %s" % (r.mutant.id, r.mutant.marked, explained[r.mutant.key]))
    for r in results:
        if r.outcome == SURVIVED:
            print("\nSURVIVED: %s\n%s\n  %s" % (r.mutant.id, r.mutant.file, r.mutant.marked))
    ran = len(results) - count[BROKEN]
    counts = "%d mutants: %d killed, %d survived, of which %d explained; %d more did not compile" % (
        ran, count[KILLED], ran - count[KILLED], count[EXPLAINED], count[BROKEN])
    print()
    if count[SURVIVED] or not ran:
        print("mutate: FAILED: " + counts)
        print("Write the test that fails, or put the block above with its reason into tools/mutation/explained.txt.")
        return 1
    print("mutate: OK: " + counts)
    return 0


class Parser(argparse.ArgumentParser):
    def error(self, message):  # one line, without the usage
        say(message + " (--help lists the options)")
        sys.exit(2)


def positive(text):
    if not text.isdecimal() or not 1 <= int(text) <= 1000000:
        raise argparse.ArgumentTypeError("got %s, expected a whole number from 1 to 1000000" % (text or "nothing"))
    return int(text)


def parse():
    parser = Parser(
        prog="./tools/mutate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="1", help="which mutants (default: 1)")
    parser.add_argument("--count", type=positive, default=60, help="how many (default: 60)")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this one; may be repeated")
    parser.add_argument("--list", action="store_true", help="only say which mutants would run")
    parser.add_argument("--only", nargs="+", default=[], metavar="ID", help="run these mutants")
    parser.add_argument("--wide", action="store_true", help="draw from headers that nearly everything includes too")
    parser.add_argument("--keep", metavar="FOLDER", help="leave the copy and Bazel's output there for the next call")
    # For the tests of this program: another tree to draw from, and what runs instead of tools/mutation/run_tests.sh.
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--runner", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the copy goes
    options = parse()
    root = options.root.resolve()
    parts = options.part or list(PARTS)
    by_part = {}
    for part in PARTS:
        files = tree.sources(root, part)
        by_part[part] = [m for file in files for m in mutants.mutants_of(file, (root / file).read_text())]
    everything = {m.id: m for part in PARTS for m in by_part[part]}

    explained = read_explained(root / "tools/mutation/explained.txt")
    stale = set(explained) - {m.key for m in everything.values()}
    if stale:
        die("explained.txt explains what the tree no longer has:\n" + "\n".join("%s\n  %s" % s for s in sorted(stale)))

    # What to run: a queue and a number for each part; those that do not compile are replaced from the queue.
    plan = []
    if options.only:
        unknown = [name for name in options.only if name not in everything]
        if unknown:
            say("--only: no such mutant: %s (--list says which there are)" % ", ".join(unknown))
            sys.exit(2)
        plan.append(([everything[name] for name in options.only], len(options.only)))
    else:
        for i, part in enumerate(parts):
            number = options.count * (i + 1) // len(parts) - options.count * i // len(parts)
            files = set(tree.drawn_from(root, part, options.wide))
            drawn = mutants.drawn([m for m in by_part[part] if m.file in files], options.seed)
            plan.append((list(drawn), number))
        say("seed %s, %d mutants out of %d" % (options.seed, options.count, sum(len(queue) for queue, _ in plan)))
    if options.list:
        for queue, number in plan:
            for m in queue[:number]:
                print("%s\n  %s" % (m.id, m.marked))
        return 0

    with tempfile.TemporaryDirectory(prefix="ramet-mutate-") as work:
        work = pathlib.Path(options.keep).resolve() if options.keep else pathlib.Path(work)
        copy = work / "tree"
        tree.synchronise(root, copy)
        os.environ["RAMET_OUTPUT_BASE"] = str(work / "output")
        runner = Runner(options.runner or str(copy / "tools/mutation/run_tests.sh"), copy, work / "log")
        try:
            return run_plan(plan, root, runner, explained, bool(options.only))
        finally:
            if not options.runner:
                subprocess.call([runner.command, "--end"], cwd=copy)


def run_plan(plan, root, runner, explained, exactly):
    results = []
    for queue, number in plan:
        ran = 0
        for m in queue:
            if ran == number:
                break
            result = run_one(m, root, runner, explained)
            say(line_of(result))
            results.append(result)
            ran += exactly or result.outcome != BROKEN
    return report(results, explained)


if __name__ == "__main__":
    sys.exit(main())
