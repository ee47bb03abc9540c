// Cascades: their problems and their graph, and runs as they happen, with their questions to a person.

import { api, failed, h, id, number, put, table, when } from './element.js';

/** Seconds that a request for events waits for the next one. */
const WAIT = 20;

export async function cascade(main, { signal }) {
  const place = h('div', { 'aria-live': 'polite' });
  const runs = h('div', {});
  const held = h('div', {});
  const source = h('textarea', { 'aria-label': 'A cascade in YAML or JSON', spellcheck: 'false', placeholder: 'cascade_id: example\nphases:\n  - name: first\n    instructions: Say hello.' });
  const input = h('input', { type: 'text', 'aria-label': 'Input as a JSON object', placeholder: 'input, {"name": "value"}' });
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
      put(place, h('p', {}, is_valid ? `Valid, ${number(problems.length)} notes.` : `${number(problems.length)} problems.`), list);
      if (!is_valid) return;
      const { svg } = await api('/cascades/graph', { method: 'POST', body });
      place.append(h('h2', {}, 'Graph'), h('img', { class: 'graph', alt: 'The phases of the cascade and what each sees', src: `data:image/svg+xml,${encodeURIComponent(svg)}` }));
    } catch (error) {
      put(place, failed(error));
    }
  };
  const list = async () => put(held, await recent(runs, signal));
  const begin = async () => {
    try {
      const body = { source: source.value, input: input.value.trim() ? JSON.parse(input.value) : {} };
      put(held);
      await watch(await api('/cascades/runs', { method: 'POST', body }), runs, signal);
    } catch (error) {
      put(runs, failed(error));
    }
    if (!signal.aborted) await list().catch(() => {});
  };
  put(main, h('h1', {}, 'Cascades'),
    h('form', { onsubmit: draw }, source, h('div', { class: 'bar' }, h('button', {}, 'Check and draw'), file, input, h('button', { type: 'button', onclick: begin }, 'Run'))),
    place, runs, held);
  await list();
}

/** Lists the runs that the server holds. */
async function recent(runs, signal) {
  const { items } = await api('/cascades/runs');
  if (items.length === 0) return h('p', { class: 'quiet' }, 'No cascade ran here since the server started.');
  const heads = ['Run', 'Cascade', 'State', 'Began (UTC)'];
  return h('div', {}, h('h2', {}, 'Runs'), table('Runs', heads, items.map((one) => [
    h('button', { class: 'small', onclick: () => watch(one, runs, signal).catch((error) => put(runs, failed(error))) }, one.session),
    one.cascade, one.state, when(one.began_at),
  ])));
}

/** Shows a run until it ends: its events as they come, and the question that it waits with. */
async function watch(begun, place, signal) {
  const path = `/cascades/runs/${id(begun.session)}`;
  const state = h('p', { role: 'status' });
  const events = h('ol', { start: 0, tabindex: 0, 'aria-label': 'Events of the run' });
  const below = h('div', {});
  put(place, h('section', { class: 'run' }, h('h2', {}, `Run ${begun.session}`), state, events, below));
  let seen = -1;
  let current = begun;
  while (!signal.aborted && place.contains(events)) {
    const cursor = seen >= 0 ? `&cursor=${seen}` : '';
    const { items, run, next } = await api(`${path}/events?limit=200&wait=${WAIT}${cursor}`);
    if (signal.aborted) return;
    for (const one of items) {
      seen = one.number;
      events.append(h('li', {}, line(one)));
    }
    events.scrollTop = events.scrollHeight;
    current = run;
    if (next) continue;
    put(state, h('span', { class: 'run-state' }, run.state), ` ${number(run.events)} events `, run.state === 'running' ? stop(path) : '');
    if (run.state === 'running') continue;
    if (run.state === 'waiting') {
      await new Promise((answered) => put(below, question(run.question, path, answered)));
      put(below);
      continue;
    }
    break;
  }
  if (current.output) put(below, h('h3', {}, 'Output'), h('pre', { class: 'text' }, current.output));
  if (current.error) put(below, h('p', { class: 'error', role: 'alert' }, current.error));
}

function stop(path) {
  return h('button', { class: 'small danger', onclick: () => api(path, { method: 'DELETE' }).catch(() => {}) }, 'Stop');
}

function question({ phase, question: asked }, path, answered) {
  const input = h('input', { type: 'text', required: true, 'aria-label': `Answer to ${phase}` });
  const note = h('span', { class: 'quiet', role: 'status' });
  const form = h('form', { class: 'question', onsubmit: async (event) => {
    event.preventDefault();
    try {
      await api(`${path}/answers`, { method: 'POST', body: { phase, answer: input.value } });
      answered();
    } catch (error) { note.textContent = error.message; }
  } }, h('h3', {}, `${phase} asks`), h('pre', {}, asked), h('div', { class: 'bar' }, input, h('button', {}, 'Answer'), note));
  setTimeout(() => input.focus());
  return form;
}

/** Returns an event in words. */
function line(one) {
  const { number: _, event, phase, ...rest } = one;
  const told = Object.entries(rest)
    .filter(([, value]) => value !== null && value !== '' && !(Array.isArray(value) && value.length === 0))
    .map(([name, value]) => `${name.replaceAll('_', ' ')} ${typeof value === 'object' ? JSON.stringify(value) : value}`);
  return [h('strong', {}, [phase, event.replaceAll('_', ' ')].filter(Boolean).join(': ')), ` ${told.join(', ')}`.slice(0, 300)];
}
