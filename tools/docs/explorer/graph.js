// Draws the graph on a canvas: what can be seen of it, with as much detail as there is room for.

const kText = 0.42, kSecond = 0.74, kBoxes = 0.2;  // scales from which names, second lines and outlines are drawn

class GraphView {
  constructor(canvas, model, events) {
    Object.assign(this, {canvas, model, events});
    this.context = canvas.getContext('2d');
    this.transform = {k: 1, x: 0, y: 0};
    this.position = 0;
    this.selected = null;
    this.hover = null;
    this.marked = new Set();  // nodes that a search or a comparison points at
    this.stops = new Set();
    this.moving = null;       // {edge, since}: a gradient on its way
    this.drawn = {};
    this.draw = onceAFrame(() => this.drawNow());
  }

  setPlacement(placement) {
    this.placement = placement;
    this.draw();
  }

  drawNow() {
    if (!this.placement || !fitCanvas(this.canvas)) return;
    const began = performance.now();
    const c = this.context, t = this.transform, {width, height} = this.canvas.css;
    this.view = {left: -t.x / t.k, top: -t.y / t.k, right: (width - t.x) / t.k, bottom: (height - t.y) / t.k};
    this.drawn = {nodes: 0, groups: 0, edges: 0, delivered: 0, frames: 0, labels: 0, bars: 0, buckets: 0, running: 0, skipped: 0};
    c.fillStyle = colors.bg;
    c.fillRect(0, 0, width, height);
    c.save();
    c.translate(t.x, t.y);
    c.scale(t.k, t.k);
    this.drawLanes(c);
    this.drawFrames(c);
    this.drawEdges(c);
    this.drawBars(c);
    this.drawBuckets(c);
    this.drawPartners(c);
    this.drawItems(c);
    this.drawMoving(c);
    c.restore();
    this.drawFrameNames(c);
    this.drawHeads(c, width);
    this.drawn.milliseconds = performance.now() - began;
    this.onDrawn?.(this.drawn);
    if (this.moving) this.draw();
  }

  drawLanes(c) {
    const v = this.view;
    for (const lane of this.placement.laneBoxes) {
      if (lane.x > v.right || lane.x + lane.width < v.left) continue;
      c.fillStyle = colors.lane;
      c.beginPath();
      c.roundRect(lane.x, Math.max(0, v.top - 20), lane.width,
                  Math.min(this.placement.height, v.bottom + 20) - Math.max(0, v.top - 20), 8);
      c.fill();
    }
  }

  drawFrames(c) {
    const v = this.view, k = this.transform.k;
    for (const f of this.placement.frames) {
      if (f.y > v.bottom || f.y + f.h < v.top || f.x > v.right || f.x + f.w < v.left || f.h * k < 3) continue;
      c.fillStyle = colors.frame;
      c.strokeStyle = colors.line;
      c.lineWidth = Math.min(1 / k, 1.5);
      c.beginPath();
      c.roundRect(f.x, f.y, f.w, f.h, 7);
      c.fill();
      c.stroke();
      ++this.drawn.frames;
    }
  }

  // Names of frames in the screen's own size, the outer ones first, where there is room.
  drawFrameNames(c) {
    const t = this.transform, v = this.view, rows = [];
    const large = t.k >= kText;
    for (const f of this.placement.frames) {
      f.toggle = null;
      if (f.y > v.bottom || f.y + f.h < v.top || f.x > v.right || f.x + f.w < v.left) continue;
      // In the head of the frame; where boxes have no text, over them.
      const size = large ? Math.min(clamp(11 * t.k, 8, 12), (kFrameTop - 5) * t.k - 2) : 9;
      const w = f.w * t.k, h = f.h * t.k, x = f.x * t.k + t.x, y = Math.max(f.y * t.k + t.y + (large ? 3 * t.k : 2), 30);
      if (h < 15 || w < 34 || y + size + 4 > (f.y + f.h) * t.k + t.y) continue;
      if (rows.some((r) => Math.abs(r.y - y) < size + 3 && r.x < x + w && x < r.x + r.w)) continue;
      rows.push({x, y, w});
      const row = this.model.modules[f.module];
      const name = row.path.slice(row.path.lastIndexOf('.') + 1);
      c.font = '600 ' + size + 'px system-ui, sans-serif';
      c.fillStyle = colors.lane;
      if (f.y * t.k + t.y < 28) c.fillRect(x + 1, y - 1, w - 2, size + 3);  // it stays while its frame is in sight
      c.fillStyle = colors.muted;
      c.textBaseline = 'top';
      c.textAlign = 'left';
      const text = fitText(c, (w < 70 ? '' : '▾ ') + (f.depth === 1 ? row.path : name) + (w > 130 ? '  ' + row.type : ''), w - 9);
      if (!large && text.includes('…')) continue;  // says nothing
      c.fillText(text, x + 6, y);
      f.toggle = {x, y: y - 2, w: Math.min(w, 24 + text.length * size * 0.6), h: size + 6};
      ++this.drawn.labels;
    }
  }

  edgeState(edge) {
    let delivered = 0, latest = -1;
    for (const [n, i] of edge.parts) {
      const at = this.events.deliveredAt(n, i, this.position);
      if (at >= 0) ++delivered;
      latest = Math.max(latest, at);
    }
    return {delivered, latest};
  }

  trace(c, edge) {
    const p = edge.points;
    c.moveTo(p[0][0], p[0][1]);
    if (edge.curve) c.bezierCurveTo(p[1][0], p[1][1], p[2][0], p[2][1], p[3][0], p[3][1]);
    else if (p.length === 2 || this.transform.k < kBoxes) for (let i = 1; i < p.length; ++i) c.lineTo(p[i][0], p[i][1]);
    else {
      for (let i = 1; i + 1 < p.length; ++i) c.arcTo(p[i][0], p[i][1], p[i + 1][0], p[i + 1][1], 6);
      c.lineTo(p[p.length - 1][0], p[p.length - 1][1]);
    }
  }

  // All idle edges are one path, and so are those that delivered.
  drawEdges(c) {
    const v = this.view, k = this.transform.k, {items} = this.placement;
    const idle = [], delivered = [], special = [];
    const near = this.selected && this.selected.item !== undefined ? this.selected.item : -1;
    this.placement.edgesBetween(v.top, v.bottom, (edge) => {
      const a = items[edge.from], b = items[edge.to];
      if (Math.max(a.x + a.w, b.x + b.w) < v.left || Math.min(a.x, b.x) > v.right) return;
      const flat = Math.abs(a.y - b.y) * k < 2 && Math.abs(a.x - b.x) * k < 4;
      if (flat) {
        ++this.drawn.skipped;
        return;
      }
      const state = this.edgeState(edge);
      ++this.drawn.edges;
      if (state.delivered) ++this.drawn.delivered;
      if (edge.from === near || edge.to === near) special.push([edge, state]);
      else (state.delivered ? delivered : idle).push(edge);
    });
    const few = k >= kBoxes;
    const stroke = (edges, color, width, alpha) => {
      if (!edges.length) return;
      c.beginPath();
      for (const edge of edges) this.trace(c, edge);
      c.globalAlpha = alpha;
      c.strokeStyle = color;
      c.lineWidth = Math.max(width, 0.8 / k);
      c.stroke();
      c.globalAlpha = 1;
    };
    stroke(idle, colors.muted, 1.2, 0.5);
    stroke(delivered, colors.backward, 1.8, 0.85);
    for (const [edge, state] of special) stroke([edge], state.delivered ? colors.backward : colors.select, 2.6, 1);
    if (!few) return;
    for (const edge of delivered) this.arrow(c, edge, colors.backward);
    for (const [edge, state] of special) this.arrow(c, edge, state.delivered ? colors.backward : colors.select);
    if (k >= kText) for (const edge of idle) this.arrow(c, edge, colors.muted);
  }

  arrow(c, edge, color) {
    const to = this.placement.items[edge.to];
    if (to.zone === 1 && to.node >= 0) return;  // its places show what has come
    const p = edge.points, [x, y] = p[p.length - 1], [px, py] = p[p.length - 2];
    const length = Math.hypot(x - px, y - py) || 1, ux = (x - px) / length, uy = (y - py) / length;
    c.fillStyle = color;
    c.beginPath();
    c.moveTo(x, y);
    c.lineTo(x - 7 * ux - 3.5 * uy, y - 7 * uy + 3.5 * ux);
    c.lineTo(x - 7 * ux + 3.5 * uy, y - 7 * uy - 3.5 * ux);
    c.fill();
  }

  // What moved outside of the graph: a bar over the lanes between which it did.
  drawBars(c) {
    const v = this.view, k = this.transform.k, p = this.position;
    for (const bar of this.placement.layoutBars) {
      if (bar.y > v.bottom || bar.y + bar.h < v.top || bar.x > v.right || bar.x + bar.w < v.left) continue;
      const first = this.moveIndex().get(bar.movements[0]), last = this.moveIndex().get(bar.movements[bar.movements.length - 1]);
      const state = p > last.end ? 'done' : p > first.begin ? 'running' : 'absent';
      this.drawBar(c, bar, bar.kind + (bar.movements.length > 1 ? ' × ' + bar.movements.length : ''), state, colors.copy, k);
    }
  }

  moveIndex() {
    if (this.moves) return this.moves;
    this.moves = new Map();
    this.events.list.forEach((e, i) => {
      if (e.movement === undefined) return;
      const row = this.moves.get(e.movement) || {begin: i, end: i};
      if (e.kind === 'move_end') row.end = i;
      this.moves.set(e.movement, row);
    });
    return this.moves;
  }

  drawBar(c, box, text, state, color, k) {
    c.globalAlpha = state === 'absent' ? 0.35 : 1;
    c.fillStyle = state === 'running' ? color : colors.node;
    c.strokeStyle = color;
    c.lineWidth = Math.max(1.4, 1 / k);
    c.beginPath();
    c.roundRect(box.x, box.y, box.w, box.h, 12);
    c.fill();
    c.stroke();
    if (k >= kText) {
      c.font = '600 11.5px system-ui, sans-serif';
      c.textAlign = 'center';
      c.textBaseline = 'middle';
      c.fillStyle = state === 'running' ? colors.bg : colors.ink;
      c.fillText(fitText(c, text, box.w - 20), box.x + box.w / 2, box.y + box.h / 2 + 0.5);
      ++this.drawn.labels;
    }
    c.globalAlpha = 1;
    ++this.drawn.bars;
  }

  drawBuckets(c) {
    const v = this.view, k = this.transform.k;
    for (const b of this.placement.bucketBoxes) {
      if (b.y > v.bottom || b.y + b.h < v.top || b.x > v.right || b.x + b.w < v.left) continue;
      const s = this.events.bucketState(b.bucket, this.position);
      c.fillStyle = colors.node;
      c.strokeStyle = this.selected?.bucket === b.bucket ? colors.select : colors.reduce;
      c.lineWidth = this.selected?.bucket === b.bucket ? 3 : 1.6;
      c.beginPath();
      c.roundRect(b.x, b.y, b.w, b.h, 6);
      c.fill();
      c.stroke();
      const fill = s.state === 'done' || s.state === 'running' ? 1 : s.all ? s.full / s.all : 0;
      if (fill) {
        c.save();
        c.clip();
        c.globalAlpha = s.state === 'running' ? 1 : 0.45;
        c.fillStyle = colors.reduce;
        c.fillRect(b.x, b.y + b.h * (1 - fill), b.w, b.h * fill);
        c.restore();
      }
      if (k >= 0.3) {
        c.save();
        c.translate(b.x + b.w / 2, b.y + b.h / 2);
        c.rotate(-Math.PI / 2);
        c.font = '600 10.5px system-ui, sans-serif';
        c.textAlign = 'center';
        c.textBaseline = 'middle';
        c.fillStyle = s.state === 'running' ? colors.bg : colors.ink;
        const word = this.model.buckets[b.bucket].kind === 'all_reduce' ? 'all-reduce ' : 'bucket ';
        const long = word + b.bucket + '  ' + (s.state === 'done' ? 'reduced' : s.state === 'running' ? 'reducing' : s.full + '/' + s.all);
        c.fillText(b.h > 92 ? long : 'b' + b.bucket, 0, 1);
        c.restore();
      }
      ++this.drawn.buckets;
    }
  }

  // Of the chosen bucket, and of those that are being reduced: with which of other ranks they meet.
  drawPartners(c) {
    const boxes = new Map(this.placement.bucketBoxes.map((b) => [b.bucket, b]));
    for (const [bucket, from] of boxes) {
      const chosen = this.selected?.bucket === bucket || this.hover?.bucket === bucket;
      if (!chosen && this.events.bucketState(bucket, this.position).state !== 'running') continue;
      for (const other of this.model.partners[bucket]) {
        const to = boxes.get(other);
        if (!to) continue;
        const left = from.x < to.x ? from : to, right = left === from ? to : from;
        c.strokeStyle = colors.reduce;
        c.lineWidth = Math.max(3, 2 / this.transform.k);
        c.setLineDash([8, 4]);
        c.beginPath();
        c.moveTo(left.x + left.w, left.y + 8);
        c.lineTo(right.x, right.y + 8);
        c.stroke();
        c.setLineDash([]);
      }
    }
  }

  // Lane names, always in sight.
  drawHeads(c, width) {
    const t = this.transform;
    c.fillStyle = colors.bg;
    c.globalAlpha = 0.88;
    c.fillRect(0, 0, width, 27);
    c.globalAlpha = 1;
    for (const lane of this.placement.laneBoxes) {
      const left = lane.x * t.k + t.x, right = left + lane.width * t.k;
      const a = Math.max(left, 0), b = Math.min(right, width);
      if (b - a < 24) continue;
      c.fillStyle = colors.lane;
      c.beginPath();
      c.roundRect(a, 3, b - a, 22, 6);
      c.fill();
      const row = this.model.devices[lane.lane];
      const running = this.events.running(lane.lane, this.position).length > 0;
      c.fillStyle = running ? colors.backward : colors.line;
      c.beginPath();
      const narrow = b - a < 90;
      c.arc(narrow ? b - 8 : a + 12, 14, narrow ? 3 : 4, 0, 7);
      c.fill();
      const name = (narrow ? '' : this.prefix || '') + this.model.laneName(lane.lane), kind = row.kind && !row.name.startsWith(row.kind) ? '  ' + row.kind : '';
      c.font = '600 ' + (narrow ? 10 : 12) + 'px system-ui, sans-serif';
      c.textAlign = 'left';
      c.textBaseline = 'middle';
      c.fillStyle = colors.ink;
      const room = narrow ? b - a - 17 : b - a - 28, all = c.measureText(name + kind).width <= room;
      c.fillText(fitText(c, all ? name + kind : name, room), narrow ? a + 4 : a + 22, 14.5);
    }
  }

  drawMoving(c) {
    if (!this.moving) return;
    const t = Math.min(1, (performance.now() - this.moving.since) / 260);
    const p = pointAlong(this.moving.edge, t);
    c.fillStyle = this.moving.color;
    c.strokeStyle = colors.bg;
    c.lineWidth = 2;
    c.beginPath();
    c.arc(p[0], p[1], Math.max(6, 4 / this.transform.k), 0, 7);
    c.fill();
    c.stroke();
    if (t >= 1) this.moving = null;
  }
}

// From the box that sends (t = 0) to the one that gets it (t = 1).
function pointAlong(edge, t) {
  const p = edge.points;
  if (edge.curve) {
    const u = 1 - t, w = [u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t];
    return [0, 1].map((d) => p.reduce((sum, point, i) => sum + w[i] * point[d], 0));
  }
  const lengths = p.slice(1).map((q, i) => Math.hypot(q[0] - p[i][0], q[1] - p[i][1]));
  let left = t * lengths.reduce((a, b) => a + b, 0);
  for (let i = 0; i < lengths.length; ++i) {
    if (left <= lengths[i] || i + 1 === lengths.length) {
      const f = lengths[i] ? left / lengths[i] : 1;
      return [p[i][0] + (p[i + 1][0] - p[i][0]) * f, p[i][1] + (p[i + 1][1] - p[i][1]) * f];
    }
    left -= lengths[i];
  }
  return p[p.length - 1];
}
