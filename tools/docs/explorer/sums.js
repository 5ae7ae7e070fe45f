// Sums over a recording: time and kept memory by operation and by module, and which lane waited for what.

class Sums {
  constructor(model, events) {
    Object.assign(this, {model, events});
  }

  // [{node, name, path, lane, forward, backward, kept}] of all operations that left a node. A node's backward is all of its runs.
  get operations() {
    if (this.rows) return this.rows;
    const {model} = this, backward = new Float64Array(model.nodes.length);
    for (const span of this.backwards()) backward[span.node] += span.end - span.start;
    this.rows = model.nodes.map((row, n) => {
      const op = model.operationOf(n);
      return {node: n, name: model.nodeTitle(n), path: op && op.module >= 0 ? model.modules[op.module].path : '', lane: model.lane(n), forward: model.forwardTime(n),
              backward: backward[n], kept: op ? op.saved.reduce((sum, s) => sum + s.bytes, 0) : 0};
    });
    return this.rows;
  }

  // Runs of nodes, by their beginnings.
  backwards() {
    if (this.spans) return this.spans;
    const open = new Map();
    this.spans = [];
    this.events.list.forEach((e, i) => {
      if (e.kind === 'begin') open.set(e.node, i);
      else if (e.kind === 'end' && open.has(e.node)) {
        const at = open.get(e.node);
        this.spans.push({node: e.node, event: at, start: this.events.times[at], end: e.time});
        open.delete(e.node);
      }
    });
    return this.spans.sort((a, b) => a.start - b.start);
  }

  // [{module, depth, forward, backward, kept}] with what is inside of them, in the order of a tree whose siblings are sorted by time.
  get modules() {
    if (this.tree) return this.tree;
    const {model} = this, none = () => ({forward: 0, backward: 0, kept: 0});
    const sums = model.modules.map((row, m) => ({module: m, depth: model.depth[m], ...none()}));
    const add = (m, what, x) => { for (; m >= 0; m = model.modules[m].parent) sums[m][what] += x; };
    for (const row of this.operations) {
      const m = model.moduleOf[row.node];
      add(m, 'backward', row.backward);
      add(m, 'kept', row.kept);
    }
    // Of all operations, with what left no node.
    model.operations.forEach((op) => {
      if (op.node < 0 || !model.nodes[op.node].in_backward) add(op.module, 'forward', op.end - op.start);
    });
    const children = new Lists();
    sums.forEach((row) => children.add(model.modules[row.module].parent, row));
    const time = (row) => row.forward + row.backward;
    const walk = (m) => [...children.get(m)].filter(time).sort((a, b) => time(b) - time(a)).flatMap((row) => [row, ...walk(row.module)]);
    this.tree = walk(-1).filter((row) => model.modules[row.module].path !== '');
    return this.tree;
  }

  // Where nothing ran on a lane between its first and its last span, longest first: {lane, start, end, next, name, why, from}. `next` is the
  // node that ran then (-1: none), `from` the one of another lane for which it waited. `why`: "gradient" or "result" of `from`, "end" (it had
  // nothing left, and `from` ran last of all), "lane" (another rank was busy), "moved" (data came); "thread", "program": none of these.
  get waits() {
    if (this.gaps) return this.gaps;
    const {model, events} = this;
    const shortest = model.duration * 0.02, lanes = model.devices.map(() => []);
    model.operations.forEach(({device, node, name, start, end}) => {
      if (device >= 0 && !(node >= 0 && model.nodes[node].in_backward)) lanes[device].push({start, end, lane: device, node, name, forward: true});
    });
    for (const span of this.backwards()) lanes[model.lane(span.node)].push(span);
    this.gaps = [];
    lanes.forEach((list, lane) => {
      list.sort((a, b) => a.start - b.start);
      let end = list.length ? list[0].end : 0;
      list.forEach((span, i) => {
        if (span.start - end > shortest) {
          const why = this.reason(span, end, list.slice(i).find((s) => s.node >= 0));
          this.gaps.push({lane, start: end, end: span.start, next: span.node, name: span.name, ...why});
        }
        end = Math.max(end, span.end);
      });
      // Until the last lane's backward is through.
      const last = this.backwards().reduce((a, b) => !a || b.end > a.end ? b : a, null);
      if (last && list.length && last.end - end > shortest) this.gaps.push({lane, start: end, end: last.end, next: -1, from: last.node, why: 'end'});
    });
    for (const gap of this.gaps) if (gap.why === 'program' && gap.next < 0) this.lookBeside(gap, lanes);
    this.gaps.sort((a, b) => (b.end - b.start) - (a.end - a.start));
    return this.gaps;
  }

  // Why `span` did not begin at `end` already; `next` is the first from there on that left a node.
  reason(span, end, next) {
    const {model, events} = this;
    if (span.forward) {
      // A result of another lane that came in this time.
      const op = next && next.forward ? model.operationOf(next.node) : null;
      const came = (o) => o && o.device !== op.device && o.node >= 0 && o.end > end && o.end <= op.start;
      const late = op ? op.inputs.map((t) => model.operations[model.producers.get(t)]).find(came) : null;
      if (late) return {from: late.node, why: 'result', next: next.node};
      // Data that came from other lanes in this time.
      const moved = model.movements.findIndex((m) => m.end > end && m.end <= span.start && m.to.includes(span.lane) && m.from.some((d) => d !== span.lane));
      return {from: -1, why: moved >= 0 ? 'moved' : 'program', movement: moved};
    }
    const ready = events.last(events.ready, span.node, span.event + 1), at = ready >= 0 ? events.times[ready] : end;
    if (at <= end + (span.start - end) * 0.5) return {from: -1, why: 'thread'};
    let from = -1, latest = -1;
    for (const [user, i] of model.users.get(span.node)) {
      const delivered = events.last(events.delivered, model.edgeOffset[user] + i, span.event + 1);
      if (delivered > latest) [latest, from] = [delivered, user];
    }
    return {from, why: from < 0 ? 'program' : model.lane(from) === model.lane(span.node) ? 'thread' : 'gradient'};
  }

  // What leaves no node may be ranks that meet, of which no rows tell: was another rank busy for much of the gap, until about its end?
  lookBeside(gap, lanes) {
    const {model} = this, long = gap.end - gap.start;
    lanes.forEach((list, lane) => {
      if (model.devices[lane].rank === model.devices[gap.lane].rank) return;
      const inside = list.filter((span) => span.end > gap.start && span.end <= gap.end);
      const last = inside.reduce((a, b) => !a || b.end > a.end ? b : a, null);
      const busy = inside.reduce((sum, span) => sum + span.end - Math.max(span.start, gap.start), 0);
      if (last && busy > long * 0.3 && gap.end - last.end < long * 0.2) {
        const name = last.node >= 0 ? last.forward ? model.nodeTitle(last.node) : model.nodes[last.node].name : last.name;
        Object.assign(gap, {why: 'lane', other: lane, ran: name, until: last.end});
      }
    });
  }

  // By which of its lanes' gradients a sum was complete last: {lane, first, last} in ns, or null. `users`: [node, edge].
  lastToCome(users) {
    const {events, model} = this;
    const came = users.map(([user, i]) => ({at: events.delivered.first[model.edgeOffset[user] + i], lane: model.lane(user)})).filter(({at}) => at >= 0);
    if (new Set(came.map(({lane}) => lane)).size < 2) return null;
    came.sort((a, b) => a.at - b.at);
    const last = came[came.length - 1];
    return {lane: last.lane, first: events.times[came[0].at], last: events.times[last.at]};
  }
}
