#!/usr/bin/env python3
"""Five real steps (tools/docs/explorer/gallery.cc), recorded, shown by a real browser, and asked what a newcomer asks.

    explorer_gallery_test.py EXPLORE MAKE_RECORDING GALLERY [PICTURES]

Skipped, with the reason, where chromium, its driver or python3-selenium is missing. PICTURES: a folder for the screenshots of
README.md and the tutorial, instead of tests.
"""

import gzip
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
from explorer_pages import WORK, check, formatted, quiet, run  # noqa: E402

NAMES = ("cnn", "gpus", "ranks", "penalty", "gpt")
GALLERY = WORK / "gallery"


def data_of(name):
    return json.loads(gzip.open(GALLERY / (name + ".ramet.gz"), "rb").read())


def page_of(name):
    return GALLERY / (name + ".html")


def ask(p, question, *words):
    p.js("explorer.choose(null)")
    p.press("tab-details")
    p.frame()
    p.press("sum-" + question)
    p.frame()
    return p.text("#sums")


def test_gallery():
    ran = subprocess.run([sys.argv[3], str(GALLERY)], capture_output=True, text=True)
    check(ran.returncode == 0, ran.stdout + ran.stderr)
    check(all(page_of(name).exists() for name in NAMES), ran.stdout)


def test_pages(p):
    """At three sizes, dark and light: nothing is said in the console, everything has a place of its own, gradients stand at the end."""
    for name in NAMES:
        data = data_of(name)
        for width, height, dark in ((1366, 768, False), (1920, 1080, True), (390, 844, False)):
            p.open(page_of(name), width, height, dark)
            check(p.js("return document.documentElement.scrollWidth <= innerWidth && document.body.scrollHeight <= innerHeight"), (name, width))
            for share in (0.25, 0.5, 1):
                p.js("explorer.goTo(Math.round(explorer.events.length * arguments[0]))", share)
                check(p.drawn()["nodes"] + p.drawn()["groups"] > 5, (name, width, share))
            p.js("explorer.toLevel(9)")
            seen = p.js("return explorer.placement.items.reduce((n, i) => n + i.nodes.length, 0)")
            check(seen == len(data["nodes"]), (name, seen))
            check(p.js("const a = explorer.placement.items; return a.every((i) => a.every((j) => i === j || i.x + i.w <= j.x || j.x + j.w <= i.x ||"
                       " i.y + i.h <= j.y || j.y + j.h <= i.y))"), "boxes lie upon each other: " + name)
            for tab in ("parameters", "findings", "memory", "events", "details"):
                p.press("tab-" + tab)
                p.frame()
                check(len(p.text("#panel")) > 60 and "undefined" not in p.text("#panel") and "[object" not in p.text("#panel"), (name, tab, p.text("#panel")))
        p.press("tab-parameters")
        rows = dict(p.js("return [...document.querySelectorAll('[data-parameter]')].map((r) => [Number(r.dataset.parameter), r.querySelector('[data-gradient]').textContent])"))
        for i, row in enumerate(data["parameters"]):
            if row["gradient"] >= 0:
                s = data["statistics"][data["tensors"][row["gradient"]]["statistics"]]
                check(rows[i] == formatted(s["deviation"]), (name, row["name"], rows[i], s["deviation"]))
        quiet(p)


def test_what_newcomers_ask(p):
    cnn = data_of("cnn")
    p.open(page_of("cnn"))
    # Which operation keeps the most memory, and what was the peak made of?
    most = max(sum(s["bytes"] for s in o["saved"]) for o in cnn["operations"])
    kept = ask(p, "kept")
    names = {o["name"] for o in cnn["operations"] if sum(s["bytes"] for s in o["saved"]) == most}
    check(p.text("#sums .link") in names, (kept, names))
    p.press("tab-memory")
    check("parameters in one block" in p.text("#panel") and "saved by" in p.text("#panel"), p.text("#panel"))
    # Why has this parameter no gradient?
    for name, word in (("stem.weight", "detach()"), ("features.norm1.bias", "frozen"), ("auxiliary.bias", "never used it")):
        p.js("explorer.showParameter(explorer.model.parameters.findIndex((q) => q.name === arguments[0]))", name)
        p.frame()
        check("It has none." in p.text("#panel") and word in p.text("#panel"), p.text("#panel"))
    # When does bucket 2 leave, and is backward still running then?
    p.js("document.getElementById('search').value = ''")
    p.keys("/", *"bucket 2", "\ue007")
    p.frame()
    check("goes on beside it" in p.text("#panel") or "had nothing left to do" in p.text("#panel"), p.text("#panel"))
    # Which line made this node? One of the program's.
    node = next(i for i, n in enumerate(cnn["nodes"]) if n["name"].startswith("Convolution"))
    p.js("explorer.showNode(arguments[0])", node)
    p.frame()
    lines = pathlib.Path(__file__).resolve().parents[3].joinpath("tools/docs/explorer/gallery.cc")
    check("gallery.cc:" in p.text("#panel"), p.text("#panel"))
    if lines.exists():
        number = int(p.text("#panel").split("gallery.cc:")[1].split(" ")[0])
        check("stem(x)" in lines.read_text().split("\n")[number - 1], number)
    # Where are the ranks' gradients combined?
    ranks = data_of("ranks")
    p.open(page_of("ranks"))
    for b, partners in enumerate(p.js("return explorer.model.partners")):
        check(len(partners) == (ranks["buckets"][b]["kind"] == "all_reduce"), (b, partners))
        for other in partners:
            check(ranks["devices"][ranks["buckets"][b]["device"]]["rank"] != ranks["devices"][ranks["buckets"][other]["device"]]["rank"], (b, other))
    # Which nodes belong to the second graph?
    penalty = data_of("penalty")
    p.open(page_of("penalty"))
    second = [n["name"] for n in penalty["nodes"] if n["in_backward"]]
    check(sorted(second) == ["MmBackward0"] * 3 + ["TanhBackwardBackward0"] * 2, second)
    check("5 nodes that a backward recorded" in p.text("#panel"), p.text("#panel"))
    # Which layer takes most time? Blocks 0 to 3 in some order, inside of blocks.
    p.open(page_of("gpt"))
    ask(p, "modules")
    names = p.js("return [...document.querySelectorAll('#sums .link')].map((b) => b.textContent)")
    check(names[0] == "blocks" and set(names[1:5]) == {"blocks.%d" % i for i in range(4)}, names)
    check(ask(p, "operations"), "operations")
    # Four GPUs, and that they are emulated.
    p.open(page_of("gpus"))
    check(p.js("return explorer.model.devices.filter((d) => d.kind === 'emulated gpu').length") == 4, "four")
    check("times say nothing about a card" in p.text("#panel"), p.text("#panel"))
    quiet(p)


def pictures(p, folder):
    test_gallery()
    folder.mkdir(parents=True, exist_ok=True)
    go = "explorer.goTo(Math.round(explorer.events.length * %s));"
    for name, of, size, dark, js in (
            ("cnn", page_of("cnn"), (1366, 768), False, go % 0.72 + "explorer.showNode(explorer.model.nodes.findIndex((n) => n.name === 'ReduceAdd(features.conv2.weight)'));"),
            ("gpus_dark", page_of("gpus"), (1366, 768), True, go % 0.75)):
        p.open(of, *size, dark)
        p.js(js)
        p.frame()
        time.sleep(0.4)
        p.driver.save_screenshot(str(folder / (name + ".png")))


if __name__ == "__main__":
    run(globals(), (lambda p: pictures(p, pathlib.Path(sys.argv[4]))) if len(sys.argv) > 4 else None)
