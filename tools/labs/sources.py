#!/usr/bin/env python3
"""The files of a lab: tools/labs/NN_name/

  task.md      what to write; its first line is "# N. Title"
  lab.h        what the grader calls; LAB_ANSWER(space) is that of one namespace
  solution.cc  (or .cu) a solution in `namespace lab`, from which the file with holes is made
  wrong.txt    changes of the solution, each of which the grader has to refuse with the right words
  grade.cc     the grader
  about.txt    for `list` and for what follows a pass: LEVEL (1 to 4), MINUTES, CHAPTER (a file of the tutorial), OWN (the place in Ramet
               that does the same); then each STEP of the grader, in order

usage: sources.py LAB_FOLDER >ANSWERS.cc   the solution, all wrong ones and the file with holes in namespaces of their own, for the tests
"""

import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).absolute().parent
# // HOLE 1: words, on several lines;  //| lines of the file with holes;  the solution's lines;  // END 1
HOLE = re.compile(r"^( *)// HOLE (\d+): (.*(?:\n *//(?!\|) .*)*)\n((?: *//\|.*\n)*)((?:.*\n)*?) *// END \2\n", re.M)
WRONG = re.compile(r"^WRONG (\d+): (.*)\n((?:SAYS .*\n)+)((?:REPLACE\n(?:.*\n)*?BY\n(?:.*\n)*?END\n)+)", re.M)
CHANGE = re.compile(r"REPLACE\n((?:.*\n)*?)BY\n((?:.*\n)*?)END\n")


def folders():
    return sorted(f for f in HERE.iterdir() if re.match(r"\d\d_", f.name) and f.is_dir())


def in_order():
    """The labs, easiest first."""
    return sorted(map(Lab, folders()), key=lambda lab: (lab.about()["level"], lab.number))


class Lab:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.name = self.folder.name
        self.number = int(self.name[:2])
        self.solution = next(self.folder.glob("solution.c[cu]"))
        self.file = "lab" + self.solution.suffix  # what a student writes
        self.is_kernel = self.solution.suffix == ".cu"

    def title(self):
        line = (self.folder / "task.md").read_text().split("\n", 1)[0]
        return re.sub(r"^# *\d+\. *", "", line)

    def about(self):
        """{"level", "minutes", "chapter", "own", "steps"}"""
        rows = [line.split(" ", 1) for line in (self.folder / "about.txt").read_text().splitlines()]
        words = [word for word, _ in rows]
        if words[:4] != ["LEVEL", "MINUTES", "CHAPTER", "OWN"] or set(words[4:]) != {"STEP"}:
            raise SystemExit("%s/about.txt: not well formed" % self.name)
        level, minutes, chapter, own = (text for _, text in rows[:4])
        return {"level": int(level), "minutes": int(minutes), "chapter": chapter, "own": own, "steps": [text for _, text in rows[4:]]}

    def with_holes(self):
        def emptied(m):
            indent, number, words, instead, _ = m.groups()
            instead = re.sub(r"^ *//\| ?", indent, instead, flags=re.M)
            return "%s// HOLE %s: %s\n%s%s// END %s\n" % (indent, number, words, instead.replace(indent + "\n", "\n"), indent, number)

        text, count = HOLE.subn(emptied, self.solution.read_text())
        if count == 0 or "//|" in text:
            raise SystemExit("%s: its holes are not well formed" % self.solution)
        return text

    def wrongs(self):
        """(number, title, [what the grader has to say], text) of each planted mistake."""
        given, found = (self.folder / "wrong.txt").read_text(), []
        solution = re.sub(r"//\|.*", "//", self.solution.read_text())
        for number, title, says, changes in WRONG.findall(given):
            text = solution
            for old, new in CHANGE.findall(changes):
                # However clang-format cuts its lines.
                pattern = re.compile(r"\s+".join(map(re.escape, old.split())))
                if len(pattern.findall(text)) != 1:
                    raise SystemExit("%s/wrong.txt: WRONG %s: the solution has this %d times:\n%s" % (self.name, number, len(pattern.findall(text)), old))
                text = pattern.sub(lambda _: new.strip(), text)
            found.append((int(number), title, re.findall(r"SAYS (.*)\n", says), text))
        if [number for number, *_ in found] != list(range(1, given.count("WRONG ") + 1)):
            raise SystemExit("%s/wrong.txt: not well formed" % self.name)
        return found

    def answers(self):
        """A source with all of them: answer 0 is the solution, then come the wrong ones, and last the file with its holes."""
        path = os.path.relpath(self.folder, HERE.parent.parent)
        all_of_them = [("solution", self.solution.read_text())] + [("wrong_%d" % n, text) for n, _, _, text in self.wrongs()]
        all_of_them.append(("with_holes", self.with_holes()))
        parts = ["// Made by tools/labs/sources.py.\n", '#include "%s/lab.h"\n' % path]
        for space, text in all_of_them:
            # A mistake has the solution's name and about its lines in what the checker says.
            parts.append('#line 1 "%s/%s"\n' % (path, self.solution.name))
            parts.append(re.sub(r"\bnamespace lab\b", "namespace " + space, text))
        parts.append("namespace ramet::labs {\nvoid answer_%02d(int which, Report& report) {\n" % self.number)
        for i, (space, _) in enumerate(all_of_them):
            parts.append("  if (which == %d) grade(LAB_ANSWER(::%s), report);\n" % (i, space))
        parts.append("}\n}  // namespace ramet::labs\n")
        return "".join(parts)


def holes(text):
    """{number: (words, lines, first line, last line)} of a file that a student has."""
    found = {}
    for m in HOLE.finditer(text):
        first = text.count("\n", 0, m.start()) + 1
        words = re.sub(r"\s*\n\s*//\s*", " ", m.group(3))
        found[int(m.group(2))] = (words, m.group(4) + m.group(5), first, first + m.group(0).count("\n") - 1)
    return found


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: sources.py LAB_FOLDER")
    sys.stdout.write(Lab(pathlib.Path(sys.argv[1]).absolute()).answers())
