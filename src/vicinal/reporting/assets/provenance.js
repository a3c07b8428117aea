// Section 7.
function drawProvenance() {
  byId('facts').append(...findings.provenance.flatMap((fact) => [
    el('dt', {}, fact.name), el('dd', {}, fact.lines.map((line) => el('p', {}, line)))]));
}
