#!/usr/bin/env python3
"""The explorer in a real browser: every control does what it says, and the picture says what the recording does.

    explorer_test.py EXPLORE MAKE_RECORDING [PICTURES]

Skipped, with the reason, where chromium, its driver or python3-selenium is missing. PICTURES: a folder for screenshots, instead of tests.
"""

import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

EXPLORE, MAKER = sys.argv[1:3]
WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))


def skip(why):
    print("skipped: " + why)
    sys.exit(0)


def check(right, what):
    if not right:
        raise AssertionError(what)


def recording(kind):
    path = WORK / (kind + ".rec")
    if not path.exists():
        subprocess.run([sys.executable, MAKER, kind, str(path)], check=True)
    return path


def data_of(kind):
    return json.loads(gzip.open(recording(kind), "rb").read())


def put(name, data):
    path = WORK / name
    path.write_bytes(gzip.compress(json.dumps(data).encode()))
    return path


def page(*kinds):
    out = WORK / ("_".join(kinds) + ".html")
    if not out.exists():
        subprocess.run([EXPLORE, *[str(recording(k)) for k in kinds], "-o", str(out)], check=True, stdout=subprocess.DEVNULL)
    return out


# ---- without a browser ---------------------------------------------------------------------------


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


# ---- with one --------------------------------------------------------------------------------------


def browser():
    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            skip("no %s here (./tools/setup.sh page)" % program)
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        skip("python3 has no module selenium (./tools/setup.sh page)")
    options = Options()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-device-scale-factor=1",
                     "--user-data-dir=%s" % (WORK / "profile")):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


class Page:
    def __init__(self, driver):
        self.driver = driver

    def js(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def size(self, width, height, dark=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                                                  {"name": "prefers-reduced-motion", "value": "reduce"}]})

    def open(self, path, width=1366, height=768, dark=False):
        self.size(width, height, dark)
        self.logs()
        self.driver.get("file://" + str(path))
        self.until("return !!(window.explorer && explorer.ready && explorer.view.drawn.nodes !== undefined)")
        return self

    def logs(self):
        return self.driver.get_log("browser"), self.driver.get_log("performance")

    def until(self, text, seconds=20):
        end = time.time() + seconds
        while time.time() < end:
            got = self.js(text)
            if got:
                return got
            time.sleep(0.02)
        raise AssertionError("not within %d s: %s" % (seconds, text))

    def frame(self):
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")

    def drawn(self):
        self.frame()
        return self.js("return explorer.drawn")

    def keys(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains
        actions = ActionChains(self.driver)
        for key in keys:
            actions.send_keys(key)
        actions.perform()

    def press(self, name):
        self.driver.find_element("id", name).click()

    def click_at(self, canvas, x, y, twice=False):
        from selenium.webdriver.common.action_chains import ActionChains
        element = self.driver.find_element("id", canvas)
        box = self.js("const b = arguments[0].getBoundingClientRect(); return [b.width, b.height]", element)
        actions = ActionChains(self.driver).move_to_element_with_offset(element, int(x - box[0] / 2), int(y - box[1] / 2))
        (actions.double_click() if twice else actions.click()).perform()

    def click_item(self, item, twice=False):
        self.frame()
        x, y = self.js("const i = explorer.placement.items[arguments[0]], t = explorer.view.transform;"
                       "return [(i.x + i.w / 2) * t.k + t.x, (i.y + i.h / 2) * t.k + t.y]", item)
        self.click_at("graph", x, y, twice)

    @property
    def position(self):
        return self.js("return explorer.position")

    def text(self, selector):
        return self.js("return document.querySelector(arguments[0]).textContent", selector)


def quiet(p):
    """No error, and no request but for the page itself."""
    console, performance = p.logs()
    check(not [e for e in console if e["level"] == "SEVERE"], console)
    for entry in performance:
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            check(url.startswith(("file://" + str(WORK), "data:")), "a request: " + url)


def test_loads_and_draws(p):
    data = data_of("cnn2")
    p.open(page("cnn2"))
    quiet(p)
    drawn = p.drawn()
    edges = {(i, e["to"]) for i, n in enumerate(data["nodes"]) for e in n["edges"] if e["to"] >= 0}
    check(drawn["nodes"] == len(data["nodes"]) and drawn["groups"] == 0, drawn)
    check(drawn["edges"] == len(edges), (drawn, len(edges)))
    check(drawn["buckets"] == 3 and drawn["bars"] == 3, drawn)  # scatter, broadcast and the gather's node
    check(p.text("#title") == data["title"], "the title")
    lanes = p.js("return explorer.placement.laneBoxes.map((l) => [l.x, l.x + l.width])")
    for i, n in enumerate(data["nodes"]):  # in its lane
        if n["name"] != "GatherBackward":
            x = p.js("const i = explorer.placement.items[explorer.placement.itemOf[arguments[0]]]; return [i.x, i.x + i.w]", i)
            check(lanes[n["device"]][0] <= x[0] and x[1] <= lanes[n["device"]][1], (i, x, lanes))
    # Replicas stand side by side, and nothing upon something else.
    ys = p.js("return explorer.model.nodes.map((n, i) => explorer.placement.items[explorer.placement.itemOf[i]].y)")
    ops = data["operations"]
    for a, b in zip([o for o in ops if o["replica"] == 0], [o for o in ops if o["replica"] == 1]):
        check(a["name"] == b["name"] and ys[a["node"]] == ys[b["node"]], a["name"])
    check(p.js("const a = explorer.placement.items; return a.every((i) => a.every((j) => i === j || i.x + i.w <= j.x || j.x + j.w <= i.x ||"
               " i.y + i.h <= j.y || j.y + j.h <= i.y))"), "boxes lie upon each other")


def told(data, events):
    """What the page should show after each event, told from the recording alone."""
    nodes = data["nodes"]
    state = ["made" if n["operation"] < 0 else "absent" for n in nodes]
    delivered, full, gradients = set(), set(), {}
    made = list(state)
    yield list(state), set(delivered), set(full), dict(gradients)
    for e in events:
        n, kind = e["node"], e["kind"]
        if kind in ("op_begin", "op_end") and n >= 0:
            state[n] = made[n] = {"op_begin": "computing", "op_end": "made"}[kind]
        elif kind == "backward_begin":
            state, delivered, full = list(made), set(), set()
        elif kind in ("ready", "begin", "end", "failed"):
            state[n] = {"ready": "ready", "begin": "running", "end": "done", "failed": "failed"}[kind]
        elif kind == "delivered":
            delivered.add((n, e["edge"]))
        elif kind == "slot":
            full.add(n)
            state[n] = "ready"
        elif kind in ("reduce_begin", "reduce_end"):
            for m in data["buckets"][e["bucket"]]["members"]:
                state[m] = {"reduce_begin": "running", "reduce_end": "done"}[kind]
        elif kind == "accumulated":
            gradients[n] = e["tensor"]
            if state[n] != "running":
                state[n] = "done"
        yield list(state), set(delivered), set(full), dict(gradients)


def test_every_event(p):
    """At every event, forward, backward and by jumps."""
    data = data_of("cnn2")
    p.open(page("cnn2"))
    events = p.js("return explorer.events.list.map((e) => ({kind: e.kind, node: e.node, edge: e.edge, bucket: e.bucket, tensor: e.tensor}))")
    own = [(e["kind"], e["node"], e["edge"], e["bucket"]) for e in data["events"]]
    shown = [(e["kind"], e["node"], e["edge"], e["bucket"]) for e in events if not e["kind"].startswith(("op_", "move_"))]
    check(shown == own, "the recording's events in their order")
    ask = """const p = arguments[0], m = explorer.model, e = explorer.events;
        explorer.goTo(p);
        return [m.nodes.map((n, i) => e.state(i, p)),
                m.nodes.flatMap((n, i) => n.edges.map((x, k) => [i, k]).filter(([a, k]) => e.deliveredAt(a, k, p) >= 0)),
                m.buckets.map((b, i) => e.bucketState(i, p).full),
                m.nodes.map((n, i) => n.leaf ? e.gradientAt(i, p) : -1)]"""
    expected = list(told(data, events))
    order = list(range(len(events) + 1))
    for at in order + order[::-7] + [3, 150, 40, 200, 0]:
        state, delivered, full, gradients = p.js(ask, at)
        want = expected[at]
        check(state == want[0], (at, [(i, data["nodes"][i]["name"], a, b) for i, (a, b) in enumerate(zip(state, want[0])) if a != b]))
        check({tuple(d) for d in delivered} == want[1], at)
        check(full == [len(want[2] & set(b["members"])) for b in data["buckets"]], at)
        check({i: g for i, g in enumerate(gradients) if g >= 0} == want[3], at)
    # ReduceAdd begins while the backward still runs, and the page says so.
    begins = [i for i, e in enumerate(events) if e["kind"] == "reduce_begin"]
    p.js("explorer.goTo(arguments[0])", begins[0] + 1)
    check("its reduction begins" in p.text("#event"), p.text("#event"))
    check(p.drawn()["running"] > 0, "nothing runs beside the reduction")


def formatted(x):
    """base.js's formatNumber."""
    if x == 0:
        return "0"
    if abs(x) >= 1e5 or abs(x) < 1e-3:
        mantissa, exponent = ("%.2e" % x).split("e")
        return "%se%s%d" % (mantissa, "+" if int(exponent) >= 0 else "", int(exponent))
    text = "%.4g" % x
    return text


def test_gradients_at_the_end(p):
    data = data_of("cnn2")
    p.open(page("cnn2"))
    p.press("tab-parameters")
    column = "return [...document.querySelectorAll('[data-parameter]')].map((r) => [Number(r.dataset.parameter), r.cells[3].textContent])"
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


def test_time_controls(p):
    from selenium.webdriver.common.keys import Keys
    p.open(page("cnn2"))
    events = p.js("return explorer.events.length")
    start = p.position
    check(p.js("return explorer.events.list[explorer.position].kind") == "backward_begin", "the page opens where the backward begins")
    for press, want in (("forward", start + 1), ("back", start), ("to-start", 0), ("back", 0), ("to-end", events), ("forward", events)):
        p.press(press)
        check(p.position == want, (press, p.position, want))
    for key, want in ((Keys.HOME, 0), (Keys.ARROW_RIGHT, 1), (Keys.ARROW_RIGHT, 2), (Keys.ARROW_LEFT, 1), (Keys.END, events)):
        p.keys(key)
        check(p.position == want, (key, p.position, want))
    p.js("const s = document.getElementById('slider'); s.value = 77; s.dispatchEvent(new Event('input'))")
    check(p.position == 77 and p.text("#where").startswith("77 / "), p.text("#where"))
    from selenium.webdriver.common.action_chains import ActionChains
    ActionChains(p.driver).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT).key_up(Keys.SHIFT).perform()
    check(p.position > 77 and p.js("return explorer.events.list[explorer.position - 1].kind.endsWith('begin')"), "Shift →")
    p.js("const s = document.getElementById('speed'); s.value = '120'; s.dispatchEvent(new Event('change'))")
    for press, sign in (("play", 1), ("reverse", -1)):
        before = p.position
        p.press(press)
        check(p.js("return document.getElementById(arguments[0]).getAttribute('aria-label')", press) == "Pause", press)
        p.until("return (explorer.position - %d) * %d > 5" % (before, sign))
        p.press(press)
        stopped = p.position
        time.sleep(0.1)
        check(p.position == stopped, "paused")
    p.js("document.getElementById('graph').focus()")
    p.keys(" ")
    p.until("return explorer.position === explorer.events.length")
    p.until("return explorer.player.playing === 0")
    quiet(p)


def test_breakpoints(p):
    p.open(page("cnn2"))
    p.press("next-stop")
    check("no breakpoint" in p.text("#message"), p.text("#message"))
    node = p.js("const m = explorer.model; return m.parameters[m.parameters.findIndex((q) => q.name === 'classifier.0.bias')].node")
    p.js("explorer.showNode(arguments[0])", node)
    p.keys("b")
    p.keys("n")
    at = p.js("return explorer.events.list[explorer.position - 1]")
    check(at["node"] == node and at["kind"] == "begin", at)
    p.js("explorer.goTo(explorer.position - 30); const s = document.getElementById('speed'); s.value = '120'; s.dispatchEvent(new Event('change'))")
    p.keys(" ")
    p.until("return explorer.player.playing === 0")
    check(p.js("return explorer.events.list[explorer.position - 1].node") == node, "playing stops there")
    p.keys("b")
    check(p.js("return explorer.player.stops.size") == 0, "gone again")
    data = data_of("nan")
    p.open(page("nan"))
    p.press("stop-bad")
    p.keys("n")
    check("Stopped: the first NaN" in p.text("#message"), p.text("#message"))
    bad = [i for i, e in enumerate(data["events"]) if e["tensor"] >= 0 and data["statistics"][data["tensors"][e["tensor"]]["statistics"]]["nans"]]
    shown = p.js("return explorer.events.list[explorer.position - 1]")
    check(bad and all(shown[k] == data["events"][bad[0]][k] for k in ("kind", "node", "edge", "tensor")), shown)


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


def test_modules(p):
    p.open(page("cnn2"))
    p.keys("[")
    closed = p.drawn()
    check(closed["groups"] > 0 and closed["nodes"] < 38, closed)
    check(p.js("return explorer.placement.items.reduce((n, i) => n + i.nodes.length, 0)") == 38, "every node is in a box")
    group = p.js("return explorer.placement.items.findIndex((i) => i.module >= 0 && i.zone === 2)")
    p.click_item(group)
    p.frame()
    check("done in this backward" in p.text("#panel"), p.text("#panel"))
    p.click_item(group, twice=True)
    some = p.drawn()
    check(some["groups"] < closed["groups"] and some["nodes"] > closed["nodes"], some)
    p.keys("]")
    check(p.drawn()["nodes"] == 38, p.drawn())
    frame = p.js("const f = explorer.placement.frames[0].toggle; return [f.x + 6, f.y + 6]")
    p.click_at("graph", *frame)
    check(p.drawn()["groups"] > 0, "a frame's name closes it")
    for button, sign in (("zoom-in", 1), ("zoom-out", -1)):
        before = p.js("return explorer.view.transform.k")
        p.press(button)
        check((p.js("return explorer.view.transform.k") - before) * sign > 0, button)
    p.press("open-more")
    p.press("fit")
    check(p.drawn()["nodes"] == 38, "all of it")
    p.press("close-more")
    check(p.drawn()["groups"] > 0, "closed by its button")
    p.press("follow")
    check(p.js("return explorer.following") is False, "follow")


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


def test_sizes(p):
    for width, height, dark in ((390, 844, True), (1920, 1080, False)):
        p.open(page("cnn4"), width, height, dark)
        check(p.js("return document.documentElement.scrollWidth <= innerWidth && document.body.scrollHeight <= innerHeight"), "nothing sticks out")
        outside = p.js("return [...document.querySelectorAll('header button, #transport button, #transport select, #slider, #tools button')].filter((b) => {"
                       "const r = b.getBoundingClientRect(); return r.width && (r.left < 0 || r.right > innerWidth + 0.5 || r.bottom > innerHeight); }).map((b) => b.id)")
        check(not outside, (width, outside))
        check(p.js("return document.documentElement.dataset.theme") == ("dark" if dark else "light"), "as the system has it")
        drawn = p.drawn()
        check(drawn["nodes"] + drawn["groups"] > 10, drawn)
    p.open(page("cnn4"), 390, 844)
    p.press("tab-timeline")
    p.frame()
    check(p.js("return explorer.timeline.drawn.spans") > 50, "the timeline is a tab on a phone")
    quiet(p)


def test_large(p):
    """Culling, and detail by distance: whatever is seen is drawn, and no more."""
    data = data_of("gpt1000")
    p.open(page("gpt1000"))
    check(p.drawn()["groups"] > 10, "modules are closed at first")
    p.js("explorer.toLevel(9); explorer.side.input.fit(true)")
    far = p.drawn()
    check(far["nodes"] + far["skipped"] >= len(data["nodes"]) - far["edges"] and far["nodes"] < len(data["nodes"]), far)
    p.js("explorer.goTo(3000)")
    check(p.drawn()["running"] >= 1, "what runs is seen from far away")
    p.js("explorer.showNode(arguments[0])", len(data["nodes"]) // 2)
    p.frame()
    near = p.until("const d = explorer.drawn; return d.nodes < 120 && d.labels > 10 && d")
    top, bottom, seen = p.js("const v = explorer.view.view, a = explorer.placement.items; return [v.top, v.bottom,"
                             "a.filter((i) => i.y + i.h > v.top && i.y < v.bottom && i.x + i.w > v.left && i.x < v.right).length]")
    check(seen <= near["nodes"] <= seen + 6, (seen, near))
    quiet(p)


def pictures(p, folder):
    folder.mkdir(parents=True, exist_ok=True)
    node = "explorer.showNode(explorer.model.nodes.findIndex((n) => n.name.startsWith('%s')));"
    for name, kinds, size, dark, js in (
            ("step", ("cnn2",), (1366, 768), False, "explorer.goTo(90);" + node % "Relu"),
            ("step_dark", ("cnn4",), (1366, 768), True, "explorer.goTo(190);" + node % "Conv"),
            ("phone", ("cnn2",), (390, 844), True, "explorer.goTo(95);"),
            ("phone_timeline", ("cnn2",), (390, 844), False, "explorer.goTo(140); explorer.openTab('timeline');"),
            ("transformer", ("gpt1000",), (1366, 768), True, "explorer.toggleModule(explorer.model.modules.findIndex((m) => m.path === 'blocks.21'));"
             "explorer.goTo(2000); explorer.openTab('memory'); explorer.showNode(explorer.events.running(0, 2000)[0]);"),
            ("two_recordings", ("cnn2", "changed"), (1920, 1080), False, "document.querySelector('#panel .link').click();")):
        p.open(page(*kinds), *size, dark)
        p.js(js)
        p.frame()
        time.sleep(0.4)
        p.driver.save_screenshot(str(folder / (name + ".png")))


def main():
    tests = [f for name, f in globals().items() if name.startswith("test_")]
    plain = [f for f in tests if f.__code__.co_argcount == 0]
    only = os.environ.get("ONLY", "")
    for test in plain:
        if only in test.__name__ and len(sys.argv) == 3:
            test()
            print("passed: " + test.__name__)
    driver = browser()
    try:
        if len(sys.argv) > 3:
            return pictures(Page(driver), pathlib.Path(sys.argv[3]))
        for test in tests:
            if test not in plain and only in test.__name__:
                began = time.time()
                test(Page(driver))
                print("passed: %s (%.1f s)" % (test.__name__, time.time() - began), flush=True)
    finally:
        driver.quit()
        shutil.rmtree(WORK, ignore_errors=True)


if __name__ == "__main__":
    main()
