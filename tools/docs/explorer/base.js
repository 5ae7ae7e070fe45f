// What every part uses: making elements, and numbers as text. Names come from a recording, so from anybody: text goes into the
// page as text nodes only, never as markup.

function el(tag, props, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key === 'class') e.className = value;
    else if (key === 'text') e.textContent = value;
    else if (key === 'on') for (const [name, f] of Object.entries(value)) e.addEventListener(name, f);
    else if (key === 'style') Object.assign(e.style, value);
    else e.setAttribute(key, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) e.append(child);
  }
  return e;
}

const byId = (id) => document.getElementById(id);

function clear(e, ...children) {
  e.replaceChildren(...children.flat(Infinity).filter(Boolean));
  return e;
}

const clamp = (x, low, high) => Math.min(high, Math.max(low, x));

function formatBytes(n) {
  if (n < 0) return 'not known';
  for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
    if (n < 1024 || unit === 'GiB') return (n < 10 && unit !== 'B' ? n.toFixed(1) : Math.round(n)) + ' ' + unit;
    n /= 1024;
  }
}

function formatTime(ns) {
  if (ns < 1e3) return Math.round(ns) + ' ns';
  for (const [size, unit] of [[1e3, 'µs'], [1e6, 'ms']]) {
    if (ns < size * 1e3) return (ns / size < 99.5 ? (ns / size).toPrecision(2) : Math.round(ns / size)) + ' ' + unit;
  }
  return (ns / 1e9).toPrecision(3) + ' s';
}

function formatNumber(x) {
  if (x === null || x === undefined) return '';
  if (x === 0) return '0';
  const a = Math.abs(x);
  if (a >= 1e5 || a < 1e-3) return x.toExponential(2);
  return String(Number(x.toPrecision(4)));
}

const formatCount = (n) => n.toLocaleString('en-US');
const plural = (n, word) => formatCount(n) + ' ' + word + (n === 1 ? '' : 's');

// "bf16" of "bfloat16", "f32" of "float32", "i64" of "int64".
const shortDtype = (dtype) => dtype.replace('bfloat', 'bf').replace('float', 'f').replace('uint', 'u').replace('int', 'i');

function formatShape(tensor) {
  return tensor.shape.length ? tensor.shape.join(' × ') : 'a number';
}

// At most `n` characters, the middle left out: both ends of a path say what it is.
function shorten(text, n) {
  if (text.length <= n) return text;
  const tail = Math.ceil((n - 1) * 0.6);
  return text.slice(0, n - 1 - tail) + '…' + text.slice(text.length - tail);
}

// The text as much of it as is at most `room` wide in the context's font.
const fitted = new Map();
function fitText(c, text, room) {
  const key = c.font + Math.round(room) + text;
  let got = fitted.get(key);
  if (got !== undefined) return got;
  const width = c.measureText(text).width;
  got = text;
  if (width > room) {
    let n = Math.max(1, Math.floor(text.length * room / width) + 1);
    do got = shorten(text, n); while (--n > 0 && c.measureText(got).width > room);
  }
  if (fitted.size > 20000) fitted.clear();
  fitted.set(key, got);
  return got;
}

// First position in a sorted array whose value is at least x.
function lowerBound(array, x, value = (v) => v) {
  let low = 0, high = array.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (value(array[middle]) < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Lists by number, where most numbers have none.
class Lists {
  constructor() { this.map = new Map(); }
  add(key, value) {
    const list = this.map.get(key);
    if (list) list.push(value);
    else this.map.set(key, [value]);
  }
  get(key) { return this.map.get(key) || []; }
}

// Colors of the style sheet, for canvases. Read again when the theme changes.
const colors = {};
function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['bg', 'panel', 'lane', 'ink', 'muted', 'line', 'node', 'forward', 'backward', 'copy', 'cast', 'reduce', 'optimizer',
                      'select', 'bad', 'frame', 'ready']) {
    colors[name] = style.getPropertyValue('--' + name).trim();
  }
}

// A canvas as large as its element, in device pixels; false while it is hidden.
function fitCanvas(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const box = canvas.getBoundingClientRect();
  if (box.width < 2 || box.height < 2) return false;
  const width = Math.round(box.width * ratio), height = Math.round(box.height * ratio);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  canvas.getContext('2d').setTransform(ratio, 0, 0, ratio, 0, 0);
  canvas.css = {width: box.width, height: box.height};
  return true;
}

// Calls f once before the next frame, however often it was asked for.
function onceAFrame(f) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      f();
    });
  };
}

const calm = () => matchMedia('(prefers-reduced-motion: reduce)').matches;
