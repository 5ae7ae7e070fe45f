// Which boxes there are with some modules collapsed, and where: rows and columns of the layout, in pixels. A collapsed module is one
// box a lane, zone and step; rows in which nothing is left go.

const kRow = 46, kPad = 14, kFrameTop = 25, kFrameEnd = 8;
const kZones = [{width: 128, height: 25, pitch: 142}, {width: 66, height: 25, pitch: 80}, {width: 156, height: 34, pitch: 178}];
const kBucketPitch = 26, kBar = 24;

class Placement {
  constructor(model, collapsed) {
    this.model = model;
    this.collapsed = collapsed;
    this.items = [];
    this.itemOf = new Int32Array(model.nodes.length);
    this.group();
    this.rows();
    this.lanes();
    this.frame();
    this.connect();
  }

  // Boxes: nodes, or collapsed modules' nodes of one lane, zone and part.
  group() {
    const {layout} = this.model, keys = new Map(), firstRow = new Map();
    const outermost = (n) => {
      let found = -1;
      for (const m of this.model.modulesAround(n)) if (this.collapsed.has(m)) found = m;
      return found;
    };
    for (let n = 0; n < this.itemOf.length; ++n) {
      const m = this.collapsed.size && !this.model.barNodes[n] ? outermost(n) : -1;
      const lane = layout.lane[n], zone = layout.zone[n];
      if (m < 0) {
        this.itemOf[n] = this.items.length;
        this.items.push({node: n, module: -1, nodes: [n], lane, zone, row: layout.row[n], column: layout.column[n],
                         half: layout.half[n], bar: this.model.barNodes[n], part: layout.part[n]});
        continue;
      }
      const key = m + ' ' + lane + ' ' + zone + ' ' + layout.part[n], all = m + ' ' + layout.part[n];
      firstRow.set(all, Math.min(firstRow.get(all) ?? Infinity, layout.row[n]));
      let i = keys.get(key);
      if (i === undefined) {
        keys.set(key, i = this.items.length);
        this.items.push({node: -1, module: m, nodes: [], lane, zone, row: 0, column: 0, entry: Infinity, half: 0, bar: false, part: layout.part[n], all});
      }
      const item = this.items[i];
      item.nodes.push(n);
      if (layout.row[n] < item.entry) [item.entry, item.column] = [layout.row[n], layout.column[n]];  // where the way into it is
      this.itemOf[n] = i;
    }
    for (const item of this.items) if (item.module >= 0) item.row = firstRow.get(item.all);
    this.layoutBars = layout.bars.map((bar, b) => ({bar: b, row: bar.row, lanes: [...new Set([...bar.from, ...bar.to])].sort((x, y) => x - y),
                                                    kind: bar.kind, movements: bar.movements}));
    // Those of different ranks stand next to each other.
    let first = 0;
    this.layoutBars.forEach((bar, b) => {
      const meets = (other) => bar.lanes[0] <= other.lanes[other.lanes.length - 1] && other.lanes[0] <= bar.lanes[bar.lanes.length - 1];
      if (b && bar.row === layout.bars[b - 1].row + 1 && bar.lanes.length && !this.layoutBars.slice(first, b).some(meets)) bar.row = this.layoutBars[first].row;
      else first = b;
    });
  }

  // Rows that are used, from 0, with space for the heads of frames.
  rows() {
    const used = [...new Set([...this.items.map((i) => i.row), ...this.layoutBars.map((b) => b.row)])].sort((a, b) => a - b);
    const compact = new Map(used.map((row, i) => [row, i]));
    for (const item of this.items) item.r = compact.get(item.row);
    for (const bar of this.layoutBars) bar.r = compact.get(bar.row);
    this.rowCount = used.length;
    const lanes = this.model.devices.length;
    // Side by side where several boxes want one place; collectors and reductions two in a row.
    const taken = new Map();
    this.halves = new Set();
    for (const item of [...this.items].sort((a, b) => a.r - b.r || a.column - b.column)) {
      const key = ((item.r * lanes + item.lane) * 3 + item.zone) * 2 + item.half;
      item.c = Math.max(item.column, taken.get(key) ?? -Infinity);
      taken.set(key, item.c + 1);
      if (item.half) this.halves.add(item.r * lanes + item.lane);
    }
    // Columns that only closed modules had are left out.
    const leftmost = this.model.devices.map(() => Infinity);
    for (const item of this.items) if (item.zone === 2 && !item.bar) leftmost[item.lane] = Math.min(leftmost[item.lane], item.c);
    for (const item of this.items) if (item.zone === 2 && !item.bar) item.c -= leftmost[item.lane];
    this.moduleFrames();
    const before = new Float64Array(used.length + 1), after = new Float64Array(used.length + 1);
    for (const f of this.frames) {
      before[f.top] = Math.max(before[f.top], f.nesting * kFrameTop);
      after[f.bottom] = Math.max(after[f.bottom], f.inside * kFrameEnd);
    }
    this.y = new Float64Array(used.length + 1);
    const tall = new Uint8Array(used.length);  // rows with more than bars
    for (const item of this.items) if (!item.bar) tall[item.r] = 1;
    let y = 36;
    for (let r = 0; r < used.length; ++r) {
      y += before[r];
      this.y[r] = y;
      y += (tall[r] ? kRow : kBar + 12) + after[r];
    }
    this.y[used.length] = y;
    this.height = y + 20;
  }

  // Open modules with at least two boxes of the operations' zone.
  moduleFrames() {
    const frames = new Map();
    this.items.forEach((item, i) => {
      if (item.zone !== 2 || item.bar) return;
      let around = this.model.modulesAround(item.nodes[0]);
      if (item.module >= 0) around = around.slice(around.indexOf(item.module) + 1);
      for (const m of around) {
        const key = m + ' ' + item.lane + ' ' + item.part;
        let f = frames.get(key);
        if (!f) {
          frames.set(key, f = {module: m, lane: item.lane, top: item.r, bottom: item.r, left: item.c, right: item.c, count: 0,
                               depth: this.model.depth[m]});
        }
        f.top = Math.min(f.top, item.r);
        f.bottom = Math.max(f.bottom, item.r);
        f.left = Math.min(f.left, item.c);
        f.right = Math.max(f.right, item.c);
        f.count += 1;
      }
    });
    this.frames = [...frames.values()].filter((f) => f.count > 1).sort((a, b) => a.depth - b.depth);
    // How many frames begin in the same row inside of this one, and end with it: theirs is the room.
    const starts = new Map(), ends = new Map();
    for (const f of [...this.frames].reverse()) {
      const s = f.lane + ' ' + f.top, e = f.lane + ' ' + f.bottom;
      const at = starts.get(s) || [], to = ends.get(e) || [];
      const inside = (g) => g.left >= f.left && g.right <= f.right && g.depth > f.depth;
      f.nesting = 1 + Math.max(0, ...at.filter(inside).map((g) => g.nesting));
      f.inside = 1 + Math.max(0, ...to.filter(inside).map((g) => g.inside));
      at.push(f);
      to.push(f);
      starts.set(s, at);
      ends.set(e, to);
    }
  }

  lanes() {
    const columns = this.model.devices.map(() => [0, 0, 0]);
    for (const item of this.items) {
      if (!item.bar) columns[item.lane][item.zone] = Math.max(columns[item.lane][item.zone], item.c + 1);
    }
    this.placeBuckets();
    this.deepest = this.frames.reduce((most, f) => Math.max(most, f.depth), 0);
    const inset = this.deepest ? 6 + this.deepest * 7 : 0;
    // Lanes without a node of their own stand last.
    const idle = (lane) => !columns[lane][0] && !columns[lane][1] && !columns[lane][2];
    const order = this.model.devices.map((row, lane) => lane).sort((a, b) => idle(a) - idle(b) || a - b);
    let x = 0;
    this.laneBoxes = [];
    for (const lane of order) {
      const box = {x, lane, buckets: x + kPad, zones: []};
      let at = x + kPad + this.bucketColumns[lane] * kBucketPitch;
      for (let zone = 0; zone < 3; ++zone) {
        if (zone === 2 && columns[lane][2]) at += inset + (columns[lane][0] + columns[lane][1] ? 22 : 0);
        box.zones.push(at);
        at += columns[lane][zone] * kZones[zone].pitch;
      }
      box.width = Math.max(at + inset + 4 - x, idle(lane) ? 104 : 190);
      x += box.width + 10;
      this.laneBoxes[lane] = box;
    }
    this.width = Math.max(x - 10, 100);
    for (const item of this.items) this.box(item);
    for (const bar of this.layoutBars) {
      Object.assign(bar, {...this.across(bar.lanes.length ? bar.lanes : [0]), y: this.y[bar.r], h: kBar});
    }
    for (const b of this.bucketBoxes) {
      b.x = this.laneBoxes[b.lane].buckets + b.column * kBucketPitch;
      b.y = this.y[b.top] - 4;
      b.w = 18;
      b.h = this.y[b.bottom] + 37 - b.y;
    }
    this.byRow = [...this.items].sort((a, b) => a.y - b.y);
    this.tops = Float64Array.from(this.byRow, (i) => i.y);
  }

  // A bar's extent over lanes.
  across(lanes) {
    const boxes = lanes.map((lane) => this.laneBoxes[lane]), x = Math.min(...boxes.map((b) => b.x)) + kPad;
    return {x, w: Math.max(...boxes.map((b) => b.x + b.width)) - kPad - x};
  }

  box(item) {
    const zone = kZones[item.zone], lane = this.laneBoxes[item.lane];
    const halved = item.zone < 2 && this.halves.has(item.r * this.model.devices.length + item.lane);
    item.y = this.y[item.r] + (item.zone === 2 ? 0 : halved ? 22 * item.half - 4 : 4);
    if (item.bar) {
      Object.assign(item, {...this.across(this.model.lanesAround(item.node)), y: this.y[item.r], h: kBar});
      return;
    }
    item.x = lane.zones[item.zone] + item.c * zone.pitch;
    item.w = zone.width;
    item.h = halved ? 19 : zone.height;
  }

  // A bar next to the rows of its members; a column more where two would overlap.
  placeBuckets() {
    this.bucketColumns = this.model.devices.map(() => 0);
    this.bucketBoxes = this.model.buckets.map((row, b) => {
      const rows = row.members.map((m) => this.items[this.itemOf[m]].r);
      return {bucket: b, lane: Math.max(0, row.device), top: Math.min(...rows), bottom: Math.max(...rows), column: 0};
    }).filter((b) => b.top < Infinity && !this.model.emptyBucket[b.bucket]);
    const done = [];
    for (const b of [...this.bucketBoxes].sort((a, c) => a.top - c.top)) {
      while (done.some((d) => d.lane === b.lane && d.column === b.column && d.bottom >= b.top)) ++b.column;
      this.bucketColumns[b.lane] = Math.max(this.bucketColumns[b.lane], b.column + 1);
      done.push(b);
    }
  }

  frame() {
    for (const f of this.frames) {
      const lane = this.laneBoxes[f.lane], zone = kZones[2];
      const inner = f.inside * 7 - 1;
      f.x = lane.zones[2] + f.left * zone.pitch - inner - 2;
      f.w = (f.right - f.left) * zone.pitch + zone.width + 2 * inner + 4;
      f.y = this.y[f.top] - f.nesting * kFrameTop + 2;
      f.h = this.y[f.bottom] + zone.height + f.inside * kFrameEnd - f.y - 2;
    }
  }

  // Edges between boxes, those between the same two as one. Blocks of rows know the edges that cross them, for culling.
  connect() {
    const found = new Map();
    this.edges = [];
    const items = this.items.length;
    this.model.nodes.forEach((row, n) => {
      const from = this.itemOf[n];
      row.edges.forEach((e, i) => {
        if (e.to < 0 || this.itemOf[e.to] === from) return;
        const key = from * items + this.itemOf[e.to];
        const same = found.get(key);
        if (same) same.parts.push([n, i]);
        else {
          const edge = {from, to: this.itemOf[e.to], parts: [[n, i]]};
          found.set(key, edge);
          this.edges.push(edge);
        }
      });
    });
    const kBlock = 16, long = [];
    this.blocks = [];
    this.longEdges = long;
    this.edgesOfItem = new Lists();
    this.edges.forEach((edge, i) => {
      this.edgesOfItem.add(edge.from, i);
      this.edgesOfItem.add(edge.to, i);
      routeEdge(this, edge);
      const a = Math.min(this.items[edge.from].r, this.items[edge.to].r), b = Math.max(this.items[edge.from].r, this.items[edge.to].r);
      if (b - a > kBlock * 8) long.push(i);
      else for (let k = Math.floor(a / kBlock); k <= Math.floor(b / kBlock); ++k) (this.blocks[k] = this.blocks[k] || []).push(i);
    });
    this.blockOf = (y) => Math.floor(clamp(lowerBound(this.y, y) - 1, 0, Math.max(0, this.rowCount - 1)) / kBlock);
  }

  // Calls f with every edge that may be seen between two heights.
  edgesBetween(top, bottom, f) {
    this.stamp = this.stamp || new Int32Array(this.edges.length);
    this.round = (this.round || 0) + 1;
    const see = (i) => {
      if (this.stamp[i] === this.round) return;
      this.stamp[i] = this.round;
      f(this.edges[i], i);
    };
    for (let k = this.blockOf(top); k <= this.blockOf(bottom); ++k) if (this.blocks[k]) this.blocks[k].forEach(see);
    for (const i of this.longEdges) {
      const {from, to} = this.edges[i];
      if (Math.max(this.items[from].y, this.items[to].y) >= top && Math.min(this.items[from].y, this.items[to].y) <= bottom) see(i);
    }
  }
}

// Points of the line from the box that sends a gradient to the one that gets it: straight pieces or one curve.
function routeEdge(place, edge) {
  const from = place.items[edge.from], to = place.items[edge.to];
  if (to.zone < 2 && !to.bar) {
    // To a collector or a reduction: out to the left, along the gutter above the row, and in from the right.
    const slots = Math.max(1, place.model.users.get(to.nodes[0]).length);
    const slot = to.zone === 1 && to.node >= 0 ? place.model.nodes[edge.parts[0][0]].edges[edge.parts[0][1]].slot : 0;
    const y = to.y + to.h / 2 + (to.zone === 1 && slots > 1 ? clamp((slot - (slots - 1) / 2) * 4, -to.h / 2 + 3, to.h / 2 - 3) : 0);
    const x = to.x + to.w;
    if (from.zone < 2) {
      edge.points = [[from.x, from.y + from.h / 2], [x, to.y + to.h / 2]];
    } else if (from.lane === to.lane && Math.abs(from.r - to.r) <= 6) {
      const start = from.y + from.h / 2, out = from.x - 10;
      edge.points = [[from.x, start], [out, start], [out, y], [x, y]];
    } else {
      const gutter = from.y - 4 - 1.6 * (slot % 4) - to.half, out = from.x - 8;
      edge.points = [[from.x, from.y + from.h / 2], [out, from.y + from.h / 2], [out, gutter], [x + 10, gutter], [x + 10, y], [x, y]];
    }
    return;
  }
  const below = from.y > to.y;
  const y0 = below ? from.y : from.y + from.h, y1 = below ? to.y + to.h : to.y;
  const middle = (item, other) => item.bar ? clamp(other.x + other.w / 2, item.x + 8, item.x + item.w - 8) : item.x + item.w / 2;
  const x0 = middle(from, to), x1 = middle(to, from);
  const far = Math.abs(from.r - to.r) > 1 && Math.abs(x0 - x1) < 20 && !from.bar && !to.bar;
  if (far) {
    // Past the boxes between, on the right.
    const side = Math.max(from.x + from.w, to.x + to.w) + 9;
    edge.points = [[from.x + from.w - 14, y0], [side, y0 - 14], [side, y1 + 14], [to.x + to.w - 14, y1]];
  } else {
    const bend = Math.min(40, Math.abs(y0 - y1) / 2) * (below ? 1 : -1);
    edge.curve = true;
    edge.points = [[x0, y0], [x0, y0 - bend], [x1, y1 + bend], [x1, y1]];
  }
}
