// Section 2: two linked maps. Hover names a row, click or arrow keys select it.
const maps = findings.maps;
const SIZE = 480, PAD = 18;
const selection = { point: -1, listeners: [] };

function select(point) {
  selection.point = point;
  selection.listeners.forEach((listener) => listener(point));
}

// Both axes have one scale: on the map, as far as two directions can show it, near is near.
function layout(points, ratio) {
  const span = [0, 1].map((axis) => {
    const values = points.map((p) => p[axis]);
    return [Math.min(...values), Math.max(...values)];
  });
  const height = SIZE * ratio;
  const unit = Math.min((SIZE - 2 * PAD) / (span[0][1] - span[0][0] || 1), (height - 2 * PAD) / (span[1][1] - span[1][0] || 1));
  const middle = span.map(([low, high]) => (low + high) / 2);
  return points.map(([x, y]) => [SIZE / 2 + (x - middle[0]) * unit, height / 2 - (y - middle[1]) * unit]);
}
function ratioOf(points) {
  const range = (axis) => { const v = points.map((p) => p[axis]); return Math.max(...v) - Math.min(...v); };
  return range(0) ? range(1) / range(0) : 1;
}

function makeMap(container, name, points, ratio) {
  const at = layout(points, ratio);
  const radius = Math.max(2.3, Math.min(4.6, 46 / Math.sqrt(at.length)));
  const dots = at.map(([x, y], i) => svg('path', {
    class: maps.held_out[i] ? 'dot held' : 'dot', d: classShape(maps.labels[i], radius), transform: `translate(${x.toFixed(1)},${y.toFixed(1)})` }));
  const groups = findings.classes.map((_, code) => svg('g', { class: classColor(code) }, dots.filter((_, i) => maps.labels[i] === code)));
  const under = svg('g', {}), over = svg('g', {}), pointer = svg('circle', { class: 'hover', r: radius + 3.5, visibility: 'hidden' });
  const drawing = svg('svg', {
    viewBox: `0 0 ${SIZE} ${SIZE * ratio}`, tabindex: 0, role: 'group', 'aria-roledescription': 'map',
    'aria-label': `Map of the rows ${name} learning. Arrow keys move the selection, Escape clears it.` },
    under, groups, over, pointer);
  container.append(drawing);
  const map = { container, drawing, at, dots, groups, under, over, pointer, radius };
  drawing.addEventListener('pointermove', (event) => hoverOver(nearest(map, event, 16), event));
  drawing.addEventListener('pointerleave', () => hoverOver(-1));
  drawing.addEventListener('click', (event) => select(nearest(map, event, 28)));
  drawing.addEventListener('keydown', (event) => step(map, event));
  return map;
}

function nearest(map, event, reach) {
  const box = map.drawing.getBoundingClientRect();
  const unit = SIZE / box.width;
  const [x, y] = [(event.clientX - box.left) * unit, (event.clientY - box.top) * unit];
  let best = -1, shortest = (reach * unit) ** 2;
  map.at.forEach(([px, py], i) => {
    const d = (px - x) ** 2 + (py - y) ** 2;
    if (d < shortest) [best, shortest] = [i, d];
  });
  return best;
}

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
function step(map, event) {
  if (event.key === 'Escape') { select(-1); return; }
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
  const said = maps.predictions[point];
  tip.replaceChildren(el('p', {}, maps.ids[point]), el('p', {}, `label: ${className(maps.labels[point])}`),
    el('p', {}, said < 0 ? 'no prediction' : `predicted: ${className(said)}${said === maps.labels[point] ? '' : ' \u2717'}`),
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
  drawLegend(byId('legend'), (code) => drawnMaps.forEach((map) => {
    map.container.classList.toggle('one-class', code >= 0);
    map.groups.forEach((group, c) => group.classList.toggle('lit', c === code));
  }));
  selection.listeners.push((point) => drawnMaps.forEach((map) => mark(map, point)));
}
