// What happened, as one list: operations of the forward, data that moved, and the recording's own events. A position p stands between
// two events: p of them have happened. Nothing is kept while walking: what was last before p is looked up, so that a step backward
// or a jump costs what a step forward does.

class Events {
  constructor(model) {
    this.model = model;
    this.list = this.merged(model);
    const nodes = model.nodes.length;
    const table = () => ({first: new Int32Array(nodes).fill(-1), more: new Lists()});
    this.opBegin = table();
    this.opEnd = table();
    this.ready = table();
    this.begin = table();
    this.end = table();
    this.failed = table();
    this.accumulated = table();
    this.slot = table();
    this.delivered = {first: new Int32Array(model.edgeOffset[nodes]).fill(-1), more: new Lists()};
    const buckets = () => ({first: new Int32Array(model.buckets.length).fill(-1), more: new Lists()});
    this.reduceBegin = buckets();
    this.reduceEnd = buckets();
    this.walks = new Lists();           // rank -> where backwards began
    this.beginsOfLane = new Lists();
    this.phases = [];                   // [position, name]
    this.list.forEach((e, i) => this.index(e, i));
    this.times = Float64Array.from(this.list, (e) => e.time);
    this.length = this.list.length;
  }

  merged(model) {
    const list = [];
    model.operations.forEach((row, o) => {
      list.push({kind: 'op_begin', time: row.start, operation: o, node: row.node, device: row.device,
                 order: row.start < row.end ? 2 : 0});
      list.push({kind: 'op_end', time: row.end, operation: o, node: row.node, device: row.device, order: 0,
                 tensor: row.outputs.length ? row.outputs[0] : -1});
    });
    model.movements.forEach((row, m) => {
      const [device] = [...row.to, ...row.from];  // of a rank that only sends there is no `to`
      if (row.bucket >= 0 || device === undefined) return;
      list.push({kind: 'move_begin', time: row.start, movement: m, node: -1, device, order: row.start < row.end ? 2 : 0});
      list.push({kind: 'move_end', time: row.end, movement: m, node: -1, device, order: 0});
    });
    let latest = 0;
    for (const e of model.events) {
      latest = Math.max(latest, e.time);  // their order counts, not their clocks
      list.push({...e, time: latest, order: 1});
    }
    list.forEach((e, i) => { e.number = i; });
    return list.sort((a, b) => a.time - b.time || a.order - b.order || a.number - b.number);
  }

  put(table, key, i) {
    if (key < 0) return;
    if (table.first[key] < 0) table.first[key] = i;
    else table.more.add(key, i);
  }

  index(e, i) {
    const tables = {op_begin: 'opBegin', op_end: 'opEnd', ready: 'ready', begin: 'begin', end: 'end', failed: 'failed',
                    accumulated: 'accumulated', slot: 'slot'};
    if (tables[e.kind]) this.put(this[tables[e.kind]], e.node, i);
    if (e.kind === 'begin' || e.kind === 'op_begin') this.beginsOfLane.add(this.laneOf(e), i);
    if (e.kind === 'delivered' && e.node >= 0 && e.edge >= 0) this.put(this.delivered, this.model.edgeOffset[e.node] + e.edge, i);
    if (e.kind === 'reduce_begin') this.put(this.reduceBegin, e.bucket, i);
    if (e.kind === 'reduce_end') this.put(this.reduceEnd, e.bucket, i);
    const phase = this.phases.length ? this.phases[this.phases.length - 1][1] : 'forward';
    if (e.kind === 'backward_begin') {
      this.walks.add(this.rankOf(e), i);
      this.phases.push([i, 'backward']);
    } else if (e.kind === 'backward_end') this.phases.push([i, 'after backward']);
    else if (e.kind === 'op_begin' && e.node >= 0 && phase === 'after backward') this.phases.push([i, 'forward']);
    else if (e.kind === 'step_begin') this.phases.push([i, 'optimizer']);
  }

  laneOf(e) { return e.device >= 0 ? e.device : e.node >= 0 ? this.model.lane(e.node) : 0; }
  rankOf(e) {
    const lane = this.laneOf(e);
    return this.model.devices[lane] ? this.model.devices[lane].rank : 0;
  }

  // The last entry of a table before p; -1: none.
  last(table, key, p) {
    let found = table.first[key];
    if (found < 0 || found >= p) return -1;
    const more = table.more.map.get(key);
    if (more) {
      const i = lowerBound(more, p);
      if (i > 0) found = more[i - 1];
    }
    return found;
  }

  // Where the backward began that p is in or after.
  walkOf(n, p) {
    const device = this.model.devices[this.model.lane(n)];
    const walks = this.walks.map.get(device ? device.rank : 0);
    if (!walks) return 0;
    const i = lowerBound(walks, p);
    return i > 0 ? walks[i - 1] : p;
  }

  // absent, computing, made, waiting, ready, running, done, failed
  state(n, p) {
    const row = this.model.nodes[n];
    if (row.operation >= 0) {
      const made = this.last(this.opEnd, n, p);
      if (made < 0) return this.last(this.opBegin, n, p) >= 0 ? 'computing' : 'absent';
    }
    const walk = this.walkOf(n, p);
    if (this.last(this.failed, n, p) >= walk && this.failed.first[n] >= 0 && this.last(this.failed, n, p) >= 0) return 'failed';
    const begin = this.last(this.begin, n, p), end = this.last(this.end, n, p);
    if (begin >= 0 && begin >= walk && begin > end) return 'running';
    if (end >= 0 && end >= walk) return 'done';
    const bucket = this.model.bucketOf.get(n);
    if (bucket !== undefined && begin < 0) {
      const reduced = this.last(this.reduceEnd, bucket, p), reducing = this.last(this.reduceBegin, bucket, p);
      if (reducing >= 0 && reducing >= walk && reducing > reduced) return 'running';
      if (reduced >= 0 && reduced >= walk) return 'done';
      const slot = this.last(this.slot, n, p);
      if (slot >= 0 && slot >= walk) return 'ready';
    }
    const added = row.leaf ? this.last(this.accumulated, n, p) : -1;
    if (added >= 0 && added >= walk) return 'done';
    const ready = this.last(this.ready, n, p);
    if (ready >= 0 && ready >= walk) return 'ready';
    return 'made';
  }

  // Has edge `i` of n delivered in this backward? The event, or -1.
  deliveredAt(n, i, p) {
    const at = this.last(this.delivered, this.model.edgeOffset[n] + i, p);
    return at >= 0 && at >= this.walkOf(n, p) ? at : -1;
  }

  // [full, all] of the gradients that come to n.
  filled(n, p) {
    const users = this.model.users.get(n);
    let full = 0;
    for (const [user, i] of users) full += this.deliveredAt(user, i, p) >= 0;
    return [full, users.length];
  }

  // A leaf's gradient at p: a tensor, or -1.
  gradientAt(n, p) {
    const at = this.last(this.accumulated, n, p);
    return at < 0 ? -1 : this.list[at].tensor;
  }

  bucketState(b, p) {
    const members = this.model.buckets[b].members;
    const walk = members.length ? this.walkOf(members[0], p) : 0;
    const since = (table) => { const at = this.last(table, b, p); return at >= 0 && at >= walk ? at : -1; };
    const begin = since(this.reduceBegin), end = since(this.reduceEnd);
    const full = members.filter((m) => {
      const at = this.last(this.slot, m, p);
      return at >= 0 && at >= walk;
    }).length;
    return {full, all: members.length, state: begin > end ? 'running' : end >= 0 ? 'done' : full ? 'filling' : 'empty'};
  }

  // Nodes under way in a lane, newest first. A lane runs few at once.
  running(lane, p) {
    const begins = this.beginsOfLane.get(lane), found = [];
    for (let i = lowerBound(begins, p) - 1, looked = 0; i >= 0 && looked < 16; --i, ++looked) {
      const e = this.list[begins[i]];
      if (e.node < 0) continue;
      const state = this.state(e.node, p);
      if (state === 'running' || state === 'computing') found.push(e.node);
    }
    return [...new Set(found)];
  }

  phase(p) {
    const i = lowerBound(this.phases, p, (v) => v[0]);
    return i > 0 ? this.phases[i - 1][1] : 'forward';
  }

  timeAt(p) { return p > 0 ? this.times[p - 1] : 0; }
  positionAt(time) { return lowerBound(this.times, time + 0.5); }

  isBad(i) {
    const e = this.list[i];
    return e.tensor !== undefined && this.model.isBad(e.tensor, e.kind !== 'op_end');
  }

  isSecond(e) { return e.node >= 0 && this.model.nodes[e.node].in_backward; }

  // " of block0.fc1": the module of an operation or of the node that it left. A parameter's own nodes have its name.
  inModule(module) { return module >= 0 && this.model.modules[module].path ? ' of ' + this.model.modules[module].path : ''; }
  operationName(o) { return this.model.operations[o].name + this.inModule(this.model.operations[o].module); }
  nodeName(n) {
    const m = this.model;
    if (m.nodes[n].leaf) return m.nodeTitle(n);
    return m.nodes[n].name + (m.layout.zone[n] === 2 ? this.inModule(m.moduleOf[n]) : '');
  }

  describe(i) {
    if (i < 0) return 'Nothing has happened yet.';
    const e = this.list[i], m = this.model;
    const name = e.node >= 0 ? /^op_/.test(e.kind) ? m.nodes[e.node].name : this.nodeName(e.node) : '';
    const where = e.device >= 0 ? ' on ' + m.laneName(e.device) : '';
    const tensor = e.tensor >= 0 ? ' (' + formatShape(m.tensors[e.tensor]) + ')' : '';
    const bad = this.isBad(i) ? ' It holds NaN or infinity.' : '';
    switch (e.kind) {
      case 'op_begin':
        if (m.casts.has(e.operation)) return m.castWords(e.operation).replace('a', 'A') + where + '.';
        return this.operationName(e.operation) + ' computes' + where + (this.isSecond(e) ? ', called by the backward' : '') + '.';
      case 'op_end':
        if (this.isSecond(e)) return this.operationName(e.operation) + ' is done' + where + ', and left ' + name + ' in the second graph.' + bad;
        if (m.casts.has(e.operation)) return 'The cast to ' + m.casts.get(e.operation).to + ' is done' + where + (e.node >= 0 ? ', and left ' + name : '') + '.' + bad;
        return this.operationName(e.operation) + ' is done' + where + (e.node >= 0 ? ', and left ' + name : '') + '.' + bad;
      case 'move_begin': return moveWords(m, e.movement) + ' begins.';
      case 'move_end': return moveWords(m, e.movement) + ' is done.';
      case 'backward_begin': return 'The backward begins at ' + name + '.';
      case 'backward_end': return 'The backward is done.';
      case 'ready': return name + ' has all of its gradients: it is ready.';
      case 'begin': return name + ' begins' + where + '.';
      case 'end': return name + ' is done' + where + '.';
      case 'failed': return name + ' failed: ' + e.text;
      case 'delivered': {
        const edge = e.node >= 0 && e.edge >= 0 ? m.nodes[e.node].edges[e.edge] : null;
        const to = edge && edge.to >= 0 ? this.nodeName(edge.to) : 'no node';
        return name + ' delivers a gradient' + tensor + ' to ' + to + (edge ? ', slot ' + edge.slot : '') + '.' + bad;
      }
      case 'accumulated': return name + ' has added up its gradient.' + bad;
      case 'slot': {
        const s = this.bucketState(e.bucket, i + 1);
        return name + ' is complete in bucket ' + e.bucket + ': ' + s.full + ' of ' + s.all + ' members.';
      }
      case 'reduce_begin': return 'Bucket ' + e.bucket + ' is full: its reduction begins' + where + '.';
      case 'reduce_end': return 'Bucket ' + e.bucket + ' is reduced.';
      case 'step_begin': return (e.text || 'The optimizer') + ' begins its step.';
      case 'step_end': return (e.text || 'The optimizer') + ' has made its step.';
      default: return e.kind + (name ? ' ' + name : '') + (e.text ? ': ' + e.text : '') + '.';
    }
  }
}

function moveWords(model, m) {
  const row = model.movements[m];
  const names = (lanes) => lanes.length > 4 ? lanes.length + ' devices' : lanes.map((d) => model.laneName(d)).join(', ');
  return row.kind + ' of ' + formatBytes(row.bytes) + (row.from.length ? ' from ' + names(row.from) : '') +
      (row.to.length ? ' to ' + names(row.to) : '');
}
