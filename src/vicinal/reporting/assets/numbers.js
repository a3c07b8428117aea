// Sections 1 and 5 of pages about numbers: errors, intervals, residuals.
function numberVerdict() {
  const { scores: [learned, plain], gained, total, p_value: p } = findings.headline;
  const less = 100 * (1 - learned.rmse / (plain.rmse || 1));
  const compared = Math.abs(less) < 0.05 ? 'as large as' : `${Math.abs(less).toFixed(1)}\u202f% ${less > 0 ? 'smaller' : 'larger'} than`;
  const odds = p < 0.001 ? 'p < 0.001' : `p = ${number(p, 2)}`;
  return `of the variance explained (R\u00b2). The typical error (RMSE) is ${number(learned.rmse)}, ${compared} that of plain K-NN (${number(plain.rmse)}). ` +
    `It is nearer than plain K-NN in ${count(gained)} of ${plural(total, 'row')}, ${p < 0.05 ? 'which chance does not explain' : 'which chance may explain'} (sign test, ${odds}).`;
}

function drawErrorScores(width) {
  const { scores } = findings.headline;
  const row = 64, bottom = 28, height = scores.length * row + bottom;
  const low = Math.min(...scores.map((s) => s.low)), high = Math.max(...scores.map((s) => s.high));
  const room = 0.06 * (high - low || 1), x = scale([Math.max(0, low - room), high + room], [14, width - 14]);
  const marks = ['after-mark', 'before-mark', 'muted-mark'];
  const axis = ticks(Math.max(0, low - room), high + room, width < 420 ? 4 : 6).map((t) => svg('g', {},
    svg('line', { class: 'axis', x1: x(t), x2: x(t), y1: 8, y2: height - bottom }),
    svg('text', { x: x(t), y: height - 8, 'text-anchor': 'middle' }, number(t))));
  const lines = scores.map((score, i) => {
    const y = i * row + 44, told = `RMSE ${number(score.rmse)} (${number(score.low)} \u2013 ${number(score.high)})`;
    return svg('g', {}, hover(`${score.name}: ${told}, R\u00b2 ${percent(score.r2)}`),
      svg('text', { class: 'strong over', x: 0, y: y - 16 }, `${score.name} `, svg('tspan', { class: 'score', 'font-weight': 400 }, ` ${told}`)),
      svg('line', { class: marks[i], x1: x(score.low), x2: x(score.high), y1: y, y2: y, 'stroke-width': 3, 'stroke-linecap': 'round', 'stroke-opacity': 0.45 }),
      svg('circle', { class: marks[i], cx: x(score.rmse), cy: y, r: 6 }));
  });
  return [chart(width, height, scores.map((s) => `${s.name} RMSE ${number(s.rmse)}`).join(', '), axis, lines),
    el('p', { class: 'note' }, `Plain K-NN: ${scores[1].note}.`)];
}

function drawNumberErrors() {
  const { errors } = findings;
  byId('scatter-note').textContent = `rows of the headline with their 90\u202f% intervals (mean width ${number(errors.width)}); click one to see its neighbors`;
  responsive(byId('scatter'), (width) => drawScatter(Math.min(width, 560), errors));
  byId('coverage-note').textContent = errors.coverage_note;
  responsive(byId('coverage'), (width) => drawCoverage(Math.min(width, 340), errors.coverage));
  responsive(byId('residuals'), (width) => drawHistogram(width, errors.residuals, { zero: true, height: 170 }));
  const ends = errors.by_feature.flatMap((one) => one.groups.flatMap((g) => [g.low, g.high, g.mean, 0]));
  for (const one of errors.by_feature) {
    const box = el('div', {});
    byId('by-feature').append(el('figure', {}, el('figcaption', {}, el('b', {}, words(one.feature))), box));
    responsive(box, (width) => drawResiduals(width, one, [Math.min(...ends), Math.max(...ends)]));
  }
  if (!errors.by_feature.length) byId('by-feature-figure').remove();
  drawWorst(errors);
}

const showRow = (point) => () => {
  select(point);
  byId('maps').scrollIntoView();
  drawnMaps[1].drawing.focus({ preventScroll: true });
};

function drawScatter(width, { points, low, high }) {
  const actual = points.map((p) => maps.labels[p]), guess = points.map((p) => maps.predictions[p]);
  const least = Math.min(...actual, ...guess), most = Math.max(...actual, ...guess), room = 0.03 * (most - least || 1);
  const ends = [least - room, most + room], left = 52, bottom = 38, height = Math.round(0.86 * width);
  const x = scale(ends, [left, width - 10]), y = scale(ends, [height - bottom, 12]);
  const held = (v) => Math.max(12, Math.min(height - bottom, v));
  const axis = ticks(ends[0], ends[1], width < 420 ? 4 : 6).map((t) => svg('g', {},
    svg('line', { class: 'axis', x1: left, x2: width - 10, y1: y(t), y2: y(t) }),
    svg('text', { x: left - 6, y: y(t) + 4, 'text-anchor': 'end' }, number(t)),
    svg('text', { x: x(t), y: height - 20, 'text-anchor': 'middle' }, number(t))));
  const faint = Math.max(0.08, Math.min(0.45, 40 / points.length));
  const bars = points.map((_, i) => svg('line', { class: 'interval', 'stroke-opacity': faint, x1: x(actual[i]), x2: x(actual[i]), y1: held(y(low[i])), y2: held(y(high[i])) }));
  const radius = Math.max(1.8, Math.min(4, 40 / Math.sqrt(points.length)));
  const dots = points.map((p, i) => {
    const inside = actual[i] >= low[i] && actual[i] <= high[i];
    return svg('circle', { class: inside ? 'after-mark spot' : 'before-mark spot', cx: x(actual[i]), cy: y(guess[i]), r: radius, onclick: showRow(p) },
      hover(`${maps.ids[p]}: actual ${number(actual[i], 4)}, predicted ${number(guess[i], 4)}, interval ${number(low[i], 4)} to ${number(high[i], 4)}`));
  });
  const key = (mark, text) => el('li', {}, svg('svg', { width: 12, height: 12, viewBox: '0 0 12 12' }, svg('circle', { class: mark, cx: 6, cy: 6, r: 4 })), text);
  return [chart(width, height, 'Predicted against actual values', axis, bars,
    svg('line', { class: 'reference', x1: x(ends[0]), y1: y(ends[0]), x2: x(ends[1]), y2: y(ends[1]) }), dots,
    svg('text', { x: width - 10, y: height - 3, 'text-anchor': 'end' }, 'actual \u2192'), svg('text', { x: 0, y: 8 }, '\u2191 predicted')),
  el('ul', { class: 'legend key' }, key('after-mark', 'inside of its interval'), key('before-mark', 'outside'))];
}

function drawCoverage(width, coverage) {
  const height = Math.round(0.86 * width), left = 44, bottom = 34;
  const low = Math.max(0, Math.floor(10 * Math.min(...coverage.map((c) => Math.min(c.low, c.nominal))) - 0.01) / 10);
  const x = scale([low, 1], [left, width - 16]), y = scale([low, 1], [height - bottom, 26]);
  const axis = ticks(low, 1, 4).map((t) => svg('g', {},
    svg('line', { class: 'axis', x1: left, x2: width - 16, y1: y(t), y2: y(t) }),
    svg('text', { x: left - 6, y: y(t) + 4, 'text-anchor': 'end' }, percent(t, 0)),
    svg('text', { x: x(t), y: height - 16, 'text-anchor': 'middle' }, percent(t, 0))));
  return chart(width, height, 'Coverage of the intervals', axis,
    svg('line', { class: 'reference', x1: x(low), y1: y(low), x2: x(1), y2: y(1) }),
    coverage.map((c) => svg('g', {}, hover(`promised ${percent(c.nominal, 0)}, found ${percent(c.measured)} (95\u202f% interval ${percent(c.low)} to ${percent(c.high)})`),
      svg('line', { class: 'after-mark', x1: x(c.nominal), x2: x(c.nominal), y1: y(c.low), y2: y(c.high), 'stroke-width': 2, 'stroke-opacity': 0.5 }),
      svg('circle', { class: 'after-mark', cx: x(c.nominal), cy: y(c.measured), r: 4 }))),
    svg('text', { x: width - 10, y: height - 1, 'text-anchor': 'end' }, 'promised \u2192'), svg('text', { x: 0, y: 12 }, '\u2191 inside'));
}

function drawResiduals(width, { feature, groups }, ends) {
  const row = 20, top = 4, bottom = 22, height = groups.length * row + top + bottom;
  const gutter = Math.min(0.46 * width, 14 + 6.6 * Math.max(...groups.map((g) => Math.min(g.name.length, 26))));
  const x = scale(ends, [gutter + 4, width - 8]);
  const lines = groups.map((g, i) => {
    const y = top + (i + 0.5) * row;
    return svg('g', {}, hover(`${g.name}: mean ${number(g.mean)}, 80\u202f% between ${number(g.low)} and ${number(g.high)}, ${plural(g.count, 'row')}`),
      svg('text', { class: 'ink', x: gutter - 8, y: y + 4, 'text-anchor': 'end' }, clip(g.name, Math.floor(gutter / 6.2))),
      svg('line', { class: 'muted-mark', x1: x(g.low), x2: x(g.high), y1: y, y2: y, 'stroke-width': 4, 'stroke-linecap': 'round', 'stroke-opacity': 0.35 }),
      svg('circle', { class: g.mean < 0 ? 'before-mark' : 'after-mark', cx: x(g.mean), cy: y, r: 4 }));
  });
  const axis = ticks(ends[0], ends[1], width < 420 ? 3 : 4).map((t) => svg('text', { x: x(t), y: height - 6, 'text-anchor': 'middle' }, number(t)));
  return chart(width, height, `Residuals by ${feature}`, svg('line', { class: 'reference', x1: x(0), x2: x(0), y1: 0, y2: height - bottom }), lines, axis);
}

function drawWorst({ points, low, high, worst }) {
  const near = maps.near_after;
  const head = ['row', 'actual', 'predicted', '90\u202f% interval', 'its nearest rows'];
  byId('worst').append(el('table', {},
    el('thead', {}, el('tr', {}, head.map((name, i) => el('th', { scope: 'col', class: i === 1 || i === 2 ? 'right' : null }, name)))),
    el('tbody', {}, worst.map((place) => {
      const point = points[place], neighbors = near.rows[point].slice(0, 5);
      return el('tr', {},
        el('td', {}, el('button', { type: 'button', class: 'link', onclick: showRow(point) }, words(maps.ids[point]))),
        el('td', { class: 'right' }, number(maps.labels[point], 4)), el('td', { class: 'right' }, number(maps.predictions[point], 4)),
        el('td', {}, `${number(low[place])} to ${number(high[place])}`),
        el('td', { class: 'nearest' }, neighbors.map((row) => el('button', { type: 'button', class: 'link', title: maps.ids[row], onclick: showRow(row) }, shownLabel(maps.labels[row])))));
    }))));
}
