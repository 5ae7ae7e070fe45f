"""Compiles a CUDA program for an emulated GPU, runs it, and steps through one block of a kernel, forwards and backwards, thread by
thread (./tools/step_kernel calls this; its text says how).

usage: step_kernel.py --root DIR --library FILE... --source PROGRAM.cu [OPTION]... [-- ARGUMENT...]

What is shown was written down while the program ran (trace.cc): the steps are of the one order in which the threads ran, which
RAMET_EMULATED_THREADS=reverse or random:SEED changes.
"""

import argparse
import bisect
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

OPTIONS = (
    "-x c++ -std=c++20 -O0 -g -fno-omit-frame-pointer -fPIC -Wall -Wno-tsan -Wno-unknown-pragmas -fsanitize=thread,bounds,alignment "
    "--param=tsan-instrument-func-entry-exit=0"
).split()
HELP = """  n, Enter     the next step              p            back one step
  t N          the next step of thread N  t            of the thread that this one is of
  b            past the next barrier      B            back before the last one
  f TEXT       the next step in whose line is TEXT (part[3], a file's line, RACE)
  g N          to step N                  e            to the end
  w            where each thread stands   s [NAME]     shared memory (+: written since the last barrier; .: not written yet)
  l            the lines around here      c            the calls that lead here
  a            all steps from here        h            this
  q            quit"""


class Problem(Exception):
    pass


def run(command, **more):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)


# ---- the program ------------------------------------------------------------------------------------


def compiled(source, root, libraries, folder):
    """The program's path."""
    compiler = os.environ.get("CXX", "g++")
    made, program = folder / "program.o", folder / "program"
    done = run([compiler, *OPTIONS, "-I%s" % root, "-isystem", root / "tools/emulated_gpu/include", "-I%s" % source.parent, "-c", source, "-o", made])
    if done.returncode:
        raise Problem("%s does not compile:\n%s" % (source.name, done.stderr))
    whole = [p for p in libraries if p.endswith(".lo") or p.endswith(".o")]
    rest = [p for p in libraries if p not in whole]
    done = run([compiler, made, "-Wl,--whole-archive", *whole, "-Wl,--no-whole-archive", "-Wl,--start-group", *rest, "-Wl,--end-group",
                "-Wl,--gc-sections", "-fuse-ld=lld", "-ldl", "-pthread", "-o", program])  # fmt: skip
    if done.returncode:
        raise Problem("%s does not link (has it a main()?):\n%s" % (source.name, done.stderr))
    return program


def traced(program, given, folder):
    """(lines of the trace, what the program said)."""
    path = folder / "trace"
    environment = dict(
        os.environ, RAMET_STEP_TRACE=str(path), RAMET_STEP_KERNEL=given.kernel, RAMET_STEP_LAUNCH=str(given.launch),
        RAMET_STEP_BLOCK=str(given.of_block), RAMET_EMULATED_STREAMS="eager", RAMET_EMULATED_WORKERS="1", RAMET_EMULATED_STACK_KB="512",
        RAMET_EMULATED_REPORTS="0",
    )  # fmt: skip
    done = run([program, *given.arguments], env=environment)
    said = done.stdout + done.stderr
    if done.returncode:
        said += "(the program ended with exit code %d)\n" % done.returncode
    if not path.exists():
        raise Problem("the program wrote no trace: did it end early?\n" + said)
    with open(path) as lines:
        return [json.loads(line) for line in lines], said


# ---- names ------------------------------------------------------------------------------------------


def short_name(demangled):
    """ "void ramet::(anonymous namespace)::softmax<float>(float const*, int)" is softmax."""
    name, depth = "", 0
    text = demangled.replace("(anonymous namespace)", "")
    text = re.sub(r"\{lambda\(.*?\)#\d+\}", "lambda", text)
    for c in text.split("[with")[0]:
        depth += (c == "<") - (c == ">")
        if depth == 0 and c == "(":
            break
        name = "" if depth == 0 and c in " :" else name + c
    name = name.split("<")[0]
    return "a lambda" if name in ("", "lambda") or "lambda" in name else name


class Call:
    """A place in the program: of the emulation itself, of the standard library, or of the user's."""

    def __init__(self, function, place):
        self.function = short_name(function)
        self.signature = function
        path, _, line = place.split(" ")[0].rpartition(":")
        self.path = os.path.normpath(path)
        self.line = int(line) if line.isdigit() else 0
        others = ("/usr/", "tools/emulated_gpu/", "tools/see/step/trace.cc", "external/")
        self.users = self.line > 0 and not any(o in self.path for o in others)

    def text(self):
        return "%s:%d" % (os.path.basename(self.path), self.line)


def resolved(rows):
    """{(module, offset): its Calls, inlined ones first}, one process a module."""
    wanted = {}
    for row in rows:
        for module, offset in row.get("calls", ()):
            wanted.setdefault(module, set()).add(offset)
    calls = {}
    for module, offsets in wanted.items():
        offsets = sorted(offsets)
        said = run(["addr2line", "-a", "-i", "-f", "-C", "-e", module], input="\n".join(hex(o) for o in offsets)).stdout.splitlines()
        at = None
        for line in said:
            if re.fullmatch(r"0x[0-9a-f]+", line):
                at, function = calls.setdefault((module, int(line, 16)), []), None
            elif function is None:
                function = line
            else:
                at.append(Call(function, line))
                function = None
    return calls


def static_variables(program):
    """[(offset, bytes, name)] of __shared__ variables, sorted."""
    found = []
    for line in run(["readelf", "-sWC", program]).stdout.splitlines():
        fields = line.split(None, 7)
        if len(fields) == 8 and fields[3] == "TLS" and fields[2].isdigit():
            found.append((int(fields[1], 16), int(fields[2]), fields[7].split("::")[-1]))
    return sorted(found)


def parameters_of(call, source_text):
    """A kernel's parameters by name, where all of them are numbers and pointers; else None."""
    inside = call.signature.partition("(")[2].rpartition(")")[0]
    types = [t.strip() for t in inside.split(",")] if inside else []
    number = re.compile(r"(unsigned |signed )?(char|short|int|long|long long|float|double|bool)( const)?|unsigned")
    if not types or not all("*" in t or number.fullmatch(t) for t in types):
        return None
    found = re.search(r"\b%s\s*\(([^)]*)\)" % re.escape(call.function.split("<")[0]), source_text)
    names = [re.findall(r"\w+", p)[-1] for p in found.group(1).split(",")] if found and found.group(1).strip() else []
    if len(names) != len(types):
        return None
    return list(zip(names, types))


# ---- values -----------------------------------------------------------------------------------------


def value_text(data, how):
    """Of an element: a small whole number is one, else it is a floating-point number."""
    if len(data) == 16:
        return "{" + ", ".join(value_text(data[i : i + 4], how) for i in range(0, 16, 4)) + "}"
    letters = {1: ("b", None), 2: ("h", "e"), 4: ("i", "f"), 8: ("q", "d")}.get(len(data))
    if letters is None:
        return data.hex()
    whole = struct.unpack("<" + letters[0], data)[0]
    if how == "int" or letters[1] is None or (how == "auto" and abs(whole) < 1 << (8 * len(data) - 9)):
        return str(whole)
    return "%.6g" % struct.unpack("<" + letters[1], data)[0]


# ---- the steps --------------------------------------------------------------------------------------


class Steps:
    def __init__(self, rows, program, source, how):
        self.how = how
        self.launches = [r for r in rows if "launch" in r]
        self.head = next((r for r in rows if "kernel" in r), None)
        self.events = [r for r in rows if "event" in r]
        if self.head is None:
            return
        known = resolved(rows)
        self.places = {r["place"]: [call for c in r["calls"] for call in known[tuple(c)]] for r in rows if "calls" in r and "place" in r}
        self.variables = static_variables(program)
        self.starts = [v[0] for v in self.variables]
        kernel = next((self.users(e)[-1] for e in self.events if self.users(e)), None)
        text = pathlib.Path(kernel.path).read_text() if kernel and os.path.exists(kernel.path) else source.read_text()
        self.memory = self.device_memory([r for r in rows if "argument" in r], kernel, text)
        self.sizes = {}  # of the elements of a shared variable, by what accesses it
        for event in self.events:
            if "at" in event and event["at"][0] in ("shared", "static"):
                name = self.variable(event["at"])[0]
                self.sizes.setdefault(name, set()).add(event["bytes"])
        self.threads = 1
        for extent in self.head["block"]:
            self.threads *= extent
        self.files = {}

    def device_memory(self, rows, kernel, text):
        """[(address, name)] of the kernel's pointers, sorted."""
        known = parameters_of(kernel, text) if kernel else None
        pointers = [name for name, kind in known if "*" in kind] if known else []
        if len(pointers) == len(rows):  # a tuple lies in memory from its last element on
            named = zip(reversed(rows), pointers)
        else:
            named = ((row, "memory %s" % chr(ord("A") + i)) for i, row in enumerate(rows[:26]))
        return sorted((row["address"], name) for row, name in named)

    def users(self, event):
        return [c for c in self.places.get(event["place"], ()) if c.users]

    def in_kernel(self, calls):
        """The innermost call in the file where the kernel stands: it may go over helpers to its own lambdas."""
        return next(c for c in calls if c.path == calls[-1].path)

    def variable(self, at):
        """(name, offset in it, bytes or None) of shared memory."""
        kind, offset = at
        if kind == "shared":
            return "dynamic shared memory", offset, self.head["shared_bytes"]
        i = bisect.bisect_right(self.starts, offset) - 1
        if i >= 0 and offset < self.variables[i][0] + self.variables[i][1]:
            return self.variables[i][2], offset - self.variables[i][0], self.variables[i][1]
        return "shared", offset, None

    def name(self, event):
        kind, offset = event["at"]
        if kind in ("shared", "static"):
            name, offset, _ = self.variable(event["at"])
            size = min(self.sizes.get(name, {event["bytes"]}))
        elif kind == "device":
            i = bisect.bisect_right([m[0] for m in self.memory], offset) - 1
            if i < 0:
                return "device memory 0x%x" % offset
            name, offset, size = self.memory[i][1], offset - self.memory[i][0], min(event["bytes"], 8)
            if event["bytes"] == 16:  # a vector
                return "%s[%d-%d]" % (name, offset // 4, offset // 4 + 3)
        else:
            return "memory 0x%x" % offset
        return "%s[%d]" % (name, offset // size) if offset % size == 0 else "%s + %d bytes" % (name, offset)

    def thread_text(self, rank):
        x, y, _ = self.head["block"]
        if self.threads == x:
            return "thread %d" % rank
        return "thread %d (%d,%d,%d)" % (rank, rank % x, rank // x % y, rank // x // y)

    def place_text(self, event):
        calls = self.users(event)
        if not calls:
            return ""
        at = self.in_kernel(calls)
        return at.text() if at is calls[0] else "%s (%s in %s)" % (at.text(), calls[0].text(), calls[0].function)

    def text(self, i):
        event = self.events[i]
        kind = event["event"]
        line = "%5d  %-12s %-22s " % (i, self.thread_text(event["thread"]), self.place_text(event))
        if kind == "read":
            return line + "reads %s: %s" % (self.name(event), value_text(bytes.fromhex(event["value"]), self.how))
        if kind in ("write", "atomic"):
            verb = "writes" if kind == "write" else "writes at once (atomic)"
            return line + "%s %s = %s" % (verb, self.name(event), value_text(bytes.fromhex(event["value"]), self.how))
        if kind == "barrier":
            return line + "comes to a barrier"
        if kind == "passed":
            return "%5d  %-12s %-22s all that were left have come: the barrier opens" % (i, "the block", self.place_text(event))
        if kind == "warp":
            lanes = bin(event["mask"]).count("1")
            return line + "comes to a warp primitive of %d lane%s" % (lanes, "" if lanes == 1 else "s")
        if kind == "end":
            return line + "has ended"
        return line + "! " + event["text"]

    def standing(self, upto):
        """{thread: where it stands} behind step `upto`."""
        where = {t: "not started" for t in range(self.threads)}
        for event in self.events[: upto + 1]:
            thread, kind, place = event["thread"], event["event"], self.place_text(event)
            if kind == "passed":
                for t, text in where.items():
                    if text.startswith("waits at the barrier"):
                        where[t] = "may go on behind the barrier of " + text.split(" of ")[1]
            elif kind == "barrier":
                where[thread] = "waits at the barrier of " + place
            elif kind == "warp":
                where[thread] = "in a warp primitive of " + place
            elif kind == "end":
                where[thread] = "has ended"
            elif kind != "fault":
                where[thread] = "at " + place
        return where

    def shared(self, upto):
        """{variable: {offset: [bytes, thread, since the last barrier]}} behind step `upto`; at a barrier, since the one before."""
        memory = {}
        for i, event in enumerate(self.events[: upto + 1]):
            if event["event"] == "passed" and i < upto:
                for cells in memory.values():
                    for cell in cells.values():
                        cell[2] = False
            elif event["event"] in ("write", "atomic") and event["at"][0] in ("shared", "static"):
                name, offset, _ = self.variable(event["at"])
                size = min(self.sizes[name])
                data = bytes.fromhex(event["value"])
                for i in range(0, len(data), size):
                    memory.setdefault(name, {})[offset + i] = [data[i : i + size], event["thread"], True]
        return memory

    # ---- what the commands print

    def print_shared(self, upto, only):
        memory = self.shared(upto)
        names = sorted(n for n in self.sizes if only in n)
        if not names:
            print("no shared memory is used" if not self.sizes else "no such variable: there are " + ", ".join(sorted(self.sizes)))
        for name in names:
            size = min(self.sizes[name])
            touched = [self.variable(e["at"]) for e in self.events if "at" in e and e["at"][0] in ("shared", "static")]
            end = max(v[2] or v[1] + size for v in touched if v[0] == name)
            print("%s, %d bytes" % (name, end))
            cells = memory.get(name, {})
            texts = []
            for offset in range(0, end, size):
                cell = cells.get(offset)
                texts.append("." if cell is None else value_text(cell[0], self.how) + ("+" if cell[2] else ""))
            width = max(len(t) for t in texts) + 1
            a_line = max(1, min(16, 110 // width))
            for first in range(0, len(texts), a_line):
                print("%6d:%s" % (first, "".join(t.rjust(width) for t in texts[first : first + a_line])))

    def print_standing(self, upto):
        groups = {}
        for thread, text in self.standing(upto).items():
            groups.setdefault(text, []).append(thread)
        for text, members in sorted(groups.items(), key=lambda g: g[1]):
            ranges = []
            for t in members:
                if ranges and ranges[-1][1] == t - 1:
                    ranges[-1][1] = t
                else:
                    ranges.append([t, t])
            shown = ", ".join("%d" % a if a == b else "%d-%d" % (a, b) for a, b in ranges[:8]) + (" ..." if len(ranges) > 8 else "")
            if len(members) > 1:
                text = re.sub("^waits ", "wait ", re.sub("^has ", "have ", text))
            print("%5d thread%s %s: %s" % (len(members), "" if len(members) == 1 else "s", text, shown))

    def print_lines(self, at):
        calls = self.users(self.events[at])
        if not calls:
            return print("no line is known here")
        for call in dict.fromkeys((self.in_kernel(calls), calls[0])):
            if call.path not in self.files:
                try:
                    self.files[call.path] = pathlib.Path(call.path).read_text().splitlines()
                except OSError:
                    self.files[call.path] = []
            lines = self.files[call.path]
            print(call.path)
            for number in range(max(1, call.line - 4), min(len(lines), call.line + 4) + 1):
                print("%s%5d  %s" % ("=>" if number == call.line else "  ", number, lines[number - 1]))

    def print_calls(self, at):
        for call in self.users(self.events[at]):
            print("  %s at %s" % (call.function, call.text()))

    def find(self, at, step, fits):
        at += step
        while 0 <= at < len(self.events):
            if fits(at):
                return at
            at += step
        return None


def describe(steps):
    head = steps.head
    print("kernel %s <<<%s, %s, %d>>>, block %s: %d steps of %d threads%s" % (
        head["kernel"], tuple(head["grid"]), tuple(head["block"]), head["shared_bytes"], tuple(head["index"]), len(steps.events),
        steps.threads, ", cut short there" if head["cut"] else "",
    ))  # fmt: skip
    if steps.memory and steps.memory[0][1].startswith("memory "):
        print("memory A, B, ...: what the kernel's arguments point to, in the order of their addresses there")
    faults = [i for i, e in enumerate(steps.events) if e["event"] == "fault"]
    if faults:
        print("%d fault%s, the first one at step %d: %s" % (len(faults), "" if len(faults) == 1 else "s", faults[0], steps.events[faults[0]]["text"]))


def obey(steps, at, command):
    """The step after the command; None: quit."""
    word, _, rest = command.strip().partition(" ")
    rest = rest.strip()
    to = None
    if word in ("", "n"):
        to = steps.find(at, 1, lambda i: True)
    elif word == "p":
        to = steps.find(at, -1, lambda i: True)
    elif word == "t":
        if rest and not (rest.isdigit() and int(rest) < steps.threads):
            print("no such thread: %s (there are 0 to %d)" % (rest, steps.threads - 1))
            return at
        thread = int(rest) if rest else steps.events[max(at, 0)]["thread"]
        to = steps.find(at, 1, lambda i: steps.events[i]["thread"] == thread and steps.events[i]["event"] != "passed")
    elif word in ("b", "B"):
        to = steps.find(at, 1 if word == "b" else -1, lambda i: steps.events[i]["event"] == "passed")
    elif word == "f" and rest:
        to = steps.find(at, 1, lambda i: rest in steps.text(i))
    elif word == "g" and rest.isdigit() and int(rest) < len(steps.events):
        to = int(rest)
    elif word == "e":
        to = len(steps.events) - 1
    elif word == "q":
        return None
    else:
        if word == "w":
            steps.print_standing(at)
        elif word == "s":
            steps.print_shared(at, rest)
        elif word == "a":
            for i in range(at + 1, len(steps.events)):
                print(steps.text(i))
            return len(steps.events) - 1
        elif at < 0 and word in ("l", "c"):
            print("before the first step")
        elif word == "l":
            steps.print_lines(at)
        elif word == "c":
            steps.print_calls(at)
        else:
            print(HELP)
        return at
    if to is None:
        print("there is none")
        return at
    print(steps.text(to))
    return to


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("--root", required=True, type=pathlib.Path)
    parser.add_argument("--library", action="append", default=[])
    parser.add_argument("--kernel", default="")
    parser.add_argument("--launch", type=int, default=0)
    parser.add_argument("--block", dest="of_block", type=int, default=0)
    parser.add_argument("--as", dest="how", choices=("auto", "int", "float"), default="auto")
    parser.add_argument("--do", dest="commands")
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("arguments", nargs="*")
    given = parser.parse_args()
    try:
        if not given.source.is_file():
            raise Problem("no such file: %s" % given.source)
        with tempfile.TemporaryDirectory(prefix="step_kernel.") as folder:
            folder = pathlib.Path(folder)
            program = compiled(given.source.resolve(), given.root.resolve(), given.library, folder)
            rows, said = traced(program, given, folder)
            steps = Steps(rows, program, given.source, given.how)
        if said:
            print("the program says:\n  " + said.strip().replace("\n", "\n  "))
        if steps.head is None:
            launches = "".join("\n  %s <<<%s, %s>>>" % (r["launch"], tuple(r["grid"]), tuple(r["block"])) for r in steps.launches)
            raise Problem("no such launch or block; the program launched:%s" % (launches or " nothing"))
    except Problem as problem:
        sys.exit("step_kernel: %s" % problem)
    describe(steps)
    at = -1
    if given.commands is not None:
        for command in given.commands.split(";"):
            at = obey(steps, at, command)
            if at is None:
                return
        return
    print("h lists the commands")
    while at is not None:
        try:
            at = obey(steps, at, input("> "))
        except EOFError:
            return
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    sys.exit(main())
