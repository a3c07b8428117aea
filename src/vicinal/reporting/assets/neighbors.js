// Section 2, below the maps: the neighbors of the selected row, before and after.
function drawNeighborhoods() {
  const k = maps.near_after.rows[0].length;
  const { near_before: before, near_after: after } = maps;
  const whose = `a ${maps.held_out.some(Boolean) ? 'held-out' : 'training'} row`;
  byId('maps-lede').textContent = (isNumeric
    ? `The targets of the ${k} nearest neighbors of ${whose} differ from its own by ${number(before.agreement)} before and by ${number(after.agreement)} after, in the mean; on average`
    : `Of the ${k} nearest neighbors of ${whose}, ${percent(before.agreement, 0)} share its label before and ${percent(after.agreement, 0)} after; on average`) +
    ` ${number(maps.kept, 2)} of the ${k} stay. ` +
    (maps.held_out.some(Boolean) ? '' : `The metric has seen these ${isNumeric ? 'targets' : 'labels'}, so \u201cafter\u201d flatters it. `) +
    'Click a point to see who its neighbors were and who they are now.';
  const line = (when, dash) => svg('svg', { width: 26, height: 10, viewBox: '0 0 26 10' },
    svg('line', { x1: 0, x2: 26, y1: 5, y2: 5, stroke: `var(--${when})`, 'stroke-width': 2, 'stroke-dasharray': dash }));
  byId('map-key').append(el('li', {}, line('before', '4 3'), 'neighbors before'), el('li', {}, line('after'), 'neighbors after'));
  if (maps.held_out.some(Boolean)) byId('map-key').append(el('li', {}, 'filled: training row, outlined: held out'));
  if (drawnMaps.some((map) => map.rim.some(Boolean))) byId('map-key').append(el('li', {}, 'ringed, at the rim: an outlier beyond the map'));
  byId('map-key').append(el('li', {}, 'wheel or two fingers: zoom'));
  const shown = maps.ids.length;
  byId('maps-note').textContent = (shown < maps.n_rows
    ? `The maps show a stratified sample of ${count(shown)} of ${count(maps.n_rows)} rows, and neighbors are sought among them. ` : '')
    + (maps.voters ? `${maps.voters} ` : '')
    + 'A map of two directions cannot show all distances; the table has the exact ones.'
    + (maps.held_out.some(Boolean) ? ' Held-out rows are nobody\u2019s neighbors.' : '');
  selection.listeners.push(drawPanel);
}

function drawPanel(point) {
  const panel = byId('neighborhood');
  if (point < 0) {
    panel.replaceChildren(el('p', { class: 'lede' }, 'No row is selected. Click a point in either map.'));
    return;
  }
  const label = maps.labels[point], guess = maps.predictions[point];
  const rows = [maps.near_before.rows[point], maps.near_after.rows[point]];
  const own = rows.map((list) => (isNumeric
    ? list.reduce((sum, row) => sum + Math.abs(maps.labels[row] - label), 0) / list.length
    : list.filter((row) => maps.labels[row] === label).length));
  const unknown = guess === null || (!isNumeric && guess < 0), right = !isNumeric && guess === label;
  const kept = rows[1].filter((row) => rows[0].includes(row)).length;
  panel.replaceChildren(
    el('h3', {}, el('span', { class: breakable(maps.ids[point]) }, maps.ids[point]), el('span', { class: 'label' }, shownLabel(label),
      unknown ? null : el('span', { class: right || isNumeric ? '' : 'wrong' }, right ? ' \u2014 predicted so' : ` \u2014 predicted ${said(guess)}`))),
    el('p', { class: 'lede' }, (point === maps.focus ? `${maps.focus_why} ` : '') +
      (isNumeric ? `The targets of its neighbors differ from its own by ${number(own[0])} before, by ${number(own[1])} after, in the mean. `
        : `Of its own label: ${own[0]} of ${rows[0].length} neighbors before, ${own[1]} after. `) + `${kept} ${kept === 1 ? 'is' : 'are'} the same.`),
    el('div', { class: 'split' }, neighborTable('before', point, rows[1]), neighborTable('after', point, rows[0])));
}

function neighborTable(when, point, others) {
  const near = maps[`near_${when}`];
  const explained = near.features[point][0].length > 0;
  const head = ['row', isNumeric ? 'target' : 'label', 'distance'].concat(explained ? ['what the distance is made of'] : []);
  const body = near.rows[point].map((row, j) => el('tr', {},
    el('td', {}, el('button', { type: 'button', class: 'link', onclick: () => select(row) }, words(maps.ids[row])),
      others.includes(row) ? el('span', { class: 'kept', title: 'a neighbor before and after' }, ' \u2194') : null),
    el('td', {}, shownLabel(maps.labels[row])),
    el('td', { class: 'right' }, number(near.distances[point][j])),
    explained ? el('td', {}, shares(near, point, j, when)) : null));
  return el('table', {}, el('caption', { class: when },
    el('b', {}, when === 'before' ? 'Nearest before' : 'Nearest after'),
    when === 'before' ? ' standardized, Euclidean' : ' learned metric'),
    el('thead', {}, el('tr', {}, head.map((name) => el('th', { scope: 'col', class: name === 'distance' ? 'right' : null }, name)))),
    el('tbody', {}, body));
}

function shares(near, point, j, when) {
  return el('div', { class: `shares hue-${when}` }, near.features[point][j].map((feature, t) => {
    const share = near.shares[point][j][t];
    return el('span', { class: 'share', style: { '--v': Math.max(0, Math.min(1, share)) } },
      el('span', { class: 'name', title: findings.features[feature] }, findings.features[feature]), el('span', {}, percent(share, 0)));
  }));
}
