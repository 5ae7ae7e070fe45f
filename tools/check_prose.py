#!/usr/bin/env python3
"""Checks the English of comments and documents.

    tools/check_prose.py             fails where a file has more places than tools/prose_limits.txt allows
    tools/check_prose.py FILE...     lists the places of these files
    tools/check_prose.py --lower     writes the present counts as limits, where they are lower

A place is a word that is never right for code (WORDS), or a sentence of more than 25 words. Tables, code blocks and what stands
in `backquotes` or quotation marks are exempt. A file without a line in tools/prose_limits.txt may have none.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).absolute().parent.parent
LIMITS = ROOT / "tools/prose_limits.txt"
LONGEST = 25
WORDS = {
    r"(somebody|nobody|whoever|whomever)": "name the function, thread or user",
    r"the door": "the LibTorch compatibility headers",
    r"twins?": "reference, counterpart",
    r"behind": "after",
}
KINDS = (".md", ".h", ".cc", ".cu", ".inc", ".cpp", ".py", ".sh", ".bzl")
# Other people's words, and this list.
EXEMPT = re.compile(r"tools/compat/include/.*|tools/compat/COVERAGE\.md|tools/check_prose\.py|.*/goldens/.*")


def files():
    if (ROOT / ".git").exists():
        out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout.splitlines()
    else:  # a source archive
        out = sorted(os.path.relpath(os.path.join(folder, name), ROOT) for folder, _, names in os.walk(ROOT) for name in names)
        out = [f for f in out if not f.startswith("runs/")]
    return [f for f in out if f.endswith(KINDS) and not EXEMPT.fullmatch(f) and (ROOT / f).is_file()]


def paragraphs(path, text):
    """[(line number, text)] of a file's prose: one for each paragraph, list item or comment."""
    found, current, start, fence = [], [], 0, False
    comment = re.compile(r"^(.*?\s|)//+[/!]? ?(.*)" if path.endswith((".h", ".cc", ".cu", ".inc", ".cpp")) else r"^(\s*)# ?(.*)")

    def flush():
        if current:
            found.append((start, " ".join(current)))
            current.clear()

    for number, line in enumerate(text.split("\n"), 1):
        if path.endswith(".md"):
            if line.lstrip().startswith("```"):
                fence = not fence
                line = ""
            words = "" if fence or line.lstrip().startswith("|") else line
        else:
            code, words = match.groups() if (match := comment.match(line)) else ("", "")
            if code.strip():  # a comment at the end of a line of code is one of its own
                flush()
            if words.startswith("  "):  # an example
                words = ""
        words = re.sub(r"`[^`]*`|\"[^\"]*\"|https?://\S+|\[([^\]]*)\]\([^)]*\)", "x", words).strip()
        if not words or re.match(r"([-*#|]|\d+\.) ?|Note \[", words):
            flush()
        if words:
            start = start if current else number
            current.append(words)
        if re.fullmatch(r"Note \[[^\]]*\]", words):
            flush()
    flush()
    return found


def places(path):
    """[(line number, what is wrong)]"""
    found = []
    for number, text in paragraphs(path, (ROOT / path).read_text(errors="replace")):
        for pattern, better in WORDS.items():
            found += [(number, "'%s': %s" % (m.group(0), better)) for m in re.finditer(r"\b(?:%s)\b" % pattern, text, re.I)]
        for sentence in re.split(r"(?<=[.!?])\s+", text):
            words = re.findall(r"[A-Za-z][\w'-]*", sentence)
            if len(words) > LONGEST:
                found.append((number, "%d words: %s ..." % (len(words), " ".join(words[:8]))))
    return found


def limits():
    rows = (line.rsplit(" ", 1) for line in LIMITS.read_text().splitlines() if line and not line.startswith("#"))
    return {path: int(count) for path, count in rows}


def main():
    arguments = sys.argv[1:]
    if "-h" in arguments or "--help" in arguments:
        print(__doc__)
        return 0
    if arguments and arguments != ["--lower"]:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        for path in arguments:
            for number, what in places(path):
                print("%s:%d: %s" % (path, number, what))
        return 0
    now = {path: len(places(path)) for path in files()}
    allowed = limits() if LIMITS.exists() else now
    if arguments:
        rows = ["%s %d" % (path, min(n, allowed.get(path, 0))) for path, n in sorted(now.items()) if min(n, allowed.get(path, 0))]
        LIMITS.write_text("# Places that tools/check_prose.py allows in a file. A count may only fall (--lower).\n" + "\n".join(rows) + "\n")
    worse = {path: n for path, n in now.items() if n > allowed.get(path, 0)}
    for path, n in sorted(worse.items()):
        print("%s: %d places, %d allowed: tools/check_prose.py %s lists them" % (path, n, allowed.get(path, 0), path))
    print("prose: %d places in %d files, %d files with more than before" %
          (sum(now.values()), sum(map(bool, now.values())), len(worse)))
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
