"""The command line of each client, for an address, a model and a task."""

import json
import os
import re
from pathlib import Path

CACHE = Path(os.environ.get("PLIMSOLL_E2E_CACHE")
             or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plimsoll-e2e")
HERE = Path(__file__).resolve().parent
PROMPT = ("One case of check.py fails. Find out why, mend meter.py, and say which key the row in table.json has that no "
          "other row has.")


# Chosen: far above every plan, so no client compacts.
WINDOW = 400000

# MCP servers by name: the program of `e2e/install servers` and its arguments.
SERVERS = {
    "memory": ["mcp-server-memory"],
    "thinking": ["mcp-server-sequential-thinking"],
    "files": ["mcp-server-filesystem", "."],
    "everything": ["mcp-server-everything"],
    "github": ["mcp-server-github"],
    "playwright": ["playwright-mcp", "--headless"],
    "chrome": ["chrome-devtools-mcp", "--headless"],
}
# Seconds that a server may take to start. Chosen: seven start at once on two cores.
PATIENCE = 60


def program(client, name):
    return str(CACHE / client / "node_modules/.bin" / name)


def python():
    return str(CACHE / "python/bin/python")


def is_bound(model):
    """Returns whether a model binds its thinking: Claude 5.1 and later."""
    numbers = re.findall(r"-(\d{1,2})(?=-|$)", model)
    return model.startswith("claude") and tuple(map(int, numbers)) >= (5, 1)


def anthropic_sdk(base, home, model, marks):
    options = ["--adaptive"] * is_bound(model) + ["--no-marks"] * (not marks)
    return {}, [python(), str(HERE / "clients/anthropic_sdk.py"), base, PROMPT, model, *options]


def openai_chat(base, home, model):
    return {}, [python(), str(HERE / "clients/openai_sdk.py"), base, PROMPT, "chat", model]


def openai_responses(base, home, model):
    return {}, [python(), str(HERE / "clients/openai_sdk.py"), base, PROMPT, "responses", model]


def servers(names):
    """Returns the command line of each server of `names`."""
    return {name: [program("servers", SERVERS[name][0]), *SERVERS[name][1:]] for name in names}


def of_json(names):
    """Returns servers in the form that most clients read."""
    return {name: {"command": command[0], "args": command[1:], "timeout": PATIENCE * 1000, "trust": True}
            for name, command in servers(names).items()}


def claude(base, home, model, tools=()):
    # IS_SANDBOX lets root use the flag that skips questions.
    variables = {"IS_SANDBOX": "1", "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": base,
                 "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
                 # Without these it begins before its servers are ready, and its list of tools grows from turn to turn.
                 "MCP_CONNECTION_NONBLOCKING": "0", "MCP_TIMEOUT": str(PATIENCE * 1000)}
    options = []
    if tools:
        (home / "servers.json").write_text(json.dumps({"mcpServers": of_json(tools)}))
        options = ["--mcp-config", str(home / "servers.json"), "--strict-mcp-config"]
    return variables, [program("claude", "claude"), "-p", PROMPT, "--dangerously-skip-permissions",
                       *(["--model", model] if model else []), "--output-format", "json", "--max-turns", "40", *options]


def codex(base, home, model, tools=()):
    provider = f'model_providers.scripted={{name="scripted",base_url="{base}/v1",env_key="SCRIPTED_KEY",wire_api="responses"}}'
    return {"SCRIPTED_KEY": "none"}, codex_command(model, ["-c", "model_provider=scripted", "-c", provider], tools)


def codex_built_in(base, home, model, tools=()):
    """Uses Codex's own provider, which writes tools and opens its first connection differently."""
    folder = home / ".codex"
    folder.mkdir(parents=True)
    (folder / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": "none"}))
    return {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{base}/v1"}, codex_command(
        model, ["-c", f'openai_base_url="{base}/v1"'], tools)


def codex_command(model, settings, tools):
    for name, command in servers(tools).items():
        settings = [*settings, "-c", f"mcp_servers.{name}={{command={json.dumps(command[0])},args={json.dumps(command[1:])},"
                                     f"startup_timeout_sec={PATIENCE},required=true}}"]
    return [program("codex", "codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
            "--json", "-m", model, *settings, "-c", "analytics.enabled=false", PROMPT]


def pi(api, path):
    def client(base, home, name):
        folder = home / ".pi/agent"
        folder.mkdir(parents=True)
        model = {"id": name, "name": name, "reasoning": is_bound(name), "input": ["text"], "contextWindow": WINDOW,
                 "maxTokens": 8192, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}
        provider = {"baseUrl": base + path, "apiKey": "none", "api": api, "models": [model]}
        (folder / "models.json").write_text(json.dumps({"providers": {"scripted": provider}}))
        return {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}, [
            program("pi", "pi"), "-p", "--mode", "json", "--provider", "scripted", "--model", name,
            *(["--thinking", "medium"] if is_bound(name) else []), PROMPT]
    return client


def opencode(package):
    def client(base, home, model, tools=()):
        folder = home / ".config/opencode"
        folder.mkdir(parents=True)
        settings = {"name": model, "tool_call": True, "limit": {"context": WINDOW, "output": 8192}}
        if is_bound(model):
            settings |= {"reasoning": True, "options": {"thinking": {"type": "enabled", "budgetTokens": 2048}}}
        provider = {"npm": package, "name": "scripted", "options": {"baseURL": f"{base}/v1", "apiKey": "none"},
                    "models": {model: settings}}
        (folder / "opencode.json").write_text(json.dumps({
            "provider": {"scripted": provider}, "model": f"scripted/{model}", "permission": {"*": "allow"},
            "mcp": {name: {"type": "local", "command": command, "timeout": PATIENCE * 1000}
                    for name, command in servers(tools).items()}}))
        variables = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
                     "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}
        return variables, [program("opencode", "opencode"), "run", "--format", "json", PROMPT]
    return client


def gemini(base, home, model, tools=()):
    folder = home / ".gemini"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps({
        "security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True, "disableUpdateNag": True}, "mcpServers": of_json(tools)}))
    variables = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": base, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    return variables, [program("gemini", "gemini"), "-m", model, "--yolo", "-p", PROMPT]


def qwen(base, home, model, tools=()):
    folder = home / ".qwen"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps({"mcpServers": of_json(tools)}))
    variables = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{base}/v1", "OPENAI_MODEL": model}
    return variables, [program("qwen", "qwen"), "--auth-type", "openai", "--yolo", "-p", PROMPT]


# Each client with its default model; Claude Code has its own default.
CLIENTS = {
    "anthropic-sdk": (anthropic_sdk, "claude-sonnet-4-5"),
    "openai-chat": (openai_chat, "gpt-5"),
    "openai-responses": (openai_responses, "gpt-5"),
    "claude": (claude, None),
    "codex": (codex, "gpt-5"),
    "codex-built-in": (codex_built_in, "gpt-5"),
    "pi-anthropic": (pi("anthropic-messages", ""), "scripted-model"),
    "pi-chat": (pi("openai-completions", "/v1"), "scripted-model"),
    "pi-responses": (pi("openai-responses", "/v1"), "scripted-model"),
    "opencode-chat": (opencode("@ai-sdk/openai-compatible"), "scripted-model"),
    "opencode-anthropic": (opencode("@ai-sdk/anthropic"), "claude-sonnet-4-5"),
    "gemini": (gemini, "gemini-2.5-pro"),
    "qwen": (qwen, "scripted-model"),
}


# Clients that start MCP servers.
WITH_SERVERS = ["claude", "codex", "codex-built-in", "opencode-chat", "opencode-anthropic", "gemini", "qwen"]


def command(name, base, home, model=None, marks=True, tools=()):
    """Returns the variables and the command line of a client.

    `marks` makes the SDK's client set cache marks; `tools` are names of servers (`SERVERS`).
    """
    client, own = CLIENTS[name]
    extra = [marks] if client is anthropic_sdk else [tools] if name in WITH_SERVERS else []
    return client(base, home, model or own, *extra)
