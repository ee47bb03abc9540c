// Memory: records with their sources; review, correct, forget.

import { all, api, h, id, number, put, when } from './element.js';

const KINDS = ['decision', 'entity', 'task', 'metric', 'link', 'fact', 'procedure', 'episode', 'censor'];

export async function memory(main) {
  const place = h('div', {});
  const status = h('p', { class: 'quiet', role: 'status' });
  const words = h('input', { type: 'search', 'aria-label': 'Search memory', placeholder: 'Search memory' });
  const kind = h('select', { 'aria-label': 'Kind', onchange: () => show() }, h('option', { value: '' }, 'all kinds'), KINDS.map((one) => h('option', {}, one)));
  const past = h('input', { type: 'checkbox', onchange: () => show() });
  const show = async () => {
    const query = new URLSearchParams();
    if (words.value) query.set('query', words.value);
    if (kind.value) query.set('kind', kind.value);
    if (past.checked) query.set('all', 'true');
    try {
      const { items } = await all(`/memory?${query}`, 1000);
      status.textContent = `${number(items.length)} records`;
      put(place, ...items.map((one) => record(one, show)));
    } catch (error) {
      put(place, h('p', { class: 'error', role: 'alert' }, error.message));
    }
  };
  put(main,
    h('h1', {}, 'Memory'),
    h('form', { class: 'bar', onsubmit: (event) => { event.preventDefault(); show(); } }, words, kind, h('label', { class: 'check' }, past, 'also records no longer in force'), h('button', {}, 'Search')),
    adding(show), h('h2', {}, 'Records'), status, place);
  await show();
}

function adding(show) {
  const text = h('input', { type: 'text', required: true, 'aria-label': 'One sentence to remember', placeholder: 'One sentence to remember' });
  const kind = h('select', { 'aria-label': 'Kind of the new record' }, KINDS.filter((one) => !['procedure', 'censor'].includes(one)).map((one) => h('option', { selected: one === 'fact' }, one)));
  const note = h('span', { class: 'quiet', role: 'status' });
  return h('form', { class: 'bar', onsubmit: async (event) => {
    event.preventDefault();
    try {
      const { novelty } = await api('/memory', { method: 'POST', body: { text: text.value, kind: kind.value } });
      note.textContent = novelty === 'new' ? 'Stored.' : `Not new: ${novelty}.`;
      text.value = '';
      await show();
    } catch (error) { note.textContent = error.message; }
  } }, text, kind, h('button', {}, 'Remember'), note);
}

function record(one, show) {
  const note = h('span', { class: 'quiet', role: 'status' });
  const doing = (work) => async () => {
    try { await work(); await show(); } catch (error) { note.textContent = error.message; }
  };
  const path = `/memory/${id(one.id)}`;
  const event = (name) => doing(() => api(`${path}/events`, { method: 'POST', body: { event: name } }));
  const button = (label, onclick, extra = '') => h('button', { class: `small ${extra}`, onclick, 'aria-label': `${label}: ${one.micro.slice(0, 60)}` }, label);
  const text = h('p', {}, one.full ?? one.summary ?? one.micro);
  const correct = button('Correct', () => {
    const input = h('input', { type: 'text', value: one.micro, 'aria-label': 'Corrected text' });
    put(text, h('form', { class: 'bar', onsubmit: (submitted) => {
      submitted.preventDefault();
      doing(() => api(path, { method: 'PATCH', body: { text: input.value } }))();
    } }, input, h('button', { class: 'small' }, 'Save')));
    input.focus();
  });
  let sure = false;
  const forget = button('Forget', async () => {
    if (sure) { await doing(() => api(path, { method: 'DELETE' }))(); return; }
    sure = true;
    forget.textContent = 'Forget for good?';
  }, 'danger');
  const source = one.source_ref && button('Show the source', async () => {
    try {
      const found = await api(`/refs/${id(one.source_ref)}`);
      source.replaceWith(h('pre', { class: 'text', tabindex: 0, role: 'group', 'aria-label': 'Source' }, found.text));
    } catch (error) { note.textContent = error.message; }
  });
  return h('article', {},
    h('h3', {}, one.kind, h('span', { class: 'tag' }, one.state), h('span', { class: 'quiet' }, `by ${one.origin}, confidence ${one.confidence.toFixed(2)}, ${when(one.updated_at)}`), one.tags.map((tag) => h('span', { class: 'tag' }, tag))),
    text,
    one.source_ref ? h('p', { class: 'quiet' }, 'source ', h('code', {}, one.source_ref)) : '',
    h('div', { class: 'bar' }, one.tags.includes('reviewed') ? '' : button('Keep', event('reviewed')), button('Confirm', event('confirmed')), correct, button('Retire', event('retired')), source, forget, note));
}
