// Elements, numbers and sizes. Texts of the data become text nodes here and nowhere else.
const findings = JSON.parse(document.getElementById('findings').textContent);
const SVG = 'http://www.w3.org/2000/svg';
const byId = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'style') {
      for (const [property, setting] of Object.entries(value)) node.style.setProperty(property, setting);
    } else if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined).map((child) =>
    child instanceof Node ? child : document.createTextNode(String(child))));
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const MINUS = '\u2212';
const minus = (text) => text.replace(/-/g, MINUS);
const percent = (x, digits = 1) => (x === null ? '\u2013' : minus((100 * x).toFixed(digits)) + '\u202f%');
const count = (x) => x.toLocaleString('en-US');
function number(x, digits = 3) {
  if (x === null) return '\u2013';
  if (x === 0) return '0';
  const size = Math.abs(x);
  if (size >= 1e5 || size < 1e-3) return minus(x.toExponential(digits - 1));
  return minus(String(Number(x.toPrecision(digits))));
}
// Words too long for a narrow column may break anywhere, others only between words.
const breakable = (text) => (/\S{14}/.test(text) ? 'long' : null);
// What tells long names apart is at their ends as often as at their beginnings.
function clip(text, length) {
  if (text.length <= length) return text;
  const start = Math.ceil(0.55 * (length - 1));
  return `${text.slice(0, start)}\u2026${text.slice(text.length - (length - 1 - start))}`;
}
// Names without the words that all of them begin with, where these take much room.
function shortened(names) {
  let shared = names.length > 1 ? names[0].length : 0;
  for (const name of names) while (!name.startsWith(names[0].slice(0, shared))) shared -= 1;
  shared = names[0].slice(0, shared).lastIndexOf(' ') + 1;
  return shared > 5 && names.some((name) => name.length > 16) ? names.map((name) => `\u2026${name.slice(shared)}`) : names;
}

// Round steps between two numbers, about as many as asked for.
function ticks(low, high, wanted) {
  if (!(high > low)) return [low];
  const raw = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const found = [];
  for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + step * 1e-9; t += step) {
    found.push(Math.abs(t) < step / 1e6 ? 0 : t);
  }
  return found;
}
const scale = (from, to) => (x) => to[0] + ((x - from[0]) / (from[1] - from[0] || 1)) * (to[1] - to[0]);

// The values that leave out this share at either end; one at least, if there are three.
function spread(values, share) {
  const sorted = values.filter((v) => v !== null).sort((a, b) => a - b), last = sorted.length - 1;
  const place = Math.min(Math.ceil(share * last), Math.floor(last / 2));
  return [sorted[place], sorted[last - place]];
}

// Draws at the width that the container has, and again when it changes; so that text keeps its
// size, also at the width that the container will have on paper.
const PAPER_WIDTH = 688; // of A4 less its margins, in pixels
let shrink = 1;
const redraws = [];
addEventListener('beforeprint', () => { shrink = Math.min(1, PAPER_WIDTH / document.querySelector('main').clientWidth); redraws.forEach((r) => r()); });
addEventListener('afterprint', () => { shrink = 1; redraws.forEach((r) => r()); });

function responsive(container, draw) {
  let drawn = 0;
  const redraw = () => {
    const width = Math.floor(container.clientWidth * shrink);
    if (width > 0 && width !== drawn) {
      drawn = width;
      container.replaceChildren(...[draw(width)].flat());
    }
  };
  redraw();
  redraws.push(redraw);
  new ResizeObserver(() => requestAnimationFrame(redraw)).observe(container);
}
function chart(width, height, label, ...children) {
  return svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label }, ...children);
}
const hover = (text) => svg('title', {}, text);
const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? '' : 's'}`;
