// Search by parameter, operation, module and line: a list below the field; Enter goes to what is marked.

class Search {
  constructor(app) {
    this.app = app;
    this.field = byId('search');
    this.list = byId('found');
    this.at = 0;
    this.results = [];
    this.field.addEventListener('input', () => this.find());
    this.field.addEventListener('focus', () => this.find());
    this.field.addEventListener('keydown', (e) => this.key(e));
    document.addEventListener('pointerdown', (e) => { if (!e.target.closest('.search')) this.close(); });
  }

  // All that can be found, once: [lower case text, shown text, what it is, node or what to do].
  entries(model) {
    if (this.indexed === model) return this.index;
    const add = (text, kind, node) => this.index.push([text.toLowerCase(), text, kind, node]);
    this.index = [];
    model.parameters.forEach((row, p) => add(row.name, 'parameter' + (row.requires_grad ? '' : ', frozen'), row.node >= 0 ? row.node : -2 - p));
    model.nodes.forEach((row, n) => {
      if (row.leaf) return;
      const op = model.operationOf(n);
      const path = op && op.module >= 0 ? model.modules[op.module].path : '';
      const line = op ? model.source(op.source) : '';
      const text = op ? model.nodeTitle(n) + (path ? '  ' + path : '') : row.name;
      const second = row.in_backward ? 'second graph' : '';
      this.index.push([(row.name + ' ' + text + ' ' + line + ' ' + second).toLowerCase(), text, [row.name, second, line, model.laneName(model.lane(n))].filter(Boolean).join('  '), n]);
    });
    model.buckets.forEach((row, b) => {
      if (!model.emptyBucket[b]) add('bucket ' + b, row.kind + ', ' + formatBytes(row.bytes) + ' on ' + model.laneName(Math.max(0, row.device)), () => this.app.showBucket(b));
    });
    const firstOf = new Map();
    model.nodes.forEach((row, n) => { for (const m of model.modulesAround(n)) if (!firstOf.has(m)) firstOf.set(m, n); });
    model.modules.forEach((row, m) => { if (row.path && firstOf.has(m)) add(row.path, 'module  ' + row.type, () => this.app.showModule(m)); });
    this.indexed = model;
    return this.index;
  }

  find() {
    const words = this.field.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.results = [];
    if (words.length) {
      for (const entry of this.entries(this.app.model)) {
        if (words.every((w) => entry[0].includes(w))) this.results.push(entry);
        if (this.results.length === 60) break;
      }
    }
    this.at = 0;
    this.show();
  }

  show() {
    this.list.hidden = !this.field.value.trim();
    clear(this.list, this.results.length ? this.results.map((entry, i) =>
      el('li', {role: 'option', 'aria-selected': String(i === this.at), on: {click: () => this.go(i)}}, entry[1], el('small', {text: entry[2]})))
      : el('li', {class: 'muted', text: 'Nothing has this in its name.'}));
    this.list.children[this.at]?.scrollIntoView({block: 'nearest'});
  }

  key(e) {
    if (e.key === 'Escape') {
      this.close();
      this.field.blur();
    } else if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      this.at = clamp(this.at + (e.key === 'ArrowDown' ? 1 : -1), 0, Math.max(0, this.results.length - 1));
      this.show();
      e.preventDefault();
    } else if (e.key === 'Enter' && this.results.length) this.go(this.at);
    e.stopPropagation();
  }

  go(i) {
    const n = this.results[i][3];
    this.close();
    this.field.blur();
    if (typeof n === 'function') n();
    else if (n < -1) this.app.showParameter(-2 - n);
    else this.app.showNode(n);
  }

  close() { this.list.hidden = true; }
}
