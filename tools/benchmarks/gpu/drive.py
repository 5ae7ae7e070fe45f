#!/usr/bin/env python3
"""Measures the rows of gpu_bench, in turn with PyTorch's where python3 has torch, and prints a Markdown table.

  drive.py PROGRAM [--only TEXT] [--rounds N] [--seconds N] [--batch N] [--tiny] [--json FILE]

PROGRAM is the gpu_bench of this tree. Both sides make a row's data from the same numbers. The results of the first repetition are
compared. Then samples of at least 20 ms are taken in turn (Ramet, PyTorch, Ramet, ...), and the table has the medians. It says
"unsteady" where samples of one side differ by more than 5 % (10 % to 90 %). Shares are of the figures that the rows `limit.*`
reached in this run, on the better side. No new row is begun after --seconds. The exit code is 1 where a row failed, a result
differs from PyTorch's or one of the two is no number. It is 3 where none of this happened and rows were not begun. Steps of GPT-2
have --batch sequences.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import threading
import time

class Server:
    """gpu_bench --serve: a line to it, a line of JSON from it. One that hangs is killed."""

    LONGEST = 120  # seconds for an answer

    def __init__(self, program, tiny, batch):
        self.words = [program, "--serve", "--batch", str(batch)] + (["--tiny"] if tiny else [])
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(self, line):
        watch = threading.Timer(self.LONGEST, self.process.kill)
        watch.start()
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            watch.cancel()
        if not answer:
            raise RuntimeError("gpu_bench ended with exit code %d when asked for: %s" % (self.process.wait(), line))
        answer = json.loads(answer)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["ok"]

    def start_anew(self):
        """After a failure: what it left on the device goes with the process."""
        self.process.kill()
        self.process.wait()
        self.start()

    def close(self):
        self.process.stdin.write("quit\n")
        self.process.stdin.close()
        self.process.wait()


class Torch:
    """PyTorch, or why there is none."""

    def __init__(self, tiny):
        self.rows, self.tiny, self.works = None, tiny, None
        try:
            import torch

            if not tiny and not torch.cuda.is_available():
                self.words = "PyTorch %s sees no GPU: rows without it" % torch.__version__
                return
            import torch_rows
        except Exception as error:
            self.words = "no PyTorch here (%s): rows without it" % str(error).splitlines()[0]
            return
        self.rows = torch_rows
        torch_rows.set_up()
        self.words = torch_rows.described()

    def make(self, row):
        self.works = None
        make = self.rows and self.rows.twin(row["name"])
        if make:
            self.works = make(row["shape"])
        return self.works is not None

    def drop(self):
        self.works = None
        if self.rows and self.rows.GPU.type == "cuda":
            self.rows.torch.cuda.empty_cache()


def difference(a, b):
    if len(a) != len(b):
        return float("inf")
    return max((abs(x - y) for x, y in zip(a, b)), default=0) / max([abs(y) for y in b] + [1e-30])


def check_numbers(side, values):
    """A comparison with NaN finds no difference, whatever the other side has. (JSON has null for what is no number.)"""
    for at, value in enumerate(values):
        if value is None or not math.isfinite(value):
            raise RuntimeError("%s's result is no number at %d: %s" % (side, at, "no number" if value is None else value))


class Driver:
    def __init__(self, options):
        self.options = options
        self.server = Server(options.program, options.tiny, options.batch)
        self.torch = Torch(options.tiny)
        self.limits, self.done, self.failed, self.left_out = {}, [], [], []

    def row(self, index, row):
        result = dict(row, ramet=[], torch=[])
        self.server.ask("make %d" % index)
        has_twin = self.torch.make(row)
        # What the first repetition computes, before anything else changes the data.
        ours = self.server.ask("outputs")
        if has_twin:
            run, outputs = self.torch.works
            theirs = outputs()
            if row["tolerance"]:
                check_numbers("Ramet", ours)
                check_numbers("PyTorch", theirs)
                result["difference"] = difference(ours, theirs)
            their_times = self.torch.rows.repetitions(row, run, self.options.tiny)
        times = self.server.ask("repetitions")
        for k in range(self.options.rounds + 1):  # the first round warms up
            a = self.server.ask("sample %d" % times)
            b = self.torch.rows.seconds_of(row, run, their_times) if has_twin else None
            if k:
                result["ramet"].append(a)
                result["torch"] += [b] if has_twin else []
        self.server.ask("drop")
        self.torch.drop()
        return self.finish(result)

    def finish(self, result):
        for arm in "ramet", "torch":
            if not result[arm]:
                continue
            ordered = sorted(result[arm])
            n = len(ordered)
            result[arm + "_median"] = statistics.median(ordered)
            result[arm + "_spread"] = (ordered[(9 * n) // 10 if n > 9 else n - 1] - ordered[n // 10]) / statistics.median(ordered)
        t, kind = result["ramet_median"], result["limit"]
        peer = result.get("torch_median")
        if result["anchor"] == "limit":
            best = min(x for x in (t, peer) if x)
            self.limits[kind] = result["work"] / best if result["work"] else t
        elif kind == "launch":
            result["beyond_ns"] = (t - self.limits[kind]) * 1e9
        elif kind in self.limits:
            result["share"] = result["work"] / t / self.limits[kind]
        if peer:
            result["ratio"] = peer / t
        return result

    def run(self):
        end = time.monotonic() + self.options.seconds
        machine = self.server.ask("machine")
        print("- %s\n- %s\n" % (machine["config"].replace("\n", ", "), self.torch.words))
        print("| row | anchor | Ramet | spread | rate | share of the limit | PyTorch | spread | ratio | goal |")
        print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
        for index, row in enumerate(self.server.ask("rows")):
            limit = row["anchor"] == "limit"
            if not limit and self.options.only not in row["name"]:
                continue
            if time.monotonic() > end:
                self.left_out.append(row["name"])
                continue
            try:
                result = self.row(index, row)
            except Exception as error:
                self.torch.drop()
                self.server.start_anew()
                self.failed.append("%s: %s" % (row["name"], error))
                print("| %s | %s | FAILED | | | | | | | |" % (row["name"], row["anchor"]), flush=True)
                continue
            self.done.append(result)
            if result.get("difference", 0) > row["tolerance"] > 0:
                self.failed.append("%s: differs from PyTorch by %.2g, expected %.2g" % (row["name"], result["difference"], row["tolerance"]))
            print(line_of(result), flush=True)
        self.server.close()
        print()
        for name in self.left_out:
            print("- not measured: %s: no time was left" % name)
        for text in self.failed:
            print("- FAILED: %s" % text)


def shown(seconds):
    for unit, factor in (("ns", 1e9), ("us", 1e6), ("ms", 1e3)):
        if seconds * factor < 1000:
            return "%.4g %s" % (seconds * factor, unit)
    return "%.4g s" % seconds


def amount(row, value):
    return "%.4g MB" % (value * 1e-6) if row["memory"] else shown(value)


def line_of(r):
    rate = share = peer = spread = ratio = ""
    if r["memory"]:
        rate = "%.1f KB/token" % (r["ramet_median"] / r["work"] * 1e-3)
    elif r["limit"] == "tokens":
        rate = "%.1f k tokens/s" % (r["work"] / r["ramet_median"] * 1e-3)
    elif r["limit"] == "copy":
        rate = "%.0f GB/s" % (r["work"] / r["ramet_median"] * 1e-9)
    elif r["limit"] == "product":
        rate = "%.1f TFLOP/s" % (r["work"] / r["ramet_median"] * 1e-12)
    goals = []
    if "share" in r:
        share = "%.0f %%" % (100 * r["share"])
        if r["goal"]:
            goals.append("%.0f %% %s" % (100 * r["goal"], "met" if r["share"] >= r["goal"] else "missed"))
    if r["limit"] == "tokens" and r["goal"]:
        each = r["ramet_median"] / r["work"]
        fine = each <= r["goal"] if r["memory"] else 1 / each >= r["goal"]
        goals.append("%.0f %s %s" % (r["goal"] * 1e-3, "KB/token" if r["memory"] else "k tokens/s", "met" if fine else "missed"))
    if "beyond_ns" in r:
        share = "launch + %.0f ns" % r["beyond_ns"]
        goals.append("launch + %.0f ns %s" % (r["goal"], "met" if r["beyond_ns"] <= r["goal"] else "missed"))
    if "ratio" in r:
        peer, spread, ratio = amount(r, r["torch_median"]), "%.1f %%" % (100 * r["torch_spread"]), "%.2f" % r["ratio"]
        if r["goal_ratio"]:
            goals.append("%.2fx %s" % (r["goal_ratio"], "met" if r["ratio"] >= r["goal_ratio"] else "missed"))
        if max(r["torch_spread"], r["ramet_spread"]) > 0.05:
            goals.append("unsteady")
    cells = [r["name"], r["anchor"], amount(r, r["ramet_median"]), "%.1f %%" % (100 * r["ramet_spread"]), rate, share]
    return "| " + " | ".join(cells + [peer, spread, ratio, ", ".join(goals)]) + " |"


COLD_TORCH = """
import torch
import torch_rows as rows
run, _ = rows.mnist_step({"batch": 64, "hidden": 512})
run()
torch.cuda.synchronize()
"""


def cold_start(options, has_torch):
    """G12: wall time of whole processes, and what is taken on the device beyond tensors."""

    def wall(words):
        start = time.monotonic()
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise RuntimeError("%s: exit code %d: %s" % (words[0], done.returncode, done.stderr.strip()[-300:]))
        return time.monotonic() - start, done.stdout

    tiny = ["--tiny"] if options.tiny else []
    arms = {"bare": [options.program, "--bare"] + tiny, "ramet": [options.program, "--cold"] + tiny}
    if has_torch and not options.tiny:
        arms["torch"] = [sys.executable, "-c", COLD_TORCH]
    times, memory = {a: [] for a in arms}, {}
    here = [os.path.dirname(os.path.abspath(__file__))]
    os.environ["PYTHONPATH"] = os.pathsep.join(here + [p for p in [os.environ.get("PYTHONPATH")] if p])
    for _ in range(1 if options.tiny else 3):
        for arm, words in arms.items():
            seconds, text = wall(words)
            times[arm].append(seconds)
            if arm != "torch":
                memory[arm] = json.loads(text.splitlines()[-1])
    median = {a: statistics.median(t) for a, t in times.items()}
    beyond = (memory["ramet"]["used"] - memory["ramet"]["tensors"] - memory["bare"]["used"]) / 2**20
    print("- G12 cold start (process to the end of the first step): %s, a bare context %s; %.0f MiB of the device beyond tensors"
          " and a bare context (goals: bare + 150 ms, 96 MiB)" % (shown(median["ramet"]), shown(median["bare"]), beyond))
    if "torch" in median:
        print("- G12 PyTorch: %s, ratio %.2f (goal: 3)" % (shown(median["torch"]), median["torch"] / median["ramet"]))


def main():
    parser = argparse.ArgumentParser(add_help=True)
    parser.add_argument("program")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    driver = Driver(options)
    try:
        driver.run()
    except RuntimeError as error:
        sys.exit("drive: %s" % error)
    if not options.only or options.only in "cold start":
        try:
            cold_start(options, driver.torch.rows is not None)
        except Exception as error:
            driver.failed.append("cold start: %s" % error)
            print("- FAILED: cold start: %s" % error)
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"peer": driver.torch.words, "rows": driver.done, "failed": driver.failed}, f, indent=1)
    return 1 if driver.failed else 3 if driver.left_out else 0


if __name__ == "__main__":
    sys.exit(main())
