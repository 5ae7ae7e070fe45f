#!/usr/bin/env python3
"""The explorer's story in a real browser: where it opens, its phases, what a step passes, and what its sentences name.

    explorer_story_test.py EXPLORE MAKE_RECORDING

Skipped, with the reason, where chromium, its driver or python3-selenium is missing.
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
from explorer_pages import check, data_of, page, put, run  # noqa: E402


def test_the_last_bucket_overlaps_nothing(p):
    """Collectors of a bucket's own parameters begin after it: they are no work that goes on meanwhile."""
    data = data_of("cnn2")
    p.open(page("cnn2"))
    for b in range(len(data["buckets"])):
        begin = next(i for i, e in enumerate(data["events"]) if e["kind"] == "reduce_begin" and e["bucket"] == b)
        end = next(i for i, e in enumerate(data["events"]) if e["kind"] == "backward_end")
        left = [e for e in data["events"][begin:end] if e["kind"] == "begin" and not data["nodes"][e["node"]]["leaf"]]
        p.js("explorer.chooseBucket(arguments[0])", b)
        p.frame()
        want = "%d node" % len(left) if left else "had nothing left to do"
        check(want in p.text("#panel"), (b, want, p.text("#panel")))
    last = max((e["time"], e["bucket"]) for e in data["events"] if e["kind"] == "reduce_begin")[1]
    check("had nothing left to do" in p.js("return explorer.details.overlap(explorer.events.reduceBegin.first[arguments[0]])", last), last)


def with_boxless(name="boxless.rec"):
    """cnn2 whose first relu is followed by six operations that leave no node, as running statistics do."""
    data = data_of("cnn2")
    relu = next(o for o in data["operations"] if o["name"] == "relu")
    more = {"node": -1, "inputs": [], "outputs": [], "saved": [], "versions": []}
    for i in range(6):
        data["operations"].append({**relu, **more, "name": "merge_moments" if i < 5 else "mul", "start": relu["end"] + 10 * i, "end": relu["end"] + 10 * i + 5})
    return put(name, data)


def test_events_without_a_box(p):
    """A step that moves nothing is no step: the next sentence says what ran meanwhile. The slider still reaches each event."""
    p.open(page(with_boxless()))
    boxless = p.js("return explorer.events.list.flatMap((e, i) => /^op_/.test(e.kind) && e.node < 0 ? [i] : [])")
    check(len(boxless) == 12, boxless)
    walk = ("const out = []; for (let i = 0; i <= explorer.events.length; ++i) { const before = explorer.position; document.getElementById(arguments[0]).click();"
            "if (explorer.position === before) break; out.push([explorer.position, document.getElementById('event').textContent]); } return out")
    events, there, back = p.js("return explorer.events.length"), p.js(walk, "forward"), p.js(walk, "back")
    want = [i + 1 for i in range(events) if i not in boxless]
    check([at for at, _ in there] == want, there)
    check([at for at, _ in back] == want[-2::-1] + [0], back)
    said = "".join(text for _, text in there)
    check("without a box: merge_moments" in said and "mul" in said, said)
    p.js("explorer.goTo(arguments[0])", boxless[0] + 1)
    check("merge_moments" in p.text("#event") and p.position == boxless[0] + 1, p.text("#event"))


def test_playing_lasts_as_long_for_every_size(p):
    for kind in ("cnn2", "gpt1000"):
        p.open(page(kind))
        p.js("explorer.goTo(0)")
        p.press("play")
        before, began = p.position, time.time()
        time.sleep(3)
        got, took = p.position - before, time.time() - began
        p.press("play")
        events = p.js("return explorer.events.length")
        check(0.6 < got / events * 30 / took < 1.3, (kind, got, events, took))


def test_phases(p):
    """Their names stand over the slider in the order of a step, and lead to where they begin."""
    data = data_of("cnn2")
    p.open(page("cnn2"))
    names = p.js("return [...document.querySelectorAll('#phases button')].map((b) => b.textContent)")
    check(names == ["scatter", "broadcast", "forward", "gather", "loss", "backward", "reduce", "step"], names)
    slider, last = p.js("return ['slider', 'phases'].map((id) => document.getElementById(id).getBoundingClientRect().top)")
    check(last < slider, "over the slider")
    first = {"scatter": ("move_begin", "scatter"), "broadcast": ("move_begin", "broadcast"), "backward": ("backward_begin", ""), "step": ("step_begin", "")}
    for name in names:
        p.js("explorer.goTo(0)")
        p.press("phase-" + name)
        e = p.js("return explorer.events.list[explorer.position - 1]")
        check(p.text("#event").startswith(name + ": "), (name, p.text("#event")))
        pressed = p.js("return [...document.querySelectorAll('#phases [aria-pressed=true]')].map((b) => b.textContent)")
        check(pressed == [name], (name, pressed))
        if name in first:
            check(e["kind"] == first[name][0] and (not first[name][1] or data["movements"][e["movement"]]["kind"] == first[name][1]), (name, e))
    check(p.js("return explorer.events.list.every((e, i) => !/^(begin|end|ready|delivered|accumulated)$/.test(e.kind) || explorer.side.story.phase(i + 1) === 'backward')"), "backward")
    at = p.js("return explorer.events.list.findIndex((e) => e.kind === 'op_begin' && /cross_entropy|nll/.test(explorer.model.operations[e.operation].name))")
    check(p.js("return explorer.side.story.phase(arguments[0])", at + 1) == "loss", at)
    # A recording of one device has neither scatter nor buckets.
    p.open(page("cnn1"))
    names = p.js("return [...document.querySelectorAll('#phases button')].map((b) => b.textContent)")
    check(names == ["forward", "loss", "backward", "step"], names)


def test_sentences_name_modules(p):
    data = data_of("cnn2")
    p.open(page("cnn2"))
    named = 0
    for i, e in enumerate(p.js("return explorer.events.list.map((e, i) => ({...e, said: explorer.events.describe(i)}))")):
        op = e.get("operation", -1) if e["kind"].startswith("op_") else data["nodes"][e["node"]]["operation"] if e["kind"] == "begin" else -1
        module = data["operations"][op]["module"] if op >= 0 else -1
        if module >= 0 and data["modules"][module]["path"]:
            named += 1
            check(" of %s " % data["modules"][module]["path"] in e["said"], (i, e["said"]))
    check(named > 40, named)


def test_inputs_name_parameters(p):
    """Also those of the second replica, whose copy of a parameter has no name in the recording."""
    data = data_of("cnn2")
    for o in data["operations"]:
        for t in o["inputs"]:
            if t >= 0:
                data["tensors"][t]["name"] = ""
    p.open(page(put("unnamed.rec", data)))
    convolutions = [o for o in data["operations"] if o["name"].startswith("conv")]
    check({o["device"] for o in convolutions} == {0, 1}, convolutions)
    for o in convolutions:
        path = data["modules"][o["module"]]["path"]
        p.js("explorer.showNode(arguments[0])", o["node"])
        p.frame()
        inputs = p.text("#panel").split("Inputs")[1].split("Result")[0]
        check(path + ".weight" in inputs and path + ".bias" in inputs, (path, o["device"], inputs))


def test_opens_readable(p):
    """A page opens at a level of at most 16 rows, fitted, so that its names can be read."""
    for kind, rows in (("cnn2", (6, 16)), ("gpt1000", (6, 40))):
        p.open(page(kind), 1440, 900)
        got = p.js("return explorer.placement.rowCount")
        check(rows[0] <= got <= rows[1], (kind, got))
        check(p.drawn()["labels"] > 5, (kind, p.drawn()))
    # On a phone the sentence wraps, and the names of the phases are in sight.
    p.open(page("cnn2"), 390, 844)
    p.js("explorer.goTo(explorer.events.list.findIndex((e) => e.kind === 'delivered') + 1)")
    check(p.js("const e = document.getElementById('event'); return e.scrollWidth <= e.clientWidth + 1 && e.clientWidth > 300"), "the sentence is cut")
    check(p.js("return [...document.querySelectorAll('#phases button')].every((b) => { const r = b.getBoundingClientRect();"
               "return r.width > 20 && r.right <= innerWidth; })"), "phases")


if __name__ == "__main__":
    run(globals())
