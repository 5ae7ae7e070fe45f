#!/usr/bin/env python3
"""./tools/make_docs makes its pages without a warning, and every link in them leads somewhere. The search box's list has the names that
the test draws, at a place that is there.

usage: reference_site_test.py   (in the repository's root, or a copy with its headers and examples; skipped where there is no doxygen)
"""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).absolute().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools/docs")]

import check_site  # noqa: E402
import contracts  # noqa: E402

DRAWN = 300
problems = []


def check_names(site):
    listed = json.loads(re.sub(r"^window.ramet_names=|;\n$", "", (site / "names.js").read_text()))
    urls = {name: url for name, _, url in listed}
    book = contracts.load()
    full_names = sorted(re.sub(r"^ramet::", "", full) for full in book.names())
    seed = int(os.environ.get("RAMET_SEED", random.SystemRandom().randrange(1 << 30)))
    print("RAMET_SEED=%d" % seed)
    wanted = random.Random(seed).sample(full_names, DRAWN) + ["nn::Conv2d", "index_select", "Tensor::index_select", "optim::Adam"]
    missing = [name for name in full_names if name not in urls]
    problems.extend("%s is not in the search box's list" % name for name in missing[:20])
    for name in wanted:
        page, _, place = urls.get(name, "").partition("#")
        file = site / page
        if page and not file.is_file():
            problems.append("%s: %s is not there" % (name, page))
        elif page and place and 'id="%s"' % place not in file.read_text():
            problems.append("%s: %s has no place %s" % (name, page, place))
        elif page and name.rpartition("::")[2] not in file.read_text():
            problems.append("%s: %s does not name it" % (name, page))
    print("%d names in the list, %d wanted, %d missing" % (len(listed), len(full_names), len(missing)))


def check_links(site):
    """What is wrong is noticed."""
    problems.extend(check_site.problems(site))
    (site / "wrong.html").write_text('<a href="nowhere.html">x</a><a href="index.html#nothing">y</a><img src="https://example.org/a.png"/><iframe src="gone.html"></iframe>')
    wrong = [p for p in check_site.problems(site) if p.startswith("wrong.html")]
    if len(wrong) != 4:
        problems.append("a page with four mistakes: got %s" % wrong)


if not shutil.which("doxygen"):
    print("skipped: no doxygen here (./tools/setup.sh docs installs it)")
    sys.exit(0)
with tempfile.TemporaryDirectory() as folder:
    site = pathlib.Path(folder) / "site"
    run = subprocess.run([sys.executable, ROOT / "tools/docs/site.py", site], capture_output=True, text=True)
    print(run.stdout + run.stderr)
    if run.returncode != 0:
        sys.exit(1)
    check_names(site)
    check_links(site)
print("\n".join(problems) if problems else "OK")
sys.exit(1 if problems else 0)
