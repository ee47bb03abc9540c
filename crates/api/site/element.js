// Elements, figures and requests: what every screen uses.

const SVG = 'http://www.w3.org/2000/svg';
const SVG_TAGS = new Set(['svg', 'rect', 'path', 'line', 'g', 'title', 'polyline']);

/** Makes an element; `on…` attributes are listeners, and text children are never read as HTML. */
export function h(tag, attributes = {}, ...children) {
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** Puts children into an element, instead of those it has. */
export function put(element, ...children) {
  const is_shown = (child) => child !== null && child !== undefined && child !== false && child !== '';
  element.replaceChildren(...children.flat(Infinity).filter(is_shown));
}

const KEY = 'plimsoll-key';

/** Asks the interface; an error carries the line that the interface gave. */
export async function api(path, { method = 'GET', body } = {}) {
  const headers = {};
  const key = sessionStorage.getItem(KEY);
  if (key) headers['x-plimsoll-key'] = key;
  if (body !== undefined) headers['content-type'] = 'application/json';
  const response = await fetch(`../api/v1${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await response.text();
  let answer = null;
  try { answer = JSON.parse(text); } catch { /* the line below says so */ }
  if (!response.ok) {
    const error = new Error(answer?.detail ?? answer?.error?.message ?? `the server answered ${response.status}`);
    error.status = response.status;
    throw error;
  }
  return answer;
}

export function setKey(key) { sessionStorage.setItem(KEY, key); }

/** Reads all pages of a list. */
export async function all(path, most = 5000) {
  const items = [];
  let answer;
  let cursor = '';
  do {
    answer = await api(`${path}${path.includes('?') ? '&' : '?'}limit=500${cursor}`);
    items.push(...answer.items);
    cursor = `&cursor=${encodeURIComponent(answer.next)}`;
  } while (answer.next && items.length < most);
  return { ...answer, items };
}

export const id = (text) => encodeURIComponent(text);

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

export const number = (value) => (value === null || value === undefined ? '–' : whole.format(value));
export const compact = (value) => short.format(value);

export function dollars(value) {
  if (value === null || value === undefined) return '–';
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 1 ? 2 : 4;
  return `${value < 0 ? '−' : ''}$${Math.abs(value).toFixed(digits)}`;
}

export function percent(part, all) {
  return all > 0 ? `${Math.round((100 * part) / all)}%` : '–';
}

export function when(millis) {
  if (!millis) return '–';
  return new Date(millis).toISOString().slice(0, 16).replace('T', ' ');
}

/** Returns cards: a figure, what it is, and a note. */
export function cards(list) {
  return h('ul', { class: 'cards' }, list.filter(Boolean).map(([figure, label, note]) =>
    h('li', {}, h('strong', {}, figure), h('span', {}, label), note && h('small', {}, note))));
}

export function failed(error) {
  return h('p', { class: 'error', role: 'alert' }, error.message);
}

/** Returns a table whose rows become cards on a narrow screen. */
export function table(caption, heads, rows, kind = 'stack') {
  return h('table', { class: kind, 'aria-label': caption },
    h('thead', {}, h('tr', {}, heads.map((head) => h('th', { scope: 'col' }, head)))),
    h('tbody', {}, rows.map((cells) => h('tr', {}, cells.map((cell, at) => (at === 0
      ? h('th', { scope: 'row' }, cell)
      : h('td', { 'data-name': heads[at] }, cell)))))));
}

const RESULTS = 5;

/** Gives each source a class of colour: the five largest tools have their own. */
export function palette(sources) {
  const results = Object.keys(sources).filter((name) => name.startsWith('result')).sort((a, b) => sources[b] - sources[a]);
  const named = {
    'prompt and tools': 's-unshown', system: 's-system', user: 's-user', assistant: 's-assistant', thinking: 's-thinking',
    'tool calls': 's-call', memory: 's-memory', lookups: 's-memory', 'own tools': 's-memory',
  };
  const class_of = (name) => {
    const place = results.indexOf(name);
    if (place >= 0) return place < RESULTS ? `s-result${place}` : 's-other';
    return named[name] ?? 's-other';
  };
  const order = ['prompt and tools', 'system', 'memory', 'lookups', 'own tools', 'user', 'assistant', 'thinking', 'tool calls', ...results];
  const rank = (name) => (order.indexOf(name) + 1) || 99;
  return { class_of, sorted: Object.keys(sources).sort((a, b) => rank(a) - rank(b)) };
}
