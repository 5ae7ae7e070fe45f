// Walking through the events: one at a time, on its own, backward, up to a breakpoint.

const kLasts = 30;

class Player {
  constructor(app) {
    this.app = app;
    this.playing = 0;  // 1 forward, -1 backward
    this.speed = 0;    // steps a second; 0: all of it in kLasts seconds
    this.stops = new Set();  // nodes
    this.stopAtBad = false;
    this.slider = byId('slider');
    this.slider.addEventListener('input', () => {
      this.pause();
      app.goTo(Number(this.slider.value));
    });
    const press = (id, f) => byId(id).addEventListener('click', f);
    press('to-start', () => { this.pause(); app.goTo(0); });
    press('back', () => this.step(-1));
    press('reverse', () => this.toggle(-1));
    press('play', () => this.toggle(1));
    press('forward', () => this.step(1));
    press('to-end', () => { this.pause(); app.goTo(app.events.length); });
    press('next-stop', () => this.toStop(1));
    byId('speed').addEventListener('change', (e) => { this.speed = Number(e.target.value); });
    byId('stop-bad').addEventListener('change', (e) => {
      this.stopAtBad = e.target.checked;
      app.say(this.stopAtBad ? 'Playing stops at the first NaN or infinity.' : 'Playing goes on at NaN.');
    });
  }

  step(by) {
    this.pause();
    this.app.goTo(this.app.side.story.next(this.app.position, by), by);
  }

  // To where the next node begins, or the one before.
  stepNode(by) {
    this.pause();
    const {events} = this.app;
    let p = this.app.position + by;
    const begins = (q) => q > 0 && /^(begin|op_begin|reduce_begin|move_begin|step_begin)$/.test(events.list[q - 1].kind);
    while (p > 0 && p < events.length && !begins(p)) p += by;
    this.app.goTo(p, by);
  }

  toggle(direction) {
    if (this.playing === direction) return this.pause();
    const {events} = this.app;
    if (direction > 0 && this.app.position >= events.length) this.app.goTo(0);
    this.playing = direction;
    this.last = performance.now();
    this.credit = 0;
    this.show();
    requestAnimationFrame((now) => this.tick(now));
  }

  pause() {
    this.playing = 0;
    this.show();
  }

  show() {
    const set = (id, on, name, idle) => {
      byId(id).setAttribute('aria-pressed', on);
      byId(id).textContent = on ? '❚❚' : idle;
      byId(id).setAttribute('aria-label', on ? 'Pause' : name);
    };
    set('play', this.playing > 0, 'Play', '▶');
    set('reverse', this.playing < 0, 'Play backward', '◀');
  }

  tick(now) {
    if (!this.playing) return;
    this.credit += Math.min(0.25, (now - this.last) / 1000) * (this.speed || this.app.side.story.count / kLasts);
    this.last = now;
    while (this.credit >= 1 && this.playing) {
      this.credit -= 1;
      let p = this.app.position + this.playing;
      if (p < 0 || p > this.app.events.length) {
        this.pause();
        break;
      }
      while (!this.app.side.story.stops(p) && !this.stopsAt(p)) p += this.playing;
      // Many events in one frame are shown as one jump.
      this.app.goTo(p, this.credit >= 1 ? 0 : this.playing, this.credit >= 1);
      const why = this.stopsAt(p);
      if (why) {
        this.pause();
        this.app.goTo(p, this.playing);
        this.app.say(why);
      }
    }
    if (this.playing) requestAnimationFrame((t) => this.tick(t));
  }

  // Why playing stops after event p - 1; null: it does not.
  stopsAt(p) {
    if (p < 1) return null;
    const {events, model} = this.app, e = events.list[p - 1];
    if (this.stopAtBad && events.isBad(p - 1)) return 'Stopped: the first NaN or infinity. ' + events.describe(p - 1);
    if (!this.stops.size) return null;
    if (/^(begin|accumulated|op_begin)$/.test(e.kind) && this.stops.has(e.node)) {
      return 'Stopped at the breakpoint ' + model.nodeTitle(e.node) + '.';
    }
    if (e.kind === 'slot' && this.stops.has(e.node)) return 'Stopped at the breakpoint ' + model.nodeTitle(e.node) + '.';
    return null;
  }

  // Without playing: to the next event that would stop it.
  toStop(by) {
    this.pause();
    const {app} = this;
    if (!this.stops.size && !this.stopAtBad) return app.say('There is no breakpoint: choose a box and press B, or tick "stop at NaN".');
    for (let p = app.position + by; p > 0 && p <= app.events.length; p += by) {
      const why = this.stopsAt(p);
      if (!why) continue;
      app.goTo(p, by);
      return app.say(why);
    }
    app.say('No breakpoint ' + (by > 0 ? 'after' : 'before') + ' this event.');
  }

  toggleStop(n) {
    if (this.stops.has(n)) this.stops.delete(n);
    else this.stops.add(n);
    const name = this.app.model.nodeTitle(n);
    this.app.say(this.stops.has(n) ? 'A breakpoint at ' + name + '.' : 'No breakpoint at ' + name + ' any more.');
  }
}
