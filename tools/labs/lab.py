#!/usr/bin/env python3
"""Lists labs, starts one, and grades what a student wrote (./tools/lab calls this, after a build of //tools/labs:kit).

usage: lab.py list
       lab.py start N DIR
       lab.py has DIR                                        does start's file lie there?
       lab.py check DIR --built BAZEL_BIN [--seconds S]

check compiles one file, links it with what Bazel has built, and runs it: grader.h says what the program writes down. The exit code is
0 where all is right, 1 where something is wrong, 2 where the call is.

A pass means: the file includes the library, the standard library and nothing else; and the grader's own code wrote down every step that
about.txt names (the tickets in grader.h). What remains possible: a solution that is pasted, which no check of one file can tell from one
that was written; and an attack on the process itself, by a search of its memory or by a C function that replaces the library's. A grade
that has to be certain needs a person who reads the file.
"""

import argparse
import ast
import json
import os
import pathlib
import re
import resource
import secrets
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
OWN_FILE = "a lab is one file: it includes ramet.h, what it included as it came, and headers of the standard library"


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
    about = lab.about()
    print("lab %d, %s: level %d, about %d minutes" % (lab.number, lab.title(), about["level"], about["minutes"]))
    print("read %s/task.md, fill the holes of %s/%s, then: ./tools/lab check %s" % (to, to, lab.file, to))


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
        self.kit = json.loads((self.built / "tools/labs/kit.json").read_text())
        self.steps = self.lab.about()["steps"]
        self.key = secrets.token_hex(8)
        self.tickets = [secrets.token_hex(8) for _ in range(len(self.steps) + 1)]
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
        said = self.compile() or self.others_code() or self.link(program)
        return said if said else self.grade(program)

    def compile(self):
        # The grader's functions are fixed before the student's file is read. No macro of that file changes the words of main(). Only
        # main() knows the key.
        kind = re.search(r"LAB_ANSWER\(space\)[\s\\]*ramet::labs::(\w+)", (self.lab.folder / "lab.h").read_text()).group(1)
        first = (
            "namespace {\n"
            "void (*const volatile grade_{key})(const ramet::labs::{kind}&, ramet::labs::Report&) = &ramet::labs::grade;\n"
            "auto* const volatile run_{key} = &ramet::labs::run;\n"
            "}}\n"
        )
        main = (
            "int main(int argc, char** argv) {{\n"
            "  const ramet::labs::{kind} answer = LAB_ANSWER(::lab);\n"
            '  return run_{key}(argc, argv, "{key}", [&](ramet::labs::Report& report) {{ grade_{key}(answer, report); }});\n'
            "}}\n"
        )
        macros = sorted(set(re.findall(r"\b[A-Za-z]\w*", main.format(key="", kind=kind))) - {"LAB_ANSWER"})
        undone = "".join("#undef %s\n" % word for word in macros)
        text = '#include "tools/labs/%s/lab.h"\n%s#include "%s"\n%s%s' % (self.lab.name, first, self.file, undone, main)
        text = text.replace("{key}", self.key).replace("{kind}", kind).replace("{{", "{").replace("}}", "}")
        self.object = self.work / "lab.o"
        self.object.unlink(missing_ok=True)
        options = kernel_options() if self.lab.is_kernel else ["-O0"]
        done = subprocess.run(
            [os.environ.get("CXX", "g++"), "-std=c++20", "-Wall", "-Wno-unknown-pragmas", "-ffp-contract=off", "-fdiagnostics-color=never",
             "-iquote", ROOT, "-isystem", CUDA_HEADERS, *options, "-MD", "-MT", "lab", "-MF", self.work / "lab.d",
             "-xc++", "-c", "-", "-o", self.object],
            input=text, capture_output=True, text=True, errors="replace", cwd=ROOT)  # fmt: skip
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

    def others_code(self):
        """Refuses what the file has from elsewhere, and what would run before the grader has its tickets."""
        solutions = [lab.solution for lab in labs()]
        if any(os.path.samefile(self.file, solution) for solution in solutions):
            return self.fail("%s is a link to a solution of the labs" % self.lab.file, OWN_FILE)
        root, system = os.path.realpath(ROOT / "ramet.h")[: -len("ramet.h")], self.system_folders()
        allowed = {os.path.realpath(ROOT / header) for header in self.kit["headers"]} | {os.path.realpath(self.file), "<stdin>"}
        words = re.sub(r"\\\n", " ", (self.work / "lab.d").read_text(errors="replace")).split(": ", 1)[1]
        for name in (re.sub(r"\\([ #])", r"\1", word).replace("$$", "$") for word in re.findall(r"(?:\\.|\S)+", words)):
            file = name if name == "<stdin>" else os.path.realpath(os.path.join(ROOT, name))
            if file in allowed or (not file.startswith(root) and file.startswith(system)):
                continue
            return self.fail("%s includes %s" % (self.lab.file, name), OWN_FILE)
        if b".preinit_array" in self.object.read_bytes():
            return self.fail("%s has a function that runs before the program begins" % self.lab.file, "leave the section .preinit_array alone")
        return 0

    def system_folders(self):
        """Where the compiler searches for the headers of the standard library and of the system."""
        said = subprocess.run([os.environ.get("CXX", "g++"), "-E", "-v", "-xc++", os.devnull], capture_output=True, text=True, errors="replace")
        found = re.search(r"search starts here:\n((?: .*\n)*)End of search", said.stderr[said.stderr.find("#include <") :])
        return tuple(os.path.realpath(line.strip()) + os.sep for line in found.group(1).splitlines()) if found else ("/usr/",)

    def link(self, program):
        archives = [str(self.built / a) for a in self.kit["archives"]]
        # Nothing names what is in the checker, so all of it is linked. So is all of the grader: a function of the same name in the
        # student's file is then an error, not a replacement. Bazel calls such an archive .a or .lo.
        whole = [a for a in archives if os.path.basename(a).startswith(("libchecks.", "libgraders."))]
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
        self.object.unlink()  # it holds the key

        def limits():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_OUTPUT, MOST_OUTPUT))
            resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
            hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
            resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, hard))

        late = False
        with open(output, "wb") as out:
            child = subprocess.Popen([program, report, "--tickets"], stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, cwd=self.folder,
                                     preexec_fn=limits, start_new_session=True)  # fmt: skip
            try:
                child.stdin.write("\n".join([self.key, *self.tickets, ""]).encode())
                child.stdin.close()
            except BrokenPipeError:
                pass
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
        # Reports of the checker name what was compiled, with the line of the student's file.
        text = report.read_text(errors="replace").replace("<stdin>:", self.lab.file + ":")
        rows = [line.split("\t") for line in text.split("\n") if line]
        rows = [[word.replace("\\n", "\n") for word in row] for row in rows]
        passed, begun, hint, done = 0, None, None, False
        for row in rows:
            last = passed == len(self.steps)
            if row[0] == "begin" and len(row) == 3 and not last and row[1] == self.steps[passed]:
                begun, hint = row[1:]
            elif row[0] == "ok" and begun and row[1] == begun and row[-1] == self.tickets[passed]:
                print("  ok     %s: %s" % (begun, "\t".join(row[2:-1])))
                passed, begun, hint = passed + 1, None, None
            elif row[0] == "wrong" and begun and row[1] == begun:
                return self.fail("%s: %s" % (begun, "\t".join(row[2:])), hint)
            elif row == ["done", self.tickets[-1]] and last and not done:
                done = True
            else:
                return self.fail("the report has a line that the grader did not write: %s" % " ".join(row[:2])[:80],
                                 "only steps of the grader count: fill the holes, and let the program run to its end")  # fmt: skip
        at = "in the step \"%s\"" % begun if begun else "outside of all steps"
        if late:
            return self.fail("%s it did not come to an end in %d seconds: a loop that does not stop, a wait for what never comes, or work that "
                             "grows too fast" % (at, self.seconds), hint)  # fmt: skip
        if code is not None and code < 0:
            number = signal.Signals(-code)
            return self.fail("%s it crashed: %s, %s" % (at, number.name, SIGNALS.get(number, "a signal")), hint)
        if not done:
            return self.fail("%s the program ended by itself, with exit code %s: was exit() called?" % (at, code), hint)
        if code != 0:
            return self.fail("all steps passed, and the program ended with exit code %s" % code)
        print("passed: %d %s" % (passed, "step" if passed == 1 else "steps"))
        self.what_next()
        return 0

    def what_next(self):
        print("Ramet's own, to compare with yours: " + self.lab.about()["own"])
        order = sources.in_order()
        at = [lab.name for lab in order].index(self.lab.name) + 1
        if at == len(order):
            print("next: this was the last one of the list")
        else:
            about = order[at].about()
            print("next: lab %d, %s (level %d, about %d minutes): ./tools/lab start %d DIR"
                  % (order[at].number, order[at].title(), about["level"], about["minutes"], order[at].number))  # fmt: skip


def show_list():
    order = sources.in_order()
    width = max(len(lab.title()) for lab in order)
    print("lab %-*s  level  minutes  chapter" % (width, ""))
    for lab in order:
        about = lab.about()
        print("%2d  %-*s  %5d  %7d  %s" % (lab.number, width, lab.title(), about["level"], about["minutes"], about["chapter"]))
    print("The easiest come first. The minutes are for readers of the chapter (tools/docs/tutorial).")


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
        show_list()
    elif a.command == "start":
        start(a.number, a.folder)
    elif a.command == "has":
        lab_of(a.folder)
    else:
        raise SystemExit(Check(a.folder, a.built, a.seconds).run())


if __name__ == "__main__":
    main()
