// The other tabs: parameters, findings, memory at its peak, events, and what differs between two recordings.

const kPage = 150;  // rows of a table that are made at once

class Tables {
  constructor(app) {
    this.app = app;
    this.sort = {key: 0, up: true};
    this.shown = kPage;
  }
  get model() { return this.app.model; }

  parameters(panel) {
    const m = this.model, {app} = this;
    const size = (row) => row.tensor >= 0 ? m.tensors[row.tensor].bytes : 0;
    const value = (row) => row.tensor >= 0 ? m.statisticsOf(row.tensor) : null;
    const gradient = (row) => row.gradient >= 0 ? m.statisticsOf(row.gradient) : null;
    const deviation = (s) => s ? s.deviation : -1;
    const number = new Map(m.parameters.map((r, p) => [r, p])), from = (r) => m.contributorsOf(number.get(r)).length;
    const heads = [['name', (r) => r.name], ['size', size], ['value ±', (r) => deviation(value(r))], ['gradient ±', (r) => deviation(gradient(r))], ['from', from]];
    const values = m.parameters.some(value);  // else they were not measured
    // Gradients next to each other on a scale of powers of ten: a layer where they vanish is short.
    const logs = m.parameters.map((r) => deviation(gradient(r))).filter((x) => x > 0).map(Math.log10);
    const low = Math.min(...logs) - 0.5, high = Math.max(...logs);
    const order = m.parameters.map((row, p) => p);
    const of = heads[this.sort.key][1], sign = this.sort.up ? 1 : -1;
    if (this.sort.key || !this.sort.up) {
      order.sort((a, b) => {
        const x = of(m.parameters[a]), y = of(m.parameters[b]);
        return sign * (typeof x === 'string' ? x.localeCompare(y) : x - y) || a - b;
      });
    }
    const rows = order.slice(0, this.shown).map((p) => {
      const row = m.parameters[p], v = value(row), g = gradient(row);
      const arrived = row.node >= 0 && app.events.gradientAt(row.node, app.position) >= 0;
      const bad = g && (g.nans || g.infinities);
      const shown = !row.requires_grad ? 'frozen' : row.gradient < 0 ? 'none' : bad ? (g.nans ? 'NaN' : 'infinite') : !arrived ? 'not yet' : g ? formatNumber(g.deviation) : 'there';
      const bar = arrived && g && g.deviation > 0 ? 100 * (Math.log10(g.deviation) - low) / Math.max(1e-9, high - low) : 0;
      return el('tr', {class: 'pick', 'data-parameter': p, on: {click: () => app.showParameter(p)}},
                el('td', {}, el('span', {text: row.name}), el('div', {class: 'muted', text: row.tensor >= 0 ? formatShape(m.tensors[row.tensor]) : ''})),
                el('td', {class: 'r', text: formatBytes(size(row))}), values ? el('td', {class: 'r', text: v ? formatNumber(v.deviation) : ''}) : null,
                el('td', {class: 'r', 'data-gradient': true}, shown, bar ? el('div', {class: 'log'}, el('i', {style: {width: bar + '%'}})) : null),
                el('td', {class: 'r', text: from(row) || ''}));
    });
    clear(panel, el('h2', {text: plural(m.parameters.length, 'parameter')}),
          el('p', {class: 'muted', text: '± is the standard deviation, its bar by powers of ten. Gradients are shown once they have come, at this event; ' +
            '"from" counts who contributed.'}),
          el('table', {}, el('thead', {}, el('tr', {}, heads.map(([name], i) => i === 2 && !values ? null : el('th', {class: i ? 'r' : ''},
            el('button', {text: name + (this.sort.key === i ? this.sort.up ? ' ▲' : ' ▼' : ''), on: {click: () => this.by(i, panel)}}))))),
             el('tbody', {}, rows)),
          order.length > this.shown ? this.more(() => this.parameters(panel), order.length - this.shown) : null);
  }

  by(i, panel) {
    this.sort = {key: i, up: this.sort.key === i ? !this.sort.up : i === 0};
    this.parameters(panel);
  }

  more(again, left) {
    return el('button', {text: 'Show more (' + formatCount(left) + ')', on: {click: () => { this.shown += 4 * kPage; again(); }}});
  }

  findings(panel) {
    const m = this.model;
    // Several parameters without a gradient for one reason are one card.
    const cards = new Map();
    m.findings.forEach((row) => {
      const name = row.parameter >= 0 ? m.parameters[row.parameter].name : '';
      const reason = name && row.text.startsWith(name + ' has no gradient: ') ? row.text.slice(name.length + 18) : '';
      const key = reason ? row.kind + reason : String(cards.size);
      const card = cards.get(key) || {rows: [], reason};
      card.rows.push(row);
      cards.set(key, card);
    });
    const where = (row) => row.parameter >= 0 ? () => this.app.showParameter(row.parameter) : row.node >= 0 ? () => this.app.showNode(row.node)
        : row.operation >= 0 && m.operations[row.operation].node >= 0 ? () => this.app.showNode(m.operations[row.operation].node) : null;
    clear(panel, el('h2', {text: m.findings.length ? plural(m.findings.length, 'finding') : 'Nothing found'}),
          el('p', {class: 'muted', text: m.findings.length ? 'What looks wrong, or costs much.'
              : 'No parameter without a gradient, no vanishing or exploding gradient, no dead ReLU, no NaN, no large saved tensor, no host wait, no late replica.'}),
          [...cards.values()].map(({rows, reason}) => {
            const [row] = rows, op = row.operation >= 0 && row.parameter >= 0 ? m.operations[row.operation].node : -1;
            return el('div', {class: 'card' + (/nan|explod|no gradient/.test(row.kind) ? ' bad' : '')}, el('b', {text: row.kind}),
                      rows.length > 1 ? el('p', {}, rows.map((r, i) => [i ? ', ' : '', el('button', {class: 'link', text: m.parameters[r.parameter].name, on: {click: where(r)}})]))
                                      : null,
                      el('p', {text: rows.length > 1 ? 'Each ' + (/^it/.test(reason) ? 'has none: ' : 'has none, because ') + reason : row.text}),
                      rows.length === 1 && where(row) ? el('button', {class: 'link', text: 'Show it', on: {click: where(row)}}) : null,
                      op >= 0 ? [' ', el('button', {class: 'link', text: 'Show the operation', on: {click: () => this.app.showNode(op)}})] : null);
          }));
  }

  memory(panel) {
    const m = this.model;
    if (!m.memory.length) return clear(panel, el('h2', {text: 'Memory'}), el('p', {class: 'muted', text: 'The recording has no curve of memory.'}));
    clear(panel, el('h2', {text: 'Memory at its peak'}), [...m.memory].sort((a, b) => b.peak - a.peak).map((row) => {
      const largest = row.at_peak.length ? row.at_peak[0].bytes : 1;
      const known = row.at_peak.reduce((a, b) => a + b.bytes, 0);
      const kinds = new Map();
      row.at_peak.forEach((b) => { const k = ownerKind(b.owner); kinds.set(k, (kinds.get(k) || 0) + b.bytes); });
      return [el('h3', {text: m.laneName(row.device)}),
              el('p', {}, formatBytes(row.peak) + ' after ' + formatTime(row.peak_time) + '. ',
                 el('button', {class: 'link', text: 'Go there', on: {click: () => { this.app.player.pause(); this.app.goTo(this.app.events.positionAt(row.peak_time)); }}})),
              el('p', {class: 'muted', text: [...kinds].sort((a, b) => b[1] - a[1]).map(([k, b]) => k + ' ' + formatBytes(b)).join(', ')}),
              row.at_peak.slice(0, 40).map((b) => {
                const node = b.parameter >= 0 ? m.parameters[b.parameter].node : b.node >= 0 ? b.node : m.nodeOf(b.operation);
                const owner = m.ownerOf(b), op = node >= 0 ? m.operationOf(node) : null;
                const path = op && op.module >= 0 ? m.modules[op.module].path : '';
                return el('div', {class: 'sum'},
                          el('div', {}, node >= 0 ? el('button', {class: 'link', text: owner, on: {click: () => this.app.showNode(node)}}) : el('span', {text: owner}),
                             el('span', {class: 'muted', text: '  ' + formatBytes(b.bytes) + (path ? ', ' + path : '')})),
                          el('div', {class: 'stack'}, el('i', {class: ownerKind(b.owner), style: {width: 100 * b.bytes / largest + '%'}})));
              }),
              row.at_peak.length > 40 ? el('p', {class: 'muted', text: 'and ' + plural(row.at_peak.length - 40, 'smaller block') + ', ' +
                formatBytes(known - row.at_peak.slice(0, 40).reduce((a, b) => a + b.bytes, 0))}) : null,
              row.peak > known ? el('p', {class: 'muted', text: formatBytes(row.peak - known) + ' that are nobody\'s here'}) : null];
    }));
  }

  // The events around this one.
  eventsTab(panel) {
    const {events, position} = this.app;
    const first = clamp(position - 12, 0, Math.max(0, events.length - 30));
    const rows = [];
    for (let i = first; i < Math.min(events.length, first + 30); ++i) {
      rows.push(el('tr', {class: 'pick' + (i === position - 1 ? ' now' : ''), on: {click: () => { this.app.player.pause(); this.app.goTo(i + 1, 1); }}},
                   el('td', {class: 'r muted', text: i + 1}), el('td', {text: events.describe(i)}), el('td', {class: 'r muted', text: formatTime(events.times[i])})));
    }
    clear(panel, el('h2', {text: 'Events'}), el('p', {class: 'muted', text: formatCount(position) + ' of ' + formatCount(events.length) + ' have happened.'}),
          el('table', {}, el('tbody', {}, rows)));
  }

  compare(panel) {
    const {comparison} = this.app;
    const first = comparison.first;
    this.onlyDifferent = this.onlyDifferent ?? first >= 0;
    const list = comparison.rows.map((row, i) => [row, i]).filter(([row]) => !this.onlyDifferent || row.same === 'differs' || row.same === 'missing');
    const words = {bits: 'same bits', statistics: 'same statistics', differs: 'differs', missing: 'missing', unknown: 'not known'};
    const box = el('input', {type: 'checkbox'});
    box.checked = this.onlyDifferent;
    box.addEventListener('change', () => { this.onlyDifferent = box.checked; this.compare(panel); });
    clear(panel, el('h2', {text: 'Two recordings'}),
          el('p', {class: 'muted', text: 'first: ' + this.app.sides[0].model.title + '; second: ' + this.app.sides[1].model.title}),
          el('div', {class: 'card ' + (first >= 0 ? 'bad' : 'same')}, el('p', {id: 'verdict', text: comparison.text}),
             first >= 0 ? el('button', {class: 'link', text: 'Show it in both', on: {click: () => this.app.showPair(comparison.rows[first])}}) : null),
          el('label', {class: 'check'}, box, 'only what differs'),
          el('table', {}, el('tbody', {}, list.slice(0, this.shown).map(([row, i]) =>
            el('tr', {class: 'pick' + (i === first ? ' now' : ''), on: {click: () => this.app.showPair(row)}},
               el('td', {}, row.name, el('div', {class: 'muted', text: row.kind + (row.text ? ': ' + row.text : '')})), el('td', {class: 'r', text: words[row.same] || row.same}))))),
          list.length > this.shown ? this.more(() => this.compare(panel), list.length - this.shown) : null);
  }
}

function ownerKind(owner) {
  if (owner.startsWith('parameter')) return 'parameter';
  if (owner.startsWith('gradient')) return 'gradient';
  if (owner.startsWith('saved')) return 'saved';
  if (owner.startsWith('output')) return 'output';
  return 'other';
}
