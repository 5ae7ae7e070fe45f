"""The public declarations of Ramet with their comments, read from the headers as the compiler sees them.

`g++ -E -C` keeps comments and spells out what macros and lists of operations (.inc) declare, so a comment above a row stands
before everything that the row makes.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).absolute().parent.parent.parent  # not where a link of a sandbox leads
sys.path[:0] = [str(ROOT / "tools")]

import check_layers  # noqa: E402
from reader import C_HEADERS, Entry, Reader, of_text, split  # noqa: E402,F401

MARKER = re.compile(r'^# (\d+) "([^"]*)"((?: \d)*)')


def headers():
    """What programs include: the umbrella, and the headers of separate libraries."""
    apart = [str(p.relative_to(ROOT)) for a in sorted(check_layers.APART) for p in sorted((ROOT / a).rglob("*.h"))]
    return ["ramet.h"] + [h for h in apart if not check_layers.is_internal(h)]


def spelled_out(names, compiler):
    """[(file, line number, header, text)] of the lines of our files that these headers have, comments included."""
    others = sorted({o for n in names for o in check_layers.OPTIONAL.get(n, ())})
    with tempfile.TemporaryDirectory() as stand_ins:  # of what other libraries' headers declare nothing is ours
        for other in others:
            path = pathlib.Path(stand_ins) / other
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
        command = [compiler, "-std=c++17", "-x", "c++", "-E", "-C", "-I.", "-I" + stand_ins, "-"]
        text = "".join('#include "%s"\n' % name for name in names)
        run = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit("docs: %s\n%s" % (" ".join(command), run.stderr))
    lines, file, number, stack = [], "", 0, []
    for line in run.stdout.split("\n"):
        marker = MARKER.match(line) if line.startswith("# ") else None
        if marker:
            number, file = int(marker.group(1)), marker.group(2)
            ours = not file.startswith(("/", "<"))
            file = os.path.normpath(file) if ours else ""
            if "1" in marker.group(3):
                stack.append(file)
            elif "2" in marker.group(3) and stack:
                stack.pop()
            header = next((f for f in reversed(stack) if f.endswith(".h")), file)
            continue
        if file and not line.startswith("#"):
            lines.append((file, number, header, line))
        number += 1
    return lines


def macros(names):
    """Macros that these headers leave defined."""
    found = []
    for header in names:
        text = (ROOT / header).read_text()
        gone = set(re.findall(r"^\s*#\s*undef\s+(\w+)", text, flags=re.M))
        comment, block = [], ""
        lines = text.split("\n")
        for number, line in enumerate(lines, 1):
            match = re.match(r"\s*#\s*define\s+(\w+)(\([^)]*\))?", line)
            if match and match.group(1) not in gone and match.group(1).startswith("RAMET_"):
                entry = Entry("macro", "", match.group(1), match.group(1) + (match.group(2) or ""), (header, number), header)
                entry.comment = "\n".join(comment) or block
                block = entry.comment if entry.comment.endswith(":") else ""
                entry.public, entry.owner, entry.section, entry.key = True, None, "", ""
                found.append(entry)
            if line.startswith("///"):
                comment.append(line[3:].strip())
            elif header.startswith(C_HEADERS) and re.match(r"/\*.*\*/$", line):
                comment = [line[2:-2].strip()]
            else:
                comment = []
            block = block if line.strip() else ""
    return found


def read(names=None, compiler=os.environ.get("CXX", "g++")):
    """All entries of these headers, members of classes included, in order of appearance."""
    names = headers() if names is None else names
    return Reader(spelled_out(names, compiler)).entries


if __name__ == "__main__":
    for e in read():
        if e.public:
            print(e.file, e.line, e.kind, e.full, "|", e.text[:100], "|", e.comment[:40].replace("\n", " "))
