// Section 5: confusion, figures a class, the rows most at risk, calibration.
const MANY_CLASSES = 20; // the matrix then takes the whole width
function drawErrors() {
  const { errors, classes } = findings;
  if (classes.length > MANY_CLASSES) byId('confusion').closest('.split').classList.add('many');
  const totals = errors.confusion.map((row) => row.reduce((a, b) => a + b, 0));
  responsive(byId('confusion'), (width) => drawHeat(width, {
    label: 'Confusion matrix', rows: classes, columns: classes, values: errors.confusion, square: true,
    color: (n, i, j) => [i === j ? 'hue-after' : 'hue-before', n === 0 ? 0 : i === j ? 0.1 + 0.9 * (n / totals[i]) : 0.2 + 0.8 * Math.sqrt(n / totals[i])],
    text: (n) => (n ? String(n) : ''),
    describe: (n, i, j) => `${classes[i]} taken for ${classes[j]}: ${n} of ${totals[i]}` }));
  drawPerClass(errors, classes);
  drawRisk(errors);
  byId('margins-note').textContent = `${errors.margin_name}; below 0: nearer to another class`;
  responsive(byId('margins'), (width) => drawHistogram(width, errors.margins, { zero: true, height: 170 }));
  responsive(byId('calibration'), (width) => drawCalibration(Math.min(width, 300), errors.calibration));
}

function drawPerClass(errors, classes) {
  const meter = (v) => el('td', { class: 'measure' }, v === null ? '\u2013' : [el('span', { class: 'meter', style: { '--v': v } }), percent(v, 0)]);
  byId('per-class').append(el('table', {},
    el('thead', {}, el('tr', {}, ['class', 'precision', 'recall', 'rows'].map((name) => el('th', { scope: 'col', class: name === 'rows' ? 'right' : null }, name)))),
    el('tbody', {}, classes.map((_, c) => el('tr', {}, el('td', {}, labeled(c)), meter(errors.precision[c]), meter(errors.recall[c]),
      el('td', { class: 'right' }, count(errors.support[c])))))));
}

function drawRisk(errors) {
  byId('risk-note').textContent = 'smallest margins; a row leads to the maps';
  const jump = (point) => () => {
    select(point);
    byId('maps').scrollIntoView();
    drawnMaps[1].drawing.focus({ preventScroll: true });
  };
  byId('risk').append(el('table', {},
    el('thead', {}, el('tr', {}, ['row', 'label', 'predicted', 'margin'].map((name) => el('th', { scope: 'col', class: name === 'margin' ? 'right' : null }, name)))),
    el('tbody', {}, errors.at_risk.map(({ point, margin }) => el('tr', {},
      el('td', {}, el('button', { type: 'button', class: 'link', onclick: jump(point) }, words(maps.ids[point]))),
      el('td', {}, labeled(maps.labels[point])),
      el('td', { class: maps.predictions[point] === maps.labels[point] ? '' : 'wrong' }, words(className(maps.predictions[point]))),
      el('td', { class: 'right' }, number(margin)))))));
}

function drawCalibration(width, { promised, came_true: true_, counts }) {
  const height = width * 0.86, left = 44, bottom = 34;
  const low = Math.max(0, Math.floor(10 * Math.min(...promised, ...true_) - 0.01) / 10);
  const x = scale([low, 1], [left, width - 16]), y = scale([low, 1], [height - bottom, 30]);
  const most = Math.max(...counts);
  const axis = ticks(low, 1, 4).map((t) => svg('g', {},
    svg('line', { class: 'axis', x1: left, x2: width - 16, y1: y(t), y2: y(t) }),
    svg('text', { x: left - 6, y: y(t) + 4, 'text-anchor': 'end' }, percent(t, 0)),
    svg('text', { x: x(t), y: height - 16, 'text-anchor': 'middle' }, percent(t, 0))));
  return chart(width, height, 'Calibration', axis,
    svg('line', { class: 'reference', x1: x(low), y1: y(low), x2: x(1), y2: y(1) }),
    promised.map((p, b) => svg('g', {}, hover(`promised ${percent(p)}, came true ${percent(true_[b])}, ${plural(counts[b], 'row')}`),
      svg('circle', { class: 'after-mark', cx: x(p), cy: y(true_[b]), r: 3 + 7 * Math.sqrt(counts[b] / most), 'fill-opacity': 0.55 }))),
    svg('text', { x: width - 10, y: height - 1, 'text-anchor': 'end' }, 'promised \u2192'),
    svg('text', { x: 0, y: 12 }, '\u2191 came true'));
}
