// Drives the dashboard. Arguments: the program, the browser, the folder of screenshots.
'use strict';

const { execFileSync, spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { chromium } = require('playwright-core');
const { session } = require('./sessions.cjs');

const [program, browserPath, shots] = process.argv.slice(2).map((given) => path.resolve(given));
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
/** The most milliseconds until a session of 1,000 turns is drawn. */
const FIRST_PAINT = 1000;
const TURNS = 1000;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'plimsoll-dashboard-'));
const file = (name, text) => { const at = path.join(folder, name); fs.writeFileSync(at, text); return at; };
const env = { PATH: process.env.PATH, HOME: folder };
const plimsoll = (...given) => execFileSync(program, given, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] }).toString();

let passed = 0;
const failures = [];
function check(what, holds, detail = '') {
  if (holds) passed += 1; else failures.push(`${what} ${detail}`);
  if (!holds) console.error(`FAILED: ${what} ${detail}`);
}

async function start() {
  file('harbour.jsonl', session('harbour', 40, { agent: true, compactAt: 30, pauseAt: 12 }));
  file('long.jsonl', session('long', TURNS));
  plimsoll('import', 'harbour.jsonl', 'long.jsonl', '--store', 'kept.db');
  plimsoll('memory', 'add', 'decision', 'Keep one database for the harbour', '--point', 'One backup', '--store', 'kept.db');
  plimsoll('memory', 'add', 'fact', 'The harbour has twelve berths', '--store', 'kept.db');
  file('script.jsonl', `${JSON.stringify({ text: 'The draft of the notice.' })}\n${JSON.stringify({ text: 'The notice is posted.' })}\n`);
  file('settings.toml', '[run]\nmodel = "scripted/script.jsonl"\n');
  const server = spawn(program, ['ui', '--store', 'kept.db', '--config', 'settings.toml', '--listen', '127.0.0.1:0'], { cwd: folder, env });
  let told = '';
  server.stderr.on('data', (data) => { told += data; });
  const address = await new Promise((resolve, reject) => {
    let out = '';
    server.stdout.on('data', (data) => {
      out += data;
      const found = /http:\/\/[^/\s]+\/ui\//.exec(out);
      if (found) resolve(found[0]);
    });
    server.on('exit', (code) => reject(new Error(`the server ended with ${code}: ${told}`)));
  });
  return { server, address };
}

/** Opens a page that fails the test for every error that the browser reports. */
async function open(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, bypassCSP: true, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(20000);
  page.on('console', (message) => { if (message.type() === 'error') check('no console error', false, message.text()); });
  page.on('pageerror', (error) => check('no error of a script', false, String(error)));
  return page;
}

async function accessible(page, name) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const told = violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.target.join(' ')).join(' | ')}`);
  check(`axe finds no violation (${name})`, violations.length === 0, told.join('; '));
}

async function screen(page, name) {
  await accessible(page, name);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  check(`no sideways scrolling (${name})`, wide <= 0, `${wide} px`);
  await page.screenshot({ path: path.join(shots, `${name}.png`) });
}

/** Shows a screen and waits until it is drawn. */
async function show(page, address, hash, drawn) {
  await page.goto(`${address}${hash}`);
  await page.waitForSelector(drawn);
}

async function longSession(browser, address) {
  const page = await open(browser);
  const began = Date.now();
  await page.goto(`${address}#/session/long`);
  await page.waitForSelector('.chart svg path');
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const took = Date.now() - began;
  check(`a session of ${TURNS} turns is painted within ${FIRST_PAINT} ms`, took <= FIRST_PAINT, `it took ${took} ms`);
  console.log(`first paint of ${TURNS} turns: ${took} ms`);
  await screen(page, 'long');
  await page.context().close();
}

const SCREENS = [
  ['sessions', '#/', 'table[aria-label=Sessions] tbody tr'],
  ['timeline', '#/session/harbour', '.chart svg path'],
  ['turn', '#/session/harbour/turn/20', 'article'],
  ['what-if', '#/session/harbour/what-if', 'table[aria-label=Policies] tbody tr'],
  ['memory', '#/memory', 'article'],
  ['cascades', '#/cascade', 'textarea'],
];

async function everyScreen(browser, address) {
  for (const [kind, options] of [['', {}], ['-dark', { colorScheme: 'dark' }], ['-narrow', { viewport: { width: 400, height: 800 } }]]) {
    const page = await open(browser, options);
    for (const [name, hash, drawn] of SCREENS) {
      await show(page, address, hash, drawn);
      await screen(page, `${name}${kind}`);
    }
    await page.context().close();
  }
}

async function figures(browser, address) {
  const page = await open(browser);
  await show(page, address, '#/session/harbour', '.chart svg path');
  await page.waitForSelector('.tree a');
  const text = await page.textContent('main');
  check('a compaction is shown with before and after', /compacted/.test(text), '');
  check('cache misses are shown by cause', /pause outlived the cache/.test(text), '');
  check('sub-agents are a tree', await page.locator('.tree a').count() > 0);
  const source = await page.locator('.tree a').first().getAttribute('href');
  await show(page, address, source, '.chart svg path, main h1');
  await show(page, address, '#/session/harbour/turn/39', 'article');
  check('a turn before the last has a next one', await page.locator('a[rel=next]').count() === 1);
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => document.querySelector('h1')?.textContent === 'Turn 40');
  check('the last turn has no next one', await page.locator('a[rel=next]').count() === 0);
  await page.keyboard.press('ArrowRight');
  check('the last turn stays', new URL(page.url()).hash.endsWith('/turn/40'));
  await page.context().close();
}

async function liveUpdate(browser, address) {
  const page = await open(browser);
  await show(page, address, '#/', 'table[aria-label=Sessions] tbody tr');
  const before = await page.locator('tbody tr').count();
  // The first poll only remembers what is there.
  await page.waitForResponse((response) => response.url().includes('limit=1'));
  file('new.jsonl', session('newcomer', 3));
  plimsoll('import', 'new.jsonl', '--store', 'kept.db');
  await page.waitForFunction((count) => document.querySelectorAll('tbody tr').length > count, before);
  check('a new session appears without a reload', (await page.textContent('#live')).startsWith('updated'));
  await page.context().close();
}

async function cascade(browser, address) {
  const page = await open(browser);
  await show(page, address, '#/cascade', 'textarea');
  await page.fill('textarea', 'cascade_id: notice\nphases:\n  - name: draft\n    instructions: Draft a notice.\n    human_input: {type: text, prompt: "Shall it be posted?"}\n    handoffs: [post]\n  - name: post\n    instructions: Post it.\n');
  await page.click('text=Check and draw');
  await page.waitForSelector('img.graph');
  await page.click('button:has-text("Run")');
  await page.waitForSelector('form.question');
  check('the question of the cascade is asked', /Shall it be posted/.test(await page.textContent('form.question')));
  await screen(page, 'cascade-question');
  await page.fill('form.question input', 'yes, today');
  await page.click('form.question button');
  await page.waitForFunction(() => /ended/.test(document.querySelector('.run-state')?.textContent ?? ''));
  check('the run ends with its output', /The notice is posted/.test(await page.textContent('.run')), await page.textContent('.run'));
  await screen(page, 'cascade-ended');
  await page.context().close();
}

async function main() {
  fs.mkdirSync(shots, { recursive: true });
  const { server, address } = await start();
  const browser = await chromium.launch({
    executablePath: browserPath, headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
  try {
    for (const step of [longSession, everyScreen, figures, liveUpdate, cascade]) {
      try { await step(browser, address); } catch (error) { check(step.name, false, String(error).split('\n').slice(0, 3).join(' ')); }
    }
  } finally {
    await browser.close();
    server.removeAllListeners('exit');
    server.kill();
    fs.rmSync(folder, { recursive: true, force: true });
  }
  console.log(`${passed} passed, ${failures.length} failed`);
  process.exitCode = failures.length > 0 ? 1 : 0;
}

main().catch((error) => { console.error(error); process.exitCode = 1; });
