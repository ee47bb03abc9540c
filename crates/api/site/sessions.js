// The list of sessions.

import { all, api, cards, compact, dollars, h, id, number, percent, put, table, when } from './element.js';

/** Sessions whose reported cost the list asks for. */
const REPORTED = 40;

export async function sessions(main) {
  const { items } = await all('/sessions');
  if (items.length === 0) {
    put(main, h('h1', {}, 'Sessions'),
      h('p', {}, 'The store has no sessions yet. Run ', h('code', {}, 'plimsoll run-agent -- claude'), ' or ', h('code', {}, 'plimsoll import FILE'), '.'));
    return;
  }
  const sum = (pick) => items.reduce((total, one) => total + (pick(one) ?? 0), 0);
  const billed = items.filter((one) => one.bill);
  const paid = sum((one) => one.bill?.billed);
  const without = sum((one) => one.bill?.without);
  const place = h('div', {});
  const search = h('input', { type: 'search', 'aria-label': 'Filter sessions by words, model or id', placeholder: 'Filter by words, model or id', oninput: () => show(search.value) });
  const show = (text) => {
    const wanted = text.toLowerCase();
    const found = items.filter((one) => `${one.title ?? ''} ${one.model ?? ''} ${one.id}`.toLowerCase().includes(wanted));
    put(place, list(found), found.length === 0 ? h('p', { class: 'quiet' }, 'No session fits.') : '');
  };
  show('');
  const fill = async () => {
    // Recorded sessions have no bill of ours; what their providers reported is added up one session at a time.
    for (const cell of [...place.querySelectorAll('[data-session]')].slice(0, REPORTED)) {
      if (!cell.isConnected) return;
      const { reported } = await api(`/sessions/${id(cell.dataset.session)}`);
      if (reported) put(cell, dollars(reported.cost), h('small', {}, `reported, ${percent(reported.cached_tokens, reported.prompt_tokens)} cached`));
    }
  };
  put(main,
    h('h1', {}, 'Sessions'),
    cards([
      [number(items.length), 'sessions', `${compact(sum((one) => one.messages))} messages`],
      [compact(sum((one) => one.tokens)), 'tokens stored', 'each message counted once'],
      billed.length > 0 && [dollars(paid), 'billed input', `${number(sum((one) => one.bill?.requests))} requests, by the provider's figures`],
      billed.length > 0 && [dollars(without - paid), 'saved', `${percent(without - paid, without)} of ${dollars(without)}, lookups and cache losses counted`],
    ]),
    h('div', { class: 'bar' }, search),
    place);
  fill().catch(() => {});
}

/** Puts each sub-agent behind the session that it works for, with its depth. */
export function tree(items) {
  const known = new Set(items.map((one) => one.id));
  const below = new Map();
  for (const one of items) {
    const parent = known.has(one.parent) ? one.parent : null;
    below.set(parent, [...(below.get(parent) ?? []), one]);
  }
  const rows = [];
  const add = (parent, depth) => {
    for (const one of below.get(parent) ?? []) {
      rows.push({ ...one, depth });
      add(one.id, depth + 1);
    }
  };
  add(null, 0);
  return rows;
}

function list(items) {
  const heads = ['Session', 'Model', 'Messages', 'Tokens', 'Of a 200k window', 'Billed', 'Saved', 'Last (UTC)'];
  return table('Sessions', heads, tree(items).map((one) => [
    [one.depth > 0 ? h('span', { class: 'branch' }, `${'  '.repeat(one.depth - 1)}└ sub-agent `) : '', h('a', { href: `#/session/${id(one.id)}` }, one.title ?? one.id), h('small', { class: 'quiet' }, one.title ? ` ${one.id}` : '')],
    one.model ?? '–',
    number(one.messages),
    number(one.tokens),
    [h('meter', { min: 0, max: 100, low: 60, high: 80, optimum: 0, value: Math.min(one.pressure, 100), 'aria-label': `${one.pressure}% of a window of 200,000 tokens` }), ` ${one.pressure}%`],
    one.bill ? [dollars(one.bill.billed), one.bill.estimated_requests > 0 ? h('small', {}, 'part estimated') : ''] : h('span', { 'data-session': one.id }, '–'),
    one.bill ? dollars(one.bill.without - one.bill.billed) : '–',
    when(one.said_at ?? one.last_at),
  ]));
}
