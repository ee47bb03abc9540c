// Routes: the address behind # names the screen. A screen is drawn again when the store changed.

import { api, failed, h, id, put, setKey } from './element.js';
import { cascade } from './cascade.js';
import { memory } from './memory.js';
import { sessions } from './sessions.js';
import { timeline, what_if } from './timeline.js';
import { turn } from './turn.js';

const main = document.getElementById('main');
const live = document.getElementById('live');
const POLL = 4000;
let current = new AbortController();
let seen = null;
let parts = [];

async function draw(is_update = false) {
  current.abort();
  current = new AbortController();
  const options = { signal: current.signal };
  parts = location.hash.replace(/^#\/?/, '').split('/').filter(Boolean).map(decodeURIComponent);
  const [page, session, what, at, position] = parts;
  for (const link of document.querySelectorAll('nav a')) {
    const own = link.getAttribute('href').slice(2);
    const is_own = own === (page ?? '') || (own === '' && page === 'session');
    if (is_own) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
  }
  if (!is_update) {
    seen = null;
    put(main, h('p', { class: 'quiet' }, 'Loading…'));
  }
  try {
    if (page === 'memory') await memory(main);
    else if (page === 'cascade') await cascade(main, options);
    else if (page === 'session' && what === 'turn') await turn(main, session, at, position, options);
    else if (page === 'session' && what === 'what-if') await what_if(main, session);
    else if (page === 'session') await timeline(main, session, options);
    else await sessions(main);
    document.title = `${main.querySelector('h1')?.textContent ?? ''} · Plimsoll`;
  } catch (error) {
    if (error.status === 401) ask_key(); else put(main, failed(error));
  }
  if (!is_update) {
    if (position === undefined) window.scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

function ask_key() {
  const input = h('input', { type: 'password', 'aria-label': 'Key of the gateway', autocomplete: 'off', required: true });
  put(main, h('h1', {}, 'A key is needed'), h('p', {}, 'This gateway has keys. The key stays in this tab only.'),
    h('form', { class: 'bar', onsubmit: (event) => { event.preventDefault(); setKey(input.value); draw(); } }, input, h('button', {}, 'Open')));
  input.focus();
}

/** Asks what the screen shows, and draws it again where it changed; never under somebody's hands. */
async function poll() {
  const [page, session, what] = parts;
  const is_list = page === undefined;
  const is_timeline = page === 'session' && what === undefined;
  if (document.hidden || !(is_list || is_timeline)) return;
  try {
    const found = is_list ? await api('/sessions?limit=1') : await api(`/sessions/${id(session)}`);
    const now = JSON.stringify(found);
    if (seen !== null && seen !== now && !main.contains(document.activeElement?.closest('input, [role=slider]'))) {
      await draw(true);
      live.textContent = `updated ${new Date().toISOString().slice(11, 19)} UTC`;
    }
    seen = now;
  } catch {
    live.textContent = 'the server does not answer';
  }
}

document.addEventListener('keydown', (event) => {
  if (event.target.closest('input, textarea, select, [role=slider]') || event.ctrlKey || event.metaKey || event.altKey) return;
  // The first turn has none before it, and the last has no next one.
  const way = { ArrowLeft: 'prev', ArrowRight: 'next' }[event.key];
  if (way) main.querySelector(`a[rel=${way}]`)?.click();
});
window.addEventListener('hashchange', () => draw());
setInterval(poll, POLL);
draw();
