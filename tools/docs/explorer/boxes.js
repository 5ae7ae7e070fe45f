// Boxes of the graph: nodes and collapsed modules. Far away they are specks, one for each pixel of height.

Object.assign(GraphView.prototype, {
  drawItems(c) {
    const v = this.view, k = this.transform.k, {placement} = this;
    this.visible = [];
    const first = lowerBound(placement.tops, v.top - 60);
    const far = k < kBoxes;
    const lastY = new Map();
    const late = [];
    for (let i = first; i < placement.byRow.length; ++i) {
      const item = placement.byRow[i];
      if (item.y > v.bottom) break;
      if (item.x > v.right || item.x + item.w < v.left) continue;
      if (far && !item.bar) {
        const place = item.x, y = Math.floor(item.y * k);
        if (lastY.get(place) === y) {
          ++this.drawn.skipped;
          continue;
        }
        lastY.set(place, y);
      }
      this.visible.push(item);
      const state = this.itemState(item);
      if (state === 'running' || state === 'computing') late.push([item, state]);
      else this.drawItem(c, item, state, far);
    }
    // What runs is seen from any distance.
    for (const [item, state] of late) {
      this.drawItem(c, item, state, far);
      ++this.drawn.running;
    }
    const chosen = this.selected?.item !== undefined ? placement.items[this.selected.item] : null;
    if (chosen) this.outline(c, chosen, colors.select, 3);
    if (this.hover?.item !== undefined && this.hover.item !== this.selected?.item) {
      this.outline(c, placement.items[this.hover.item], colors.select, 1.5);
    }
    for (const n of this.marked) this.outline(c, placement.items[placement.itemOf[n]], colors.optimizer, 3);
  },

  outline(c, item, color, width) {
    const grow = Math.max(3, 3 / this.transform.k);
    c.strokeStyle = color;
    c.lineWidth = Math.max(width, width / this.transform.k);
    c.beginPath();
    c.roundRect(item.x - grow, item.y - grow, item.w + 2 * grow, item.h + 2 * grow, 8);
    c.stroke();
  },

  // Of a group: what its most active node does.
  itemState(item) {
    if (item.node >= 0) return this.events.state(item.node, this.position);
    const p = this.position, counts = {};
    let sampled = 0;
    const step = Math.max(1, Math.floor(item.nodes.length / 64));
    for (const lane of [item.lane]) {
      for (const n of this.events.running(lane, p)) {
        if (this.placement.items[this.placement.itemOf[n]] === item) return this.events.state(n, p);
      }
    }
    for (let i = 0; i < item.nodes.length; i += step, ++sampled) {
      const s = this.events.state(item.nodes[i], p);
      counts[s] = (counts[s] || 0) + 1;
    }
    for (const s of ['failed', 'running', 'computing']) if (counts[s]) return s;
    item.part_done = (counts.done || 0) / sampled;
    for (const s of ['absent', 'done', 'made']) if (counts[s] === sampled) return s;
    return counts.done ? 'partly' : counts.ready ? 'ready' : counts.absent ? 'computing' : 'made';
  },

  drawItem(c, item, state, far) {
    ++this.drawn[item.node >= 0 ? 'nodes' : 'groups'];
    const k = this.transform.k;
    const row = item.node >= 0 ? this.model.nodes[item.node] : null;
    const cast = row !== null && this.model.casts.has(row.operation);
    const kind = item.bar ? 'copy' : item.zone === 1 ? 'reduce' : item.zone === 0 ? 'leaf' : cast ? 'cast' : 'operation';
    if (item.bar) {
      this.drawBar(c, item, row.name.replace(/Backward\d*$/, ''), state === 'done' ? 'made' : state, state === 'done' ? colors.backward : colors.copy, k);
      return;
    }
    const look = boxLook(kind, state);
    c.globalAlpha = look.alpha;
    if (far) {
      c.fillStyle = look.far;
      const grow = state === 'running' || state === 'computing' ? Math.max(0, 5 / k - item.h) / 2 : 0;
      c.fillRect(item.x - grow, item.y - grow, item.w + 2 * grow, Math.max(item.h + 2 * grow, 1 / k));
      c.globalAlpha = 1;
      return;
    }
    c.fillStyle = look.fill;
    c.strokeStyle = look.stroke;
    c.lineWidth = Math.max(look.width, 0.8 / k);
    if (state === 'absent') c.setLineDash([4, 3]);
    c.beginPath();
    c.roundRect(item.x, item.y, item.w, item.h, item.zone === 0 || cast ? item.h / 2 : item.zone === 1 ? 3 : 6);
    if (item.node >= 0 && row.in_backward && k >= kText) {  // of the second graph: two outlines
      c.lineWidth = 1;
      c.beginPath();
      c.roundRect(item.x - 3.5, item.y - 3.5, item.w + 7, item.h + 7, 8);
      c.stroke();
      c.lineWidth = Math.max(look.width, 0.8 / k);
      c.beginPath();
      c.roundRect(item.x, item.y, item.w, item.h, 6);
    }
    if (item.module >= 0) {  // a stack of cards
      c.save();
      c.translate(4, 4);
      c.fill();
      c.stroke();
      c.restore();
    }
    c.fill();
    c.stroke();
    c.setLineDash([]);
    if (state === 'partly') {
      c.save();
      c.clip();
      c.globalAlpha = 0.35;
      c.fillStyle = colors.backward;
      c.fillRect(item.x, item.y + item.h * (1 - item.part_done), item.w, item.h);
      c.restore();
    }
    if (item.zone === 1 && item.node >= 0) this.drawSlots(c, item);
    else if (k >= kText) this.drawText(c, item, look, k);
    const bad = this.badness(item, state);
    if (bad) this.badge(c, item, bad === 2 ? 'NaN' : '∞', bad === 2 ? colors.bad : colors.optimizer);
    else if (item.nodes.some((n) => this.stops.has(n))) this.badge(c, item, '●', colors.bad);
    c.globalAlpha = 1;
  },

  drawText(c, item, look, k) {
    const {model} = this;
    const x = item.x + 9, room = item.w - 16;
    let title, second;
    if (item.node >= 0) {
      title = model.nodeShort(item.node);
      second = item.zone === 2 ? model.nodeSecond(item.node) : '';
    } else {
      const row = model.modules[item.module];
      title = row.path.slice(row.path.lastIndexOf('.') + 1);
      if (/^\d+$/.test(title)) title = row.path.split('.').slice(-2).join('.');
      title = '▸ ' + title;
      second = item.zone === 2 ? row.type + '  ' + plural(item.nodes.length, 'node') : '';
      if (item.zone === 0) title = plural(item.nodes.length, 'parameter');
      if (item.zone === 1) title = '+ × ' + item.nodes.length;
    }
    const two = second && k >= kSecond;
    c.textAlign = 'left';
    c.textBaseline = 'middle';
    c.font = (item.zone === 2 ? '600 12' : '500 11') + 'px system-ui, sans-serif';
    c.fillStyle = look.ink;
    c.fillText(fitText(c, title, room), x, item.y + (two ? 11.5 : item.h / 2 + 0.5));
    ++this.drawn.labels;
    if (two) {
      c.font = '10px system-ui, sans-serif';
      c.globalAlpha *= 0.78;
      c.fillText(fitText(c, second, room), x, item.y + 25);
    }
  },

  // A sum has a place for every replica's gradient, and fills.
  drawSlots(c, item) {
    const users = this.model.users.get(item.node), n = users.length, k = this.transform.k;
    const state = this.events.state(item.node, this.position);
    if (k >= kText) {
      c.font = '700 13px system-ui, sans-serif';
      c.textAlign = 'left';
      c.textBaseline = 'middle';
      c.fillStyle = state === 'running' ? colors.bg : colors.ink;
      c.fillText('+', item.x + 7, item.y + item.h / 2 + 0.5);
    }
    const size = clamp(40 / Math.max(1, n) - 3, 1.5, 9), left = item.x + 20;
    users.forEach(([user, i]) => {
      const slot = Math.min(this.model.nodes[user].edges[i].slot, n - 1);
      const full = this.events.deliveredAt(user, i, this.position) >= 0;
      const on = state === 'running' ? colors.bg : colors.reduce;
      c.fillStyle = full ? on : state === 'running' ? colors.reduce : colors.node;
      c.strokeStyle = on;
      c.lineWidth = 1;
      c.beginPath();
      c.rect(left + slot * (size + 3), item.y + (item.h - size) / 2, size, size);
      c.fill();
      c.stroke();
    });
  },

  // 2: its results, or the gradients that it sent, have NaN; 1: infinities; 0: neither.
  badness(item, state) {
    if (state === 'absent' || item.nodes.length > 64) return 0;
    let worst = 0;
    const look = (t) => {
      const s = t >= 0 ? this.model.statisticsOf(t) : null;
      if (s) worst = Math.max(worst, s.nans ? 2 : s.infinities ? 1 : 0);
    };
    for (const n of item.nodes) {
      this.model.operationOf(n)?.outputs.forEach(look);
      this.model.nodes[n].edges.forEach((e, i) => {
        const at = e.to >= 0 ? this.events.deliveredAt(n, i, this.position) : -1;
        if (at >= 0) look(this.events.list[at].tensor);
      });
    }
    return worst;
  },

  badge(c, item, text, color) {
    c.font = '700 10px system-ui, sans-serif';
    const w = text.length * 6 + 9;
    c.fillStyle = color;
    c.beginPath();
    c.roundRect(item.x + item.w - w + 6, item.y - 8, w, 15, 7);
    c.fill();
    c.fillStyle = colors.bg;
    c.textAlign = 'center';
    c.textBaseline = 'middle';
    c.fillText(text, item.x + item.w - w / 2 + 6, item.y);
  },
});

// Form and color say the same thing twice: dashed is not there yet, a thick outline waits, a full box runs.
function boxLook(kind, state) {
  const own = kind === 'reduce' ? colors.reduce : kind === 'leaf' ? colors.muted : kind === 'cast' ? colors.cast : colors.forward;
  switch (state) {
    case 'absent': return {alpha: 0.45, fill: colors.lane, stroke: colors.muted, ink: colors.muted, width: 1, far: colors.line};
    case 'computing': {
      const color = kind === 'cast' ? colors.cast : colors.forward;
      return {alpha: 1, fill: color, stroke: color, ink: colors.bg, width: 2, far: color};
    }
    case 'running': {
      const color = kind === 'reduce' ? colors.reduce : colors.backward;
      return {alpha: 1, fill: color, stroke: color, ink: colors.bg, width: 2, far: color};
    }
    case 'ready': return {alpha: 1, fill: colors.node, stroke: colors.backward, ink: colors.ink, width: 3, far: colors.ready};
    case 'done': {
      const color = kind === 'reduce' ? colors.reduce : colors.backward;
      return {alpha: 1, fill: colors.ready, stroke: color, ink: colors.ink, width: 1.6, far: color};
    }
    case 'failed': return {alpha: 1, fill: colors.bad, stroke: colors.bad, ink: colors.bg, width: 3, far: colors.bad};
    default: return {alpha: 1, fill: colors.node, stroke: own, ink: colors.ink, width: 1.4, far: own};
  }
}
