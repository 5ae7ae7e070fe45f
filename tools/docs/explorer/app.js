// The page: one recording, or two next to each other, and what buttons and keys do with them.

class Side {
  constructor(app, canvas, recording, layout, formulas) {
    this.model = new Model(recording, layout, formulas);
    this.events = new Events(this.model);
    this.story = new Story(this.model, this.events);
    this.view = new GraphView(canvas, this.model, this.events);
    this.collapsed = new Set();
    this.position = 0;
    this.level = 0;
    this.input = new GraphInput(this.view, app);
  }

  place() {
    this.placement = new Placement(this.model, this.collapsed);
    this.view.setPlacement(this.placement);
  }

  // Modules with several operations on a device: one box of one operation says more open than closed.
  largeModules() {
    if (this.large) return this.large;
    const {model} = this, operations = new Map(), lanes = model.devices.length;
    model.nodes.forEach((row, n) => {
      if (model.layout.zone[n] !== 2) return;
      for (const m of model.modulesAround(n)) {
        const key = m * lanes + model.lane(n);
        operations.set(key, (operations.get(key) || 0) + 1);
      }
    });
    this.large = new Set([...operations].filter(([, count]) => count > 1).map(([key]) => Math.floor(key / lanes)));
    this.deepest = [...this.large].reduce((deepest, m) => Math.max(deepest, model.depth[m]), 0);
    return this.large;
  }

  // Modules of this depth and deeper are closed.
  toLevel(level) {
    const large = this.largeModules();
    this.level = clamp(level, 1, this.deepest + 1);
    this.collapsed = new Set([...large].filter((m) => this.model.depth[m] >= this.level));
    this.place();
  }

  // The deepest level that can be read where all of it is in sight: of at most 16 rows. Where that leaves next to nothing, one deeper.
  firstLevel() {
    this.largeModules();
    for (let level = this.deepest + 1; level > 1; --level) {
      this.toLevel(level);
      if (this.placement.rowCount <= 16) return;
    }
    this.toLevel(1);
    if (this.placement.rowCount >= 6 || this.deepest < 1) return;
    this.toLevel(2);
    if (this.placement.rowCount > 40) this.toLevel(1);
  }
}

class App {
  constructor(data) {
    this.comparison = data.comparison;
    this.sides = data.recordings.map((recording, i) => new Side(this, byId(i ? 'graph-b' : 'graph'), recording, data.layouts[i], data.formulas));
    this.side = this.sides[0];
    if (this.sides.length > 1) this.sides.forEach((side, i) => { side.view.prefix = ['first  ', 'second  '][i]; });
    this.following = true;
    this.player = new Player(this);
    this.details = new Details(this);
    this.tables = new Tables(this);
    this.search = new Search(this);
    this.panel = byId('panel');
    this.showPanel = onceAFrame(() => this.drawPanel());
    readColors();
    this.makeTabs();
    byId('graph-b').hidden = this.sides.length < 2;
    for (const side of this.sides) side.firstLevel();
    this.useSide(this.side);
    this.tab = this.comparison ? 'compare' : 'details';
    this.goTo(0);
    requestAnimationFrame(() => {
      for (const side of this.sides) side.input.fit();
      this.ready = true;
    });
  }

  get sums() { return this.side.sums = this.side.sums || new Sums(this.side.model, this.side.events); }
  get model() { return this.side.model; }
  get events() { return this.side.events; }
  get view() { return this.side.view; }
  get placement() { return this.side.placement; }
  get position() { return this.side.position; }

  useSide(side) {
    this.side = side;
    this.timeline = side.timeline = side.timeline || this.makeTimeline(side);
    this.timeline.draw();
    byId('slider').max = this.events.length;
    showPhases(this);
    byId('title').textContent = this.model.title || this.model.program || 'Ramet explorer';
    document.title = (this.model.title || this.model.program || 'A recording') + ' · Ramet';
    byId('about').textContent = [this.model.devices.length < 5 ? this.model.devices.map((d, i) => this.model.laneName(i)).join(', ') : plural(this.model.devices.length, 'device'),
                                 plural(this.model.nodes.length, 'node'), formatTime(this.model.duration)].join(' · ');
  }

  focusSide(view) {
    const side = this.sides.find((s) => s.view === view);
    if (side !== this.side) {
      this.useSide(side);
      this.goTo(side.position);
    }
  }

  makeTimeline(side) {
    const old = byId('timeline'), canvas = old.cloneNode(false);
    old.replaceWith(canvas);
    const t = new Timeline(canvas, side.model, side.events);
    t.onTip = (text, e) => this.tip(text, e);
    t.onTime = (time, hit) => {
      this.player.pause();
      if (hit.peak) {
        this.goTo(this.events.positionAt(hit.peak.peak_time));
        return this.openTab('memory');
      }
      this.goTo(this.events.positionAt(hit.span ? hit.span.start : time));
      if (hit.span && hit.span.node >= 0) this.showNode(hit.span.node);
      else if (hit.span && hit.span.bucket >= 0) this.chooseBucket(hit.span.bucket);
    };
    return t;
  }

  // To position p. `by` is the direction of a step, so that a gradient is seen on its way.
  goTo(p, by = 0, quick = false) {
    p = clamp(p, 0, this.events.length);
    this.side.position = p;
    if (this.sides.length > 1) this.moveOther();
    for (const side of this.sides) side.view.position = side.position;
    const e = p > 0 ? this.events.list[p - 1] : null;
    this.view.moving = null;
    if (e && by && !quick) this.showEvent(by > 0 ? e : this.events.list[p] || e, by);
    for (const side of this.sides) side.view.draw();
    this.timeline.position = p;
    this.timeline.draw();
    if (quick) return;
    byId('slider').value = p;
    byId('slider').setAttribute('aria-valuetext', this.events.describe(p - 1));
    byId('where').textContent = formatCount(p) + ' / ' + formatCount(this.events.length) + ' · ' + formatTime(this.events.timeAt(p));
    const phase = p > 0 ? this.side.story.phase(p) : '';
    byId('event').textContent = (phase ? phase + ': ' : '') + this.events.describe(p - 1) + this.side.story.passed(p);
    for (const b of byId('phases').children) b.setAttribute('aria-pressed', b.id === 'phase-' + phase);
    this.showPanel();
  }

  // The other recording goes to the same share of its events.
  moveOther() {
    for (const side of this.sides) {
      if (side !== this.side) side.position = Math.round(this.position / Math.max(1, this.events.length) * side.events.length);
    }
  }

  showEvent(e, by) {
    const {placement} = this;
    const b = e.bucket >= 0 ? placement.bucketBoxes.find((x) => x.bucket === e.bucket) : null;
    if (this.following && e.node >= 0) this.side.input.reveal(placement.items[placement.itemOf[e.node]]);
    else if (this.following && b) this.side.input.reveal(b);
    if (e.kind !== 'delivered' || calm() || e.edge < 0) return;
    const to = this.model.nodes[e.node].edges[e.edge].to;
    const edge = to >= 0 && placement.edges.find((x) => x.from === placement.itemOf[e.node] && x.to === placement.itemOf[to]);
    if (edge) this.view.moving = {edge: by > 0 ? edge : {...edge, points: [...edge.points].reverse()}, since: performance.now(), color: colors.backward};
  }

  choose(selected) {
    this.view.selected = selected;
    const item = selected?.item !== undefined ? this.placement.items[selected.item] : null;
    this.timeline.selected = item ? new Set(item.nodes) : null;
    this.view.draw();
    this.timeline.draw();
    if (selected && this.tab !== 'details') this.openTab('details');
    else this.showPanel();
  }
  chooseItem(item) { this.choose({item}); }
  chooseBucket(bucket) { this.choose({bucket}); }
  chooseBar(bar) { this.choose({bar}); }

  chosenNode() {
    const item = this.view.selected?.item;
    return item === undefined ? -1 : this.placement.items[item].node;
  }

  // Opens what is around it, and brings it into sight.
  showNode(n, side = this.side) {
    let opened = false;
    for (const m of side.model.modulesAround(n)) opened = side.collapsed.delete(m) || opened;
    if (opened) side.place();
    if (side !== this.side) {
      side.view.selected = {item: side.placement.itemOf[n]};
      side.view.draw();
    } else this.choose({item: side.placement.itemOf[n]});
    side.input.reveal(side.placement.items[side.placement.itemOf[n]], true);
  }

  showParameter(p) {
    const row = this.model.parameters[p];
    if (row.node >= 0) return this.showNode(row.node);
    this.choose({parameter: p});
  }

  showBucket(b) {
    const box = this.placement.bucketBoxes.find((x) => x.bucket === b);
    this.chooseBucket(b);
    if (box) this.side.input.reveal(box, true);
  }

  // A closed module's box, or the first box of an open one.
  showModule(m) {
    const {items} = this.placement, inside = (i) => items[i].nodes.some((n) => this.model.modulesAround(n).includes(m));
    const order = items.map((item, i) => i).filter((i) => items[i].zone === 2 && inside(i)).sort((a, b) => items[a].r - items[b].r);
    const found = order.find((i) => items[i].module === m) ?? order[0];
    if (found === undefined) return this.say(this.model.modules[m].path + ' has left no node.');
    this.choose({item: found});
    this.side.input.reveal(items[found], true);
  }

  showPair(row) {
    const node = (side, id) => id < 0 ? -1 : row.kind === 'operation' ? side.model.operations[id].node : side.model.parameters[id].node;
    [row.first, row.second].forEach((id, i) => {
      const side = this.sides[i], n = node(side, id);
      side.view.marked = new Set(n >= 0 ? [n] : []);
      if (n < 0) return side.view.draw();
      let opened = false;
      for (const m of side.model.modulesAround(n)) opened = side.collapsed.delete(m) || opened;
      if (opened) side.place();
      side.view.draw();
      side.input.reveal(side.placement.items[side.placement.itemOf[n]], true);
    });
  }

  toggleModule(m) {
    const {side} = this, chosen = this.chosenNode(), group = this.view.selected?.item !== undefined ? this.placement.items[this.view.selected.item] : null;
    if (!side.collapsed.delete(m)) side.collapsed.add(m);
    const node = chosen >= 0 ? chosen : group ? group.nodes[0] : -1;
    side.place();
    this.choose(node >= 0 ? {item: side.placement.itemOf[node]} : null);
    const inside = side.placement.items.find((i) => i.nodes.some((n) => side.model.modulesAround(n).includes(m)));
    if (inside) side.input.reveal(inside);
  }

  toLevel(by) {
    for (const side of this.sides) {
      const n = side.view.selected?.item !== undefined ? side.placement.items[side.view.selected.item].nodes[0] : -1;
      side.toLevel(side.level + by);
      side.view.selected = n >= 0 ? {item: side.placement.itemOf[n]} : null;
      side.input.fit();
    }
    this.say('Modules are open to level ' + (this.side.level - 1) + ': ' + plural(this.placement.items.length, 'box') .replace('boxs', 'boxes') + '.');
    this.showPanel();
  }

  // Along the graph: to the first node that a gradient goes to, or comes from.
  walk(up) {
    const n = this.chosenNode();
    if (n < 0) return;
    const next = up ? this.model.nodes[n].edges.find((e) => e.to >= 0)?.to : this.model.users.get(n)[0]?.[0];
    if (next !== undefined) this.showNode(next);
  }

  toggleStop(n) {
    this.player.toggleStop(n);
    this.view.stops = this.player.stops;
    this.view.draw();
    this.showPanel();
  }

  makeTabs() {
    const count = this.model.findings.length;
    const tabs = [['details', 'Details'], ['parameters', 'Parameters'], ['findings', 'Findings', count], ['memory', 'Memory'], ['events', 'Events']];
    if (this.comparison) tabs.unshift(['compare', 'Compare']);
    if (matchMedia('(max-width: 820px)').matches) tabs.splice(1, 0, ['timeline', 'Timeline']);
    clear(byId('tabs'), tabs.map(([id, name, n]) => el('button', {role: 'tab', id: 'tab-' + id, on: {click: () => this.openTab(id)}}, name,
                                                       n ? el('span', {class: 'count', text: n}) : null)));
  }

  openTab(id) {
    this.tab = id;
    this.panel.scrollTop = 0;
    this.drawPanel();
  }

  drawPanel() {
    for (const b of byId('tabs').children) b.setAttribute('aria-selected', b.id === 'tab-' + this.tab);
    const {panel, timeline} = this;
    panel.className = this.tab === 'timeline' ? 'flush' : '';
    if (this.tab !== 'timeline' && panel.contains(timeline.canvas)) byId('stage').append(timeline.canvas);
    switch (this.tab) {
      case 'parameters': return this.tables.parameters(panel);
      case 'findings': return this.tables.findings(panel);
      case 'memory': return this.tables.memory(panel);
      case 'events': return this.tables.eventsTab(panel);
      case 'compare': return this.tables.compare(panel);
      case 'timeline':
        if (!panel.contains(timeline.canvas)) clear(panel, timeline.canvas);
        return timeline.draw();
      default: return this.details.show(panel);
    }
  }

  tip(text, e) {
    const tip = byId('tip');
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const box = tip.getBoundingClientRect();
    tip.style.left = clamp(e.clientX + 14, 4, innerWidth - box.width - 8) + 'px';
    tip.style.top = clamp(e.clientY + 16, 4, innerHeight - box.height - 8) + 'px';
  }

  say(text) {
    const message = byId('message');
    message.textContent = text;
    message.hidden = false;
    clearTimeout(this.hiding);
    this.hiding = setTimeout(() => { message.hidden = true; }, 4200);
  }

  setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    readColors();
    this.showPanel();
    for (const side of this.sides) side.view.draw();
    this.timeline.draw();
  }
  toggleTheme() { this.setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'); }
}
