// A recording's rows, with what is asked about them often: the users of a node, its module, its name.

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
    this.parameters.forEach((row) => {
      row.contributors = known(row.contributors);
      if (!row.name) row.name = 'a leaf' + (row.tensor >= 0 ? ' of ' + formatShape(this.tensors[row.tensor]) : '');
    });
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
    this.findCasts();
    this.nameModules();
    this.nameInputs();
    this.nameStorages();
    this.matchBuckets();
    this.firstKernels();
    this.hasSecond = this.nodes.some((row) => row.in_backward);
    this.barNodes = this.nodes.map((row, n) => layout.bar[n]);
  }

  // Casts that autocast put in: operation -> dtypes, and the operations that use the result. A recording with several floating-point
  // dtypes says at each box which it is.
  findCasts() {
    this.casts = new Map();
    const of = new Map();  // tensor -> cast
    this.operations.forEach((row, o) => {
      const [from, to] = [row.inputs[0], row.outputs[0]];
      if (!row.autocast || !(from >= 0) || !(to >= 0)) return;
      const cast = {from: this.tensors[from].dtype, to: this.tensors[to].dtype, name: this.tensors[from].name, users: [], reuses: row.reuses};
      this.casts.set(o, cast);
      of.set(to, cast);
    });
    this.operations.forEach((row, o) => new Set(row.inputs).forEach((t) => of.get(t)?.users.push(o)));
    this.dtypes = [...new Set(this.tensors.map((row) => row.dtype))].filter((dtype) => dtype.includes('float')).sort();
  }

  // "autocast casts fc.weight from float32 to bfloat16", or null of another operation.
  castWords(o) {
    const cast = this.casts.get(o);
    return cast ? 'autocast casts ' + (cast.name || 'an input') + ' from ' + cast.from + ' to ' + cast.to : null;
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

  // Parameters where they are inputs: a replica's copy has no name of its own, but its gradient goes to the parameter.
  nameInputs() {
    this.parameters.forEach((row) => { if (row.tensor >= 0) this.tensors[row.tensor].name ||= row.name; });
    this.nodes.forEach((node) => {
      if (node.operation < 0) return;
      const {inputs} = this.operations[node.operation];
      if (inputs.length !== node.edges.length) return;
      node.edges.forEach((e, i) => {
        const p = e.to >= 0 && inputs[i] >= 0 ? this.parameterOf[e.to] : -1, tensor = this.tensors[inputs[i]];
        if (p < 0 || this.producers.has(inputs[i]) || this.parameters[p].tensor < 0) return;
        if (String(tensor.shape) === String(this.tensors[this.parameters[p].tensor].shape)) tensor.name ||= this.parameters[p].name;
      });
    });
  }

  // Parameters, and gradients, that lie in one piece of memory: [names] by its number.
  nameStorages() {
    this.parametersIn = new Lists();
    this.gradientsIn = new Lists();
    this.parameters.forEach((row) => {
      if (row.tensor >= 0) this.parametersIn.add(this.tensors[row.tensor].storage, row.name);
      if (row.gradient >= 0) this.gradientsIn.add(this.tensors[row.gradient].storage, row.name);
    });
  }

  // Whose a block of memory is, with all that lies in it.
  ownerOf(block) {
    for (const [word, many, list] of [['parameter ', 'parameters', this.parametersIn], ['gradient of ', 'gradients', this.gradientsIn]]) {
      const names = list.get(block.storage);
      if (names.length > 1 && block.owner.startsWith(word)) return names.length + ' ' + many + ' in one block: ' + names[0] + ' …';
    }
    return block.owner;
  }

  // The buckets of the other ranks with which one is all-reduced: those of the same parameters. And those that reduce nothing: of one
  // replica's gradients.
  matchBuckets() {
    const same = new Lists(), counts = new Map();
    const key = (b) => this.buckets[b].members.map((n) => this.parameterOf[n] >= 0 ? this.parameters[this.parameterOf[n]].name : '').sort().join('\n');
    const keys = this.buckets.map((row, b) => {
      if (row.kind !== 'all_reduce') return null;
      const rank = this.devices[Math.max(0, row.device)].rank, of = rank + '\n' + key(b), nth = counts.get(of) || 0;
      counts.set(of, nth + 1);
      same.add(nth + '\n' + key(b), b);
      return nth + '\n' + key(b);
    });
    this.partners = this.buckets.map((row, b) => keys[b] === null ? [] : same.get(keys[b]).filter((other) => other !== b));
    this.emptyBucket = this.buckets.map((row) => row.kind === 'reduce_add' && row.members.every((n) => this.users.get(n).length < 2));
  }

  // A kernel that ran for an operation before its node was made stands in the recording as an operation of its own: op -> that one.
  firstKernels() {
    this.ranBefore = new Map();
    const last = new Map();  // by thread
    this.operations.forEach((op, o) => {
      const before = last.get(op.thread);
      const other = before === undefined ? null : this.operations[before];
      if (op.node >= 0 && op.start === op.end && other && other.node < 0 && !other.autocast && other.module === op.module) this.ranBefore.set(o, before);
      last.set(op.thread, o);
    });
  }

  // The node that an operation left, or for which it ran.
  nodeOf(o) {
    if (o < 0 || this.operations[o].node >= 0) return o < 0 ? -1 : this.operations[o].node;
    for (const [after, before] of this.ranBefore) if (before === o) return this.operations[after].node;
    return -1;
  }

  // What ends in a parameter's gradient, through the sums of replicas.
  contributorsOf(p) {
    const through = (n) => this.nodes[n].reduces && this.layout.zone[n] === 1 ? this.users.get(n).map(([user]) => user) : [n];
    return [...new Set(this.parameters[p].contributors.flatMap(through))];
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
    if (this.casts.has(row.operation)) return 'autocast';
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
    const cast = this.casts.get(this.nodes[n].operation);
    if (cast) return shortDtype(cast.from) + ' → ' + shortDtype(cast.to) + (cast.users.length > 1 ? ', for ' + cast.users.length : '');
    const made = op.outputs.length && op.outputs[0] >= 0 ? this.tensors[op.outputs[0]] : null;
    const out = made ? [made.shape.join('×'), this.dtypes.length > 1 && shortDtype(made.dtype)].filter(Boolean).join(' ') : '';
    const path = op.module >= 0 ? this.modules[op.module].path.split('.') : [];
    return [path.slice(/^\d+$/.test(path[path.length - 1]) ? -2 : -1).join('.'), out].filter(Boolean).join('  ');
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
  // A value may be infinite, as those of masks are. A gradient may not.
  isBad(t, gradient = false) {
    const s = t >= 0 ? this.statisticsOf(t) : null;
    return s !== null && (s.nans > 0 || (gradient && s.infinities > 0));
  }

  // Node's code, as the build found it.
  formula(n) {
    const name = this.nodes[n].name;
    return this.formulas[name] || null;
  }

  // ns that it took to compute.
  forwardTime(n) {
    const op = this.operationOf(n), before = op ? this.ranBefore.get(this.nodes[n].operation) : undefined;
    return op ? op.end - op.start + (before === undefined ? 0 : this.operations[before].end - this.operations[before].start) : 0;
  }
}
