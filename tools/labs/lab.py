#!/usr/bin/env python3
"""Lists labs, starts one, and grades what a student wrote (./tools/lab calls this, after a build of //tools/labs:kit).

usage: lab.py list
       lab.py start N DIR
       lab.py has DIR                                        does start's file lie there?
       lab.py check DIR --built BAZEL_BIN [--seconds S]

check compiles one file, links it with what Bazel has built, and runs it: grader.h says what the program writes down. The exit code is
0 where all is right, 1 where something is wrong, 2 where the call is.
"""

import argparse
import ast
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).absolute().parent
ROOT = HERE.parent.parent
CUDA_HEADERS = ROOT / "tools/emulated_gpu/include"  # <cuda_runtime.h> of the emulated GPUs
sys.path.insert(0, str(HERE))
import sources  # noqa: E402

SIGNALS = {
    signal.SIGSEGV: "memory that is not there was read or written: a null pointer, an index past the end, or a stack that is full because "
    "a function calls itself too often",
    signal.SIGBUS: "memory that is not there was read or written",
    signal.SIGABRT: "abort() was called: an exception that nobody caught (on another thread, or in a destructor), or memory that was freed "
    "twice or written past its end",
    signal.SIGFPE: "a whole number was divided by zero",
    signal.SIGILL: "an instruction that is none was reached: a function without a return at its end, perhaps",
    signal.SIGKILL: "it was killed: perhaps it took all of the machine's memory",
    signal.SIGXFSZ: "it printed without end",
    signal.SIGXCPU: "it took too much time",
}
MOST_OUTPUT = 1 << 20
MOST_MEMORY = 4 << 30
SHOWN_LINES = 12


def misuse(text):
    print("lab: %s" % text, file=sys.stderr)
    raise SystemExit(2)


def labs():
    return [sources.Lab(folder) for folder in sources.folders()]


def indented(text, by):
    return "".join(" " * by + line + "\n" for line in text.rstrip("\n").split("\n"))


def cut(lines, most=SHOWN_LINES):
    return lines[:most] + (["... and %d more lines" % (len(lines) - most)] if len(lines) > most else [])


# ---- start --------------------------------------------------------------------------------------


def start(number, to):
    found = [lab for lab in labs() if str(lab.number) == number.lstrip("0")]
    if not found:
        misuse("there is no lab %s: `list` says which there are" % number)
    lab, to = found[0], pathlib.Path(to)
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        misuse("%s is there and not empty: nothing was written" % to)
    text = lab.with_holes()
    to.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(lab.folder / "task.md", to / "task.md")
    (to / lab.file).write_text(text)
    (to / ".lab").write_text(lab.name + "\n")
    # clangd and the editors that ask it take their options from here.
    (to / "compile_flags.txt").write_text("-xc++\n-std=c++20\n-iquote\n%s\n-isystem\n%s\n" % (ROOT, CUDA_HEADERS))
    print("lab %d, %s\nread %s/task.md, fill the holes of %s/%s, then: ./tools/lab check %s" % (lab.number, lab.title(), to, to, lab.file, to))


def lab_of(folder):
    mark = pathlib.Path(folder) / ".lab"
    name = mark.read_text().strip() if mark.is_file() else ""
    found = [lab for lab in labs() if lab.name == name]
    if not found:
        misuse("%s is no folder that `start` has made" % folder)
    if not (pathlib.Path(folder) / found[0].file).is_file():
        misuse("%s/%s is missing" % (folder, found[0].file))
    return found[0]


# ---- check --------------------------------------------------------------------------------------


def kernel_options():
    """What the checker of the emulated GPUs needs: the build's own list."""
    text = (ROOT / "tools/cuda/library.bzl").read_text()
    return ast.literal_eval(re.search(r"^CHECK_COPTS = (\[.*?\])", text, re.M | re.S).group(1))


class Check:
    def __init__(self, folder, built, seconds):
        self.folder, self.built, self.seconds = pathlib.Path(folder).absolute(), pathlib.Path(built).absolute(), seconds
        self.lab = lab_of(self.folder)
        self.work = self.folder / ".build"
        self.work.mkdir(exist_ok=True)
        self.file = self.folder / self.lab.file
        self.holes = sources.holes(self.file.read_text(errors="replace"))

    def fail(self, text, hint=None):
        print(indented("WRONG  " + text, 2).rstrip("\n").replace("\n  ", "\n         "))
        empty = [n for n, (_, lines, *_) in self.holes.items() if lines.split() == self.given().get(n, "").split()]
        for n in empty:
            print("  note   hole %d is as it came: %s" % (n, self.holes[n][0]))
        if hint:
            print("  hint   " + hint + (" (chapters: tools/docs/tutorial)" if "chapter" in hint else ""))
        return 1

    def given(self):
        return {n: lines for n, (_, lines, *_) in sources.holes(self.lab.with_holes()).items()}

    def run(self):
        print("lab %d, %s" % (self.lab.number, self.lab.title()))
        program = self.work / "check"
        said = self.compile() or self.link(program)
        return said if said else self.grade(program)

    def compile(self):
        # Reports of the checker name lab.cu where they find lab.cu.cc.
        self.glue = self.work / (self.lab.file + ("" if self.lab.file.endswith(".cc") else ".cc"))
        self.glue.write_text(
            '#include "%s"\n#include "tools/labs/%s/lab.h"\n'
            "int main(int argc, char** argv) {\n"
            "  return ramet::labs::run(argc, argv, [](ramet::labs::Report& r) { ramet::labs::grade(LAB_ANSWER(::lab), r); });\n}\n"
            % (self.file, self.lab.name)
        )
        self.object = self.work / "lab.o"
        self.object.unlink(missing_ok=True)
        options = kernel_options() if self.lab.is_kernel else ["-O0"]
        done = subprocess.run(
            [os.environ.get("CXX", "g++"), "-std=c++20", "-Wall", "-Wno-unknown-pragmas", "-ffp-contract=off", "-fdiagnostics-color=never",
             "-iquote", ROOT, "-isystem", CUDA_HEADERS, *options, "-c", self.glue, "-o", self.object],
            capture_output=True, text=True, errors="replace", cwd=ROOT)  # fmt: skip
        lines = [line.replace(str(self.file), self.lab.file) for line in done.stderr.split("\n") if line]
        mine = re.compile(re.escape(self.lab.file) + r":(\d+):(?:\d+:)? (warning|(?:fatal )?error): ")
        found = [(i, int(m.group(1))) for i, line in enumerate(lines) if (m := mine.match(line)) and ("error" in m.group(2)) == (done.returncode != 0)]
        if done.returncode == 0:
            for i, _ in found[:3]:
                print("  note   the compiler warns: " + lines[i])
            return 0
        text = "it does not compile:\n"
        if found:
            at, line = found[0]
            text += "\n".join(cut(lines[at:]))
            inside = [(n, words) for n, (words, _, first, last) in self.holes.items() if first <= line <= last]
            hint = "hole %d expects: %s" % inside[0] if inside else "line %d is outside of the holes: has it changed?" % line
        else:
            text += "\n".join(cut([line for line in lines if "error" in line] or lines))
            hint = "the grader does not find what it calls, which was in %s as it came" % self.lab.file
        return self.fail(text, hint)

    def link(self, program):
        kit = json.loads((self.built / "tools/labs/kit.json").read_text())
        archives = [str(self.built / a) for a in kit["archives"]]
        # Nothing names what is in the checker. (Bazel calls archives that are always linked .lo.)
        whole = [a for a in archives if os.path.basename(a).startswith("libchecks.")]
        others = [a for a in archives if a not in whole]
        done = subprocess.run(
            [os.environ.get("CXX", "g++"), "-fuse-ld=lld", self.object, "-Wl,--whole-archive", *whole, "-Wl,--no-whole-archive",
             "-Wl,--start-group", *others, "-Wl,--end-group", "-lz", "-ldl", "-pthread", "-o", program],
            capture_output=True, text=True, errors="replace")  # fmt: skip
        if done.returncode == 0:
            return 0
        lines = [line for line in done.stderr.split("\n") if "error" in line]
        return self.fail("it compiles, and cannot be linked:\n" + "\n".join(cut(lines)), "a function that is declared and never defined?")

    def grade(self, program):
        report, output = self.work / "report", self.work / "output"
        report.write_text("")

        def limits():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_OUTPUT, MOST_OUTPUT))
            resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
            hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
            resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, hard))

        late = False
        with open(output, "wb") as out:
            child = subprocess.Popen([program, report], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=self.folder,
                                     preexec_fn=limits, start_new_session=True)  # fmt: skip
            try:
                code = child.wait(self.seconds)
            except subprocess.TimeoutExpired:
                late, code = True, None
            try:
                os.killpg(child.pid, signal.SIGKILL)  # and whatever it has started
            except ProcessLookupError:
                pass
            child.wait()
        result = self.show(report, code, late)
        printed = output.read_bytes().decode(errors="replace").rstrip("\n")
        if printed:
            print("your code printed:\n" + indented("\n".join(cut(printed.split("\n"))), 4).rstrip("\n"))
        return result

    def show(self, report, code, late):
        rows = [line.split("\t") for line in report.read_text(errors="replace").split("\n") if line]
        rows = [[word.replace("\\n", "\n") for word in row] for row in rows]
        begun = [row[1] for row in rows if row[0] == "begin"]
        done = any(row[0] == "done" for row in rows)
        for row in rows:
            if row[0] == "ok":
                print("  ok     %s: %s" % (row[1], row[2]))
        wrong = [row for row in rows if row[0] == "wrong"]
        passed = sum(row[0] == "ok" for row in rows)
        if wrong:
            hint = [row[1] for row in rows if row[0] == "hint"]
            return self.fail("%s: %s" % (wrong[0][1], wrong[0][2]), hint[0] if hint else None)
        at = "in the step \"%s\"" % begun[-1] if len(begun) > passed else "outside of all steps"
        if late:
            return self.fail("%s it did not come to an end in %d seconds: a loop that does not stop, a wait for what never comes, or work that "
                             "grows too fast" % (at, self.seconds))  # fmt: skip
        if code is not None and code < 0:
            number = signal.Signals(-code)
            return self.fail("%s it crashed: %s, %s" % (at, number.name, SIGNALS.get(number, "a signal")))
        if not done:
            return self.fail("%s the program ended by itself, with exit code %s: was exit() called?" % (at, code))
        if code != 0:
            return self.fail("all steps passed, and the program ended with exit code %s" % code)
        print("passed: %d steps" % passed)
        return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list")
    one = commands.add_parser("start")
    one.add_argument("number")
    one.add_argument("folder")
    commands.add_parser("has").add_argument("folder")
    one = commands.add_parser("check")
    one.add_argument("folder")
    one.add_argument("--built", required=True)
    one.add_argument("--seconds", type=int, default=10)
    a = parser.parse_args()
    if a.command == "list":
        for lab in labs():
            print("%2d  %s" % (lab.number, lab.title()))
    elif a.command == "start":
        start(a.number, a.folder)
    elif a.command == "has":
        lab_of(a.folder)
    else:
        raise SystemExit(Check(a.folder, a.built, a.seconds).run())


if __name__ == "__main__":
    main()
