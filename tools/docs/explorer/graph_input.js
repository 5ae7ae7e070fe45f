// The graph under the pointer: moving, zooming (d3-zoom), choosing, opening and closing modules.

class GraphInput {
  constructor(view, app) {
    this.view = view;
    this.app = app;
    const canvas = view.canvas;
    this.zoom = d3.zoom().scaleExtent([0.002, 4]).on('zoom', (event) => {
      const {transform, sourceEvent} = event || d3.event;
      if (sourceEvent) this.goal = null;
      view.transform = transform;
      view.draw();
    });
    this.select = d3.select(canvas);
    this.select.call(this.zoom).on('dblclick.zoom', null);
    canvas.addEventListener('click', (e) => this.click(e));
    canvas.addEventListener('dblclick', (e) => this.doubleClick(e));
    canvas.addEventListener('pointermove', (e) => this.move(e));
    canvas.addEventListener('pointerleave', () => this.show(null));
  }

  at(e) {
    const box = this.view.canvas.getBoundingClientRect();
    return this.hit(e.clientX - box.left, e.clientY - box.top);
  }

  // What is at a place of the canvas: {item}, {frame}, {bucket}, {bar} or null.
  hit(sx, sy) {
    const {placement, transform: t} = this.view;
    if (!placement) return null;
    const inside = (b, x, y, grow = 0) => x >= b.x - grow && x <= b.x + b.w + grow && y >= b.y - grow && y <= b.y + b.h + grow;
    for (const f of placement.frames) if (f.toggle && inside(f.toggle, sx, sy)) return {frame: f};
    const x = (sx - t.x) / t.k, y = (sy - t.y) / t.k, grow = Math.min(4 / t.k, 30);
    for (const item of this.view.visible || []) if (inside(item, x, y, grow)) return {item: placement.itemOf[item.nodes[0]]};
    for (const b of placement.bucketBoxes) if (inside(b, x, y, grow)) return {bucket: b.bucket};
    for (const b of placement.layoutBars) if (inside(b, x, y)) return {bar: b.bar};
    return null;
  }

  click(e) {
    const hit = this.at(e);
    this.app.focusSide(this.view);
    if (hit?.frame) this.app.toggleModule(hit.frame.module);
    else if (hit?.item !== undefined) this.app.chooseItem(hit.item);
    else if (hit?.bucket !== undefined) this.app.chooseBucket(hit.bucket);
    else if (hit?.bar !== undefined) this.app.chooseBar(hit.bar);
    else this.app.choose(null);
  }

  doubleClick(e) {
    const hit = this.at(e);
    if (hit?.item === undefined) return;
    const item = this.view.placement.items[hit.item];
    if (item.module >= 0) this.app.toggleModule(item.module);
    else {
      const around = this.view.model.modulesAround(item.nodes[0]).find((m) => this.view.placement.frames.some((f) => f.module === m));
      if (around !== undefined) this.app.toggleModule(around);
    }
  }

  move(e) {
    if (e.buttons) return this.show(null);
    this.show(this.at(e), e);
  }

  show(hit, e) {
    const {view} = this;
    const before = view.hover?.item;
    view.hover = hit;
    if (before !== hit?.item) view.draw();
    view.canvas.style.cursor = hit ? 'pointer' : 'grab';
    this.app.tip(hit && e ? this.words(hit) : null, e);
  }

  words(hit) {
    const {model, events, position, placement} = this.view;
    if (hit.frame) return model.modules[hit.frame.module].path + '\n' + model.modules[hit.frame.module].type + ': click to close it';
    if (hit.bucket !== undefined) {
      const s = events.bucketState(hit.bucket, position);
      return 'bucket ' + hit.bucket + ', ' + formatBytes(model.buckets[hit.bucket].bytes) + '\n' + s.full + ' of ' + s.all + ' members complete' +
             (s.state === 'done' ? ', reduced' : s.state === 'running' ? ', being reduced' : '') +
             model.partners[hit.bucket].map((b) => '\nwith bucket ' + b + ' of rank ' + model.devices[Math.max(0, model.buckets[b].device)].rank).join('');
    }
    if (hit.bar !== undefined) {
      const bar = placement.layoutBars.find((b) => b.bar === hit.bar);
      return bar.movements.slice(0, 4).map((m) => moveWords(model, m)).join('\n') + (bar.movements.length > 4 ? '\n…' : '');
    }
    const item = placement.items[hit.item];
    if (item.module >= 0) {
      return model.modules[item.module].path + '\n' + model.modules[item.module].type + ', ' + plural(item.nodes.length, 'node') +
             ': double-click opens it';
    }
    const n = item.node, [full, all] = events.filled(n, position);
    return model.nodeTitle(n) + '\n' + model.nodes[n].name + ' on ' + model.laneName(model.lane(n)) + '\n' +
           stateWords(events.state(n, position)) + (all ? ', ' + full + ' of ' + all + ' gradients have come' : '');
  }

  to(k, x, y, slowly) {
    const transform = this.goal = d3.zoomIdentity.translate(x, y).scale(k);
    const target = slowly && !calm() ? this.select.transition().duration(220) : this.select;
    target.call(this.zoom.transform, transform);
  }

  // All of it, or as much as can be read: from the top.
  fit(whole = false) {
    const {placement, canvas} = this.view;
    if (!fitCanvas(canvas)) return;
    const {width, height} = canvas.css;
    // Next to the buttons; on a phone above them.
    const beside = width < 500 ? 0 : 50;
    const wide = (width - 16 - beside) / placement.width, high = (height - (width < 500 ? 74 : 38)) / placement.height;
    const k = clamp(Math.min(wide, whole || high > kText ? high : 0.8), 0.002, 1.15);
    this.to(k, Math.max(8, (width - beside - placement.width * k) / 2), this.top(k), false);
  }

  // Where the picture's upper end is, so that its first row is below the names of the lanes.
  top(k) { return Math.max(4, 34 - 36 * k); }

  // Brings a box into sight, large enough to be read where that is asked for; where it is, nothing moves.
  reveal(box, read = false) {
    const {canvas, placement} = this.view, t = this.goal || this.view.transform;  // where it is, or is on its way to
    if (!fitCanvas(canvas)) return;
    const {width, height} = canvas.css;
    const k = read ? Math.max(t.k, Math.min(0.6, (width - 20) / Math.min(box.w, 300))) : t.k;
    const x = (box.x + box.w / 2) * t.k + t.x, y = (box.y + box.h / 2) * t.k + t.y, wide = Math.min(60, width / 5);
    const seen = box.w * t.k > width / 2 || (x > wide && x < width - wide);
    if (seen && y > 46 && y < height - 30 && k <= t.k * 1.45) return;
    // No further than where the picture ends.
    const kept = (at, size, room, most = 8) => size * k <= room ? (room - size * k) / 2 : clamp(at, room - size * k - 8, most);
    const high = placement.height * k <= height ? this.top(k) : kept(height / 2 - (box.y + box.h / 2) * k, placement.height, height, this.top(k));
    this.to(k, seen && k === t.k ? t.x : kept(width / 2 - (box.x + box.w / 2) * k, placement.width, width), high, true);
  }

  by(factor) {
    this.goal = null;
    this.select.call(this.zoom.scaleBy, factor);
  }
}

function stateWords(state) {
  return {absent: 'not recorded yet', computing: 'computes its forward', made: 'recorded', ready: 'all gradients are here: it waits for its lane',
          running: 'runs its backward', done: 'its backward is done', failed: 'it failed', partly: 'partly done'}[state] || state;
}
