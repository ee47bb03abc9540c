// Handmade sessions of Claude Code, for the browser.
'use strict';

const START = Date.UTC(2026, 4, 1, 10);

/** Returns the lines of a session whose turns each call a tool; usage is reported, and one compaction halves the prompt. */
function session(id, turns, { agent = false, compactAt = -1, pauseAt = -1 } = {}) {
  const lines = [];
  let parent = null;
  let time = START;
  const line = (type, message, more = {}) => {
    const uuid = `${id}-${lines.length}`;
    time += 7000;
    lines.push(JSON.stringify({ type, uuid, parentUuid: parent, sessionId: id, cwd: '/work/harbour', timestamp: new Date(time).toISOString(), message, ...more }));
    parent = uuid;
  };
  line('user', { role: 'user', content: `Rename every quay of the harbour (${id}), and say which ones you changed.` });
  let prompt = 9000;
  for (let turn = 0; turn < turns; turn += 1) {
    if (turn === pauseAt) time += 3600_000;
    const read = turn === 0 || turn === pauseAt ? 0 : prompt;
    const grown = turn === compactAt ? 4000 : 700;
    if (turn === compactAt) prompt = 2000;
    const usage = { input_tokens: 4, cache_creation_input_tokens: read > 0 && turn !== compactAt ? grown : prompt + grown, cache_read_input_tokens: turn === compactAt ? 0 : read, output_tokens: 90 };
    prompt += grown;
    const call = { type: 'tool_use', id: `${id}-call-${turn}`, name: ['Bash', 'Read', 'Grep'][turn % 3], input: { command: `rg quay crates/harbour_${turn}` } };
    const text = { type: 'text', text: `I look at part ${turn} of the harbour.` };
    const content = turn % 4 === 0 ? [{ type: 'thinking', thinking: 'Which quay is next?', signature: 's' }, text, call] : [text, call];
    line('assistant', { id: `${id}-m${turn}`, role: 'assistant', model: 'claude-sonnet-4-5', content, usage }, { requestId: `${id}-r${turn}` });
    const found = Array.from({ length: 12 }, (_, at) => `crates/harbour_${turn}/berth_${at}.rs: quay = ${turn * 100 + at}`).join('\n');
    line('user', { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: found }] });
  }
  line('assistant', { id: `${id}-end`, role: 'assistant', model: 'claude-sonnet-4-5', content: [{ type: 'text', text: 'All quays are renamed.' }], usage: { input_tokens: 4, cache_creation_input_tokens: 100, cache_read_input_tokens: prompt, output_tokens: 20 } }, { requestId: `${id}-rend` });
  if (agent) {
    const aside = { isSidechain: true, agentId: 'scout' };
    parent = null;
    line('user', { role: 'user', content: 'Count the berths of the harbour.' }, aside);
    line('assistant', { id: `${id}-s1`, role: 'assistant', model: 'claude-sonnet-4-5', content: [{ type: 'text', text: 'There are twelve.' }], usage: { input_tokens: 900, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 9 } }, { ...aside, requestId: `${id}-rs1` });
  }
  return `${lines.join('\n')}\n`;
}

module.exports = { session };
