#!/usr/bin/env python3
"""Every lab's solution passes. Every planted mistake is refused with its words and without the answer; the file with holes is refused.
The test also runs ./tools/lab's commands, with other failures of students.

usage: labs_test.py ANSWERS   (in the repository's root or its runfiles; BUILT: where tools/labs/kit.json is below, by default the same)
"""

import concurrent.futures
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path.cwd()
BUILT = os.environ.get("BUILT", str(ROOT))
sys.path.insert(0, str(ROOT / "tools/labs"))
import sources  # noqa: E402

ANSWERS = pathlib.Path(sys.argv[1]).absolute()
problems = []


def expect(right, what, said=""):
    if not right:
        problems.append(what + ("\n" + said if said else ""))


# ---- all answers --------------------------------------------------------------------------------


def stack():
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def graded(lab, which, folder):
    """Exit code, report and seconds."""
    report = folder / ("%s_%d" % (lab.name, which))
    began = time.monotonic()
    try:
        code = subprocess.run([ANSWERS, str(lab.number), str(which), report], capture_output=True, timeout=120, preexec_fn=stack).returncode
    except subprocess.TimeoutExpired:
        code = "timeout"
    return code, report.read_text().replace("\\n", "\n") if report.exists() else "", time.monotonic() - began


def secret_lines(lab):
    """What fills the holes of the solution: no grader may say it."""
    lines = []
    for _, text, *_ in sources.holes(lab.solution.read_text()).values():
        lines += [line.strip() for line in text.split("\n") if len(line.strip()) > 20 and not line.strip().startswith("//")]
    return lines


def check_answers(folder):
    labs = [sources.Lab(f) for f in sources.folders()]
    expect([lab.number for lab in labs] == list(range(1, 13)), "there are the labs %s" % [lab.name for lab in labs])
    rows = []
    for lab in labs:
        wrongs = lab.wrongs()
        expect(len(wrongs) >= 4, "%s has %d planted mistakes, expected 4" % (lab.name, len(wrongs)))
        holes, told = list(sources.holes(lab.with_holes())), re.findall(r"\*\*[Hh]ole (\d+)\*\*", (lab.folder / "task.md").read_text())
        expect(holes == list(range(1, len(holes) + 1)) == list(map(int, told)), "%s has the holes %s and tells of %s" % (lab.name, holes, told))
        rows.append((lab, 0, "the solution", None))
        rows += [(lab, n, title, says) for n, title, says, _ in wrongs]
        rows.append((lab, len(wrongs) + 1, "the file with holes", []))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda row: graded(row[0], row[1], folder), rows))
    for (lab, _, title, says), (code, report, seconds) in zip(rows, results):
        what = "%s, %s: exit code %s in %.1f s" % (lab.name, title, code, seconds)
        # Ten seconds are a student's; a busy machine gets some more.
        expect(seconds < 60, what)
        if says is None:
            expect(code == 0 and report.endswith("done\t\n") and report.count("ok\t") == report.count("begin\t") >= 2, what, report)
            steps = [line.split("\t")[1] for line in report.split("\n") if line.startswith("begin\t")]
            expect(steps == lab.about()["steps"], "%s/about.txt names other steps than the grader: %s" % (lab.name, steps))
            continue
        expect(code != 0 and code != "timeout", what, report)
        for text in says:
            # In the step that failed, or the last one that began where it crashed.
            expect(text in report[report.rfind("begin\t") :], "%s: expected there: %s" % (what, text), report)
        for line in secret_lines(lab):
            expect(line not in report, "%s: it gives the answer away: %s" % (what, line), report)
    return "%d answers of %d labs" % (len(rows), len(labs))


# ---- ./tools/lab --------------------------------------------------------------------------------


def lab(*arguments):
    done = subprocess.run([sys.executable, ROOT / "tools/labs/lab.py", *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def wants(code, texts, *arguments, absent=()):
    got, said = lab(*arguments)
    what = "lab.py %s: exit code %d, expected %d and %s" % (" ".join(map(str, arguments)), got, code, list(texts))
    expect(got == code and all(text in said for text in texts) and not any(text in said for text in absent), what, said)


def check(folder, code, *texts, seconds=60, absent=()):
    wants(code, texts, "check", folder, "--built", BUILT, "--seconds", seconds, absent=absent)


def check_commands(folder):
    labs = [sources.Lab(f) for f in sources.folders()]
    _, said = lab("list")
    expect([int(n) for n in re.findall(r"^ ?(\d+)  ", said, re.M)] == [each.number for each in sources.in_order()], "list's order", said)
    wants(0, ["%2d  %s " % (each.number, each.title()) for each in labs] + [each.about()["chapter"] for each in labs], "list")
    headers = json.loads((pathlib.Path(BUILT) / "tools/labs/kit.json").read_text())["headers"]
    for each in labs:
        about = each.about()
        own = about["own"].split(":")[0]
        expect(1 <= about["level"] <= 4 and 10 <= about["minutes"] <= 120, "%s: level or minutes" % each.name, str(about))
        expect(own in headers or own.endswith(".cu") or own.startswith("parallel/distributed/"), "%s: its OWN has no file %s" % (each.name, own))
    wants(2, ["there is no lab 13"], "start", 13, folder / "none")
    wants(2, ["there is no lab x"], "start", "x", folder / "none")
    expect(not (folder / "none").exists(), "a lab that is not there has made a folder")
    wants(2, ["is no folder that `start` has made"], "has", folder)
    for each in labs:
        to = folder / each.name
        wants(0, [each.title(), each.file], "start", each.number, to)
        have = sorted(p.name for p in to.iterdir())
        expect(have == sorted([".lab", "compile_flags.txt", each.file, "task.md"]), "start %d made %s" % (each.number, have))
        expect("HOLE 1" in (to / each.file).read_text() and (to / "task.md").read_text().startswith("# %d. " % each.number), "start %d" % each.number)
        before = (to / each.file).read_text()
        wants(2, ["is there and not empty: nothing was written"], "start", each.number, to)
        expect((to / each.file).read_text() == before, "start has written over a file")
    (folder / "file").write_text("mine")
    wants(2, ["nothing was written"], "start", 1, folder / "file")

    # As it comes; then the solution: with the library, and a kernel with the checker.
    for number, words in ((1, "wrong\n"), (5, "RACE means")):
        each = labs[number - 1]
        to = folder / each.name
        check(to, 1, "WRONG", "hint", "hole 1 is as it came", *([words] if number == 5 else []))
        if number == 5:
            check(to, 1, "at lab.cu:", absent=["lab.cu.cc"])
        (to / each.file).write_text(each.solution.read_text())
        check(to, 0, "ok     ", "passed: %d steps" % len(each.about()["steps"]), each.about()["own"], "next: lab ", absent=["WRONG", "warns"])

    # What else happens, in the lab that compiles fastest.
    walk = labs[2]
    to = folder / walk.name
    solution = walk.solution.read_text()

    def write(old, new):
        expect(solution.count(old) == 1, "the solution of lab 3 has %d times: %s" % (solution.count(old), old))
        (to / walk.file).write_text(solution.replace(old, new))

    inside = "  std::vector<Node*> to_do = {loss};\n"
    write(inside, inside + "  int x = nothing;\n")
    check(to, 1, "it does not compile", "nothing", "hole 1 expects: run the backward pass")
    write("void backward(", "void backwards(")
    check(to, 1, "it does not compile", "the grader does not find what it calls")
    write("using Node =", "using Knot =")
    check(to, 1, "is outside of the holes")
    write(inside, inside + "  for (volatile int i = 0; i < 1;) {}\n")
    check(to, 1, "in the step \"a chain\" it did not come to an end in 2 seconds", "hint   when may a node", seconds=2)
    write(inside, inside + "  *static_cast<volatile int*>(nullptr) = 1;\n")
    check(to, 1, "in the step \"a chain\" it crashed: SIGSEGV", "hint   when may a node pass its gradient on?")
    write(inside, inside + "  throw 7;\n")
    check(to, 1, "your code threw something that is no std::exception")
    write(inside, inside + "  std::exit(0);\n")
    check(to, 1, "the program ended by itself, with exit code 0: was exit() called?", "hint   when may a node")
    write(inside, "  if (loss->name == \"number 199999\") *static_cast<volatile int*>(nullptr) = 1;\n" + inside)
    check(to, 1, "in the step \"a chain of 200000\" it crashed", "a list of what is to do has no such limit")
    write(inside, inside + "  for (int i = 0; i < 50; ++i) std::puts(\"ok\\tnoise\");\n")
    check(to, 0, "passed: 6 steps", "your code printed:", "more lines")
    write(inside, inside + "  for (;;) std::puts(\"noise without end\");\n")
    check(to, 1, "SIGXFSZ, it printed without end")
    # A node's class is the grader's, so a function that is only declared fails at the link.
    write("// Calls pass_on()", "void missing(Node*);\n// Calls pass_on()")
    text = (to / walk.file).read_text().replace(inside, inside + "  missing(loss);\n")
    (to / walk.file).write_text(text)
    check(to, 1, "it compiles, and cannot be linked", "missing")
    check_forged(to, walk)
    check_from_elsewhere(folder, to, walk)
    (to / walk.file).unlink()
    wants(2, ["is missing"], "has", to)


# Answers that write the report themselves, in the lab that compiles fastest. Each has the file with holes as it came.
FORGED = {
    "a constructor that writes the report": """
#include <unistd.h>
#include <cstdio>
#include <fstream>
#include <string>
static const int forged = [] {
  std::ifstream from("/proc/self/cmdline");
  std::string program, report;
  std::getline(from, program, '\\0');
  std::getline(from, report, '\\0');
  std::ofstream(report) << STEPS << "done\\n" << std::flush;
  _exit(0);
  return 0;
}();
""",
    "a constructor that reads the tickets": """
#include <unistd.h>
#include <fstream>
#include <iostream>
#include <string>
static const int forged = [] {
  std::string program, report, word;
  std::ifstream from("/proc/self/cmdline");
  std::getline(from, program, '\\0');
  std::getline(from, report, '\\0');
  std::ofstream to(report);
  const std::string steps[] = {NAMES};
  std::getline(std::cin, word);
  for (const std::string& step : steps) {
    std::getline(std::cin, word);
    to << "begin\\t" << step << "\\thint\\nok\\t" << step << "\\tall\\t" << word << "\\n";
  }
  std::getline(std::cin, word);
  to << "done\\t" << word << "\\n" << std::flush;
  _exit(0);
  return 0;
}();
""",
    "a constructor that runs empty steps": """
#include <unistd.h>
#include <fstream>
#include <string>
static const int forged = [] {
  std::string words[2];
  std::ifstream from("/proc/self/cmdline");
  for (std::string& word : words) std::getline(from, word, '\\0');
  char* argv[] = {words[0].data(), words[1].data()};
  ramet::labs::run(2, argv, "", [](ramet::labs::Report& report) {
    for (const char* step : {NAMES}) report.step(step, "", [] { return std::string("all"); });
  });
  _exit(0);
  return 0;
}();
""",
    "a macro for what main() calls": """
#include <string>
namespace ramet::labs {
inline int forged(int argc, char** argv, const char* key, const std::function<void(Report&)>&) {
  return run(argc, argv, key, [](Report& report) {
    for (const char* step : {NAMES}) report.step(step, "", [] { return std::string("all"); });
  });
}
}
#define run forged
""",
}
OWN_GRADE = """
#include <string>
namespace ramet::labs {
INLINE void grade(const WalkLab&, Report& report) {
  for (const char* step : {NAMES}) report.step(step, "", [] { return std::string("all"); });
}
}
"""
EARLY = """
#include <unistd.h>
extern "C" void early() { _exit(0); }
[[gnu::section(".preinit_array"), gnu::used]] static void (*first)() = early;
"""


def check_forged(to, walk):
    steps = walk.about()["steps"]
    names = ", ".join('"%s"' % step for step in steps)
    lines = '"%s"' % "".join("begin\\t%s\\thint\\nok\\t%s\\tall\\n" % (step, step) for step in steps)

    def forge(text):
        (to / walk.file).write_text(walk.with_holes() + text.replace("NAMES", names).replace("STEPS", lines))

    forge(FORGED["a constructor that writes the report"])
    check(to, 1, "WRONG  the report has a line that the grader did not write: ok a chain", absent=["passed", "  ok "])
    forge(FORGED["a constructor that reads the tickets"])
    check(to, 1, "WRONG  the report has a line that the grader did not write: ok a chain", absent=["passed", "  ok "])
    forge(FORGED["a constructor that runs empty steps"])
    check(to, 1, "WRONG  the report has a line that the grader did not write: ok a chain", absent=["passed", "  ok "])
    forge(FORGED["a macro for what main() calls"])
    check(to, 1, "WRONG  a chain", absent=["passed"])
    forge(OWN_GRADE.replace("INLINE ", ""))
    check(to, 1, "it compiles, and cannot be linked", "duplicate symbol", absent=["passed"])
    forge(OWN_GRADE.replace("INLINE", "[[gnu::always_inline]] inline"))
    check(to, 1, "WRONG", absent=["passed"])
    forge(EARLY)
    check(to, 1, "has a function that runs before the program begins", absent=["passed"])


def check_from_elsewhere(folder, to, walk):
    """The solution as the whole file."""
    solution = (ROOT / "tools/labs" / walk.name / walk.solution.name).resolve()
    (to / "copy.h").write_text(solution.read_text())
    (to / "link.h").unlink(missing_ok=True)
    (to / "link.h").symlink_to(solution)
    (folder / "a copy.h").write_text(solution.read_text())
    for name in (
        "tools/labs/%s/%s" % (walk.name, walk.solution.name),
        "runtime/../tools/labs/%s/%s" % (walk.name, walk.solution.name),
        str(solution),
        os.path.relpath(solution, to),
        "link.h",
        "copy.h",
        "../a copy.h",
    ):
        (to / walk.file).write_text('#include "%s"\n' % name)
        check(to, 1, "WRONG  %s includes " % walk.file, "a lab is one file", absent=["passed"])
    (to / walk.file).write_text('#pragma GCC system_header\n#include <../include/../..%s>\n' % solution)
    check(to, 1, absent=["passed"])
    (to / walk.file).unlink()
    (to / walk.file).symlink_to(solution)
    check(to, 1, "is a link to a solution", absent=["passed"])
    (to / walk.file).unlink()
    # The standard library is the student's, and so is what the library has.
    (to / walk.file).write_text("#include <deque>\n#include <sys/types.h>\n#include \"ramet.h\"\n" + walk.solution.read_text())
    check(to, 0, "passed: 6 steps", absent=["WRONG"])


with tempfile.TemporaryDirectory() as temporary:
    done = check_answers(pathlib.Path(temporary))
    (pathlib.Path(temporary) / "labs").mkdir()
    check_commands(pathlib.Path(temporary) / "labs")
for problem in problems:
    print("FAILED: " + problem)
if problems:
    sys.exit(1)
print("OK: %s, and ./tools/lab" % done)
