// Section 3: feature weights and leading directions as bars.
function drawBars(width, { names, values, label, format, reference }) {
  const row = 20, top = reference === undefined ? 4 : 20, height = values.length * row + top + 4;
  const gutter = Math.min(0.42 * width, 14 + 6.6 * Math.max(...names.map((name) => Math.min(name.length, 26))));
  const low = Math.min(0, ...values), high = Math.max(0, ...values, ...(reference || []));
  const x = scale([low, high], [gutter + (low < 0 ? 40 : 0), width - 46]);
  const letters = Math.floor(gutter / 6.4);
  const bars = values.map((value, i) => {
    const y = top + i * row, end = x(value), negative = value < 0;
    return svg('g', {}, hover(`${names[i]}: ${format(value)}`),
      svg('text', { class: 'ink', x: gutter - 8, y: y + 14, 'text-anchor': 'end' }, clip(names[i], letters)),
      svg('rect', { class: negative ? 'bar-negative' : 'bar-mark', x: Math.min(x(0), end), y: y + 4, width: Math.max(1, Math.abs(end - x(0))), height: row - 7, rx: 1 }),
      svg('text', { class: 'over', x: end + (negative ? -5 : 5), y: y + 14, 'text-anchor': negative ? 'end' : 'start' }, format(value)));
  });
  const line = reference === undefined ? [] : [
    reference.map((r, i) => svg('line', { class: 'reference', x1: x(r), x2: x(r), y1: top + i * row - (i ? 0 : 4), y2: top + (i + 1) * row })),
    svg('text', { x: x(reference[0]), y: top - 8, 'text-anchor': x(reference[0]) > 0.7 * width ? 'end' : 'middle' }, 'plain K-NN')];
  return chart(width, height, label, line, bars);
}

function drawMetric() {
  const { metric } = findings;
  if (!metric) {
    byId('metric-lede').textContent = 'This model compares rows through a kernel: its distance is no quadratic form of the features, and there is no matrix to show.';
    for (const id of ['weights-figure', 'matrix-figure', 'directions-figure']) byId(id).remove();
    return;
  }
  const names = metric.features.map((feature) => findings.features[feature]);
  const cut = metric.features.length < metric.n_features
    ? ` Shown are the ${metric.features.length} heaviest of ${count(metric.n_features)} ${metric.summed ? 'columns' : 'features'}.` : '';
  const summed = metric.summed ? ' What belongs to one column of the table (its levels, its periods, its gaps) is summed.' : '';
  byId('metric-lede').textContent = (metric.unfolded
    ? 'The model unfolds features into hat functions, so that equal steps need not count equally. The weights are those of the hats; in M and in the directions straight lines stand for them. '
    : 'The squared distance of two rows is (x \u2212 x\u2032)\u1d40 M (x \u2212 x\u2032). ') +
    'Everything here is in standard deviations of the features, so that their units do not matter.' + summed + cut;
  byId('weights-note').textContent = metric.summed ? 'what each column alone adds to the mean squared distance, as a fraction of the total'
    : 'diagonal of M times the variance, as a fraction of the total';
  responsive(byId('weights'), (width) => drawBars(width, {
    names, values: metric.weights, label: 'Feature weights', format: (v) => percent(v, v < 0.0995 ? 1 : 0), reference: metric.plain }));
  byId('matrix-note').textContent = 'blue: differences add up; orange: they offset each other';
  responsive(byId('matrix'), (width) => drawHeat(width, {
    label: 'The matrix M', rows: names, columns: names, square: true, values: metric.matrix,
    color: (v) => [v < 0 ? 'hue-before' : 'hue-after', Math.abs(v) ** 0.6], text: () => '',
    describe: (v, i, j) => `${names[i]} \u00d7 ${names[j]}: ${number(v, 2)}` }));
  byId('directions-note').textContent = 'the largest variance of the transformed data; the first two span the second map';
  for (const [i, direction] of metric.directions.entries()) drawDirection(i, direction);
}

function drawDirection(i, direction) {
  const box = el('div', {});
  byId('directions').append(el('figure', {}, el('figcaption', {}, `${i + 1}: ${percent(direction.spread, 0)} of the variance`), box));
  responsive(box, (width) => drawBars(width, {
    names: direction.names.slice(0, 10), values: direction.loadings.slice(0, 10),
    label: `Leading direction ${i + 1}`, format: (v) => minus((Math.abs(v) < 0.005 ? 0 : v).toFixed(2)) }));
}
