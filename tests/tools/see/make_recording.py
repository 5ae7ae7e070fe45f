#!/usr/bin/env python3
"""Writes recordings without running anything: the data of the explorer's tests and of its frame times.

    make_recording.py KIND FILE

KIND: cnn1, cnn2, cnn4 (a step of a convolutional network on one, two, four devices), gptN (a step of a transformer whose graph has
about N nodes), hostile (cnn2 with names that try to be markup), ranks (two processes), changed (cnn2 of which one operation gives other
bits), nan (cnn2 with a NaN in a gradient), second (a backward that records a graph of its own, and a backward through that), casts (two
calls of one layer under autocast).

It plays a backward as the engine would: every lane runs the newest node that is ready, and the lane that completes a
bucket reduces it.
The members are those of tools/see/recording_data.h.
"""

import gzip
import heapq
import json
import math
import random
import sys

HOSTILE = "</script><img src=x onerror=window.hacked=1>\"'&<b>\u2028 {}"


class Recording:
    def __init__(self, title, devices, ranks=1):
        self.random = random.Random(title)
        self.values = [random.Random(title + str(i)) for i in range(len(devices))]  # of each device's tensors
        self.data = {
            "ramet_recording": 1, "program": "make_recording", "title": title, "library": "made", "created": "2026-11-27T08:00:00Z", "began": 0,
            "notes": ["Made by tests/tools/see/make_recording.py: no step was run, and times are invented."], "ranks": ranks,
            "duration": 0, "devices": [{"name": n, "kind": k, "rank": r} for n, k, r in devices]}
        for name in ("sources", "modules", "tensors", "statistics", "operations", "nodes", "kernels", "movements", "buckets", "events",
                     "parameters", "memory", "findings"):
            self.data[name] = []
        self.clock = [0] * len(devices)
        self.module_ids = {}
        self.sequence = 0
        self.live = []  # time, device, bytes, owner, ids

    def __getattr__(self, name):
        return self.__dict__["data"][name]

    def add(self, list_name, /, **row):
        rows = self.data[list_name]
        rows.append(row)
        return len(rows) - 1

    def module(self, path, type_):
        if path not in self.module_ids:
            parent = self.module_ids.get(path.rpartition(".")[0], -1) if path else -1
            self.module_ids[path] = self.add("modules", path=path, type=type_, parent=parent)
        return self.module_ids[path]

    def source(self, line, file="model.cc", function="forward"):
        row = {"file": file, "function": function, "line": line}
        if row not in self.sources:
            self.sources.append(row)
        return self.sources.index(row)

    def measured(self, count, device, scale=1.0, nans=0, zeros=0.0):
        """A bell, as most tensors are."""
        values = self.values[device]
        spread = abs(values.gauss(scale, scale * 0.1)) + 1e-12
        mean = values.gauss(0, spread * 0.1)
        weights = [math.exp(-((i - 15.5) / 6.5) ** 2) for i in range(32)]
        total = sum(weights)
        bins = [int(count * w / total) for w in weights]
        bins[16] += count - nans - sum(bins)
        return self.add("statistics", count=count, zeros=int(count * zeros), nans=nans, infinities=0, min=mean - 2.5 * spread,
                        max=mean + 2.5 * spread, mean=mean, deviation=spread, histogram=bins,
                        digest=values.getrandbits(64))

    def tensor(self, shape, device, name="", scale=1.0, nans=0, zeros=0.0, storage=None):
        count = math.prod(shape)
        return self.add("tensors", shape=list(shape), dtype="float32", device=device,
                        storage=len(self.tensors) if storage is None else storage, bytes=4 * count, name=name,
                        statistics=self.measured(count, device, scale, nans, zeros))

    def parameter(self, name, shape, device=0, requires_grad=True):
        t = self.tensor(shape, device, name, scale=1 / math.sqrt(max(1, math.prod(shape[1:]))))
        node = -1
        p = len(self.parameters)
        if requires_grad:
            node = self.node("AccumulateGrad", device, -1, [], leaf=True, parameter=p)
        self.add("parameters", name=name, tensor=t, gradient=-1, node=node, requires_grad=requires_grad, contributors=[])
        self.live.append((0, device, self.tensors[t]["bytes"], "parameter " + name, {"storage": t, "parameter": p}))
        return p

    def node(self, name, device, operation, edges, leaf=False, moves=False, reduces=False, parameter=-1):
        self.sequence += 1
        return self.add("nodes", name=name, operation=operation, device=device, parameter=parameter, leaf=leaf, moves=moves,
                        reduces=reduces, in_backward=False, sequence=self.sequence,
                        edges=[{"to": to, "slot": slot, "tensor": -1} for to, slot in edges])

    def call(self, name, module, inputs, shape, device, replica=-1, line=10, node=None, saves=(), moves=False, zeros=0.0, cost=None):
        """inputs: (tensor, node, slot). Returns (tensor, node, 0)."""
        begin = self.clock[device]
        took = cost or 2000 + math.prod(shape) * 3
        self.clock[device] += took
        out = self.tensor(shape, device, zeros=zeros)
        saved = [{"tensor": t, "bytes": self.tensors[t]["bytes"], "version": 0} for t in ([out] if saves == "out" else saves)]
        scope = "step > forward"
        op = self.add("operations", name=name, module=module, scope=scope, source=self.source(line), inputs=[i[0] for i in inputs],
                      outputs=[out], versions=[0] * len(inputs), saved=saved, device=device, replica=replica,
                      thread=device + 1, node=-1, start=begin, end=begin + took)
        n = self.node(node or name.title().replace("_", "") + "Backward0", device, op, [(i[1], i[2]) for i in inputs], moves=moves)
        self.operations[op]["node"] = n
        for edge, i in zip(self.nodes[n]["edges"], inputs):
            edge["tensor"] = i[0]
        self.add("kernels", name=name + "_forward", device=device, operation=op, node=-1, scope=scope, thread=device + 1,
                 start=begin + took // 10, end=begin + took, bytes=8 * math.prod(shape), flops=math.prod(shape) * 20, replayed=False)
        self.live.append((begin, device, self.tensors[out]["bytes"], "output of " + name, {"storage": out, "operation": op}))
        return out, n, 0

    def event(self, kind, time, **more):
        row = {"kind": kind, "time": int(time), "node": -1, "edge": -1, "bucket": -1, "device": -1, "tensor": -1, "thread": 0, "text": ""}
        row.update(more)
        self.events.append(row)

    def backward(self, root, nan_at=None):
        """Every lane runs its newest ready node."""
        missing, reach, stack, into = {}, set(), [root], {}
        while stack:
            n = stack.pop()
            if n in reach:
                continue
            reach.add(n)
            for e in self.nodes[n]["edges"]:
                if e["to"] >= 0:
                    missing[e["to"]] = missing.get(e["to"], 0) + 1
                    into.setdefault(e["to"], set()).add(n)
                    stack.append(e["to"])
        bucket_of = {m: b for b, row in enumerate(self.buckets) for m in row["members"]}
        left = {b: len([m for m in row["members"] if m in reach]) for b, row in enumerate(self.buckets)}
        start = max(self.clock) + 1000
        self.clock = [start] * len(self.clock)
        self.event("backward_begin", start, node=root, device=self.nodes[root]["device"])
        queue, order = [], 0

        def ready(n, time):
            self.event("ready", time, node=n, device=self.nodes[n]["device"])
            heapq.heappush(queue, (max(time, self.clock[self.nodes[n]["device"]]), -self.nodes[n]["sequence"], n, time))

        def reduce(b, time):
            row = self.buckets[b]
            lasts = 1500 + row["bytes"] // 8
            device = row["device"]
            self.event("reduce_begin", time, bucket=b, device=device)
            self.event("reduce_end", time + lasts, bucket=b, device=device)
            froms = sorted({self.nodes[i]["device"] for m in row["members"] for i in into[m]})
            self.add("movements", kind=row["kind"], **{"from": [self.tensor([1], d) for d in froms]}, to=[self.tensor([1], device)], bytes=row["bytes"], operation=-1,
                     node=row["members"][0], bucket=b, start=int(time), end=int(time + lasts))
            for m in row["members"]:
                for e in self.nodes[m]["edges"]:
                    deliver(m, e, 0, time + lasts)

        def deliver(n, edge, index, time):
            to = edge["to"]
            p = self.parameters[self.nodes[to]["parameter"]] if self.nodes[to]["leaf"] else None
            shape = self.tensors[p["tensor"]]["shape"] if p else self.tensors[edge["tensor"]]["shape"] if edge["tensor"] >= 0 else [1]
            bad = 3 if nan_at is not None and n == nan_at else 0
            depth = self.nodes[n]["sequence"] / self.sequence
            t = self.tensor(shape, self.nodes[n]["device"], scale=0.01 * 10 ** (-2 * (1 - depth)), nans=bad)
            edge["tensor"] = t
            self.event("delivered", time, node=n, edge=index, tensor=t, device=self.nodes[n]["device"])
            missing[to] -= 1
            if missing[to]:
                return
            if to in bucket_of:
                b = bucket_of[to]
                self.event("slot", time, bucket=b, node=to, device=self.nodes[to]["device"])
                left[b] -= 1
                if not left[b]:
                    reduce(b, time)
            else:
                ready(to, time)

        ready(root, start)
        while queue:
            at, _, n, since = heapq.heappop(queue)
            row = self.nodes[n]
            d = row["device"]
            if at < max(since, self.clock[d]):
                heapq.heappush(queue, (max(since, self.clock[d]), -row["sequence"], n, since))
                continue
            op = self.operations[row["operation"]] if row["operation"] >= 0 else None
            took = 700 if row["leaf"] else int((op["end"] - op["start"]) * 1.8 * self.random.uniform(0.9, 1.2)) if op else 1500
            self.clock[d] = at + took
            self.event("begin", at, node=n, device=d, thread=d + 1)
            if not row["leaf"]:
                self.add("kernels", name=row["name"], device=d, operation=-1, node=n, scope="step > backward", thread=d + 1,
                         start=int(at + took * 0.1), end=int(at + took), bytes=-1, flops=-1, replayed=False)
            for i, e in enumerate(row["edges"]):
                if e["to"] >= 0:
                    deliver(n, e, i, at + took)
            if row["leaf"]:
                p = self.parameters[row["parameter"]]
                t = self.tensor(self.tensors[p["tensor"]]["shape"], d, scale=0.01 * 10 ** (-2 * self.random.random()))
                p["gradient"] = t
                p["contributors"] = sorted(into.get(n, ()))
                self.event("accumulated", at + took, node=n, tensor=t, device=d)
                self.live.append((at, d, self.tensors[t]["bytes"], "gradient of " + p["name"], {"storage": t, "node": n}))
            self.event("end", at + took, node=n, device=d, thread=d + 1)
            order += 1
        self.clock = [max(self.clock + [m["end"] for m in self.movements])] * len(self.clock)
        self.event("backward_end", self.clock[0])

    def step(self, name):
        begin = self.clock[0] + 2000
        self.event("step_begin", begin, text=name, device=0)
        self.add("kernels", name="adam_step", device=0, operation=-1, node=-1, scope="step > optimizer", thread=1, start=begin + 500,
                 end=begin + 9000, bytes=-1, flops=-1, replayed=False)
        self.event("step_end", begin + 9500, text=name, device=0)
        self.clock = [begin + 9500] * len(self.clock)

    def finish(self):
        self.events.sort(key=lambda e: e["time"])
        self.data["duration"] = max(self.clock) + 3000
        backward = next(e["time"] for e in self.events if e["kind"] == "backward_begin")
        ended = max(e["time"] for e in self.events if e["kind"] == "backward_end")
        for device in range(len(self.devices)):
            changes, blocks = [], []
            for time, d, size, owner, ids in self.live:
                if d != device:
                    continue
                gone = None
                if owner.startswith("output"):
                    gone = backward + (ended - backward) * (1 - time / max(1, backward)) * 0.9 + 1000
                changes.append((int(time), size))
                if gone:
                    changes.append((int(gone), -size))
                blocks.append((time, gone, size, owner, ids))
            changes.sort()
            curve, total, peak, peak_time = [], 0, 0, 0
            for time, size in changes:
                total += size
                if curve and curve[-1][0] == time:
                    curve[-1][1] = total
                else:
                    curve.append([time, total])
                if total > peak:
                    peak, peak_time = total, time
            at_peak = [{"storage": ids.get("storage", -1), "bytes": size, "owner": owner, "operation": ids.get("operation", -1),
                        "node": ids.get("node", -1), "parameter": ids.get("parameter", -1)}
                       for time, gone, size, owner, ids in blocks if time <= peak_time and (gone is None or gone > peak_time)]
            at_peak.sort(key=lambda b: -b["bytes"])
            if curve:
                self.add("memory", device=device, curve=curve, peak=peak, peak_time=peak_time, at_peak=at_peak[:200])
        return self.data


def cnn(r, devices, batch=8, hostile=""):
    """conv, relu, pool, twice, then two linear layers; replicas lead to ReduceAdd nodes in buckets."""
    h = hostile
    r.module("", "Cnn" + h)
    names = {}
    for path, type_ in (("features", "Sequential"), ("features.0", "Conv2d"), ("features.1", "ReLU"), ("features.2", "MaxPool2d"),
                        ("features.3", "Conv2d"), ("features.4", "ReLU"), ("features.5", "MaxPool2d"), ("classifier", "Sequential"),
                        ("classifier.0", "Linear"), ("classifier.1", "ReLU"), ("classifier.2", "Linear")):
        names[path] = r.module(path + h if "." not in path else path.replace(".", h + "."), type_ + h)
    d0 = devices[0]
    params = {}
    for name, shape in (("features.0.weight", (16, 1, 3, 3)), ("features.0.bias", (16,)), ("features.3.weight", (32, 16, 3, 3)),
                        ("features.3.bias", (32,)), ("classifier.0.weight", (64, 1568)), ("classifier.0.bias", (64,)),
                        ("classifier.2.weight", (10, 64)), ("classifier.2.bias", (10,))):
        params[name] = r.parameter(name.replace(".", h + ".", 1) if h else name, shape, d0)
    frozen = r.parameter("scale" + h, (1,), d0, requires_grad=False)
    several = len(devices) > 1
    adders = {}
    moved = lambda a, b: {"from": [r.tensor([1], d) for d in a], "to": [r.tensor([1], d) for d in b]}
    if several:
        for name, p in params.items():
            row = r.parameters[p]
            adders[name] = r.node("ReduceAdd(%s)" % row["name"], d0, -1, [(row["node"], 0)], reduces=True)
        groups = [list(params)[:4], list(params)[4:6], list(params)[6:]]
        for g in groups:
            r.add("buckets", kind="reduce_add", members=[adders[n] for n in g], device=d0,
                  bytes=sum(r.tensors[r.parameters[params[n]]["tensor"]]["bytes"] for n in g))
        begin = r.clock[d0]
        r.add("movements", kind="broadcast", **moved([d0], devices[1:]), bytes=r.tensors[0]["bytes"] * 3, operation=-1, node=-1,
              bucket=-1, start=begin, end=begin + 4000)
        r.add("movements", kind="scatter", **moved([d0], devices), bytes=4 * 784 * batch * len(devices), operation=-1, node=-1,
              bucket=-1, start=begin + 4500, end=begin + 9000)
        for d in devices:
            r.clock[d] = begin + 9500

    def param(name, replica):
        p = r.parameters[params[name]]
        return (p["tensor"], adders[name], replica) if several else (p["tensor"], p["node"], 0)

    outs = []
    for replica, d in enumerate(devices):
        rep = replica if several else -1
        x = (r.tensor((batch, 1, 28, 28), d), -1, 0)

        def block(x, i, cin, cout, size):
            m = "features.%d" % i
            y = r.call("convolution", names[m], [x, param(m + ".weight", replica), param(m + ".bias", replica)],
                       (batch, cout, size, size), d, rep, 12 + i, saves=[x[0], r.parameters[params[m + ".weight"]]["tensor"]])
            y = r.call("relu", names["features.%d" % (i + 1)], [y], (batch, cout, size, size), d, rep, 13 + i, saves="out", zeros=0.5)
            return r.call("max_pool2d", names["features.%d" % (i + 2)], [y], (batch, cout, size // 2, size // 2), d, rep, 14 + i,
                          node="MaxPool2DWithIndicesBackward0", saves=[y[0]])
        y = block(block(x, 0, 1, 16, 28), 3, 16, 32, 14)
        y = r.call("view", names["classifier"], [y], (batch, 1568), d, rep, 20, cost=900)
        y = r.call("addmm", names["classifier.0"], [param("classifier.0.bias", replica), y, param("classifier.0.weight", replica)],
                   (batch, 64), d, rep, 21, saves=[y[0]])
        y = r.call("relu", names["classifier.1"], [y], (batch, 64), d, rep, 22, saves="out", zeros=0.5)
        y = r.call("addmm", names["classifier.2"], [param("classifier.2.bias", replica), y, param("classifier.2.weight", replica)],
                   (batch, 10), d, rep, 23, saves=[y[0]])
        outs.append(y)
    y = outs[0]
    if several:
        r.clock[d0] = max(r.clock)
        begin = r.clock[d0]
        y = r.call("gather", -1, outs, (batch * len(devices), 10), d0, node="GatherBackward", moves=True, line=30)
        r.add("movements", kind="gather", **moved(devices, [d0]), bytes=40 * batch * len(devices), operation=len(r.operations) - 1,
              node=y[1], bucket=-1, start=begin, end=r.clock[d0])
    loss = r.call("cross_entropy", -1, [y], (), d0, line=31, node="CrossEntropyLossBackward0", saves=[y[0]])
    r.add("findings", kind="no gradient", text="scale%s has no gradient: it is frozen (requires_grad is false)" % h, node=-1,
          operation=-1, parameter=frozen)
    big = max(range(len(r.operations)), key=lambda i: sum(s["bytes"] for s in r.operations[i]["saved"]))
    r.add("findings", kind="large saved tensor", text="max_pool2d keeps %d bytes for the backward: the largest saved tensor" %
          sum(s["bytes"] for s in r.operations[big]["saved"]), node=r.operations[big]["node"], operation=big, parameter=-1)
    return loss[1]


def gpt(r, wanted):
    width, tokens, batch = 64, 32, 2
    r.module("", "Gpt")
    hidden = (batch, tokens, width)
    p = lambda name, shape: (lambda i: (r.parameters[i]["tensor"], r.parameters[i]["node"], 0))(r.parameter(name, shape))
    emb = r.module("embedding", "Embedding")
    r.module("blocks", "ModuleList")
    x = r.call("embedding", emb, [p("embedding.weight", (256, width))], hidden, 0, line=40)
    block = 0
    while len(r.nodes) + 36 < wanted:
        b = "blocks.%d" % block
        block += 1
        r.module(b, "Block")

        def linear(name, x, cin, cout, line):
            m = r.module(name, "Linear")
            return r.call("linear", m, [x, p(name + ".weight", (cout, cin)), p(name + ".bias", (cout,))], (batch, tokens, cout), 0,
                          line=line, saves=[x[0]])

        def norm(name, x, line):
            m = r.module(name, "LayerNorm")
            return r.call("layer_norm", m, [x, p(name + ".weight", (width,)), p(name + ".bias", (width,))], hidden, 0, line=line,
                          node="NativeLayerNormBackward0", saves=[x[0]])
        n = norm(b + ".ln1", x, 50)
        attn = r.module(b + ".attn", "Attention")
        heads = []
        for which in "qkv":
            y = linear(b + ".attn." + which, n, width, width, 52)
            y = r.call("view", attn, [y], (batch, tokens, 4, 16), 0, line=53, cost=500)
            heads.append(r.call("transpose", attn, [y], (batch, 4, tokens, 16), 0, line=53, cost=500))
        y = r.call("scaled_dot_product_attention", attn, heads, (batch, 4, tokens, 16), 0, line=55, saves=[h[0] for h in heads],
                   node="ScaledDotProductAttentionBackward0")
        y = r.call("transpose", attn, [y], (batch, tokens, 4, 16), 0, line=56, cost=500)
        y = r.call("reshape", attn, [y], hidden, 0, line=56, cost=900)
        y = linear(b + ".attn.proj", y, width, width, 57)
        x = r.call("add", r.module_ids[b], [x, y], hidden, 0, line=58)
        n = norm(b + ".ln2", x, 60)
        mlp = r.module(b + ".mlp", "Mlp")
        y = linear(b + ".mlp.fc", n, width, 4 * width, 61)
        y = r.call("gelu", mlp, [y], (batch, tokens, 4 * width), 0, line=62, saves=[y[0]])
        y = linear(b + ".mlp.proj", y, 4 * width, width, 63)
        x = r.call("add", r.module_ids[b], [x, y], hidden, 0, line=64)
    head = r.module("head", "Linear")
    y = r.call("linear", head, [x, p("head.weight", (256, width))], (batch, tokens, 256), 0, line=70, saves=[x[0]])
    return r.call("cross_entropy", -1, [y], (), 0, line=71, node="CrossEntropyLossBackward0")[1]


def double_backward(r):
    """y = sum(linear(x)) with a backward that records a mm; the mean of that has a backward of its own."""
    r.module("", "Net")
    m = r.module("linear", "Linear")
    weight = r.parameters[r.parameter("linear.weight", (4, 4))]
    w = (weight["tensor"], weight["node"], 0)
    y = r.call("linear", m, [(r.tensor((2, 4), 0), -1, 0), w], (2, 4), 0, line=80, saves=[w[0]])
    first = r.call("sum", -1, [y], (), 0, line=81)
    r.backward(first[1])
    begin = next(e["time"] for e in r.events if e["kind"] == "begin" and e["node"] == y[1])
    g = r.call("mm", -1, [w], (2, 4), 0, line=82)
    op = r.operations[r.nodes[g[1]]["operation"]]
    op.update(start=begin + 10, end=begin + 20)  # while the linear's backward runs
    r.nodes[g[1]]["in_backward"] = True
    z = r.call("mean", -1, [g], (), 0, line=83)
    return z[1]


def casts(r):
    """Two calls of one linear layer under autocast: its weight is cast once, and the input, which has no gradient, without a node."""
    r.module("", "Net")
    m = r.module("fc", "Linear")
    weight = r.parameters[r.parameter("fc.weight", (4, 4))]

    def narrow(made, **more):
        r.tensors[made[0]].update(dtype="bfloat16", bytes=r.tensors[made[0]]["bytes"] // 2)
        r.operations[-1].update(more)
        return made
    x = narrow(r.call("to", m, [(r.tensor((2, 4), 0), -1, 0)], (2, 4), 0, line=90, node="ToCopyBackward0"), autocast=True, reuses=0)
    r.nodes.pop()
    r.operations[-1]["node"] = -1
    w = narrow(r.call("to", m, [(weight["tensor"], weight["node"], 0)], (4, 4), 0, line=90, node="ToCopyBackward0"), autocast=True, reuses=1)
    y = narrow(r.call("linear", m, [(x[0], -1, 0), w], (2, 4), 0, line=90, saves=[x[0]]))
    y = narrow(r.call("linear", m, [y, w], (2, 4), 0, line=90, saves=[y[0], w[0]]))
    return r.call("mse_loss", -1, [y], (), 0, line=91, saves=[y[0]])[1]


def make(kind):
    cpu = lambda n, rank=0: [("cpu:%d" % i, "cpu", rank) for i in range(n)]
    if kind.startswith("gpt"):
        r = Recording("GPT, a step", cpu(1))
        root = gpt(r, int(kind[3:]))
    elif kind == "second":
        r = Recording("A backward through a backward", cpu(1))
        root = double_backward(r)
    elif kind == "casts":
        r = Recording("A layer under autocast", cpu(1))
        root = casts(r)
    elif kind == "ranks":
        r = Recording("Two ranks", cpu(1, 0) + cpu(1, 1), ranks=2)
        root = cnn(r, [0])
        second = cnn(r, [1])
        r.backward(second)
    else:
        n = int(kind[3:]) if kind.startswith("cnn") else 2
        h = HOSTILE if kind == "hostile" else ""
        r = Recording("CNN, a data-parallel step" + h, [(a + h, b, c) for a, b, c in cpu(n)])
        if h:
            r.data["notes"].append(h)
            r.data["program"] = h
            r.source(1, "/tmp/" + h, h)
        root = cnn(r, list(range(n)), hostile=h)
        if kind == "changed":  # the second relu of the first replica gives other bits
            r.statistics[r.tensors[r.operations[4]["outputs"][0]]["statistics"]]["digest"] ^= 1
        if h:
            for rows, key in ((r.operations, "name"), (r.nodes, "name"), (r.kernels, "name"), (r.operations, "scope")):
                for row in rows:
                    row[key] += h
    nan_at = next(i for i, n in enumerate(r.nodes) if n["name"].startswith("Addmm")) if kind == "nan" else None
    r.backward(root, nan_at)
    if nan_at is not None:
        r.add("findings", kind="nan", text="the gradient that AddmmBackward0 delivers has 3 NaN", node=nan_at, operation=-1, parameter=-1)
    r.step("Adam")
    return r.finish()


def main():
    kind, path = sys.argv[1:]
    text = json.dumps(make(kind), separators=(",", ":"))
    with gzip.open(path, "wt", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main()
