// A grid of colored cells: M, the tuning surfaces, the confusion matrix.
const LEAST_CELL = 13; // pixels, so that every row and column can have its name: else one scrolls
function drawHeat(width, { rows, columns, values, color, text, describe, label, square, chosen = [], xTitle, yTitle }) {
  const longest = (names) => Math.max(...names.map((name) => name.length));
  const [shortRows, shortColumns] = [shortened(rows), shortened(columns)];
  const left = Math.min(0.36 * width, 16 + 6.5 * Math.min(longest(shortRows), 30));
  if (square) width = Math.max(width, left + LEAST_CELL * columns.length);
  const cell = Math.min((width - left) / columns.length, square ? Math.max(44, Math.min(72, 260 / columns.length)) : 56);
  const tall = square ? cell : Math.max(15, Math.min(cell, 26));
  const turn = 6.6 * longest(shortColumns) > cell - 2;
  const bottom = (turn ? Math.min(150, 12 + 6.3 * Math.min(longest(shortColumns), 22)) : 22) + (xTitle ? 16 : 0);
  const height = rows.length * tall + bottom + (yTitle ? 18 : 0);
  const top = yTitle ? 18 : 0;
  const skip = Math.max(1, Math.ceil(10 / tall)), skipX = Math.max(1, Math.ceil(10 / cell));
  const cells = rows.flatMap((_, i) => columns.map((_, j) => {
    const value = values[i][j], [x, y] = [left + j * cell, top + i * tall];
    if (value === null) return svg('rect', { class: 'cell empty', x: x + 2, y: y + 2, width: Math.max(1, cell - 4), height: Math.max(1, tall - 4) });
    const [hue, v] = color(value, i, j), said = text(value, i, j);
    return svg('g', {}, hover(describe(value, i, j)),
      svg('rect', { class: `cell ${hue}`, x, y, width: cell, height: tall, style: { '--v': Math.max(0, Math.min(1, v)) } }),
      said && cell >= 7 * said.length + 2 && tall >= 13
        ? svg('text', { class: v > 0.55 ? 'on dark' : 'on', x: x + cell / 2, y: y + tall / 2 + 4 }, said) : null);
  }));
  const picks = chosen.map(([i, j]) => svg('rect', { class: 'pick', x: left + j * cell + 1, y: top + i * tall + 1, width: cell - 2, height: tall - 2, rx: 1 }));
  const names = rows.map((name, i) => (i % skip ? null : svg('text', { class: 'ink', x: left - 8, y: top + (i + 0.5) * tall + 4, 'text-anchor': 'end' },
    hover(name), clip(shortRows[i], Math.max(3, Math.floor((left - 8) / 6.2))))));
  const under = columns.map((name, j) => {
    if (j % skipX) return null;
    const [x, y] = [left + (j + 0.5) * cell, top + rows.length * tall];
    return turn
      ? svg('text', { class: 'ink', transform: `translate(${x + 4},${y + 8}) rotate(-90)`, 'text-anchor': 'end' }, hover(name), clip(shortColumns[j], 22))
      : svg('text', { class: 'ink', x, y: y + 16, 'text-anchor': 'middle' }, shortColumns[j]);
  });
  const titles = [
    yTitle ? svg('text', { x: Math.max(left - 8, 6.2 * (yTitle.length + 2)), y: 11, 'text-anchor': 'end' }, `${yTitle} \u2193`) : null,
    xTitle ? svg('text', { x: left + (columns.length * cell) / 2, y: height - 4, 'text-anchor': 'middle' }, `${xTitle} \u2192`) : null];
  return chart(width, height, label, cells, picks, names, under, titles);
}

// Section 4: errors over what was tried; the darker, the better.
function drawSurface(surface) {
  const known = surface.error.flat().filter((e) => e !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const good = (e) => 0.06 + 0.94 * (1 - (e - low) / (high - low || 1)) ** 2;
  const box = el('div', {});
  const ramp = el('p', { class: 'ramp', style: { '--from': 'var(--after)', '--to': 'var(--raised)' } },
    percent(low), el('i', {}), percent(high));
  byId('surfaces').append(el('figure', {}, el('figcaption', {}, el('b', {}, surface.title), ` ${surface.note}; framed: chosen`), box, ramp));
  responsive(box, (width) => drawHeat(width, {
    label: `${surface.title}: ${surface.note}`, rows: surface.y, columns: surface.x, values: surface.error,
    color: (e) => ['hue-after', good(e)], text: (e) => (100 * e).toFixed(1), chosen: surface.chosen,
    describe: (e, i, j) => `${surface.y_name} ${surface.y[i]}, ${surface.x_name} ${surface.x[j]}: ${percent(e)}`,
    xTitle: surface.x_name, yTitle: surface.y_name }));
}
