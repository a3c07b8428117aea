// Section 1: the number, what it is compared with, and what was chosen.
const CHOICES_SHOWN = 7;

function drawHeadline() {
  const { scores, protocol, chosen } = findings.headline;
  const [learned] = scores;
  const measure = isNumeric ? 'Mean absolute error ' + number(learned.mae) + '; intervals of RMSE are 95\u202f%.'
    : `${count(learned.correct)} of ${count(learned.total)} right; intervals are 95\u202f% (Wilson).`;
  byId('verdict').append(
    el('p', { class: 'huge' }, minus((100 * (isNumeric ? learned.r2 : learned.accuracy)).toFixed(1)), el('small', {}, '%')),
    el('p', { class: 'verdict' }, isNumeric ? numberVerdict() : verdict()),
    el('p', { class: 'note' }, `${protocol} ${measure}`));
  responsive(byId('scores'), isNumeric ? drawErrorScores : drawScores);
  const grid = (entries) => el('div', { class: 'chosen' }, entries.map((entry) => [
    el('div', { class: 'setting' }, entry.name), el('div', { class: 'value' }, entry.value),
    el('div', { class: 'why' }, entry.why)]));
  const rest = chosen.slice(CHOICES_SHOWN);
  byId('chosen').append(grid(chosen.slice(0, CHOICES_SHOWN)));
  if (rest.length) byId('chosen').append(el('details', {}, el('summary', {}, `and ${rest.length} more`), grid(rest)));
}

function verdict() {
  const { scores, gained, lost, p_value: p } = findings.headline;
  const points = 100 * (scores[0].accuracy - scores[1].accuracy);
  const size = Math.abs(points).toFixed(1);
  const than = `than plain K-NN (${percent(scores[1].accuracy)})`;
  const odds = p < 0.001 ? 'p < 0.001' : `p = ${number(p, 2)}`;
  const swapped = `It gets ${plural(gained, 'row')} right that plain K-NN gets wrong, and loses ${count(lost)}`;
  if (gained + lost === 0) return 'right: exactly the rows that plain K-NN gets right. Learning the metric neither helped nor hurt here.';
  const direction = points === 0 ? `right, as many as plain K-NN` : `right: ${size} points ${points > 0 ? 'better' : 'worse'} ${than}`;
  const judgment = p < 0.05 ? `more than chance explains (sign test, ${odds})` : `which chance may explain (sign test, ${odds})`;
  return `${direction}. ${swapped}, ${judgment}.`;
}

function drawScores(width) {
  const { scores } = findings.headline;
  const row = 64, bottom = 28, height = scores.length * row + bottom;
  // The majority class may be far to the left: it must not squeeze the other two.
  const low = Math.max(0, Math.floor(20 * (Math.min(scores[0].low, scores[1].low) - 0.02)) / 20);
  const x = scale([low, 1], [14, width - 14]);
  const marks = ['after-mark', 'before-mark', 'muted-mark'];
  const axis = ticks(low, 1, width < 420 ? 4 : 6).map((t) => svg('g', {},
    svg('line', { class: 'axis', x1: x(t), x2: x(t), y1: 8, y2: height - bottom }),
    svg('text', { x: x(t), y: height - 8, 'text-anchor': 'middle' }, percent(t, 0))));
  const lines = scores.map((score, i) => {
    const y = i * row + 44;
    const off = score.accuracy < low;
    return svg('g', {}, hover(`${score.name}: ${percent(score.accuracy)}, interval ${percent(score.low)} to ${percent(score.high)}`),
      svg('text', { class: 'strong over', x: 0, y: y - 16 }, `${score.name} `,
        svg('tspan', { class: 'score', 'font-weight': 400 }, ` ${percent(score.accuracy)} (${percent(score.low)} \u2013 ${percent(score.high)})`)),
      off ? svg('path', { class: marks[i], d: `M4,${y}l9,-5v10Z` }) : [
        svg('line', { class: marks[i], x1: x(Math.max(low, score.low)), x2: x(score.high), y1: y, y2: y, 'stroke-width': 3, 'stroke-linecap': 'round', 'stroke-opacity': 0.45 }),
        svg('circle', { class: marks[i], cx: x(score.accuracy), cy: y, r: 6 })]);
  });
  return [
    chart(width, height, scores.map((s) => `${s.name} ${percent(s.accuracy)}`).join(', '), axis, lines),
    el('p', { class: 'note' }, `Plain K-NN: ${scores[1].note}.`)];
}
