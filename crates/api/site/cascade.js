// Cascades: their problems and their graph.

import { api, h, number, put } from './element.js';

export function cascade(main) {
  const place = h('div', { 'aria-live': 'polite' });
  const source = h('textarea', { 'aria-label': 'A cascade in YAML or JSON', spellcheck: 'false', placeholder: 'cascade_id: example\nphases:\n  - name: first\n    instructions: Say hello.' });
  const file = h('input', { type: 'file', 'aria-label': 'Open a file', accept: '.yaml,.yml,.json', onchange: async () => {
    source.value = await file.files[0].text();
    await draw();
  } });
  const draw = async (event) => {
    event?.preventDefault();
    try {
      const body = { source: source.value };
      const { is_valid, problems } = await api('/cascades/validate', { method: 'POST', body });
      const list = h('ul', {}, problems.map((one) => h('li', {}, h('strong', { class: one.severity === 'error' ? 'bad' : '' }, one.severity), ` line ${one.line ?? '–'}: ${one.message}${one.hint ? `; ${one.hint}` : ''}`)));
      const told = h('p', {}, is_valid ? `Valid, ${number(problems.length)} notes.` : `${number(problems.length)} problems.`);
      put(place, told, list);
      if (!is_valid) return;
      const { svg } = await api('/cascades/graph', { method: 'POST', body });
      place.append(h('h2', {}, 'Graph'), h('img', { class: 'graph', alt: 'The phases of the cascade and what each sees', src: `data:image/svg+xml,${encodeURIComponent(svg)}` }));
    } catch (error) {
      put(place, h('p', { class: 'error', role: 'alert' }, error.message));
    }
  };
  put(main, h('h1', {}, 'Cascades'), h('form', { onsubmit: draw }, source, h('div', { class: 'bar' }, h('button', {}, 'Check and draw'), file)), place);
}
