// Section 4: the objective of every iterate, and the tuning surfaces.
function drawTuning() {
  const { surfaces, curves } = findings.tuning;
  byId('tuning-lede').textContent = surfaces.length
    ? `Every cell is a setting that was cross-validated; the number is its ${isNumeric ? 'squared error, in percent of the variance' : 'error in percent'}. A flat region around the choice means that it does not matter much.`
    : 'Nothing was tuned: the settings were given.';
  surfaces.forEach(drawSurface);
  if (!curves.length) {
    byId('convergence-figure').remove();
    if (!surfaces.length) byId('tuning-lede').textContent += ' The method has a closed form, so there is no curve either.';
    return;
  }
  byId('convergence-note').textContent = curves.length > 1
    ? 'objective of every iterate as a fraction of its start, mean over the folds' : 'objective of every iterate';
  responsive(byId('convergence'), (width) => drawCurves(Math.min(width, 720), curves));
}

function drawCurves(width, curves) {
  const height = 240, left = 52, bottom = 34, right = 14;
  const series = curves.map((curve) => (curves.length > 1 ? curve.values.map((v) => v / (Math.abs(curve.values[0]) || 1)) : curve.values));
  const all = series.flat().filter((v) => v !== null);
  const longest = Math.max(...series.map((values) => values.length), 2);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const log = low > 0 && high / low > 50; // else the tail, where it converges, is a flat line
  const floor = log ? Math.max(low, high / 1e6) : low;
  const place = scale(log ? [Math.log10(floor), Math.log10(high)] : [low, high], [height - bottom, 10]);
  const x = scale([0, longest - 1], [left, width - right]), y = (v) => place(log ? Math.log10(Math.max(v, floor)) : v);
  const levels = log ? ticks(Math.log10(floor), Math.log10(high), 4).filter(Number.isInteger).map((t) => 10 ** t) : ticks(low, high, 4);
  const grid = levels.map((t) => svg('g', {},
    svg('line', { class: 'axis', x1: left, x2: width - right, y1: y(t), y2: y(t) }),
    svg('text', { x: left - 8, y: y(t) + 4, 'text-anchor': 'end' }, number(t))));
  const below = ticks(0, longest - 1, 6).filter(Number.isInteger).map((t) => svg('text', { x: x(t), y: height - 14, 'text-anchor': 'middle' }, number(t)));
  const lines = series.map((values, i) => svg('g', { class: classColor(i) },
    svg('polyline', { class: 'line', stroke: 'var(--c)', points: values.map((v, t) => `${x(t).toFixed(1)},${y(v).toFixed(1)}`).join(' ') })));
  const drawing = chart(width, height, 'Convergence of the objective', grid, below, lines,
    svg('text', { x: width - right, y: height - 1, 'text-anchor': 'end' }, 'iterate \u2192'));
  if (curves.length === 1) return drawing;
  return [drawing, el('ul', { class: 'legend key' }, curves.map((curve, i) => el('li', {}, glyph(i % COLORS), curve.name)))];
}
