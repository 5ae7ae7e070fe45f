#!/usr/bin/env python3
"""What the explorer says next to its picture, in a real browser: details, sums, parameters, findings, memory, comparisons, other people's text.

    explorer_panel_test.py EXPLORE MAKE_RECORDING

Skipped, with the reason, where chromium, its driver or python3-selenium is missing; tests that need none of them run.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
from explorer_pages import EXPLORE, WORK, check, data_of, formatted, page, put, quiet, recording, run  # noqa: E402


def refused(path):
    out = WORK / "refused.html"
    ran = subprocess.run([EXPLORE, str(path), "-o", str(out)], capture_output=True, text=True)
    check(ran.returncode == 1 and not ran.stdout, "%s: exit code %d" % (path, ran.returncode))
    check(ran.stderr.count("\n") == 1, "one line, not: " + ran.stderr)
    check(not out.exists(), "a page of what is no recording")
    return ran.stderr


def test_broken_files():
    good, data = recording("cnn1").read_bytes(), data_of("cnn1")
    text = WORK / "text"
    text.write_text("hello")
    short = WORK / "short"
    short.write_bytes(good[:len(good) // 2])
    check("no recording" in refused(text), "text")
    check("cut short" in refused(short), "cut short")
    check("newer" in refused(put("newer", {**data, "ramet_recording": 99})), "newer")
    data["nodes"][0]["device"] = 7
    check("nodes[0].device" in refused(put("lost", data)), "an index that leads nowhere")
    refused(WORK / "absent")


def compared(a, b):
    ran = subprocess.run([EXPLORE, "--no-page", str(a), str(b)], capture_output=True, text=True, check=True)
    return [line for line in ran.stdout.split("\n") if line.startswith("compared: ")][0]


def test_comparison():
    cnn2 = recording("cnn2")
    check("The same bits, in all" in compared(cnn2, cnn2), "with itself")
    check("first operation that differs is features.4: relu, replica 0" in compared(cnn2, recording("changed")), "the planted one")
    # One device against two: what is in two pieces there is compared as one.
    one, two = data_of("cnn1"), data_of("cnn2")
    for data, whole in ((one, True), (two, False)):
        for op in data["operations"]:
            s = data["statistics"][data["tensors"][op["outputs"][0]]["statistics"]]
            lower = whole or op["replica"] <= 0
            s.update(count=16 if whole or op["replica"] < 0 else 8, zeros=0, min=-2.0 if lower else -1.0, max=3.0 if lower else 1.5)
            if op["replica"] < 0:
                s.update(count=16, mean=0.5, deviation=1.0, digest=5)
        for p in data["parameters"]:
            if p["gradient"] >= 0:
                data["statistics"][data["tensors"][p["gradient"]]["statistics"]].update(digest=9)
    a, b = put("one", one), put("two", two)
    said = compared(a, b)
    check("only in the second" in said and "gather" in said, "the gather is only in the second: " + said)
    for op in two["operations"]:
        if op["name"] == "gather":
            op["name"] = "cross_entropy"  # of the same module: the first call of that name
    s = two["statistics"][two["tensors"][two["operations"][11]["outputs"][0]]["statistics"]]
    s["max"] = 3.5
    said = compared(a, put("two", two))
    check("features.1: relu" in said and "maximum 3 and 3.5" in said, "a piece that differs: " + said)


def test_choosing(p):
    from selenium.webdriver.common.keys import Keys
    data = data_of("cnn2")
    p.open(page("cnn2"))
    relu = next(i for i, n in enumerate(data["nodes"]) if n["name"] == "ReluBackward0")
    p.click_item(p.js("return explorer.placement.itemOf[arguments[0]]", relu))
    p.frame()
    panel = p.text("#panel")
    op = data["operations"][data["nodes"][relu]["operation"]]
    for word in ("relu", "ReluBackward0", "features.1", "model.cc:13", "8 × 16 × 28 × 28", "50 % zeros", "392 KiB", "kernels/pointwise/rows/unary.h",
                 "threshold_backward(g, y, 0)", "relu_forward"):
        check(word in panel, (word, panel))
    check(op["name"] == p.text("#panel h2"), "its name")
    p.keys(Keys.ARROW_UP)
    check(p.js("return explorer.chosenNode()") == data["nodes"][relu]["edges"][0]["to"], "up, along the gradient")
    p.keys(Keys.ARROW_DOWN)
    check(p.js("return explorer.chosenNode()") == relu, "down again")
    bucket = p.js("const b = explorer.placement.bucketBoxes[0], t = explorer.view.transform; return [(b.x + b.w / 2) * t.k + t.x, (b.y + b.h / 2) * t.k + t.y]")
    p.click_at("graph", *bucket)
    p.frame()
    check("Bucket 0" in p.text("#panel") and "ReduceAdd(features.0.weight)" in p.text("#panel"), p.text("#panel"))
    p.keys(Keys.ESCAPE)
    p.frame()
    check("Reading the picture" in p.text("#panel"), "nothing is chosen")
    # Search: by parameter, by line.
    p.keys("/", *"classifier.2.weight", Keys.ENTER)
    check(p.js("return explorer.model.nodeTitle(explorer.chosenNode())") == "classifier.2.weight", "the parameter")
    p.frame()
    check("Who contributed" in p.text("#panel") and "ReduceAdd" in p.text("#panel"), p.text("#panel"))
    p.js("document.getElementById('search').value = ''")
    p.keys("/", *"model.cc:30", Keys.ENTER)
    check(p.js("return explorer.model.nodes[explorer.chosenNode()].name") == "GatherBackward", "the line")
    p.js("document.getElementById('search').value = ''")
    p.keys("/", *"no such name")
    check("Nothing" in p.text("#found"), "nothing found")
    p.keys(Keys.ESCAPE)


def test_tabs_and_timeline(p):
    data = data_of("cnn2")
    p.open(page("cnn2"))
    p.press("tab-findings")
    check(all(f["text"] in p.text("#panel") for f in data["findings"]), p.text("#panel"))
    p.js("document.querySelectorAll('#panel .link')[1].click()")
    check(p.js("return explorer.chosenNode()") == data["findings"][1]["node"], "a finding leads to its node")
    p.press("tab-memory")
    check(data["memory"][0]["at_peak"][0]["owner"] in p.text("#panel"), p.text("#panel"))
    p.press("tab-events")
    check("have happened" in p.text("#panel"), p.text("#panel"))
    p.press("tab-details")
    t = "explorer.timeline"
    p.frame()
    check(p.js("return %s.drawn.spans" % t) > 60, p.js("return %s.drawn" % t))
    node = next(i for i, n in enumerate(data["nodes"]) if n["name"].startswith("Convolution"))
    x, y = p.js("const t = explorer.timeline, r = t.rows[0], s = r.row.find((q) => q.node === %d && q.kind === 'backward');"
                "return [t.x((s.start + s.end) / 2), r.y + r.h / 2]" % node)
    p.click_at("timeline", x, y)
    check(p.js("return explorer.chosenNode()") == node, "a span leads to its node")
    begin = next(e["time"] for e in data["events"] if e["kind"] == "begin" and e["node"] == node)
    check(p.js("return explorer.events.timeAt(explorer.position)") == begin, "and to its time")
    x, y = p.js("const t = explorer.timeline; return [t.x(t.model.memory[0].peak_time), t.memoryTop + 20]")
    p.click_at("timeline", x, y)
    p.frame()
    check("Memory at its peak" in p.text("#panel"), "the peak is explained")
    # Memory goes up and down in steps, also where several fall on one pixel.
    lines = p.js("""const t = explorer.timeline, row = t.model.memory[0], c = t.context, found = [];
        for (let i = 0; i < 40; ++i) row.curve.push([t.duration * 0.9 + i, row.peak * (40 - i) / 80]);
        let at = null, drawn = false;
        const watch = {moveTo: (x, y) => { at = [x, y]; }, lineTo: (x, y) => { if (!drawn) found.push([at, [x, y]]); at = [x, y]; }, stroke: () => { drawn = true; }};
        t.drawMemory(new Proxy(c, {get: (o, k) => watch[k] || (typeof o[k] === 'function' ? o[k].bind(o) : o[k]), set: (o, k, v) => { o[k] = v; return true; }}), 0, 60);
        return found""")
    check(len(lines) > 20 and all(abs(a[0] - b[0]) < 0.6 or abs(a[1] - b[1]) < 0.01 for a, b in lines), lines)
    p.keys("t")
    check(p.js("return document.documentElement.dataset.theme") == "dark", "dark")
    p.press("theme")
    check(p.js("return document.documentElement.dataset.theme") == "light", "light")
    p.press("help")
    check(p.js("return document.getElementById('keys').open"), "keys")
    quiet(p)


def test_hostile(p):
    data = data_of("hostile")
    p.open(page("hostile"))
    for tab in ("details", "parameters", "findings", "memory", "events"):
        p.press("tab-" + tab)
        p.frame()
    for n in range(len(data["nodes"])):
        p.js("explorer.openTab('details'); explorer.showNode(arguments[0])", n)
        p.js("explorer.details.show(explorer.panel)")
    p.js("explorer.say(explorer.model.title); explorer.tip(explorer.model.title, {clientX: 1, clientY: 1}); explorer.toLevel(-1)")
    p.keys("/", *"img src")
    p.frame()
    check(p.js("return window.hacked === undefined"), "it ran")
    check(p.js("return document.querySelectorAll('img, b img, script[src], iframe').length") == 0, "markup")
    check(p.js("return document.querySelectorAll('#panel b, #found b, h1 b').length") == 0, "markup")
    check(p.text("#title") == data["title"] and "onerror" in data["title"], "its title is text")
    quiet(p)


def test_two_recordings(p):
    p.open(page("cnn2", "changed"))
    said = compared(recording("cnn2"), recording("changed"))
    check("compared: " + p.text("#verdict") == said, (said, p.text("#verdict")))
    check(p.js("return !document.getElementById('graph-b').hidden"), "both are there")
    p.js("document.querySelector('#panel .link').click()")
    marked = p.js("return explorer.sides.map((s) => [...s.view.marked].map((n) => s.model.nodes[n].name))")
    check(marked == [["ReluBackward0"], ["ReluBackward0"]], marked)
    p.js("explorer.goTo(explorer.events.length)")
    check(p.js("return explorer.sides.every((s) => s.position === s.events.length)"), "they walk together")
    quiet(p)


def test_sums(p):
    """Time by operation and by module, forward and backward, and what is kept, counted again here."""
    for kind in ("cnn2", "gpt100"):
        data = data_of(kind)
        ran = {}
        begins = {}
        for e in data["events"]:
            if e["kind"] == "begin":
                begins[e["node"]] = e["time"]
            elif e["kind"] == "end":
                ran[e["node"]] = ran.get(e["node"], 0) + e["time"] - begins[e["node"]]
        path = [m["path"] for m in data["modules"]]
        want = {}
        of_leaf = {row["node"]: row["name"].rpartition(".")[0] for row in data["parameters"] if row["node"] >= 0}
        for n, row in enumerate(data["nodes"]):
            op = data["operations"][row["operation"]] if row["operation"] >= 0 else None
            leaf = n if row["leaf"] else row["edges"][0]["to"] if row["reduces"] else None  # a sum counts where its parameter does
            own = path[op["module"]] if op and op["module"] >= 0 else of_leaf.get(leaf, "")
            for m in [q for q in path if q and (own == q or own.startswith(q + "."))]:
                sums = want.setdefault(m, [0, 0, 0])
                sums[0] += op["end"] - op["start"] if op else 0
                sums[1] += ran.get(n, 0)
                sums[2] += sum(s["bytes"] for s in op["saved"]) if op else 0
        p.open(page(kind))
        got = p.js("return explorer.sums.modules.map((r) => [explorer.model.modules[r.module].path, [r.forward, r.backward, r.kept]])")
        check(dict(map(lambda r: (r[0], r[1]), got)) == want, (kind, got, want))
        # Siblings by time, each below its parent.
        order = [name for name, _ in got]
        for i, name in enumerate(order):
            parent = name.rpartition(".")[0]
            check(not parent or parent in order[:i], order)
            before = [q for q in order[:i] if q.rpartition(".")[0] == parent]
            check(all(sum(want[q][:2]) >= sum(want[name][:2]) for q in before), (name, before))
        p.press("sum-modules")
        p.frame()
        check(p.js("return document.querySelector('#sums .link').textContent") == order[0], p.text("#sums"))
        p.press("sum-kept")
        p.frame()
        most = max(data["operations"], key=lambda o: sum(s["bytes"] for s in o["saved"]))
        check(p.text("#sums .link") == most["name"], p.text("#sums"))
        p.js("document.querySelector('#sums .link').click()")
        chosen = p.js("return explorer.chosenNode()")
        keeps = [sum(s["bytes"] for s in o["saved"]) for o in data["operations"]]
        check(keeps[data["nodes"][chosen]["operation"]] == max(keeps), chosen)
    # What ran for an operation before its node was made counts as its own.
    op = data["operations"][5]
    data["operations"].insert(5, {**op, "name": "kernel", "node": -1, "inputs": [], "outputs": [], "saved": [], "versions": []})
    took, op["start"] = op["end"] - op["start"], op["end"]
    for rows, key in ((data["nodes"], "operation"), (data["kernels"], "operation"), (data["movements"], "operation"), (data["findings"], "operation")):
        for row in rows:
            row[key] += row[key] >= 5 and not (row[key] == 5 and rows is data["kernels"])
    for m in data["memory"]:
        for b in m["at_peak"]:
            b["operation"] += b["operation"] >= 5
    p.open(page(put("before.rec", data)))
    check(p.js("return explorer.model.forwardTime(arguments[0])", op["node"]) == took, took)


def idle(data):
    """[(lane, start, end)] where a lane ran no operation and no node for more than 2 % of the time, until the last node of all ended."""
    lanes = [[] for _ in data["devices"]]
    begins = {}
    for o in data["operations"]:
        lanes[o["device"]].append((o["start"], o["end"]))
    for e in data["events"]:
        if e["kind"] == "begin":
            begins[e["node"]] = e["time"]
        elif e["kind"] == "end":
            lanes[data["nodes"][e["node"]]["device"]].append((begins[e["node"]], e["time"]))
    last = max(e["time"] for e in data["events"] if e["kind"] == "end")
    found = set()
    for lane, spans in enumerate(lanes):
        end = min(spans)[1]
        for start, stop in [*sorted(spans), (last, last)]:
            if start - end > data["duration"] * 0.02:
                found.add((lane, start, end))
            end = max(end, stop)
    return found


def test_waits(p):
    data = data_of("cnn2")
    # The second replica's convolution takes long in the backward: the first one waits, and the sum of their gradients waits for it.
    slow = [i for i, n in enumerate(data["nodes"]) if n["name"].startswith("Convolution") and n["device"] == 1][-1]
    at = next(i for i, e in enumerate(data["events"]) if e["kind"] in ("end", "delivered") and e["node"] == slow)
    more = data["duration"] // 3
    running = {e["node"] for e in data["events"][:at] if e["kind"] == "begin"} - {slow}
    for e in data["events"][at:]:
        if not (e["kind"] in ("end", "delivered") and e["node"] in running):
            e["time"] += more
    data["events"].sort(key=lambda e: e["time"])
    data["duration"] += more
    p.open(page(put("slow.rec", data)))
    gaps = p.js("return explorer.sums.waits.map((g) => [g.lane, g.end, g.start, g.why, g.next, g.from ?? -1])")
    check({tuple(g[:3]) for g in gaps} == idle(data), (gaps, idle(data)))
    check(any(g[0] == 0 and g[1] - g[2] > more * 0.8 for g in gaps), gaps)
    for lane, end, start, why, next_, from_ in gaps:
        if why == "gradient":  # of another lane, and the last that came
            check(data["nodes"][from_]["device"] != lane and any(e["to"] == next_ for e in data["nodes"][from_]["edges"]), (from_, next_))
    p.press("sum-waits")
    p.frame()
    check("cpu:0" in p.text("#sums"), p.text("#sums"))
    p.js("document.querySelector('#sums .link').click()")
    longest = gaps[0]
    check(p.js("return explorer.events.timeAt(explorer.position)") <= longest[2] + 1, "goes to where it begins")
    # The sum that both lead to says which device's gradient came last.
    adder = next(e["to"] for e in data["nodes"][slow]["edges"] if e["to"] >= 0 and data["nodes"][e["to"]]["reduces"])
    p.js("explorer.showNode(arguments[0])", adder)
    p.frame()
    check("for cpu:1, whose gradient came last" in p.text("#panel"), p.text("#panel"))
    bucket = next(i for i, b in enumerate(data["buckets"]) if adder in b["members"])
    p.keys("/", *("bucket %d" % bucket), "\ue007")
    p.frame()
    last = [e["node"] for e in data["events"] if e["kind"] == "slot" and e["bucket"] == bucket][-1]
    lane = [data["nodes"][e["node"]]["device"] for e in data["events"] if e["kind"] == "delivered" and data["nodes"][e["node"]]["edges"][e["edge"]]["to"] == last][-1]
    check(p.text("#panel h2") == "Bucket %d" % bucket, p.text("#panel"))
    check("came last%s, with the gradient of cpu:%d" % (data["nodes"][last]["name"], lane) in p.text("#panel"), p.text("#panel"))


def test_waits_forward(p):
    """The second replica's forward is late: what joins their results waits for its last operation."""
    data = data_of("cnn2")
    more = data["duration"] // 2
    for o in data["operations"]:
        if o["replica"] != 0:
            o["start"] += more
            o["end"] += more
    for e in data["events"]:
        e["time"] += more
    data["duration"] += more
    p.open(page(put("late.rec", data)))
    gather = next(o for o in data["operations"] if o["name"] == "gather")
    last = [o for o in data["operations"] if o["replica"] == 1][-1]
    gaps = p.js("return explorer.sums.waits.map((g) => [g.lane, g.why, g.next, g.from ?? -1])")
    check([0, "result", gather["node"], last["node"]] in gaps, gaps)
    p.press("sum-waits")
    p.frame()
    check("gather needed the result of %s on cpu:1" % last["name"] in p.text("#sums"), p.text("#sums"))


def test_ranks(p):
    """Buckets that all ranks reduce together know each other, and which rank came last; sums of one replica's gradients are not drawn."""
    data = data_of("ranks")
    names = ("classifier.2.weight", "classifier.2.bias")
    ended = {}
    for e in data["events"]:
        if e["kind"] == "end":
            ended[e["node"]] = e["time"]
    for kind in ("reduce_add", "all_reduce"):
        for rank in (0, 1):
            nodes = [q["node"] for q in data["parameters"] if q["name"] in names and data["nodes"][q["node"]]["device"] == rank]
            data["buckets"].append({"kind": kind, "members": nodes, "device": rank, "bytes": 2600})
            row = {"edge": -1, "bucket": len(data["buckets"]) - 1, "device": rank, "tensor": -1, "thread": 9, "text": ""}
            full = max(ended[n] for n in nodes)
            data["events"] += [{**row, "kind": "slot", "time": ended[n], "node": n} for n in nodes]
            data["events"] += [{**row, "kind": k, "time": full + t, "node": -1} for k, t in (("reduce_begin", 1), ("reduce_end", 900))]
    data["events"].sort(key=lambda e: e["time"])
    p.open(page(put("ranks.rec", data)))
    check(p.js("return explorer.model.partners") == [[], [], [3], [2]], p.js("return explorer.model.partners"))
    check(p.js("return explorer.placement.bucketBoxes.map((b) => b.bucket)") == [2, 3], "sums of one gradient are no boxes")
    begins = [next(e["time"] for e in data["events"] if e["kind"] == "reduce_begin" and e["bucket"] == b) for b in (2, 3)]
    last = begins.index(max(begins))
    p.js("explorer.chooseBucket(2)")
    p.frame()
    check("rank %d cpu:0, " % last in p.text("#panel") and "after rank %d" % (1 - last) in p.text("#panel"), p.text("#panel"))
    p.js("[...document.querySelectorAll('#panel .link')].find((b) => b.textContent === 'bucket 3').click()")
    check(p.js("return explorer.view.selected.bucket") == 3, "the other rank's")
    for where, b in ((0, 2), (1, 3)):
        backward = [e for e in data["events"] if e["time"] >= begins[where] and e["kind"] == "begin" and e["device"] == where
                    and not data["nodes"][e["node"]]["leaf"]]
        said = p.js("return explorer.details.overlap(explorer.events.reduceBegin.first[arguments[0]])", b)
        check("%d node" % len(backward) in said if backward else said == "had nothing left to do", (b, said, len(backward)))
    # Ranks that communicate outside of the graph: the one that waits says what the other did.
    op, end = data["operations"][0], data["duration"]
    more = {"node": -1, "inputs": [], "outputs": [], "saved": [], "versions": [], "module": -1}
    data["operations"] += [{**op, **more, "name": "slow", "device": 1, "start": end, "end": 2 * end},
                           {**op, **more, "name": "exchange", "device": 0, "start": 2 * end + 10, "end": 2 * end + 20}]
    data["duration"] *= 2
    p.open(page(put("meeting.rec", data)))
    p.press("sum-waits")
    p.frame()
    check("rank 1 cpu:0 ran slow until 10 ns before it went on" in p.text("#sums"), p.text("#sums"))


def test_no_gradient(p):
    """Why a parameter has none stands in its panel, and parameters with one reason share a card."""
    data = data_of("cnn2")
    for name in ("features.0.weight", "features.0.bias"):
        i = next(i for i, q in enumerate(data["parameters"]) if q["name"] == name)
        data["parameters"][i].update(gradient=-1, contributors=[])
        data["findings"].append({"kind": "no gradient", "text": name + " has no gradient: nobody used it.", "node": data["parameters"][i]["node"],
                                 "operation": 0, "parameter": i})
    p.open(page(put("without.rec", data)))
    p.press("tab-findings")
    p.frame()
    cards = p.js("return [...document.querySelectorAll('#panel .card')].map((c) => c.textContent)")
    check(len(cards) == len(data["findings"]) - 1, cards)
    check(any("features.0.weight, features.0.bias" in c and "nobody used it." in c for c in cards), cards)
    p.js("[...document.querySelectorAll('#panel .link')].find((b) => b.textContent === 'Show the operation').click()")
    check(p.js("return explorer.chosenNode()") == data["operations"][0]["node"], "the operation")
    p.press("tab-parameters")
    p.js("document.querySelector('[data-parameter=\"0\"]').click()")
    p.frame()
    check("It has none." in p.text("#panel") and "nobody used it." in p.text("#panel"), p.text("#panel"))
    frozen = next(i for i, q in enumerate(data["parameters"]) if q["node"] < 0)
    p.press("tab-parameters")
    p.js("document.querySelector('[data-parameter=\"%d\"]').click()" % frozen)
    p.frame()
    check(p.text("#panel h2") == data["parameters"][frozen]["name"] and "it is frozen" in p.text("#panel"), p.text("#panel"))
    # Which nodes contributed, through the sum of the replicas; and blocks that hold many parameters.
    p.js("explorer.showParameter(arguments[0])", next(i for i, q in enumerate(data["parameters"]) if q["name"] == "classifier.0.weight"))
    p.frame()
    check("Who contributedAddmmBackward0 on cpu:0AddmmBackward0 on cpu:1" in p.text("#panel"), p.text("#panel"))
    storage = data["tensors"][data["parameters"][0]["tensor"]]["storage"]
    for q in data["parameters"]:
        data["tensors"][q["tensor"]]["storage"] = storage
    for b in data["memory"][0]["at_peak"]:
        if b["owner"] == "parameter features.0.weight":
            b["storage"] = storage
    p.open(page(put("flat.rec", data)))
    p.press("tab-memory")
    p.frame()
    check("%d parameters in one block" % len(data["parameters"]) in p.text("#panel"), p.text("#panel"))


def test_gradients_at_the_end(p):
    data = data_of("cnn2")
    p.open(page("cnn2"))
    p.press("tab-parameters")
    column = "return [...document.querySelectorAll('[data-parameter]')].map((r) => [Number(r.dataset.parameter), r.querySelector('[data-gradient]').textContent])"
    p.js("explorer.goTo(0)")
    p.frame()
    check({text for _, text in p.js(column)} == {"not yet", "frozen"}, p.js(column))
    from selenium.webdriver.common.keys import Keys
    p.keys(Keys.END)
    p.frame()
    rows = dict(p.js(column))
    for i, row in enumerate(data["parameters"]):
        want = "frozen" if row["gradient"] < 0 else formatted(data["statistics"][data["tensors"][row["gradient"]]["statistics"]]["deviation"])
        check(rows[i] == want, (row["name"], rows[i], want))
    p.js("document.querySelector('[data-parameter=\"6\"]').click()")
    p.frame()
    check(p.text("#panel h2") == data["parameters"][6]["name"] and p.js("return !!document.getElementById('gradient')"), p.text("#panel"))


if __name__ == "__main__":
    run(globals())
