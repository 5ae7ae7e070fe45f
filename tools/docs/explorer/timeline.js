// When: a lane a device, with its operations, kernels and moves, and the curve of memory under them. One axis for all.

const kGutter = 76;
const kKinds = ['forward', 'backward', 'copy', 'reduce', 'optimizer'];

class Timeline {
  constructor(canvas, model, events) {
    Object.assign(this, {canvas, model, events});
    this.context = canvas.getContext('2d');
    this.transform = d3.zoomIdentity;
    this.position = 0;
    this.selected = null;
    this.duration = Math.max(1, model.duration, events.length ? events.times[events.length - 1] : 0);
    this.collect();
    this.draw = onceAFrame(() => this.drawNow());
    this.zoom = d3.zoom().scaleExtent([1, 5000]).on('zoom', (event) => {
      this.transform = (event || d3.event).transform;
      this.draw();
    });
    this.select = d3.select(canvas);
    this.select.call(this.zoom).on('dblclick.zoom', null);
    canvas.addEventListener('click', (e) => this.click(e));
    canvas.addEventListener('dblclick', () => this.select.call(this.zoom.transform, d3.zoomIdentity));
    canvas.addEventListener('pointermove', (e) => this.move(e));
    canvas.addEventListener('pointerleave', () => this.onTip?.(null));
  }

  // Spans by lane and row: 0 what the engine ran, 1 kernels, 2 moves and reductions.
  collect() {
    const {model, events} = this;
    this.lanes = model.devices.map(() => [[], [], []]);
    const add = (lane, row, span) => { if (lane >= 0 && span.end >= span.start) this.lanes[lane][row].push(span); };
    model.operations.forEach((op, o) => {
      if (op.node >= 0 && model.nodes[op.node].in_backward) return;
      add(op.device, 0, {start: op.start, end: op.end, kind: 'forward', text: op.name, node: op.node, operation: o});
    });
    const open = new Map();
    events.list.forEach((e) => {
      if (e.kind === 'begin') open.set(e.node, e.time);
      else if (e.kind === 'end' && open.has(e.node)) {
        add(model.lane(e.node), 0, {start: open.get(e.node), end: e.time, kind: 'backward', text: model.nodes[e.node].name, node: e.node});
        open.delete(e.node);
      } else if (e.kind === 'step_begin') open.set('step' + e.text, e.time);
      else if (e.kind === 'step_end' && open.has('step' + e.text)) {
        add(Math.max(0, e.device), 0, {start: open.get('step' + e.text), end: e.time, kind: 'optimizer', text: e.text || 'step', node: -1});
      }
    });
    const steps = [];
    model.events.forEach((e) => {
      if (e.kind === 'step_begin') steps.push([e.time, Infinity]);
      if (e.kind === 'step_end' && steps.length) steps[steps.length - 1][1] = e.time;
    });
    const backwards = [];
    model.events.forEach((e) => {
      if (e.kind === 'backward_begin') backwards.push([e.time, Infinity]);
      if (e.kind === 'backward_end' && backwards.length) backwards[backwards.length - 1][1] = e.time;
    });
    const within = (list, t) => list.some(([a, b]) => t >= a && t < b);
    model.kernels.forEach((row, k) => {
      const kind = within(steps, row.start) || /optim/.test(row.scope) ? 'optimizer'
          : row.node >= 0 && row.operation < 0 || within(backwards, row.start) ? 'backward' : 'forward';
      add(row.device, 1, {start: row.start, end: row.end, kind, text: row.name, node: row.node, operation: row.operation, kernel: k});
    });
    model.movements.forEach((row, m) => {
      const kind = row.bucket >= 0 || /reduce/.test(row.kind) ? 'reduce' : 'copy';
      for (const lane of new Set(row.to.length ? row.to : row.from)) {
        add(lane, 2, {start: row.start, end: row.end, kind, text: row.kind, node: row.node, movement: m, bucket: row.bucket});
      }
    });
    for (const lane of this.lanes) {
      for (const row of lane) {
        row.sort((a, b) => a.start - b.start);
        row.longest = row.reduce((most, s) => Math.max(most, s.end - s.start), 0);
      }
    }
    this.memoryPeak = Math.max(1, ...model.memory.map((m) => m.peak));
  }

  x(time) {
    const width = this.canvas.css.width - kGutter - 10;
    return kGutter + this.transform.applyX(time / this.duration * width);
  }
  time(x) {
    const width = this.canvas.css.width - kGutter - 10;
    return this.transform.invertX(x - kGutter) / width * this.duration;
  }

  drawNow() {
    if (!fitCanvas(this.canvas)) return;
    const c = this.context, {width, height} = this.canvas.css;
    this.zoom.translateExtent([[0, 0], [width - kGutter - 10, height]]).extent([[0, 0], [width - kGutter - 10, height]]);
    this.drawn = {spans: 0, skipped: 0};
    c.fillStyle = colors.panel;
    c.fillRect(0, 0, width, height);
    const shown = this.lanes.map((l, i) => i).filter((i) => this.lanes[i].some((row) => row.length));
    const least = this.model.memory.length ? clamp(height * 0.3, 30, 80) : 0;
    const each = clamp((height - 18 - least - 8) / Math.max(1, shown.length), 9, 60);
    const memory = least ? Math.max(least, height - 18 - 8 - each * shown.length) : 0;
    this.rows = [];
    c.save();
    c.beginPath();
    c.rect(kGutter, 0, width - kGutter, height);
    c.clip();
    this.drawAxis(c, width, height);
    shown.forEach((lane, i) => this.drawLane(c, lane, 18 + i * each, each - Math.min(6, each * 0.15)));
    if (memory) this.drawMemory(c, height - memory - 2, memory);
    const x = this.x(this.events.timeAt(this.position));
    c.strokeStyle = colors.select;
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo(x, 0);
    c.lineTo(x, height);
    c.stroke();
    c.restore();
    c.font = '600 11px system-ui, sans-serif';
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    c.fillStyle = colors.ink;
    shown.forEach((lane, i) => c.fillText(fitText(c, this.model.laneName(lane).replace('rank ', 'r'), kGutter - 14), 8, 18 + i * each + each / 2 - 2));
    if (memory) {
      c.fillText('memory', 8, height - memory / 2 - 8);
      c.font = '10px system-ui, sans-serif';
      c.fillStyle = colors.muted;
      c.fillText(formatBytes(this.memoryPeak), 8, height - memory / 2 + 6);
    }
  }

  drawAxis(c, width, height) {
    const t0 = Math.max(0, this.time(kGutter)), t1 = Math.min(this.duration, this.time(width));
    c.font = '10px system-ui, sans-serif';
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    for (const t of d3.ticks(t0, t1, Math.max(2, Math.floor(width / 130)))) {
      const x = this.x(t);
      c.fillStyle = colors.line;
      c.fillRect(x, 0, 1, height);
      c.fillStyle = colors.muted;
      if (x + 40 < width) c.fillText(t ? formatTime(t) : '0', x + 3, 8);
    }
  }

  drawLane(c, lane, top, high) {
    const parts = high >= 20 ? [0.5, 0.25, 0.25] : [1, 0, 0];
    const filled = this.lanes[lane].map((row, i) => row.length ? parts[i] : 0);
    const sum = filled.reduce((a, b) => a + b, 0) || 1;
    let y = top;
    c.fillStyle = colors.lane;
    c.fillRect(kGutter, top, this.canvas.css.width, high);
    this.lanes[lane].forEach((row, i) => {
      const h = high * filled[i] / sum;
      if (h > 1) this.drawSpans(c, row, y, h - 1);
      if (row.length) this.rows.push({lane, row, y, h});
      y += h;
    });
  }

  // From the left edge on; what is narrower than a pixel is drawn once a pixel.
  drawSpans(c, row, y, h) {
    const width = this.canvas.css.width, t0 = this.time(kGutter), t1 = this.time(width);
    let pixel = -1;
    const texts = [];
    for (let i = lowerBound(row, t0 - row.longest, (s) => s.start); i < row.length && row[i].start <= t1; ++i) {
      const s = row[i];
      if (s.end < t0) continue;
      const x = this.x(s.start), w = this.x(s.end) - x;
      if (w < 1 && Math.floor(x) === pixel) {
        ++this.drawn.skipped;
        continue;
      }
      pixel = Math.floor(x);
      ++this.drawn.spans;
      const chosen = this.selected !== null && this.selected.has?.(s.node) && s.node >= 0;
      c.fillStyle = colors[s.kind];
      c.globalAlpha = chosen ? 1 : 0.82;
      c.fillRect(x, y, Math.max(1, w - (w > 3 ? 1 : 0)), h);
      c.globalAlpha = 1;
      if (chosen) {
        c.strokeStyle = colors.select;
        c.lineWidth = 2;
        c.strokeRect(x, y, Math.max(2, w - 1), h);
      }
      if (w > 30 && h >= 11) texts.push([s, Math.max(x, kGutter), Math.min(x + w, width) - Math.max(x, kGutter)]);
    }
    c.font = '10px system-ui, sans-serif';
    c.textAlign = 'left';
    c.textBaseline = 'middle';
    c.fillStyle = colors.bg;
    for (const [s, x, w] of texts) if (w > 24) c.fillText(fitText(c, s.text.replace(/Backward\d*$/, ''), w - 6), x + 3, y + h / 2 + 0.5);
  }

  drawMemory(c, top, high) {
    this.memoryTop = top;
    const y = (bytes) => top + high - 2 - bytes / this.memoryPeak * (high - 12);
    this.model.memory.forEach((row, i) => {
      if (!row.curve.length) return;
      c.beginPath();
      const first = row.curve[0];
      c.moveTo(this.x(first[0]), y(first[1]));
      let last = first[1], drawnAt = -Infinity;
      for (const [t, bytes] of row.curve) {
        const x = this.x(t);
        if (x - drawnAt < 0.5 && bytes < row.peak) { last = bytes; continue; }
        if (drawnAt > -Infinity) c.lineTo(drawnAt, y(last));
        drawnAt = x;
        c.lineTo(x, y(last));
        c.lineTo(x, y(bytes));
        last = bytes;
      }
      const right = this.x(this.duration);
      c.lineTo(drawnAt, y(last));
      c.lineTo(right, y(last));
      c.strokeStyle = colors.forward;
      c.setLineDash([[], [5, 3], [2, 2], [8, 2, 2, 2]][i % 4]);
      c.lineWidth = 1.4;
      c.stroke();
      c.setLineDash([]);
      c.lineTo(right, top + high);
      c.lineTo(this.x(first[0]), top + high);
      c.globalAlpha = 0.1;
      c.fillStyle = colors.forward;
      c.fill();
      c.globalAlpha = 1;
      const px = this.x(row.peak_time), py = y(row.peak);
      c.fillStyle = colors.bad;
      c.beginPath();
      c.moveTo(px - 5, py - 7);
      c.lineTo(px + 5, py - 7);
      c.lineTo(px, py);
      c.fill();
    });
  }

  at(e) {
    const box = this.canvas.getBoundingClientRect();
    const x = e.clientX - box.left, y = e.clientY - box.top, time = this.time(x);
    if (this.memoryTop && y >= this.memoryTop) {
      const near = this.model.memory.find((m) => Math.abs(this.x(m.peak_time) - x) < 9);
      return {memory: true, peak: near, time};
    }
    const line = (this.rows || []).find((r) => y >= r.y && y < r.y + r.h);
    const slack = (this.time(x + 2) - time);
    const span = line && line.row.filter((s) => s.start - slack <= time && s.end + slack >= time).pop();
    return {span, time};
  }

  click(e) {
    const hit = this.at(e);
    this.onTime?.(clamp(hit.time, 0, this.duration), hit);
  }

  move(e) {
    if (e.buttons) return this.onTip?.(null);
    const {span, memory, peak, time} = this.at(e);
    if (span) {
      const k = span.kernel >= 0 ? this.model.kernels[span.kernel] : null;
      this.onTip?.(span.text + '\n' + formatTime(span.end - span.start) + ' from ' + formatTime(span.start) +
                   (k && k.bytes >= 0 ? '\n' + formatBytes(k.bytes) + (k.flops >= 0 ? ', ' + formatCount(k.flops) + ' FLOP' : '') : '') +
                   (k && k.replayed ? '\nreplayed by a captured step' : ''), e);
    } else if (memory) {
      this.onTip?.((peak ? 'the peak of ' + this.model.laneName(peak.device) + ': ' + formatBytes(peak.peak) + '\nclick: what it holds\n' : '') +
                   this.model.memory.map((m) => this.model.laneName(m.device) + ': ' + formatBytes(bytesAt(m, time))).join('\n'), e);
    } else this.onTip?.(null);
  }
}

function bytesAt(memory, time) {
  const i = lowerBound(memory.curve, time, (p) => p[0]);
  if (i < memory.curve.length && memory.curve[i][0] <= time) return memory.curve[i][1];
  return i > 0 ? memory.curve[i - 1][1] : 0;
}
