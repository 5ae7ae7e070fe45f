#!/usr/bin/env python3
"""The tutorial's programs print what its pages show. A page that shows something else, names a file that is not there, or quotes
what no file says is found. The pages become HTML that needs no network, where Debian's packages for that are.

usage: tutorial_test.py PROGRAM...   (in the repository's root, or a copy with the files that pages name)
"""

import html
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).absolute().parent.parent.parent.parent
TUTORIAL = ROOT / "tools/docs/tutorial"
sys.path[:0] = [str(ROOT / "tools/docs")]

import check_site  # noqa: E402

PROGRAMS = {re.search(r"chapter_(\d\d)$", p).group(1): p for p in sys.argv[1:]}
problems = []


def literate(*arguments):
    done = subprocess.run([sys.executable, TUTORIAL / "literate.py", *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def wants(what, got, *texts, fails=True):
    code, said = got
    if bool(code) != fails or any(text not in said for text in texts):
        problems.append("%s: exit code %d with:\n%s" % (what, code, said[-3000:]))


pages = sorted(TUTORIAL.glob("[0-9][0-9]_*.md"))
if [p.name[:2] for p in pages] != sorted(PROGRAMS) or len(pages) != 13:
    problems.append("pages %s, programs %s" % ([p.name for p in pages], sorted(PROGRAMS)))
for page in pages:
    if page.name[:2] in PROGRAMS:
        wants(page.name, literate("check", page, PROGRAMS[page.name[:2]], "--root", ROOT), "print what the page shows", fails=False)

# Pages that are wrong, with a program that prints "a 1.00", "b" and what the solutions print, which is nothing.
FINE = """# Page
See `autograd/graph/node.h`, Note [The graph].

```cpp main
one();
```

```output
a 1.00
```

```cpp main
two();
```

```output
b
```

```cpp quote=autograd/graph/node.h
inline void release(Node* n) { AutogradSlot::release(n); }
```
""" + "".join("\n```cpp solution=%d main\nthree();\n```\n" % n for n in (1, 2, 3))
with tempfile.TemporaryDirectory() as folder:
    page, program = pathlib.Path(folder) / "01_page.md", pathlib.Path(folder) / "program"
    program.write_text("#!/bin/sh\nprintf '\\n\\0360\\na 1.00\\n\\n\\0361\\nb\\n\\n\\0362\\n\\n\\0363\\n\\n\\0364\\n'\n")
    program.chmod(0o755)

    def wrong(what, old, new, *texts, fails=True):
        assert old in FINE, what
        page.write_text(FINE.replace(old, new))
        wants(what, literate("check", page, program, "--root", ROOT), *texts, fails=fails)

    wrong("a page that is right", "b\n```", "b\n```", "5 blocks", fails=False)
    wrong("another output", "\nb\n```", "\nc\n```", "01_page.md:17", "the page shows\nc", "printed\nb")
    wrong("an output that is missing", "```output\nb\n```", "", "the page shows\n\n", "printed\nb")
    wrong("another number", "a 1.00", "a 1.01", "the page shows\na 1.01")
    wrong("a number that is near", "```output\na 1.00", "```output numbers=near\na 1.01", "5 blocks", fails=False)
    wrong("a number that is not near", "```output\na 1.00", "```output numbers=near\na 1.03", "the page shows\na 1.03")
    wrong("a time", "```output\na 1.00", "```output numbers=vary\na 17", "5 blocks", fails=False)
    wrong("another word beside a time", "```output\na 1.00", "```output numbers=vary\nz 17", "the page shows\nz 17")
    wrong("a file that is not there", "`autograd/graph/node.h`", "`autograd/graph/nodes.h`", "01_page.md:2: there is no file autograd/graph/nodes.h")
    wrong("a Note that is not there", "Note [The graph]", "Note [The grape]", "Note [The grape] stands in no file")
    wrong("a quotation that is none", "inline void release(Node* n)", "inline int release(Node* n)", "has no such lines")
    wrong("two solutions", "solution=3", "solution=2", "three exercises", "[1, 2]")
    wrong("a block of no kind", "```output\nb", "```outptu\nb", "01_page.md:16: what kind of block")
    wrong("a block without end", "```cpp solution=3 main\nthree();\n```\n", "```cpp solution=3 main\n", "does not end")
    wrong("a recording that nobody began", "```output\nb\n```", "```output\nb\n```\n```recording x\nTitle\n```", "recordings begun: [], shown: ['x']")
    page.write_text(FINE + "\n```cpp main\nfour();\n```\n")
    wants("a program of another page", literate("check", page, program), "6 blocks, and output of 5")
    program.write_text("#!/bin/sh\necho last words\nexit 3\n")
    wants("a program that fails", literate("check", page, program), "ended with 3", "last words")

    # As a site, with pages that stand in for those of recordings.
    site, out, recordings = (pathlib.Path(folder) / name for name in ("site", "site/tutorial", "recordings"))
    recordings.mkdir()
    shown = sorted("%s_%s.html" % (p.name[:2], name) for p in pages for name in re.findall(r"^```recording (\w+)$", p.read_text(), flags=re.M))
    for name in shown + ["99_of_no_chapter.html"]:
        (recordings / name).write_text('<!DOCTYPE html><title>%s</title><link rel="icon" href="data:,">' % name)
    build = [sys.executable, TUTORIAL / "build.py", out]
    made = subprocess.run(build + ["--recordings", recordings], capture_output=True, text=True)
    if made.returncode and re.search(r"(are|is) missing|No such file or directory: 'node'|KaTeX: ", made.stderr):
        print("pages were not made: %s" % made.stderr.strip().splitlines()[-1])
    elif made.returncode:
        problems.append("build.py: " + made.stderr)
    else:
        problems += check_site.problems(site)
        if sorted(p.name for p in (out / "recordings").iterdir()) != shown or len(shown) < 4:
            problems.append("recordings: %s, expected %s" % (list((out / "recordings").iterdir()), shown))
        texts = {p.name: p.read_text() for p in out.glob("*.html")}
        for name in shown:
            chapter = next(text for page, text in texts.items() if page.startswith(name[:3]))
            if 'iframe src="recordings/%s"' % name not in chapter or 'href="recordings/%s"' % name not in texts["index.html"]:
                problems.append("%s is not shown" % name)
        if sorted(texts) != sorted([p.stem + ".html" for p in pages] + ["index.html"]):
            problems.append("pages: %s" % sorted(texts))
        for name, text in texts.items():
            for link in re.findall(r'(?:href|src)="([^"]*)"', text):
                path, _, place = link.partition("#")
                if re.match(r"\w+:|//", link) or not (out / (path or name)).is_file():
                    problems.append("%s: %s is not in the folder" % (name, link))
                elif place and 'id="%s"' % place not in texts[path or name]:
                    problems.append("%s: %s has no such place" % (name, link))
            if re.search(r"BLOCK\d+END|FORMULA\d+END|```", text):
                problems.append("%s: something was not put back" % name)
        plain = html.unescape(re.sub(r"<[^>]*>", "", texts["03_the_walk.html"]))
        for part in ("20 additions: gradient 1048576, apply called 2097151 times", "static void pass_on(Node& node, double grad) {"):
            if part not in plain:
                problems.append("03_the_walk.html: without %s" % part)
        # One is missing; none is asked for, over pages that had some.
        (recordings / shown[0]).unlink()
        lacks = subprocess.run(build + ["--recordings", recordings], capture_output=True, text=True)
        if lacks.returncode == 0 or "there is no %s: recorded_" % (recordings / shown[0]) not in lacks.stderr:
            problems.append("a recording that is missing: %s" % lacks)
        subprocess.run(build, check=True, capture_output=True)
        if any("recordings/" in p.read_text() for p in out.glob("*.html")) or (out / "recordings").exists():
            problems.append("without recordings: there are some")
        problems += check_site.problems(site)

print("\n".join(problems) if problems else "the tutorial's programs print what its pages show")
sys.exit(1 if problems else 0)
