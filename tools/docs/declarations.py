"""The public declarations of Ramet with their comments, read from the headers as the compiler sees them.

`g++ -E -C` keeps comments and spells out what macros and lists of operations (.inc) declare, so a comment above a row stands
before everything that the row makes.
"""

import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).absolute().parent.parent.parent  # not where a link of a sandbox leads
sys.path[:0] = [str(ROOT / "tools")]

import check_layers  # noqa: E402
from reader import C_HEADERS, Reader, cxx, of_text  # noqa: E402,F401

TOOLS = ("tools/see/see.h", "tools/ledger/ledger.h")  # components of an installation, too


def headers():
    """What programs include: the umbrella, and the headers of separate libraries."""
    apart = [str(p.relative_to(ROOT)) for a in sorted(check_layers.APART) for p in sorted((ROOT / a).rglob("*.h"))]
    return ["ramet.h", *TOOLS] + [h for h in apart if not check_layers.is_internal(h)]


def spelled_out(names):
    """The lines of our files that these headers have, comments included."""
    others = sorted({o for n in names for o in check_layers.OPTIONAL.get(n, ())})
    with tempfile.TemporaryDirectory() as stand_ins:  # of what other libraries' headers declare nothing is ours
        for other in others:
            path = pathlib.Path(stand_ins) / other
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
        return cxx.preprocessed(names, ROOT, options=["-C", "-I" + stand_ins])


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
                entry = cxx.Entry("macro", "", match.group(1), match.group(1) + (match.group(2) or ""), (header, number), header)
                entry.comment = "\n".join(comment) or block
                block = entry.comment if entry.comment.endswith(":") else ""
                found.append(entry)
            if line.startswith("///"):
                comment.append(line[3:].strip())
            elif header.startswith(C_HEADERS) and re.match(r"/\*.*\*/$", line):
                comment = [line[2:-2].strip()]
            else:
                comment = []
            block = block if line.strip() else ""
    return found


def read():
    """All entries of the headers, members of classes included, in order of appearance."""
    return Reader(spelled_out(headers())).entries


if __name__ == "__main__":
    for e in read():
        if e.public:
            print(e.file, e.line, e.kind, e.full, "|", e.text[:100], "|", e.comment[:40].replace("\n", " "))
