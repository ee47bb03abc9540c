"""How each client is pointed at an address and told what to do."""

import json
import os
from pathlib import Path

CACHE = Path(os.environ.get("PLIMSOLL_E2E_CACHE")
             or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plimsoll-e2e")
HERE = Path(__file__).resolve().parent
PROMPT = ("One case of check.py fails. Find out why, mend meter.py, and say which key the row in table.json has that no "
          "other row has.")


def program(client, name):
    return str(CACHE / client / "node_modules/.bin" / name)


def python():
    return str(CACHE / "python/bin/python")


def anthropic_sdk(base, home):
    return {}, [python(), str(HERE / "clients/anthropic_sdk.py"), base, PROMPT]


def openai_chat(base, home):
    return {}, [python(), str(HERE / "clients/openai_sdk.py"), base, PROMPT, "chat"]


def openai_responses(base, home):
    return {}, [python(), str(HERE / "clients/openai_sdk.py"), base, PROMPT, "responses"]


def claude(base, home):
    # IS_SANDBOX: else the flag that skips questions is refused to root.
    variables = {"IS_SANDBOX": "1", "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": base,
                 "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    return variables, [program("claude", "claude"), "-p", PROMPT, "--dangerously-skip-permissions",
                       "--output-format", "json", "--max-turns", "40"]


def codex(base, home):
    provider = f'model_providers.scripted={{name="scripted",base_url="{base}/v1",env_key="SCRIPTED_KEY",wire_api="responses"}}'
    return {"SCRIPTED_KEY": "none"}, codex_command(["-c", "model_provider=scripted", "-c", provider])


def codex_built_in(base, home):
    """Its own provider, which writes its tools and its first connection in another way."""
    folder = home / ".codex"
    folder.mkdir(parents=True)
    (folder / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": "none"}))
    return {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{base}/v1"}, codex_command(["-c", f'openai_base_url="{base}/v1"'])


def codex_command(settings):
    return [program("codex", "codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
            "--json", "-m", "gpt-5", *settings, "-c", "analytics.enabled=false", PROMPT]


def pi(api, path):
    def client(base, home):
        folder = home / ".pi/agent"
        folder.mkdir(parents=True)
        model = {"id": "scripted-model", "name": "scripted", "reasoning": False, "input": ["text"],
                 "contextWindow": 200000, "maxTokens": 8192, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}
        provider = {"baseUrl": base + path, "apiKey": "none", "api": api, "models": [model]}
        (folder / "models.json").write_text(json.dumps({"providers": {"scripted": provider}}))
        return {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}, [
            program("pi", "pi"), "-p", "--mode", "json", "--provider", "scripted", "--model", "scripted-model", PROMPT]
    return client


def opencode(package, model):
    def client(base, home):
        folder = home / ".config/opencode"
        folder.mkdir(parents=True)
        provider = {"npm": package, "name": "scripted", "options": {"baseURL": f"{base}/v1", "apiKey": "none"},
                    "models": {model: {"name": model, "tool_call": True, "limit": {"context": 200000, "output": 8192}}}}
        (folder / "opencode.json").write_text(json.dumps({
            "provider": {"scripted": provider}, "model": f"scripted/{model}", "permission": {"*": "allow"}}))
        variables = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
                     "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}
        return variables, [program("opencode", "opencode"), "run", "--format", "json", PROMPT]
    return client


def gemini(base, home):
    folder = home / ".gemini"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps({
        "security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True, "disableUpdateNag": True}}))
    variables = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": base, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    return variables, [program("gemini", "gemini"), "-m", "gemini-2.5-pro", "--yolo", "-p", PROMPT]


def qwen(base, home):
    variables = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{base}/v1", "OPENAI_MODEL": "scripted-model"}
    return variables, [program("qwen", "qwen"), "--auth-type", "openai", "--yolo", "-p", PROMPT]


CLIENTS = {
    "anthropic-sdk": anthropic_sdk,
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "claude": claude,
    "codex": codex,
    "codex-built-in": codex_built_in,
    "pi-anthropic": pi("anthropic-messages", ""),
    "pi-chat": pi("openai-completions", "/v1"),
    "pi-responses": pi("openai-responses", "/v1"),
    "opencode-chat": opencode("@ai-sdk/openai-compatible", "scripted-model"),
    "opencode-anthropic": opencode("@ai-sdk/anthropic", "claude-sonnet-4-5"),
    "gemini": gemini,
    "qwen": qwen,
}
