// A class is a color and, from the eighth on, another shape.
const COLORS = 7;
const SHAPES = [
  (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`,
  (r) => { const a = 1.25 * r; return `M0,${-a}L${1.1 * a},${0.8 * a}H${-1.1 * a}Z`; },
  (r) => { const a = 0.9 * r; return `M${-a},${-a}H${a}V${a}H${-a}Z`; },
  (r) => { const a = 1.35 * r; return `M0,${-a}L${a},0L0,${a}L${-a},0Z`; },
  (r) => { const a = 1.25 * r, b = 0.45 * r; return `M${-b},${-a}H${b}V${-b}H${a}V${b}H${b}V${a}H${-b}V${b}H${-a}V${-b}H${-b}Z`; },
];
const classColor = (code) => `c${code % COLORS}`;
const classShape = (code, radius) => SHAPES[Math.floor(code / COLORS) % SHAPES.length](radius);
const isNumeric = findings.classes.length === 0;
const className = (code) => (code < 0 ? '\u2013' : findings.classes[code]);

function glyph(code) {
  return svg('svg', { class: `glyph ${classColor(code)}`, viewBox: '-6 -6 12 12', 'aria-hidden': 'true' },
    svg('path', { d: classShape(code, 4.4) }));
}
const words = (text) => el('span', { class: breakable(text), title: text.length > 40 ? text : null }, clip(text, 40));

function labeled(code) {
  return el('span', { class: 'named' }, code < 0 ? null : glyph(code), words(className(code)));
}

// Numbers to predict are colors between the quantiles of 2 and 98 %.
const colorLimits = isNumeric ? spread(findings.maps.labels, 0.02) : [0, 1];
function colorOf(value) {
  const v = Math.max(0, Math.min(1, (value - colorLimits[0]) / (colorLimits[1] - colorLimits[0] || 1)));
  return { class: v < 0.5 ? 'lower' : 'upper', style: { '--v': v < 0.5 ? 2 * v : 2 * v - 1 } };
}

// What a row is, and what it is predicted to be.
const said = (value) => (isNumeric ? number(value, 4) : className(value));
function shownLabel(value) {
  if (!isNumeric) return labeled(value);
  const color = colorOf(value);
  return el('span', { class: 'named' }, svg('svg', { ...color, class: `glyph ${color.class}`, viewBox: '-6 -6 12 12', 'aria-hidden': 'true' },
    svg('circle', { r: 4.4 })), number(value, 4));
}
function drawColorScale(container) {
  container.replaceChildren(el('li', { class: 'scale' }, number(colorLimits[0], 3), el('i', {}), number(colorLimits[1], 3)));
}

const LEGEND_LENGTH = 60;
function drawLegend(container, light) {
  const names = findings.classes.slice(0, LEGEND_LENGTH), short = shortened(names);
  container.replaceChildren(...names.map((name, code) => el('li', {}, el('button', {
    type: 'button', title: `Show only ${name}`,
    onpointerenter: () => light(code), onpointerleave: () => light(-1),
    onfocus: () => light(code), onblur: () => light(-1),
  }, glyph(code), el('span', { class: 'name' }, clip(short[code], 34))))));
  const more = findings.classes.length - names.length;
  if (more > 0) container.append(el('li', {}, `and ${more} more`));
}
