// A turn: every message as it was said beside as it was sent.

import { all, api, cards, dollars, h, id, number, percent, put } from './element.js';

const SHOWN = 60;

export async function turn(main, session, at, position, { signal }) {
  const path = `/sessions/${id(session)}/turns/${at}`;
  const found = await all(path);
  if (signal.aborted) return;
  const place = h('div', {});
  const only = h('input', { type: 'checkbox', onchange: () => show() });
  const changed = found.items.filter((one) => one.treatment !== 'keep');
  let most = SHOWN;
  const show = () => {
    const rows = only.checked ? changed : found.items;
    const wanted = rows.findIndex((one) => String(one.position) === position);
    if (wanted >= most) most = wanted + SHOWN;
    put(place,
      ...rows.slice(0, most).map((one) => block(one, path, position)),
      rows.length > most ? h('button', { onclick: () => { most += 200; show(); } }, `Show more of ${number(rows.length)} messages`) : '',
      rows.length === 0 ? h('p', { class: 'quiet' }, 'Every message is sent as it was said.') : '');
  };
  only.checked = changed.length > 0 && position === undefined;
  show();
  const link = (to, text, rel) => h('a', { rel, href: `#/session/${id(session)}/turn/${to}` }, text);
  const number_of = Number(at);
  put(main,
    h('p', { class: 'crumbs' }, h('a', { href: '#/' }, 'Sessions'), ' / ', h('a', { href: `#/session/${id(session)}` }, 'Session')),
    h('h1', {}, `Turn ${at}`),
    h('p', { class: 'bar' }, number_of > 0 ? link(number_of - 1, '← Turn before', 'prev') : '', found.has_next ? link(number_of + 1, 'Next turn →', 'next') : '', h('span', { class: 'quiet' }, 'keys: ← →')),
    cards([
      [number(found.tokens), found.was_sent ? 'tokens sent' : 'tokens to send', `${percent(found.tokens, found.full_tokens)} of the full ${number(found.full_tokens)}`],
      [number(found.cached), 'read from the cache', `${number(found.written)} written, ${number(found.plain)} plain${found.broken ? '; the prefix broke' : found.cold ? '; the cache was cold' : ''}`],
      [dollars(found.cost), 'input, estimated', found.is_estimate ? 'the model has no listed price' : 'by our model of the cache'],
      found.reported && [dollars(found.reported_cost), 'reported by the provider', `${number(found.reported.prompt_tokens)} in, ${number(found.reported.cached_tokens)} of them cached, ${number(found.reported.output_tokens)} out`],
      found.bill && [dollars(found.bill.billed), 'billed input', `${dollars(found.bill.without)} without Plimsoll`],
    ]),
    h('h2', {}, 'Difference to the call before'),
    difference(found.difference),
    found.added.length > 0 ? [h('h2', {}, 'Added by Plimsoll'), found.added.map((one) => h('article', {}, h('h3', {}, `${number(one.tokens)} tokens`), text(one.text)))] : [],
    h('h2', {}, 'Messages'),
    h('div', { class: 'bar' }, h('label', { class: 'check' }, only, `Only the ${number(changed.length)} of ${number(found.items.length)} that are sent in another form`)),
    place);
  document.getElementById(`m${position}`)?.scrollIntoView({ block: 'center' });
}

function difference(found) {
  if (!found) return h('p', { class: 'quiet' }, 'None: the call goes on where the one before ended, so that the cached prefix stays.');
  return h('article', {},
    h('h3', {}, `Message ${found.position ?? found.message} differs from byte ${number(found.byte)} on`),
    h('div', { class: 'beside' },
      h('div', {}, h('h4', {}, 'before'), text(found.before || '(it ended here)')),
      h('div', {}, h('h4', {}, 'now'), text(found.now || '(it is not sent)'))));
}

const text = (content) => h('pre', { class: 'text', tabindex: content.length > 400 ? 0 : undefined, role: content.length > 400 ? 'group' : undefined, 'aria-label': content.length > 400 ? 'Text' : undefined }, content);

function block(one, path, wanted) {
  const changed = one.treatment !== 'keep';
  const said = h('div', {}, changed ? h('h4', {}, `said, ${number(one.tokens_before)} tokens`) : '', text(one.said + (one.said_characters > one.said.length ? ' …' : '')));
  const sent = changed && h('div', {}, h('h4', {}, `sent, ${number(one.tokens_after)} tokens`), one.treatment === 'omit' ? h('p', { class: 'quiet' }, 'It is not sent.') : text(one.sent + (one.sent_characters > one.sent.length ? ' …' : '')));
  const is_cut = one.said_characters > one.said.length || (one.sent ?? '').length < one.sent_characters;
  const more = is_cut && h('button', { class: 'small', 'aria-label': `show all ${number(one.said_characters)} characters of message ${one.position}`, onclick: async () => {
    more.disabled = true;
    const found = await api(`${path}/messages/${one.position}`);
    said.lastChild.replaceWith(text(found.said));
    if (sent && one.treatment !== 'omit') sent.lastChild.replaceWith(text(found.sent));
    more.remove();
  } }, `show all ${number(one.said_characters)} characters`);
  return h('article', { id: `m${one.position}`, class: String(one.position) === wanted ? 'wanted' : undefined },
    h('h3', {}, `${one.position} ${one.source}`,
      h('span', { class: changed ? 'tag changed' : 'tag' }, one.treatment),
      h('span', { class: 'quiet' }, changed ? `${number(one.tokens_before)} → ${number(one.tokens_after)} tokens` : `${number(one.tokens_before)} tokens`),
      h('code', { class: 'quiet' }, one.ref), more),
    changed ? h('p', { class: 'why quiet' }, `${one.reason}, since turn ${one.since_turn}`) : '',
    h('div', { class: changed ? 'beside' : 'beside alone' }, said, sent));
}
