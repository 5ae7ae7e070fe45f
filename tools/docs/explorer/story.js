// The story of a step: which of its phases each event belongs to, and at which events a walk stops. Events that move nothing in the
// picture, those of operations without a box, are passed together with the next that does.

const kPhases = ['scatter', 'broadcast', 'forward', 'gather', 'loss', 'backward', 'reduce', 'step'];
const kPhaseColors = {scatter: 'copy', broadcast: 'copy', forward: 'forward', gather: 'copy', loss: 'forward', backward: 'backward', reduce: 'reduce', step: 'optimizer'};

class Story {
  constructor(model, events) {
    this.model = model;
    this.events = events;
    this.findPhases();
    const seen = Uint8Array.from(events.list, (e) => !/^op_/.test(e.kind) || e.node >= 0);
    // A recording without any box is walked event by event.
    this.seen = seen.some((x) => x) ? seen : seen.fill(1);
    this.count = this.seen.reduce((n, x) => n + x, 0);
  }

  // The phase of each event, as an index into kPhases. Ranks are in phases of their own.
  findPhases() {
    const {model, events} = this, ranks = new Map();
    const of = (e) => {
      const rank = events.rankOf(e);
      if (!ranks.has(rank)) ranks.set(rank, {rank, name: 'forward', inBackward: false, after: false, walk: 0, ends: []});
      return ranks.get(rank);
    };
    // Before each backward the last operation of a module, or the gather. The loss is what follows.
    const walked = new Lists();
    events.list.forEach((e, i) => {
      const state = of(e), op = e.operation >= 0 ? model.operations[e.operation] : null;
      if (e.kind === 'backward_begin') walked.add(state.rank, i);
      if (e.kind === 'op_end' && (op.module >= 0 || op.replica >= 0 || this.gathers(e))) state.ends[walked.get(state.rank).length] = i;
    });
    this.phases = Uint8Array.from(events.list, (e, i) => {
      const state = of(e);
      state.name = this.nameOf(e, i, state);
      return kPhases.indexOf(state.name);
    });
    this.used = kPhases.map((name, k) => k).filter((k) => this.phases.includes(k));
  }

  gathers(e) { return e.operation >= 0 && (this.model.operations[e.operation].name === 'gather' || /^Gather/.test(this.model.nodes[e.node]?.name)); }

  // `state` is what came before it on its rank.
  nameOf(e, i, state) {
    if (/^step_/.test(e.kind)) return 'step';
    if (e.kind === 'reduce_begin' || e.kind === 'reduce_end' || e.kind === 'slot') return 'reduce';
    if (/^move_/.test(e.kind)) {
      const kind = this.model.movements[e.movement].kind;
      return kPhases.includes(kind) ? kind : /reduce/.test(kind) ? 'reduce' : state.name;
    }
    if (!/^op_/.test(e.kind)) {
      if (e.kind === 'backward_begin') {
        state.inBackward = true;
        state.after = false;
        ++state.walk;
      } else if (e.kind === 'backward_end') {
        state.inBackward = false;
        state.after = true;
      }
      return 'backward';
    }
    if (state.inBackward) return 'backward';
    if (state.after && e.node < 0) return state.name;
    state.after = false;  // another forward
    if (this.gathers(e)) return 'gather';
    const end = state.ends[state.walk];
    return end !== undefined && i > end && this.events.walks.get(state.rank).length > state.walk ? 'loss' : 'forward';
  }

  // Of the event that happened last at position p.
  phase(p) { return kPhases[this.phases[clamp(p - 1, 0, this.phases.length - 1)]] || 'forward'; }

  // A walk stops at the start, at the end, and after events that change the picture.
  stops(p) { return p <= 0 || p >= this.events.length || this.seen[p - 1] === 1; }

  next(p, by) {
    do p += by; while (!this.stops(p));
    return clamp(p, 0, this.events.length);
  }

  // The events without a box just before position p: " Before it ran, without a box: add, mul and 3 others."
  passed(p) {
    if (!this.stops(p) || p < 1 || p >= this.events.length) return '';
    const names = new Set();
    for (let i = p - 2; i >= 0 && !this.seen[i]; --i) names.add(this.model.operations[this.events.list[i].operation].name);
    if (!names.size) return '';
    const list = [...names].reverse(), some = list.slice(0, 3), more = list.length - some.length;
    return ' Before it ran, without a box: ' + some.join(', ') + (more ? ' and ' + plural(more, 'other') : '') + '.';
  }

  // Where the stretch of a phase begins that comes next after p; the first again after the last.
  begin(k, p) {
    let first = -1;
    for (let i = 0; i < this.phases.length; ++i) {
      if (this.phases[i] !== k || (i && this.phases[i - 1] === k)) continue;
      if (i >= p) return i + 1;
      if (first < 0) first = i + 1;
    }
    return first;
  }
}

// The names over the slider, each as wide as its share of the events lets it be. A press goes to where the phase begins.
function showPhases(app) {
  const {story} = app.side, of = (k) => story.phases.reduce((n, x) => n + (x === k), 0);
  clear(byId('phases'), story.used.map((k) => el('button', {
    id: 'phase-' + kPhases[k], class: kPhaseColors[kPhases[k]], style: {flexGrow: String(Math.round(100 * of(k) / story.phases.length))}, text: kPhases[k],
    title: kPhases[k] + ': ' + plural(of(k), 'event') + '. To where it begins', on: {click: () => { app.player.pause(); app.goTo(story.begin(k, app.position), 1); }}})));
}
