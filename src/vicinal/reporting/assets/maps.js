// Section 2: two linked maps. Hover names a row, click or arrow keys select it.
const maps = findings.maps;
const SIZE = 480, PAD = 18;
const selection = { point: -1, listeners: [] };

function select(point) {
  selection.point = point;
  selection.listeners.forEach((listener) => listener(point));
}

// The limits leave outliers out, which would squeeze all others into a corner.
function limits(points, axis) {
  const values = points.map((p) => p[axis]);
  const ends = [Math.min(...values), Math.max(...values)], [low, high] = spread(values, 0.02);
  const reach = 0.6 * (high - low);
  return reach > 0 ? [Math.max(ends[0], low - reach), Math.min(ends[1], high + reach)] : ends;
}
const ratioOf = (points) => {
  const [width, height] = [0, 1].map((axis) => { const [low, high] = limits(points, axis); return high - low; });
  return width ? height / width : 1;
};

// Both axes have one scale: on the map, as far as two directions can show it, near is near.
function layout(points, ratio) {
  const span = [limits(points, 0), limits(points, 1)];
  const height = SIZE * ratio;
  const unit = Math.min((SIZE - 2 * PAD) / (span[0][1] - span[0][0] || 1), (height - 2 * PAD) / (span[1][1] - span[1][0] || 1));
  const middle = span.map(([low, high]) => (low + high) / 2);
  return points.map(([x, y]) => [SIZE / 2 + (x - middle[0]) * unit, height / 2 - (y - middle[1]) * unit]);
}

function makeMap(container, name, points, ratio) {
  const places = layout(points, ratio), height = SIZE * ratio;
  const radius = Math.max(2.3, Math.min(4.6, 46 / Math.sqrt(places.length)));
  const rim = places.map(([x, y]) => x < 0 || x > SIZE || y < 0 || y > height);
  const dots = places.map((_, i) => {
    const color = isNumeric ? colorOf(maps.labels[i]) : { class: '' };
    return svg('path', { ...color, class: `dot ${color.class}${maps.held_out[i] ? ' held' : ''}${rim[i] ? ' rim' : ''}`,
      d: classShape(isNumeric ? 0 : maps.labels[i], radius) });
  });
  const groups = isNumeric ? [svg('g', {}, dots)]
    : findings.classes.map((_, code) => svg('g', { class: classColor(code) }, dots.filter((_, i) => maps.labels[i] === code)));
  const under = svg('g', {}), over = svg('g', {}), pointer = svg('circle', { class: 'hover', r: radius + 3.5, visibility: 'hidden' });
  const drawing = svg('svg', {
    viewBox: `0 0 ${SIZE} ${height}`, tabindex: 0, role: 'group', 'aria-roledescription': 'map',
    'aria-label': `Map of the rows ${name} learning. Arrow keys move the selection, Escape clears it; plus, minus and 0 zoom.` },
    under, groups, over, pointer);
  const whole = el('button', { type: 'button', class: 'quiet whole', hidden: '', onclick: () => show(map, 1, 0, 0) }, 'Whole map');
  container.append(drawing, whole);
  // Far enough out, everything is on the map; farther in, one row in a thousand fills it.
  const far = Math.max(...places.map(([x, y]) => Math.max(Math.abs(x - SIZE / 2) / (SIZE / 2 - PAD), Math.abs(y - height / 2) / (height / 2 - PAD))));
  const map = { container, drawing, places, rim, dots, groups, under, over, pointer, radius, height, whole, least: Math.min(1, 1 / far), k: 1, x: 0, y: 0, at: [] };
  show(map, 1, 0, 0);
  drawing.addEventListener('pointermove', (event) => hoverOver(nearest(map, event, 16), event));
  drawing.addEventListener('pointerleave', () => hoverOver(-1));
  drawing.addEventListener('click', (event) => { if (!map.dragged) select(nearest(map, event, 28)); });
  drawing.addEventListener('keydown', (event) => step(map, event));
  startZoom(map);
  return map;
}

// Places are multiplied by k and moved by x, y; an outlier that is beyond the map waits at its rim.
function show(map, k, x, y) {
  const inside = (v, size) => Math.max(PAD / 3, Math.min(size - PAD / 3, v));
  map.k = Math.max(map.least, Math.min(40, k));
  const hold = (move, size) => (map.k <= 1 ? (size * (1 - map.k)) / 2 : Math.max(size * (1 - map.k), Math.min(0, move)));
  [map.x, map.y] = [hold(x, SIZE), hold(y, map.height)];
  map.at = map.places.map(([px, py], i) => {
    const at = [px * map.k + map.x, py * map.k + map.y];
    return map.rim[i] ? [inside(at[0], SIZE), inside(at[1], map.height)] : at;
  });
  map.dots.forEach((dot, i) => dot.setAttribute('transform', `translate(${map.at[i][0].toFixed(1)},${map.at[i][1].toFixed(1)})`));
  map.container.classList.toggle('zoomed', map.k > 1);
  map.whole.hidden = map.k === 1;
  map.pointer.setAttribute('visibility', 'hidden');
  mark(map, selection.point);
}
function zoomAt(map, [x, y], factor) {
  const k = Math.max(map.least, Math.min(40, map.k * factor)), by = k / map.k;
  show(map, k, x - (x - map.x) * by, y - (y - map.y) * by);
}
function onMap(map, event) {
  const box = map.drawing.getBoundingClientRect(), unit = SIZE / box.width;
  return [(event.clientX - box.left) * unit, (event.clientY - box.top) * unit];
}

// The wheel and two fingers zoom, a finger or the mouse moves what is zoomed.
let scrolled = -Infinity; // a wheel that is scrolling the page goes on doing so above a map
addEventListener('scroll', () => { scrolled = performance.now(); }, { passive: true });
function startZoom(map) {
  const fingers = new Map();
  map.drawing.addEventListener('wheel', (event) => {
    if (performance.now() - scrolled < 300 || (event.deltaY > 0 && map.k <= map.least)) return;
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
    zoomAt(map, onMap(map, event), Math.exp(-Math.max(-120, Math.min(120, pixels)) / 400));
  }, { passive: false });
  map.drawing.addEventListener('dblclick', (event) => (map.k === 1 ? zoomAt(map, onMap(map, event), 2.5) : show(map, 1, 0, 0)));
  map.drawing.addEventListener('pointerdown', (event) => {
    if (!fingers.size) map.dragged = false;
    fingers.set(event.pointerId, onMap(map, event));
  });
  map.drawing.addEventListener('pointermove', (event) => {
    const from = fingers.get(event.pointerId), to = onMap(map, event);
    if (!from) return;
    const other = [...fingers].find(([id]) => id !== event.pointerId);
    if (other) {
      const apart = (p) => Math.hypot(p[0] - other[1][0], p[1] - other[1][1]) || 1;
      const center = [(to[0] + other[1][0]) / 2, (to[1] + other[1][1]) / 2];
      zoomAt(map, center, apart(to) / apart(from));
    } else if (map.k <= 1 || (!map.dragged && Math.hypot(to[0] - from[0], to[1] - from[1]) < 4)) return;
    else show(map, map.k, map.x + to[0] - from[0], map.y + to[1] - from[1]);
    map.dragged = true;
    fingers.set(event.pointerId, to);
  });
  for (const end of ['pointerup', 'pointercancel', 'pointerleave']) map.drawing.addEventListener(end, (event) => fingers.delete(event.pointerId));
}

function nearest(map, event, reach) {
  const unit = SIZE / map.drawing.getBoundingClientRect().width;
  const [x, y] = onMap(map, event);
  let best = -1, shortest = (reach * unit) ** 2;
  map.at.forEach(([px, py], i) => {
    const d = (px - x) ** 2 + (py - y) ** 2;
    if (d < shortest) [best, shortest] = [i, d];
  });
  return best;
}

const ZOOMS = { '+': 1.5, '=': 1.5, '-': 1 / 1.5 };
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
function step(map, event) {
  if (event.key === 'Escape') { select(-1); return; }
  if (event.key === '0') { show(map, 1, 0, 0); return; }
  if (ZOOMS[event.key]) { zoomAt(map, [SIZE / 2, map.height / 2], ZOOMS[event.key]); return; }
  const toward = STEPS[event.key];
  if (!toward) return;
  event.preventDefault();
  const [x, y] = map.at[Math.max(selection.point, 0)];
  let best = -1, cost = Infinity;
  map.at.forEach(([px, py], i) => {
    const along = (px - x) * toward[0] + (py - y) * toward[1];
    const across = Math.abs((px - x) * toward[1]) + Math.abs((py - y) * toward[0]);
    if (along > 0.3 && along + 2 * across < cost) [best, cost] = [i, along + 2 * across];
  });
  if (best >= 0) select(best);
}

let drawnMaps = [];
function hoverOver(point, event) {
  for (const map of drawnMaps) {
    map.pointer.setAttribute('visibility', point < 0 ? 'hidden' : 'visible');
    if (point >= 0) map.pointer.setAttribute('transform', `translate(${map.at[point]})`);
  }
  const tip = byId('tip');
  tip.hidden = point < 0;
  if (point < 0) return;
  const label = maps.labels[point], guess = maps.predictions[point];
  const wrong = !isNumeric && guess !== label;
  tip.replaceChildren(el('p', {}, maps.ids[point]), el('p', {}, `${isNumeric ? 'actual' : 'label'}: ${said(label)}`),
    el('p', {}, guess === null || guess < 0 && !isNumeric ? 'no prediction' : `predicted: ${said(guess)}${wrong ? ' \u2717' : ''}`),
    el('p', {}, maps.held_out[point] ? 'held out' : 'training row'));
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18}px`;
}

// In each map the neighbors of before (dashed) and of after (solid): one sees where they went.
function mark(map, point) {
  map.container.classList.toggle('chosen-point', point >= 0);
  map.dots.forEach((dot) => dot.classList.remove('near'));
  map.under.replaceChildren();
  map.over.replaceChildren();
  if (point < 0) return;
  const [x, y] = map.at[point];
  map.dots[point].classList.add('near');
  for (const when of ['before', 'after']) {
    for (const row of maps[`near_${when}`].rows[point]) {
      const [px, py] = map.at[row];
      map.dots[row].classList.add('near');
      map.under.append(svg('line', { class: `edge ${when}`, x1: x, y1: y, x2: px, y2: py }));
      map.over.append(when === 'after'
        ? svg('circle', { class: 'edge after', cx: px, cy: py, r: map.radius + 2.6 })
        : svg('rect', { class: 'edge before', x: px - map.radius - 4, y: py - map.radius - 4, width: 2 * map.radius + 8, height: 2 * map.radius + 8 }));
    }
  }
  map.over.append(svg('circle', { class: 'halo', cx: x, cy: y, r: map.radius + 4.5 }));
}

function describeAxes(spread) {
  return spread[1] === 0 ? 'one direction; height only separates the classes'
    : `two directions with ${percent(spread[0] + spread[1], 0)} of the variance`;
}

function drawMaps() {
  const ratio = Math.max(0.6, Math.min(1, Math.max(ratioOf(maps.before), ratioOf(maps.after))));
  drawnMaps = [makeMap(byId('map-before'), 'before', maps.before, ratio), makeMap(byId('map-after'), 'after', maps.after, ratio)];
  byId('axes-before').textContent = `standardized features, ${describeAxes(maps.before_spread)}`;
  byId('axes-after').textContent = `learned metric, ${describeAxes(maps.after_spread)}`;
  if (isNumeric) drawColorScale(byId('legend'));
  else drawLegend(byId('legend'), (code) => drawnMaps.forEach((map) => {
    map.container.classList.toggle('one-class', code >= 0);
    map.groups.forEach((group, c) => group.classList.toggle('lit', c === code));
  }));
  selection.listeners.push((point) => drawnMaps.forEach((map) => mark(map, point)));
}
