// Section 6, and the margins of section 5.
function drawHistogram(width, { edges, counts, median, name }, { zero = false, height = 200 } = {}) {
  const left = 8, right = 8, bottom = 26, top = 20;
  let [low, high] = [edges[0], edges[edges.length - 1]];
  if (zero) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  const x = scale([low, high], [left, width - right]), y = scale([0, Math.max(...counts, 1)], [height - bottom, top]);
  const bars = counts.map((n, b) => svg('rect', {
    class: zero && (edges[b] + edges[b + 1]) / 2 < 0 ? 'bar-negative' : 'bar-mark', x: x(edges[b]) + 0.5, y: y(n),
    width: Math.max(1, x(edges[b + 1]) - x(edges[b]) - 1), height: Math.max(0, height - bottom - y(n)) },
    hover(`${number(edges[b])} to ${number(edges[b + 1])}: ${plural(n, 'row')}`)));
  const axis = ticks(low, high, width < 360 ? 4 : 7).map((t) => svg('text', { x: x(t), y: height - 8, 'text-anchor': 'middle' }, number(t)));
  const middle = median === null ? [] : [
    svg('line', { class: 'reference', x1: x(median), x2: x(median), y1: top - 6, y2: height - bottom }),
    svg('text', { x: x(median), y: top - 9, 'text-anchor': x(median) > 0.8 * width ? 'end' : x(median) < 0.2 * width ? 'start' : 'middle' }, `median ${number(median)}`)];
  return chart(width, height, `Histogram: ${name}`, bars,
    svg('line', { class: 'axis', x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }), axis, middle);
}

function drawNeighborsUsed() {
  const { histograms, note } = findings.neighbors;
  byId('neighbors-lede').textContent = note ||
    'A soft average of distances equals the plain mean over some number of nearest rows: the effective K (Lemma 3). It differs from row to row; this is how.';
  histograms.forEach((histogram) => {
    const box = el('div', {});
    byId('neighbors-used').append(el('figure', {}, el('figcaption', {}, el('b', {}, histogram.name), ` ${histogram.note}`), box));
    responsive(box, (width) => drawHistogram(width, histogram));
  });
}
