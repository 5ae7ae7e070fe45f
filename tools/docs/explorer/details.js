// The panel about what is chosen: a node, a collapsed module, a bucket, or data that moved.

class Details {
  constructor(app) {
    this.app = app;
    this.sum = 'operations';
  }
  get model() { return this.app.model; }
  get events() { return this.app.events; }

  show(panel) {
    const chosen = this.app.view.selected;
    if (!chosen) return clear(panel, this.overview());
    if (chosen.bucket !== undefined) return clear(panel, this.bucket(chosen.bucket));
    if (chosen.bar !== undefined) return clear(panel, this.bar(chosen.bar));
    if (chosen.parameter !== undefined) return clear(panel, this.lonely(chosen.parameter));
    const item = this.app.placement.items[chosen.item];
    clear(panel, item.node >= 0 ? this.node(item.node) : this.group(item));
  }

  node(n) {
    const m = this.model, row = m.nodes[n], op = m.operationOf(n), p = this.app.position;
    const state = this.events.state(n, p), [full, all] = this.events.filled(n, p);
    const stop = this.app.player.stops.has(n);
    return [
      el('h2', {text: m.nodeTitle(n)}),
      el('p', {class: 'muted', text: row.leaf && row.parameter >= 0 ? 'parameter; ' + row.name + ' collects its gradient' : row.name}),
      el('span', {class: 'state ' + state, text: stateWords(state)}),
      all ? el('p', {text: 'Gradients that have come: ' + full + ' of ' + all + '.'}) : null,
      el('div', {class: 'row'},
         el('button', {text: (stop ? 'Remove the breakpoint' : 'Breakpoint') + ' (B)', on: {click: () => this.app.toggleStop(n)}}),
         this.jump(n, 'begin', 'Go to its backward'), this.jump(n, 'opBegin', 'Go to its forward')),
      facts([
        ['device', m.laneName(m.lane(n))],
        ['cast', this.cast(row.operation)],
        ['arguments', op && op.arguments],
        ['module', op && op.module >= 0 && (m.modules[op.module].path || '(the root)') + '  ' + m.modules[op.module].type],
        ['replica', op && op.replica >= 0 && String(op.replica)],
        ['made by', op && op.source >= 0 && m.source(op.source) + (m.sources[op.source].function ? ' in ' + m.sources[op.source].function : '')],
        ['scope', op && op.scope],
        ['forward', op && formatTime(m.forwardTime(n)) + ' from ' + formatTime(op.start)], ['backward', this.backwardTime(n)],
        ['waited', this.waited(n)],
        ['graph', row.in_backward && 'the second: a backward recorded it (create_graph)'],
      ]),
      row.parameter >= 0 ? this.parameter(row.parameter, n) : null,
      op ? this.tensors(op) : null,
      op && op.saved.length ? this.saved(op) : null,
      this.edges(n),
      this.kernels(n),
      this.code(n),
    ];
  }

  // From and to which dtype autocast casts here, and for which operations.
  cast(o) {
    const cast = this.model.casts.get(o);
    if (!cast) return null;
    return [this.model.castWords(o) + ', for ' + plural(cast.users.length, 'operation'),
            cast.reuses ? '. It kept the result, and used it again ' + (cast.reuses === 1 ? 'once' : cast.reuses + ' times') : ''];
  }

  backwardTime(n) {
    const begin = this.events.begin.first[n], end = this.events.end.first[n];
    if (begin < 0 || end < begin) return null;
    return formatTime(this.events.times[end] - this.events.times[begin]) + ' from ' + formatTime(this.events.times[begin]);
  }

  // Which of the lanes came last with its gradient.
  waited(n) {
    const m = this.model, last = this.app.sums.lastToCome(m.users.get(n));
    return last && 'for ' + m.laneName(last.lane) + ', whose gradient came last: ' + formatTime(last.last - last.first) + ' after the first';
  }

  // A parameter that the graph has no place for.
  lonely(p) {
    const m = this.model, row = m.parameters[p];
    return [el('h2', {text: row.name}), el('p', {class: 'muted', text: 'parameter' + (row.requires_grad ? '' : ', frozen')}), this.parameter(p, -1)];
  }

  jump(n, table, text) {
    const at = this.events[table].first[n];
    return at < 0 ? null : el('button', {text, on: {click: () => { this.app.player.pause(); this.app.goTo(at + 1, 1); }}});
  }

  nodeLink(n, text) {
    if (n < 0) return el('span', {text});
    return el('button', {class: 'link', text, on: {click: () => this.app.showNode(n)}});
  }

  tensor(t, word) {
    const m = this.model;
    if (t < 0) return el('span', {class: 'muted', text: 'none'});
    const row = m.tensors[t];
    const from = m.producers.get(t), cast = from !== undefined && m.casts.get(from);
    const node = from !== undefined ? m.operations[from].node : -1;
    return [word, row.name ? el('b', {text: row.name + '  '}) : '', formatShape(row) + '  ' + row.dtype + '  ' + formatBytes(row.bytes),
            node >= 0 && word !== undefined ? [' from ', this.nodeLink(node, cast ? 'autocast' : m.operations[from].name)] : '',
            cast && word !== undefined ? el('span', {class: 'muted', text: '  cast from ' + cast.from}) : ''];
  }

  tensors(op) {
    return [
      op.inputs.length ? el('h3', {text: 'Inputs'}) : null,
      op.inputs.map((t, i) => el('p', {}, this.tensor(t, ''), op.versions[i] ? el('span', {class: 'muted', text: '  version ' + op.versions[i]}) : '')),
      op.outputs.length ? el('h3', {text: 'Result'}) : null,
      op.outputs.map((t) => [el('p', {}, this.tensor(t)), this.statistics(t)]),
    ];
  }

  saved(op) {
    const sum = op.saved.reduce((a, s) => a + s.bytes, 0);
    return [
      el('h3', {text: 'Kept for the backward: ' + formatBytes(sum)}),
      op.saved.map((s) => {
        const own = op.outputs.includes(s.tensor) ? 'its result: ' : op.inputs.includes(s.tensor) ? 'an input: ' : '';
        return el('p', {}, own, this.tensor(s.tensor), s.version ? ', version ' + s.version : '');
      }),
    ];
  }

  statistics(t, gradient = false) {
    const s = t >= 0 ? this.model.statisticsOf(t) : null;
    if (!s) return null;
    const most = Math.max(1, ...s.histogram);
    return [
      el('div', {class: 'hist' + (gradient ? ' gradient' : ''), role: 'img', 'aria-label': 'histogram'},
         s.histogram.map((n) => el('i', {style: {height: (100 * n / most) + '%'}, title: formatCount(n)}))),
      el('div', {class: 'ends'}, el('span', {text: formatNumber(s.min)}), el('span', {text: 'mean ' + formatNumber(s.mean) + ', deviation ' + formatNumber(s.deviation)}),
         el('span', {text: formatNumber(s.max)})),
      s.zeros || s.nans || s.infinities
          ? el('p', {class: 'muted', text: [s.zeros && (100 * s.zeros / Math.max(1, s.count)).toFixed(0) + ' % zeros', s.nans && plural(s.nans, 'NaN'),
                                            s.infinities && formatCount(s.infinities) + ' infinite'].filter(Boolean).join(', ')}) : null,
    ];
  }

  parameter(p, n) {
    const m = this.model, row = m.parameters[p];
    const shown = n >= 0 ? this.events.gradientAt(n, this.app.position) : -1;
    const contributors = m.contributorsOf(p), finding = m.findings.find((f) => f.parameter === p);
    return [
      el('h3', {text: 'Value'}), el('p', {}, this.tensor(row.tensor)), this.statistics(row.tensor),
      el('h3', {text: 'Gradient'}),
      shown >= 0 ? [el('p', {id: 'gradient'}, this.tensor(shown)), this.statistics(shown, true)]
          : el('p', {class: 'muted', text: row.gradient >= 0 ? 'Not yet, at this event.' : 'It has none.'}),
      finding ? el('div', {class: 'card bad'}, el('p', {text: finding.text}),
                   finding.operation >= 0 && m.operations[finding.operation].node >= 0 ? this.nodeLink(m.operations[finding.operation].node, 'Show the operation') : null) : null,
      contributors.length ? [el('h3', {text: 'Who contributed'}), contributors.map((c) => el('p', {}, this.nodeLink(c, m.nodes[c].name), ' on ' + m.laneName(m.lane(c))))] : null,
    ];
  }

  edges(n) {
    const m = this.model, p = this.app.position;
    const name = (i) => m.nodes[i].leaf ? m.nodeTitle(i) : m.nodes[i].name;
    const users = m.users.get(n);
    return [
      users.length ? el('h3', {text: 'Gradients come from'}) : null,
      users.slice(0, 24).map(([user, i]) => el('p', {}, this.nodeLink(user, name(user)), ' on ' + m.laneName(m.lane(user)) + ', slot ' + m.nodes[user].edges[i].slot,
                                  el('span', {class: 'muted', text: this.events.deliveredAt(user, i, p) >= 0 ? '  delivered' : ''}))),
      m.nodes[n].edges.some((e) => e.to >= 0) ? el('h3', {text: 'Its gradients go to'}) : null,
      m.nodes[n].edges.map((e, i) => {
        if (e.to < 0) return el('p', {class: 'muted', text: 'input ' + i + ' wants none'});
        const at = this.events.deliveredAt(n, i, p);
        const t = at >= 0 ? this.events.list[at].tensor : -1;
        return [el('p', {}, this.nodeLink(e.to, name(e.to)), ', slot ' + e.slot, el('span', {class: 'muted', text: at >= 0 ? '  delivered' : ''})),
                t >= 0 ? this.statistics(t, true) : null];
      }),
    ];
  }

  kernels(n) {
    const m = this.model;
    const list = [...(m.nodes[n].operation >= 0 ? m.kernelsOfOperation.get(m.nodes[n].operation) : []), ...m.kernelsOfNode.get(n)];
    if (!list.length) return null;
    return [el('h3', {text: 'Kernels'}), table(['name', 'time', 'bytes', 'FLOP'], list.map((k) => {
      const row = m.kernels[k];
      return [row.name + (row.replayed ? ' (replayed)' : ''), formatTime(row.end - row.start), row.bytes >= 0 ? formatBytes(row.bytes) : '', row.flops >= 0 ? formatCount(row.flops) : ''];
    }), [1, 2, 3])];
  }

  code(n) {
    const pieces = this.model.formula(n);
    if (!pieces) return null;
    return [el('h3', {text: 'Its row: the value and the gradient as the code has them'}),
            pieces.map((f) => [el('p', {class: 'muted', text: f.where}), el('pre', {}, highlight(f.code))])];
  }

  group(item) {
    const m = this.model, row = m.modules[item.module];
    const ops = item.nodes.map((n) => m.operationOf(n)).filter(Boolean);
    const parameters = m.parameters.filter((p) => p.name.startsWith(row.path + '.'));
    const longest = [...ops].sort((a, b) => (b.end - b.start) - (a.end - a.start)).slice(0, 6);
    const done = item.nodes.filter((n) => this.events.state(n, this.app.position) === 'done').length;
    return [
      el('h2', {text: row.path}), el('p', {class: 'muted', text: row.type}),
      el('span', {class: 'state', text: done + ' of ' + plural(item.nodes.length, 'node') + ' done in this backward'}),
      el('div', {class: 'row'}, el('button', {text: 'Open (Enter)', on: {click: () => this.app.toggleModule(item.module)}})),
      facts([
        ['device', m.laneName(item.lane)], ['operations', formatCount(ops.length)],
        ['parameters', parameters.length && formatCount(parameters.length) + ', ' + formatBytes(parameters.reduce((a, p) => a + (p.tensor >= 0 ? m.tensors[p.tensor].bytes : 0), 0))],
        ['forward', formatTime(item.nodes.reduce((a, n) => a + m.forwardTime(n), 0))],
        ['backward', formatTime(item.nodes.reduce((a, n) => a + this.app.sums.operations[n].backward, 0))],
        ['kept', formatBytes(ops.reduce((a, op) => a + op.saved.reduce((b, s) => b + s.bytes, 0), 0)) + ' for the backward'],
      ]),
      longest.length ? el('h3', {text: 'Longest'}) : null,
      longest.map((op) => el('p', {}, this.nodeLink(op.node, op.name), '  ' + formatTime(op.end - op.start))),
    ];
  }

  bucket(b) {
    const m = this.model, row = m.buckets[b], s = this.events.bucketState(b, this.app.position);
    const at = (table, text) => {
      const i = this.events[table].first[b];
      return i < 0 ? null : el('button', {text, on: {click: () => this.app.goTo(i + 1, 1)}});
    };
    const begin = this.events.reduceBegin.first[b], end = this.events.reduceEnd.first[b];
    return [
      el('h2', {text: 'Bucket ' + b}),
      el('p', {class: 'muted', text: row.kind + ': gradients of ' + (row.kind === 'all_reduce' ? 'the ranks' : 'replicas') + ' that are reduced by one call'}),
      el('span', {class: 'state ' + s.state, text: s.state === 'done' ? 'reduced' : s.state === 'running' ? 'being reduced' : s.full + ' of ' + s.all + ' members complete'}),
      el('div', {class: 'row'}, at('reduceBegin', 'Go to its reduction')),
      facts([['device', row.device >= 0 && m.laneName(row.device)], ['size', formatBytes(row.bytes)],
             ['reduced', begin >= 0 && end >= 0 && formatTime(this.events.times[end] - this.events.times[begin]) + ' from ' + formatTime(this.events.times[begin])],
             ['the backward', begin >= 0 && this.overlap(begin)], ['came last', this.cameLast(b)]]),
      m.partners[b].length ? el('h3', {text: 'Meets'}) : null,
      m.partners[b].map((other) => el('p', {}, el('button', {class: 'link', text: 'bucket ' + other, on: {click: () => this.app.chooseBucket(other)}}),
                                      ' of ' + m.laneName(Math.max(0, m.buckets[other].device)))),
      el('h3', {text: 'Members'}),
      row.members.map((n) => {
        const [full, all] = this.events.filled(n, this.app.position);
        return el('p', {}, this.nodeLink(n, m.nodeTitle(n)), el('span', {class: 'muted', text: '  ' + full + ' of ' + all + ' slots full'}));
      }),
    ];
  }

  // The member and lane, or the rank, that completed it.
  cameLast(b) {
    const m = this.model, {events} = this, at = (x) => events.reduceBegin.first[x];
    const all = [b, ...m.partners[b]].filter((x) => at(x) >= 0).sort((x, y) => events.times[at(x)] - events.times[at(y)]);
    if (all.length > 1) {
      const last = all[all.length - 1];
      return m.laneName(Math.max(0, m.buckets[last].device)) + ', ' + formatTime(events.times[at(last)] - events.times[at(all[0])]) + ' after ' +
             m.laneName(Math.max(0, m.buckets[all[0]].device));
    }
    const member = m.buckets[b].members.map((n) => [events.slot.first[n], n]).sort((x, y) => y[0] - x[0])[0];
    if (!member || member[0] < 0) return null;
    const lanes = this.app.sums.lastToCome(m.users.get(member[1]));
    return m.nodeTitle(member[1]) + (lanes ? ', with the gradient of ' + m.laneName(lanes.lane) : '');
  }

  // How much of the backward was left when the reduction began. Leaves do not count: those of the bucket itself come after it.
  overlap(begin) {
    let left = 0;
    const rank = this.events.rankOf(this.events.list[begin]);
    for (let i = begin; i < this.events.length; ++i) {
      const e = this.events.list[i];
      if (this.events.rankOf(e) !== rank) continue;
      if (e.kind === 'backward_end') break;
      left += e.kind === 'begin' && !(e.node >= 0 && this.model.nodes[e.node].leaf);
    }
    return left ? 'goes on beside it: ' + plural(left, 'node') + ' began later' : 'had nothing left to do';
  }

  bar(b) {
    const m = this.model, bar = m.layout.bars[b];
    return [el('h2', {text: bar.kind}), el('p', {class: 'muted', text: 'Data that moved outside of the graph'}),
            bar.movements.slice(0, 200).map((i) => {
              const row = m.movements[i];
              return el('p', {text: moveWords(m, i) + ': ' + formatTime(row.end - row.start) + ' from ' + formatTime(row.start)});
            })];
  }
}

function facts(rows) {
  return el('dl', {class: 'facts'}, rows.filter(([, value]) => value).map(([name, value]) => [el('dt', {text: name}), el('dd', {}, value)]));
}

function table(heads, rows, right = []) {
  const side = (i) => right.includes(i) ? 'r' : '';
  return el('table', {}, el('thead', {}, el('tr', {}, heads.map((h, i) => el('th', {class: side(i), text: h})))),
            el('tbody', {}, rows.map((row) => el('tr', {}, row.map((cell, i) => cell instanceof Node ? el('td', {class: side(i)}, cell) : el('td', {class: side(i), text: cell}))))));
}

// Words, numbers and comments of C++, as elements.
function highlight(code) {
  const kWords = /^(const|return|if|else|for|struct|template|class|static|auto|int|bool|double|float|void|Tensor|constexpr)$/;
  const out = [];
  for (const token of code.match(/\/\/[^\n]*|[A-Za-z_]\w*|\d[\w.]*|[^A-Za-z_\d/]+|\//g) || []) {
    if (token.startsWith('//')) out.push(el('span', {class: 'c', text: token}));
    else if (kWords.test(token)) out.push(el('span', {class: 'k', text: token}));
    else if (/^\d/.test(token)) out.push(el('span', {class: 'n', text: token}));
    else out.push(token);
  }
  return out;
}
