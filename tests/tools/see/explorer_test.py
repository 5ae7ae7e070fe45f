#!/usr/bin/env python3
"""The explorer's picture in a real browser: it says what the recording does at every event, and every control does what it says.

    explorer_test.py EXPLORE MAKE_RECORDING

Skipped, with the reason, where chromium, its driver or python3-selenium is missing.
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
from explorer_pages import EXPLORE, WORK, check, data_of, page, put, quiet, recording, run  # noqa: E402


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


def test_parts_of_a_graph(p):
    """Replicas with a graph that is cut in two: their first parts stand next to each other, whichever clock was ahead."""
    data = data_of("cnn2")
    cut = [i for i, n in enumerate(data["nodes"]) if n["operation"] >= 0 and data["operations"][n["operation"]]["source"] >= 0
           and data["nodes"][i]["name"].startswith("Convolution")]
    second = [i for i in cut if data["operations"][data["nodes"][i]["operation"]]["module"] == data["operations"][data["nodes"][cut[1]]["operation"]]["module"]]
    check(len(cut) == 4 and len(second) == 2, cut)
    for i in second:
        data["nodes"][i]["edges"][0]["to"] = -1
    late = max(o["end"] for o in data["operations"])
    for o in data["operations"]:
        if o["replica"] != 1:  # began when the other was through
            o["start"] += late
            o["end"] += late
    p.open(page(put("cut.rec", data)))
    y = p.js("return explorer.model.nodes.map((n, i) => explorer.placement.items[explorer.placement.itemOf[i]].y)")
    ops = [o for o in data["operations"] if o["replica"] >= 0]
    pairs = list(zip([o for o in ops if o["replica"] == 0], [o for o in ops if o["replica"] == 1]))
    check(pairs and all(y[a["node"]] == y[b["node"]] for a, b in pairs), [(a["name"], y[a["node"]], y[b["node"]]) for a, b in pairs])
    rows = [y[a["node"]] for a, _ in pairs]
    check(rows == sorted(rows) and len(set(rows)) == len(rows), rows)


def test_second_graph(p):
    data = data_of("second")
    p.open(page("second"))
    mm = next(i for i, n in enumerate(data["nodes"]) if n["in_backward"])
    root = next(e["node"] for e in data["events"] if e["kind"] == "backward_begin")
    y = p.js("return [arguments[0], arguments[1]].map((n) => explorer.placement.items[explorer.placement.itemOf[n]].y)", mm, root)
    check(y[0] > y[1], "what a backward recorded stands below its root")
    check("1 node that a backward recorded" in p.text("#panel") and "of the second graph" in p.text(".legend"), p.text("#panel"))
    event = p.js("return explorer.events.list.findIndex((e) => e.kind === 'op_end' && e.node === arguments[0])", mm)
    p.js("explorer.goTo(arguments[0])", event + 1)
    check("in the second graph" in p.text("#event"), p.text("#event"))
    running = [data["nodes"][n]["name"] for n in p.js("return explorer.events.running(0, explorer.position)")]
    check("LinearBackward0" in running, running)  # that one recorded it
    p.keys("/", *"second graph", "\ue007")
    check(p.js("return explorer.chosenNode()") == mm, "searched")
    p.frame()
    check("the second: a backward recorded it" in p.text("#panel"), p.text("#panel"))
    phases = p.js("return explorer.events.phases.map((x) => x[1])")
    check(phases == ["backward", "after backward", "forward", "backward", "after backward", "optimizer"], phases)


def test_casts(p):
    data = data_of("casts")
    p.open(page("casts"))
    quiet(p)
    panel = p.text("#panel")
    for part in ("2 casts, 1 of them for several operations", "bfloat16, float32", "casts to another dtype, for autocast"):
        check(part in panel, (part, panel))
    cast = next(o["node"] for o in data["operations"] if o.get("autocast") and o["node"] >= 0)
    linears = [o["node"] for o in data["operations"] if o["name"] == "linear"]
    check(p.js("return explorer.model.users.get(arguments[0]).map((u) => u[0])", cast) == linears, "both layers share the cast")
    box = p.js("return [explorer.model.nodeTitle(arguments[0]), explorer.model.nodeSecond(arguments[0])]", cast)
    check(box == ["autocast", "f32 → bf16, for 2"], box)
    seconds = [p.js("return explorer.model.nodeSecond(arguments[0])", n) for n in linears]
    check(seconds == ["fc  2×4 bf16"] * 2, seconds)
    # Its edge has its own color, on the canvas, before the backward.
    p.js("explorer.goTo(explorer.events.list.findIndex((e) => e.kind === 'backward_begin'))")
    violet = ("const c = document.getElementById('graph'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
              " const color = getComputedStyle(document.documentElement).getPropertyValue('--cast').trim();"
              " const want = [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16)); let n = 0;"
              " for (let i = 0; i < d.length; i += 4) n += want.every((x, k) => Math.abs(x - d[i + k]) < 24);"
              " return n")
    p.frame()
    drawn = p.js(violet)
    check(drawn > 100, "%d pixels in the color of casts" % drawn)
    p.js("explorer.showNode(arguments[0])", cast)
    p.frame()
    panel = p.text("#panel")
    check("autocast casts fc.weight from float32 to bfloat16, for 2 operations. It kept the result, and used it again once" in panel, panel)
    p.js("explorer.showNode(arguments[0])", linears[0])
    p.frame()
    panel = p.text("#panel")
    check(panel.count("bfloat16") >= 3 and panel.count("cast from float32") >= 2 and "from autocast" in panel, panel)
    at = p.js("return explorer.events.list.findIndex((e) => e.kind === 'op_begin' && e.node === arguments[0])", cast)
    p.js("explorer.goTo(arguments[0])", at + 1)
    check(p.text("#event").startswith("forward: Autocast casts fc.weight from float32 to bfloat16 on cpu:0."), p.text("#event"))
    inputs = p.js("return explorer.events.list.findIndex((e) => e.kind === 'op_begin' && explorer.model.casts.has(e.operation) && e.node < 0)")
    p.js("explorer.goTo(arguments[0])", inputs + 1)
    check("Autocast casts an input from float32 to bfloat16" in p.text("#event"), p.text("#event"))
    # Where there is one dtype nothing says so.
    p.open(page("cnn2"))
    p.frame()
    check(p.js(violet) == 0, "casts where there are none")
    check("autocast" not in p.text("#panel") and p.js("return explorer.model.nodes.every((row, n) => !/f32/.test(explorer.model.nodeSecond(n)))"), "")


def test_casts_in_the_terminal():
    import subprocess
    said = subprocess.run([EXPLORE, str(recording("casts")), "-o", str(WORK / "casts_again.html")], check=True, capture_output=True, text=True).stdout
    check("autocast: 2 casts from float32 to bfloat16, used again 1 x" in said, said)


def told(data, events):
    """What the page should show after each event, computed from the recording alone."""
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
    for kind in ("cnn2", "second"):
        every_event(p, kind)
    p.open(page("cnn2"))
    # ReduceAdd begins while the backward still runs, and the page shows that.
    begin = p.js("return explorer.events.list.findIndex((e) => e.kind === 'reduce_begin')")
    p.js("explorer.goTo(arguments[0])", begin + 1)
    check("its reduction begins" in p.text("#event"), p.text("#event"))
    check(p.drawn()["running"] > 0, "nothing runs beside the reduction")


def every_event(p, kind):
    data = data_of(kind)
    p.open(page(kind))
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
    for at in order + order[::-7] + [3, len(events) // 2, len(events) // 8, len(events) * 3 // 4, 0]:
        state, delivered, full, gradients = p.js(ask, at)
        want = expected[at]
        check(state == want[0], (at, [(i, data["nodes"][i]["name"], a, b) for i, (a, b) in enumerate(zip(state, want[0])) if a != b]))
        check({tuple(d) for d in delivered} == want[1], at)
        check(full == [len(want[2] & set(b["members"])) for b in data["buckets"]], at)
        check({i: g for i, g in enumerate(gradients) if g >= 0} == want[3], at)

def test_time_controls(p):
    from selenium.webdriver.common.keys import Keys
    p.open(page("cnn2"))
    events = p.js("return explorer.events.length")
    check(p.position == 0 and "Nothing has happened yet." in p.text("#event"), "the page opens at the start: " + p.text("#event"))
    p.js("explorer.goTo(explorer.events.list.findIndex((e) => e.kind === 'backward_begin'))")
    start = p.position
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
    # Slow enough that it has not reached an end before the second press.
    p.js("const s = document.getElementById('speed'); s.value = '8'; s.dispatchEvent(new Event('change'))")
    for press, sign in (("play", 1), ("reverse", -1)):
        before = p.position
        p.press(press)
        check(p.js("return document.getElementById(arguments[0]).getAttribute('aria-label')", press) == "Pause", press)
        p.until("return (explorer.position - %d) * %d > 5" % (before, sign))
        p.press(press)
        stopped = p.position
        time.sleep(0.1)
        check(p.position == stopped, ("paused", press, before, stopped, p.position))
    p.js("const s = document.getElementById('speed'); s.value = '120'; s.dispatchEvent(new Event('change'))")
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


def test_infinite(p):
    """A mask's infinity is no NaN, and stops nothing; an infinite gradient does."""
    data = data_of("cnn2")
    relu = next(o for o in data["operations"] if o["name"] == "relu")
    data["statistics"][data["tensors"][relu["outputs"][0]]["statistics"]]["infinities"] = 7
    p.open(page(put("mask.rec", data)))
    ask = "return explorer.view.badness(explorer.placement.items[explorer.placement.itemOf[arguments[0]]], 'made')"
    check(p.js(ask, relu["node"]) == 1, "infinite, not NaN")
    p.js("explorer.goTo(0)")
    p.press("stop-bad")
    p.keys("n")
    check("No breakpoint after" in p.text("#message"), p.text("#message"))
    gradient = next(e for e in data["events"] if e["kind"] == "delivered" and e["node"] == relu["node"])
    data["statistics"][data["tensors"][gradient["tensor"]]["statistics"]]["infinities"] = 1
    p.open(page(put("overflow.rec", data)))
    p.press("stop-bad")
    p.keys("n")
    check(p.js("return explorer.events.list[explorer.position - 1].tensor") == gradient["tensor"], p.text("#event"))


def test_sizes(p):
    # The whole picture is below the names of the lanes, and next to the buttons.
    for kinds, width, height in ((("cnn4",), 390, 844), (("cnn4",), 1366, 768), (("second",), 1366, 768), (("gpt1000",), 390, 844)):
        p.open(page(*kinds), width, height)
        p.press("fit")
        p.frame()
        top, right, buttons = p.js("const t = explorer.view.transform, a = [...explorer.placement.items, ...explorer.placement.layoutBars];"
                                   "return [Math.min(...a.map((i) => i.y * t.k + t.y)), Math.max(...a.map((i) => (i.x + i.w) * t.k + t.x)),"
                                   "document.getElementById('fit').getBoundingClientRect().left]")
        check(top >= 27 and (width < 500 or right < buttons), (kinds, width, top, right, buttons))
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


if __name__ == "__main__":
    run(globals())
