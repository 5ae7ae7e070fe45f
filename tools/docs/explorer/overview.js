// The panel while nothing is chosen: the recording as a whole, and where its time and memory went.

const kSums = {operations: 'Operations', modules: 'Modules', kept: 'Kept memory', waits: 'Waits'};

Object.assign(Details.prototype, {
  overview() {
    const m = this.model;
    const peak = m.memory.reduce((most, row) => !most || row.peak > most.peak ? row : most, null);
    const second = m.nodes.filter((row) => row.in_backward).length;
    const link = (text, f) => el('button', {class: 'link', text, on: {click: f}});
    const counts = [[m.operations.length, 'operation'], [m.nodes.length, 'node'], [m.parameters.length, 'parameter'], [this.events.length, 'event']];
    return [
      el('h2', {text: m.title || m.program || 'A recording'}),
      facts([
        ['program', [m.program, m.created && m.created.replace('T', ' ').replace('Z', '')].filter(Boolean).join(', ')],
        ['devices', m.devices.map((d, i) => m.laneName(i) + (d.kind && !d.name.startsWith(d.kind) ? ' (' + d.kind + ')' : '')).join(', ')],
        ['holds', counts.map(([n, word]) => plural(n, word)).join(', ')],
        ['time', formatTime(m.duration)],
        ['memory', peak && [formatBytes(peak.peak) + ' at most, on ' + m.laneName(peak.device) + ' ', link('of what', () => this.app.openTab('memory'))]],
        ['dtypes', m.dtypes.length > 1 && m.dtypes.join(', ')],
        ['autocast', m.casts.size > 0 && this.castSum(link)],
        ['second graph', second && [plural(second, 'node') + ' that a backward recorded (create_graph): ',
                                    link('the first', () => this.app.showNode(m.nodes.findIndex((row) => row.in_backward)))]],
      ]),
      m.notes.map((text) => el('p', {class: 'note', text})),
      el('h3', {text: 'Where it went'}),
      el('div', {class: 'row choice', role: 'group', 'aria-label': 'Where it went'}, Object.entries(kSums).map(([id, name]) =>
        el('button', {id: 'sum-' + id, 'aria-pressed': String(this.sum === id), text: name, on: {click: () => { this.sum = id; this.app.showPanel(); }}}))),
      el('div', {id: 'sums'}, this[this.sum + 'Sum']()),
      el('h3', {text: 'Reading the picture'}),
      el('p', {class: 'muted', text: 'A column is a device. Operations stand below what they use: the forward reads downwards, gradients flow upwards along ' +
        'the arrows. Parameters are the pills on the left. Squares with a plus are where the gradients of replicas meet: one small square a replica, and the bar ' +
        'beside them is a bucket: it fills, and is reduced. Press → to walk through what happened, Space to play. Choose a box to see all about it.'}),
      legend(m.hasSecond, m.casts.size > 0),
    ];
  },

  castSum(link) {
    const m = this.model, all = [...m.casts];
    const shared = all.filter(([, cast]) => cast.users.length > 1).length;
    const first = all.map(([o]) => m.operations[o].node).find((n) => n >= 0);
    return [plural(all.length, 'cast') + ', ' + formatCount(shared) + ' of them for several operations',
            first !== undefined ? [': ', link('the first', () => this.app.showNode(first))] : ''];
  },

  // Bars of [forward, backward or other, link, text]; the longest is as long as there is room.
  sumBars(rows, note) {
    const most = Math.max(1e-9, ...rows.map((row) => row.parts.reduce((a, [x]) => a + x, 0)));
    return [el('p', {class: 'muted', text: note}), rows.map((row) => el('div', {class: 'sum', style: {paddingLeft: (row.depth || 0) * 12 + 'px'}},
      el('div', {}, row.link, el('span', {class: 'muted', text: '  ' + row.text})),
      el('div', {class: 'stack', title: row.text}, row.parts.map(([x, kind]) => x > 0 ? el('i', {class: kind, style: {width: 100 * x / most + '%'}}) : null))))];
  },

  operationsSum() {
    const rows = this.app.sums.operations.flatMap((row) => [{...row, time: row.forward, kind: 'forward'}, {...row, time: row.backward, kind: 'gradient'}]);
    const longest = rows.filter((row) => row.time > 0).sort((a, b) => b.time - a.time).slice(0, 8);
    return this.sumBars(longest.map((row) => ({parts: [[row.time, row.kind]], text: formatTime(row.time) + ', ' + this.placeOf(row),
                                               link: this.nodeLink(row.node, row.kind === 'forward' ? row.name : this.model.nodes[row.node].name)})),
                        'The longest, forward in blue and backward in orange.');
  },

  modulesSum() {
    const m = this.model, all = this.app.sums.modules, several = m.devices.length > 1;
    const rows = all.filter((row) => all.length <= 24 || row.depth <= 2).slice(0, 40);
    if (!rows.length) return el('p', {class: 'muted', text: 'The recording knows of no modules (Recording::watch).'});
    return this.sumBars(rows.map((row) => ({depth: row.depth - 1, parts: [[row.forward, 'forward'], [row.backward, 'gradient']],
                                            text: formatTime(row.forward + row.backward) + ', ' + formatTime(row.forward) + ' of it forward',
                                            link: el('button', {class: 'link', text: m.modules[row.module].path, on: {click: () => this.app.showModule(row.module)}})})),
                        'Time in each module with all that is inside, forward and backward' + (several ? ', of all devices together' : '') + '; the longest come first.');
  },

  keptSum() {
    const rows = this.app.sums.operations.filter((row) => row.kept > 0).sort((a, b) => b.kept - a.kept).slice(0, 10);
    if (!rows.length) return el('p', {class: 'muted', text: 'No operation kept anything.'});
    return this.sumBars(rows.map((row) => ({parts: [[row.kept, 'kept']], text: formatBytes(row.kept) + ', ' + this.placeOf(row), link: this.nodeLink(row.node, row.name)})),
                        'What operations keep for their backward; some keep the same tensor. The tab Memory has what the peak was made of.');
  },

  placeOf(row) { return [row.path, this.model.devices.length > 1 && this.model.laneName(row.lane)].filter(Boolean).join(' on ') || this.model.laneName(row.lane); },

  waitsSum() {
    const m = this.model, all = this.app.sums.waits;
    if (!all.length) return el('p', {class: 'muted', text: 'No device was idle for more than 2 % of the time.'});
    const waited = (gap) => gap.why !== 'thread' && gap.why !== 'program';
    const gpus = m.devices.some((d) => d.kind !== 'cpu') ? ' Of a GPU: where the host queued nothing for it.' : '';
    const measured = m.statistics.length ? 'the recording measured values, or ' : '';
    const go = (time) => { this.app.player.pause(); this.app.goTo(this.events.positionAt(time)); };
    const bar = (gap) => ({
      parts: [[gap.end - gap.start, 'other']],
      text: formatTime(gap.end - gap.start) + ' from ' + formatTime(gap.start) + ': ' + this.whyIdle(gap),
      link: el('button', {class: 'link', text: m.laneName(gap.lane), on: {click: () => go(gap.start)}}),
    });
    const bars = (gaps, note) => this.sumBars(gaps.map(bar), note);
    const waits = all.filter(waited).slice(0, 8), others = all.filter((gap) => !waited(gap)).slice(0, 4);
    return [waits.length ? bars(waits, 'Where a device ran nothing since it waited for another one.' + gpus)
                : el('p', {class: 'muted', text: 'No device waited for another one.' + gpus}),
            others.length ? bars(others, 'Where a device ran nothing, and nothing was missing: ' + measured + 'the machine ran other threads.') : null];
  },

  whyIdle(gap) {
    const m = this.model, name = (n) => n >= 0 ? (m.nodes[n].leaf ? m.nodeTitle(n) : m.nodes[n].name) : gap.name;
    switch (gap.why) {
      case 'gradient':
        return name(gap.next) + ' needed the gradient of ' + name(gap.from) + ' on ' + m.laneName(m.lane(gap.from));
      case 'result': return m.nodeTitle(gap.next) + ' needed the result of ' + m.nodeTitle(gap.from) + ' on ' + m.laneName(m.lane(gap.from));
      case 'end': return 'it had nothing left; the backward ended with ' + name(gap.from) + ' on ' + m.laneName(m.lane(gap.from));
      case 'thread': return 'then ' + name(gap.next) + ' ran';
      case 'moved': return gap.name + ' needed the ' + moveWords(m, gap.movement);
      case 'lane': return m.laneName(gap.other) + ' ran ' + gap.ran + ' until ' + formatTime(gap.end - gap.until) + ' before it went on';
      default: return 'then ' + (gap.next >= 0 ? m.nodeTitle(gap.next) : gap.name) + ' ran';
    }
  },
});

function legend(second, casts) {
  const c = colors;
  const rows = [['not computed yet', 'dashed', c.muted, c.lane], ['computes its forward', 'solid', c.forward, c.forward], ['recorded in the graph', 'solid', c.forward, c.node],
                ['ready: all its gradients have come', 'solid', c.backward, c.node], ['runs its backward', 'solid', c.backward, c.backward],
                ['backward done, gradient there', 'solid', c.backward, c.ready], ['adds up or reduces gradients', 'solid', c.reduce, c.node],
                ['moves data between devices', 'solid', c.copy, c.node], ['optimizer', 'solid', c.optimizer, c.optimizer]];
  if (casts) rows.splice(7, 0, ['casts to another dtype, for autocast', 'solid', c.cast, c.node]);
  if (second) rows.splice(7, 0, ['of the second graph: a backward recorded it', 'double', c.forward, c.node]);
  return el('div', {class: 'legend'}, rows.map(([name, line, edge, fill]) => [
    el('i', {style: {borderStyle: line, borderColor: edge, background: fill, borderWidth: line === 'double' ? '5px' : ''}}), el('span', {text: name})]));
}
