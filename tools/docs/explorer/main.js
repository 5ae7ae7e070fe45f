// Starts the page: unpacks the recording, and gives keys and buttons their meaning.

const kKeys = [['→ ←', 'one step on, back: past events without a box'], ['Shift →  Shift ←', 'to where the next or the last node begins'], ['Space', 'play, pause'], ['R', 'play backward'],
               ['Home End', 'to the start, to the end'], ['B', 'a breakpoint at the chosen box'], ['N', 'to the next breakpoint'],
               ['↑ ↓', 'from the chosen box along the gradients, and against them'], ['Enter', 'open or close the chosen module'], ['[ ]', 'close, open modules level by level'],
               ['+ − F', 'larger, smaller, all of it'], ['L', 'keep what runs in sight'], ['/', 'search'], ['T', 'dark or light'], ['Esc', 'choose nothing']];

async function unpack(text) {
  if (typeof DecompressionStream === 'undefined') throw new Error('this browser cannot unpack the recording: it is older than 2023');
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(stream).text());
}

function bind(app) {
  const press = (id, f) => byId(id).addEventListener('click', f);
  press('theme', () => app.toggleTheme());
  press('help', () => byId('keys').showModal());
  press('zoom-in', () => app.side.input.by(1.3));
  press('zoom-out', () => app.side.input.by(1 / 1.3));
  press('fit', () => app.sides.forEach((s) => s.input.fit(true)));
  press('open-more', () => app.toLevel(1));
  press('close-more', () => app.toLevel(-1));
  const follow = () => {
    app.following = !app.following;
    byId('follow').setAttribute('aria-pressed', app.following);
  };
  press('follow', follow);
  clear(byId('keys'), el('h2', {text: 'Keys'}), el('dl', {class: 'facts'}, kKeys.map(([key, what]) => [el('dt', {}, key.split(' ').filter(Boolean).map((k) => [el('kbd', {text: k}), ' '])), el('dd', {text: what})])),
        el('p', {class: 'muted', text: 'The graph moves under the pointer and zooms with the wheel or two fingers; so does the timeline. Double-click opens and closes modules.'}),
        el('form', {method: 'dialog'}, el('button', {text: 'Close'})));
  const keys = {
    ' ': () => app.player.toggle(1), r: () => app.player.toggle(-1), Home: () => { app.player.pause(); app.goTo(0); },
    End: () => { app.player.pause(); app.goTo(app.events.length); }, n: () => app.player.toStop(1),
    b: () => { const n = app.chosenNode(); if (n >= 0) app.toggleStop(n); else app.say('Choose a box first.'); },
    ArrowUp: () => app.walk(true), ArrowDown: () => app.walk(false), f: () => app.sides.forEach((s) => s.input.fit(true)), l: follow,
    '+': () => app.side.input.by(1.3), '=': () => app.side.input.by(1.3), '-': () => app.side.input.by(1 / 1.3), t: () => app.toggleTheme(),
    '?': () => byId('keys').showModal(), '/': () => byId('search').focus(), Escape: () => app.choose(null), '[': () => app.toLevel(-1), ']': () => app.toLevel(1),
    Enter: () => {
      const item = app.view.selected?.item !== undefined ? app.placement.items[app.view.selected.item] : null;
      if (item?.module >= 0) app.toggleModule(item.module);
    },
  };
  document.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || byId('keys').open || e.target.matches('#search, select')) return;
    if (e.target.matches('button, [type=checkbox]') && (e.key === ' ' || e.key === 'Enter')) return;
    if (e.target.closest('#panel') && /^Arrow|Home|End/.test(e.key) && !/Left|Right/.test(e.key)) return;
    if (e.key === 'ArrowRight' || e.key === 'ArrowLeft') {
      const by = e.key === 'ArrowRight' ? 1 : -1;
      if (e.shiftKey) app.player.stepNode(by);
      else app.player.step(by);
    } else {
      const f = keys[e.key] || keys[e.key.toLowerCase()];
      if (!f) return;
      f();
    }
    e.preventDefault();
  });
  const again = onceAFrame(() => {
    for (const side of app.sides) side.view.draw();
    app.timeline.draw();
  });
  new ResizeObserver(again).observe(byId('stage'));
  new ResizeObserver(again).observe(byId('panel'));
  const phone = matchMedia('(max-width: 820px)');
  phone.addEventListener('change', () => {
    app.makeTabs();
    app.openTab('details');
  });
  const dark = matchMedia('(prefers-color-scheme: dark)');
  dark.addEventListener('change', () => app.setTheme(dark.matches ? 'dark' : 'light'));
  app.setTheme(dark.matches ? 'dark' : 'light');
}

async function start() {
  const began = performance.now();
  try {
    const dark = matchMedia('(prefers-color-scheme: dark)').matches;
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    const holder = byId('recording');
    const data = await unpack(holder.textContent);
    holder.remove();
    const app = new App(data);
    bind(app);
    // For tests, and for curious readers.
    window.explorer = app;
    Object.defineProperty(app, 'drawn', {get: () => app.view.drawn});
    app.loadedIn = performance.now() - began;
  } catch (error) {
    byId('title').textContent = 'This page cannot be shown';
    byId('panel').textContent = String(error.message || error);
    throw error;
  }
}

start();
