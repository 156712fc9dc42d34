// Returns what is wrong with a page for people who do not see it well, use a
// screen reader, or hold it in one hand: a list of complaints.
(() => {
  const complaints = [];
  const complain = (what, element) => complaints.push(`${what}: ${element.outerHTML.slice(0, 160)}`);
  const shown = (e) => e.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true });

  const page = document.documentElement;
  if (page.scrollWidth > innerWidth) {
    const inFrame = '.scroll, .tabs, .side nav, pre';
    const wide = [...document.body.querySelectorAll('*')].find((e) => shown(e) && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(inFrame));
    complain(`the page is ${page.scrollWidth} px wide on ${innerWidth}`, wide || document.body);
  }

  let level = 0;
  for (const heading of document.querySelectorAll('h1, h2, h3, h4')) {
    const now = Number(heading.tagName[1]);
    if (now > level + 1) complain(`h${now} follows h${level}`, heading);
    if (!heading.textContent.trim()) complain('an empty heading', heading);
    level = now;
  }
  if (document.querySelectorAll('h1').length !== 1) complaints.push('not one h1');

  const ids = new Set();
  for (const e of document.querySelectorAll('[id]')) {
    if (ids.has(e.id)) complain('an id that is there twice', e);
    ids.add(e.id);
  }
  for (const attribute of ['aria-labelledby', 'aria-describedby', 'for']) {
    for (const e of document.querySelectorAll(`[${attribute}]`)) {
      if (!ids.has(e.getAttribute(attribute))) complain(`${attribute} leads nowhere`, e);
    }
  }

  for (const e of document.querySelectorAll('input:not([type=hidden]), select, textarea')) {
    if (!e.labels?.length && !e.getAttribute('aria-label')) complain('a field without a label', e);
  }
  for (const e of document.querySelectorAll('a[href], button, summary')) {
    if (!e.textContent.trim() && !e.getAttribute('aria-label')) complain('nothing to read out', e);
  }
  for (const e of document.querySelectorAll('svg, progress, meter')) {
    if (e.getAttribute('aria-hidden') !== 'true' && !e.getAttribute('aria-label') && !e.labels?.length) complain('a picture without words', e);
  }
  for (const e of document.querySelectorAll('table')) {
    if ([...e.querySelectorAll('thead th')].some((th) => th.scope !== 'col')) complain('a heading without scope', e);
  }

  // Contrast by WCAG 2.2: 4.5 to 1, and 3 to 1 for large text.
  const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, bottom) => [0, 1, 2].map((i) => top[i] * top[3] + bottom[i] * (1 - top[3])).concat(1);
  const luminance = (color) => {
    const [r, g, b] = color.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    const layers = [];
    for (; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  for (const e of document.body.querySelectorAll('*')) {
    const text = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
    if (!text || !shown(e) || e.closest('svg, .unseen, .skip, :disabled')) continue;
    const style = getComputedStyle(e);
    const behind = ground(e);
    const [dark, bright] = [luminance(over(rgba(style.color), behind)), luminance(behind)].sort((a, b) => a - b);
    const contrast = (bright + 0.05) / (dark + 0.05);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    if (contrast < least) complain(`a contrast of ${contrast.toFixed(2)}`, e);
  }
  return complaints.join('\n');
})()
