// A recording's rows with what is asked about them often: who uses a node, whose module it is, what it is called.

class Model {
  constructor(recording, layout, formulas) {
    Object.assign(this, recording);
    this.layout = layout;
    if (!this.devices.length) this.devices = [{name: 'no device', kind: '', rank: 0}];
    const known = (list) => list.filter((i) => i >= 0);
    this.buckets.forEach((row) => { row.members = known(row.members); });
    // Tensors, of which the page wants the lanes.
    const lanes = (list) => [...new Set(known(known(list).map((t) => this.tensors[t].device)))];
    this.movements.forEach((row) => { row.from = lanes(row.from); row.to = lanes(row.to); });
    this.parameters.forEach((row) => { row.contributors = known(row.contributors); });
    this.memory = this.memory.filter((row) => row.device >= 0);
    this.formulas = formulas;
    this.users = new Lists();  // node -> [node, edge] whose gradients go to it
    this.edgeOffset = new Int32Array(this.nodes.length + 1);
    this.nodes.forEach((row, n) => {
      this.edgeOffset[n + 1] = this.edgeOffset[n] + row.edges.length;
      row.edges.forEach((e, i) => { if (e.to >= 0) this.users.add(e.to, [n, i]); });
    });
    this.bucketOf = new Map();
    this.buckets.forEach((row, b) => row.members.forEach((m) => this.bucketOf.set(m, b)));
    this.kernelsOfNode = new Lists();
    this.kernelsOfOperation = new Lists();
    this.kernels.forEach((row, k) => {
      if (row.node >= 0) this.kernelsOfNode.add(row.node, k);
      else if (row.operation >= 0) this.kernelsOfOperation.add(row.operation, k);
    });
    this.producers = new Map();  // tensor -> operation
    this.operations.forEach((row, o) => row.outputs.forEach((t) => this.producers.set(t, o)));
    this.nameModules();
    this.barNodes = this.nodes.map((row, n) => layout.bar[n]);
  }

  nameModules() {
    const paths = new Map(this.modules.map((row, m) => [row.path, m]));
    this.depth = new Int32Array(this.modules.length);
    this.modules.forEach((row, m) => {
      for (let p = m; p >= 0; p = this.modules[p].parent) this.depth[m] += this.modules[p].path !== '';
    });
    this.moduleOfParameter = this.parameters.map((row) => {
      for (let path = row.name; path.includes('.');) {
        path = path.slice(0, path.lastIndexOf('.'));
        if (paths.has(path)) return paths.get(path);
      }
      return -1;
    });
    const parameterOf = (n) => {
      for (let i = 0; i < 4 && n >= 0; ++i) {
        if (this.nodes[n].parameter >= 0) return this.nodes[n].parameter;
        n = this.nodes[n].edges.length === 1 ? this.nodes[n].edges[0].to : -1;
      }
      return -1;
    };
    this.parameterOf = this.nodes.map((row, n) => this.layout.zone[n] < 2 ? parameterOf(n) : -1);
    this.moduleOf = this.nodes.map((row, n) => {
      if (this.parameterOf[n] >= 0) return this.moduleOfParameter[this.parameterOf[n]];
      return row.operation >= 0 ? this.operations[row.operation].module : -1;
    });
  }

  // Modules around a node, innermost first, without the root.
  modulesAround(n) {
    const list = [];
    for (let m = this.moduleOf[n]; m >= 0; m = this.modules[m].parent) if (this.modules[m].path !== '') list.push(m);
    return list;
  }

  lane(n) { return this.layout.lane[n]; }

  lanesAround(n) {
    const lanes = new Set([this.lane(n)]);
    for (const e of this.nodes[n].edges) if (e.to >= 0) lanes.add(this.lane(e.to));
    for (const [user] of this.users.get(n)) lanes.add(this.lane(user));
    return [...lanes].sort((a, b) => a - b);
  }

  operationOf(n) { return this.nodes[n].operation >= 0 ? this.operations[this.nodes[n].operation] : null; }

  // The operation's name, or the node's without what all of them have.
  nodeTitle(n) {
    const row = this.nodes[n];
    if (row.parameter >= 0) return this.parameters[row.parameter].name;
    if (row.leaf) return row.name;
    if (this.layout.zone[n] === 1) return row.name;
    const op = this.operationOf(n);
    return op && op.name ? op.name : row.name.replace(/Backward\d*$/, '');
  }

  nodeShort(n) {
    const p = this.nodes[n].parameter;
    if (p < 0) return this.nodeTitle(n);
    return this.parameters[p].name.split('.').slice(-2).join('.');
  }

  // What a box says below its name.
  nodeSecond(n) {
    const op = this.operationOf(n);
    if (!op) return '';
    const out = op.outputs.length && op.outputs[0] >= 0 ? this.tensors[op.outputs[0]].shape.join('×') : '';
    const path = op.module >= 0 ? this.modules[op.module].path : '';
    return [path.split('.').slice(-2).join('.'), out].filter(Boolean).join('  ');
  }

  laneName(lane) {
    const row = this.devices[lane];
    if (!row) return 'lane ' + lane;
    return (this.ranks > 1 ? 'rank ' + row.rank + ' ' : '') + row.name;
  }

  source(s) {
    if (s < 0) return '';
    const row = this.sources[s];
    return row.file + ':' + row.line;
  }

  statisticsOf(t) {
    if (t < 0 || this.tensors[t].statistics < 0) return null;
    return this.statistics[this.tensors[t].statistics];
  }
  isBad(t) {
    const s = t >= 0 ? this.statisticsOf(t) : null;
    return s !== null && (s.nans > 0 || s.infinities > 0);
  }

  // Node's code, as the build found it.
  formula(n) {
    const name = this.nodes[n].name;
    return this.formulas[name] || null;
  }

  span(n) {
    const op = this.operationOf(n);
    return op ? op.end - op.start : 0;
  }
}
