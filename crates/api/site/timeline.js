// A session: one stacked bar a turn, and a table of the same figures; and the session under other policies.

import { all, api, cards, compact, dollars, h, id, number, palette, percent, put, table, when } from './element.js';

const HEIGHT = 1000;
const ROWS = 100;

export async function timeline(main, session, { signal }) {
  // Both at once; the turns are drawn as soon as they are there.
  const asked = api(`/sessions/${id(session)}`);
  const turns = await all(`/sessions/${id(session)}/turns`).catch((error) => asked.then(() => { throw error; }));
  if (signal.aborted) return;
  const items = turns.items;
  const head = h('div', {}, h('h1', {}, session));
  put(main,
    h('p', { class: 'crumbs' }, h('a', { href: '#/' }, 'Sessions')),
    head);
  if (items.length === 0) {
    const about = await asked;
    put(head, ...heading(about, session));
    main.append(h('p', { class: 'quiet' }, 'No model answered in this session.'));
    return;
  }
  const recorded = turns.basis === 'recorded';
  main.append(...figures(items, recorded), h('h2', {}, 'Tokens of each turn, by source'), chart(items, session, recorded));
  // A long session is painted as far as a screen shows it, and then goes on.
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  if (signal.aborted) return;
  const rest = h('div', {});
  main.append(compactions(items, session), rest, heaviest(items, session), h('h2', {}, 'Turns'), rows(items, session));
  const about = await asked;
  if (signal.aborted) return;
  put(head, ...heading(about, session));
  put(rest, spent(about.reported), agents(about));
}

function heading(about, session) {
  const facts = [about.id, about.model, `${number(about.messages)} messages`, when(about.said_at ?? about.last_at)].filter(Boolean);
  return [
    h('h1', {}, about.title ?? about.id),
    h('p', { class: 'facts' }, facts.map((fact) => h('span', {}, fact))),
    h('p', {}, about.parent ? [h('a', { href: `#/session/${id(about.parent)}` }, 'The session of this sub-agent'), ' · '] : '', h('a', { href: `#/session/${id(session)}/what-if` }, 'What if: other policies')),
  ];
}

/** Lists the turns before which the agent compacted its context. */
function compactions(items, session) {
  const found = items.filter((turn) => turn.compaction);
  if (found.length === 0) return '';
  const heads = ['Before', 'Prompt before', 'Prompt after', 'Left'];
  return h('div', {}, h('h2', {}, 'Compactions by the agent'), table('Compactions by the agent', heads, found.map((turn) => [
    h('a', { href: `#/session/${id(session)}/turn/${turn.turn}` }, `Turn ${turn.turn}`),
    number(turn.compaction.before), number(turn.compaction.after), percent(turn.compaction.after, turn.compaction.before),
  ])));
}

const ROWS_OF_BILL = {
  system_first: 'system prompt and tools, first sent', system_read: 'system prompt and tools, read again', history_read: 'recorded history, read again',
  new: 'new content', unseen_read: 'thinking and attachments, read again', thinking: 'thinking', cliff: 'surcharge for long prompts', again_pause: 'sent again: a pause outlived the cache', again_model: 'sent again: another model', again_tools: 'sent again: other tools or system prompt',
  again_compaction: 'sent again: a compaction', again_rewind: 'sent again: the conversation was rewound', again_ours: 'sent again: a change of ours',
  again_step: 'sent again: a step of the cache', again_unknown: 'sent again: no cause is known', output: 'output',
};

/** Shows where the reported money went; cache misses by cause. */
function spent(reported) {
  if (!reported || reported.bill.length === 0) return '';
  const sum = reported.bill.reduce((total, one) => total + one.cost, 0);
  const heads = ['Where the money went (reported)', 'Tokens', 'Cost', 'Share'];
  return h('div', {}, h('h2', {}, 'Cost by cause'), table('Cost by cause', heads, reported.bill.map((one) => [
    one.is_miss ? [h('span', { class: 'bad' }, 'cache miss'), ` ${ROWS_OF_BILL[one.row] ?? one.row}`] : ROWS_OF_BILL[one.row] ?? one.row.replaceAll('_', ' '),
    number(one.tokens), dollars(one.cost), percent(one.cost, sum),
  ])));
}

/** Shows the sub-agents of a session as a tree. */
function agents(about) {
  const found = about.sub_agents ?? [];
  if (found.length === 0) return '';
  const leaf = (one) => h('li', {}, h('a', { href: `#/session/${id(one.id)}` }, one.title ?? one.id), h('span', { class: 'quiet' }, ` ${one.id}, ${number(one.messages)} messages, ${compact(one.tokens)} tokens`));
  return h('div', {}, h('h2', {}, 'Sub-agents'), h('ul', { class: 'tree' }, h('li', {}, about.title ?? about.id, h('ul', {}, found.map(leaf)))));
}

function figures(items, recorded) {
  const sum = (pick) => items.reduce((total, one) => total + (pick(one) ?? 0), 0);
  const sent = sum((one) => one.tokens);
  const full = sum((one) => one.full_tokens);
  const reported = items.filter((one) => one.reported);
  const estimate = items.some((one) => one.is_estimate) ? 'estimate: the model has no listed price' : 'by our model of the cache';
  const breaks = items.filter((one) => one.broken).length;
  const colds = items.filter((one) => one.cold).length;
  return [
    h('p', { class: 'quiet' }, recorded
      ? 'These requests went through the gateway; their contexts are made again from the receipts.'
      : 'These turns are a replay under the policy “plimsoll”: what would have been sent. The provider’s own figures are named “reported”.'),
    cards([
      [number(items.length), 'turns', `${number(breaks)} broke the cache, ${number(colds)} came when it was cold`],
      [compact(sent), recorded ? 'tokens sent' : 'tokens to send', `${percent(sent, full)} of the full ${compact(full)}`],
      [dollars(sum((one) => one.cost)), 'input, estimated', estimate],
      reported.length > 0 && [dollars(sum((one) => one.reported_cost)), 'reported by the provider', `input and output of ${number(reported.length)} requests`],
      reported.length > 0 && [percent(sum((one) => one.reported?.cached_tokens), sum((one) => one.reported?.prompt_tokens)), 'read from the cache', 'reported by the provider'],
    ]),
  ];
}

function chart(items, session, recorded) {
  const total = {};
  for (const turn of items) for (const [name, tokens] of Object.entries(turn.sources)) total[name] = (total[name] ?? 0) + tokens;
  const { class_of, sorted } = palette(total);
  const unshown = (turn) => turn.sources['prompt and tools'] ?? 0;
  const top = Math.max(1, ...items.map((turn) => Math.max(turn.full_tokens, turn.tokens) + unshown(turn)));
  const y = (tokens) => (HEIGHT * tokens) / top;
  const gap = items.length > 200 ? 0 : 0.14;
  const svg = h('svg', { viewBox: `0 0 ${items.length} ${HEIGHT + 30}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  for (const part of [0.25, 0.5, 0.75]) svg.append(h('line', { class: 'grid', x1: 0, x2: items.length, y1: HEIGHT * part, y2: HEIGHT * part }));
  // One path for each source: a thousand turns stay quick to paint.
  const paths = Object.fromEntries(sorted.map((name) => [name, '']));
  let full = '';
  let broken = '';
  let cold = '';
  let compacted = '';
  items.forEach((turn, at) => {
    let base = HEIGHT;
    for (const name of sorted) {
      const size = y(turn.sources[name] ?? 0);
      if (size <= 0) continue;
      paths[name] += `M${at + gap / 2} ${base.toFixed(1)}h${1 - gap}v${(-size).toFixed(1)}h${gap - 1}z`;
      base -= size;
    }
    const line = HEIGHT - y(turn.full_tokens + unshown(turn));
    full += `${at === 0 ? 'M' : 'L'}${at} ${line.toFixed(1)}H${at + 1}`;
    const mark = `M${at + gap / 2} ${HEIGHT + 8}h${1 - gap}v22h${gap - 1}z`;
    if (turn.broken) broken += mark;
    else if (turn.cold && at > 0) cold += mark;
    if (turn.compaction) compacted += `M${at} 0V${HEIGHT}`;
  });
  for (const name of sorted) svg.append(h('path', { class: class_of(name), d: paths[name] }));
  svg.append(h('path', { class: 'full', d: full }), h('path', { class: 'm-broken', d: broken }), h('path', { class: 'm-cold', d: cold }), h('path', { class: 'm-compacted', d: compacted }));
  const pick = h('rect', { class: 'pick', y: 0, height: HEIGHT + 30, width: 1, x: -5 });
  svg.append(pick);
  const told = h('p', { class: 'told', role: 'status' }, 'Point at a bar, or use the arrow keys; Enter opens the turn.');
  let at = -1;
  const choose = (next) => {
    at = Math.max(0, Math.min(items.length - 1, next));
    pick.setAttribute('x', at);
    box.setAttribute('aria-valuenow', items[at].turn);
    const text = line(items[at], sorted);
    box.setAttribute('aria-valuetext', text);
    put(told, h('strong', {}, `Turn ${items[at].turn}: `), text);
  };
  const open = () => { if (at >= 0) location.hash = `#/session/${id(session)}/turn/${items[at].turn}`; };
  const place = (event) => {
    const box_of = svg.getBoundingClientRect();
    return Math.floor(((event.clientX - box_of.left) / box_of.width) * items.length);
  };
  const keys = { ArrowRight: () => at + 1, ArrowLeft: () => at - 1, PageDown: () => at + 10, PageUp: () => at - 10, Home: () => 0, End: () => items.length - 1 };
  const box = h('div', {
    tabindex: 0, role: 'slider', 'aria-label': 'Turn', 'aria-valuemin': items[0].turn, 'aria-valuemax': items.at(-1).turn, 'aria-valuenow': items[0].turn,
    onpointermove: (event) => choose(place(event)),
    onclick: (event) => { choose(place(event)); open(); },
    onkeydown: (event) => {
      if (event.key === 'Enter') open();
      else if (keys[event.key]) choose(keys[event.key]());
      else return;
      event.preventDefault();
    },
  }, svg);
  const sums = sorted.map((name) => h('li', {}, h('i', { class: class_of(name) }), `${name} `, h('span', { class: 'quiet' }, compact(total[name]))));
  return h('div', { class: 'chart' },
    h('div', { class: 'axis' }, h('span', {}, `${compact(top)} tokens`), h('span', {}, recorded ? 'as sent' : 'as it would be sent')),
    box,
    h('div', { class: 'axis' }, h('span', {}, `turn ${items[0].turn}`), h('span', {}, `turn ${items.at(-1).turn}`)),
    told,
    h('ul', { class: 'legend', 'aria-label': 'Sources' }, sums,
      h('li', {}, h('i', { class: 'l-full' }), 'full history'),
      h('li', {}, h('i', { class: 'm-broken' }), 'cache broken'),
      h('li', {}, h('i', { class: 'm-cold' }), 'cache cold'),
      compacted && h('li', {}, h('i', { class: 'l-compacted' }), 'compacted by the agent')));
}

function line(turn, sorted) {
  const parts = sorted.filter((name) => turn.sources[name]).sort((a, b) => turn.sources[b] - turn.sources[a]).slice(0, 4);
  const before = turn.compaction ? `, compacted from ${number(turn.compaction.before)} to ${number(turn.compaction.after)} tokens` : '';
  const cache = turn.broken ? ', cache broken' : turn.cold ? ', cache cold' : '';
  return `${number(turn.tokens)} of ${number(turn.full_tokens)} tokens, ${number(turn.cached)} read from the cache${cache}${before}, about ${dollars(turn.cost)}; ${parts.map((name) => `${name} ${compact(turn.sources[name])}`).join(', ')}`;
}

function heaviest(items, session) {
  const last = items.at(-1);
  const place = h('div', {});
  const button = h('button', { class: 'small', onclick: async () => {
    button.disabled = true;
    const { items: blocks } = await all(`/sessions/${id(session)}/turns/${last.turn}`);
    blocks.sort((a, b) => b.tokens_after - a.tokens_after);
    put(place, table('Heaviest blocks of the last turn', ['Block', 'Treatment', 'Tokens sent', 'Tokens said'], blocks.slice(0, 8).map((one) => [
      h('a', { href: `#/session/${id(session)}/turn/${last.turn}/${one.position}` }, `${one.source}: ${one.said.slice(0, 80)}`),
      one.treatment, number(one.tokens_after), number(one.tokens_before)])));
  } }, 'Show the heaviest blocks of the last turn');
  return h('div', {}, h('div', { class: 'bar' }, button), place);
}

function rows(items, session) {
  const heads = ['Turn', 'Sent', 'Full', 'Read from cache', 'Written', 'Changes', 'Cost (estimate)', 'Reported', 'Cache'];
  const row = (turn) => [
    h('a', { href: `#/session/${id(session)}/turn/${turn.turn}` }, `Turn ${turn.turn}`),
    number(turn.tokens), number(turn.full_tokens), number(turn.cached), number(turn.written), number(turn.changes), dollars(turn.cost), dollars(turn.reported_cost),
    turn.broken ? h('span', { class: 'bad' }, 'broken') : turn.cold ? h('span', { class: 'cold' }, 'cold') : 'warm',
  ];
  const made = table('Turns', heads, items.slice(0, ROWS).map(row));
  if (items.length <= ROWS) return made;
  const more = h('button', { onclick: () => {
    made.replaceWith(table('Turns', heads, items.map(row)));
    more.remove();
  } }, `Show all ${number(items.length)} turns`);
  return h('div', {}, made, h('div', { class: 'bar' }, more));
}

export async function what_if(main, session) {
  const place = h('div', { 'aria-live': 'polite' });
  const names = ['plimsoll', 'window', 'clear-tool-uses', 'newest', 'working-set'];
  const boxes = names.map((name) => h('input', { type: 'checkbox', name, checked: ['plimsoll', 'window', 'newest'].includes(name) }));
  const budget = h('input', { type: 'number', min: 1000, step: 1000, 'aria-label': 'Budget in tokens', placeholder: 'budget in tokens' });
  const run = async (event) => {
    event?.preventDefault();
    put(place, h('p', { class: 'quiet' }, 'Replaying…'));
    const chosen = boxes.filter((box) => box.checked).map((box) => `policy=${id(box.name)}`);
    if (budget.value) chosen.push(`budget=${budget.value}`);
    try {
      put(place, comparison(await api(`/sessions/${id(session)}/what-if?${chosen.join('&')}`)));
    } catch (error) {
      put(place, h('p', { class: 'error', role: 'alert' }, error.message));
    }
  };
  put(main,
    h('p', { class: 'crumbs' }, h('a', { href: `#/session/${id(session)}` }, 'Session')),
    h('h1', {}, 'What if: other policies'),
    h('form', { class: 'bar', onsubmit: run }, boxes.map((box) => h('label', { class: 'check' }, box, box.name)), budget, h('button', {}, 'Replay')),
    place);
  await run();
}

function comparison({ items, is_estimate }) {
  const full = items[0];
  const most = Math.max(...items.map((one) => one.input_cost), 1e-12);
  const bar = (one) => h('svg', { viewBox: '0 0 100 9', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, h('rect', { class: 'fill', width: (100 * one.input_cost) / most, height: 9 }));
  const heads = ['Policy', 'Input cost (estimate)', 'Of everything sent', 'Tokens', 'Largest context', 'Cache breaks', 'Blind turns', 'Beside the dearest'];
  return h('div', {},
    h('p', { class: 'quiet' }, `A replay of ${number(full.turns)} turns. ${is_estimate ? 'The model has no listed price, so money is an estimate by another one. ' : ''}A turn is blind where its recorded next step used something that the context had hidden.`),
    table('Policies', heads, items.map((one) => [
      one.policy, dollars(one.input_cost), percent(one.input_cost, full.input_cost), compact(one.tokens), number(one.peak), number(one.breaks), number(one.blind_turns), bar(one),
    ]), 'stack bars'));
}
