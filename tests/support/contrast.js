// The texts whose contrast is below WCAG's 4.5 to 1.
() => {
  const rgba = (text) => { const found = text.match(/[\d.]+/g).map(Number); return found.length < 4 ? [...found, 1] : found; };
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, at) => sum + c * [.2126, .7152, .0722][at], 0);
  const back = (node) => { for (let at = node; at; at = at.parentElement) {
    const found = rgba(getComputedStyle(at).backgroundColor); if (found[3] > 0) return found; } return [255, 255, 255, 1]; };
  const faults = [];
  for (const node of document.querySelectorAll("h1, h2, h3, p, td, th button, label, summary, pre span, .case, .name, #banner p")) {
    if (!node.innerText || !node.checkVisibility()) continue;
    const [a, b] = [light(rgba(getComputedStyle(node).color)), light(back(node))].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) faults.push(`${node.tagName}.${node.className}: ${node.innerText.slice(0, 30)}`);
  }
  return faults;
}
