"""Uses LiteLLM's proxy: whole responses, streams, a conversation, an error and the fallback model."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

WAIT_SECONDS = 120
KEY = "sk-of-the-proxy"
TEXT = "屯卦：万事起头难，宜守不宜进。"
# The proxy responds with the text for `oracle`, and with a rate limit error for `busy`.
MODELS = {"oracle": TEXT, "busy": "litellm.RateLimitError"}
QUESTION = {"question": "今年换工作合适吗？", "divinationData": {"lines": [7, 8, 8, 8, 7, 6]}}
CONVERSATION = {"messages": [{"role": "user", "content": "屯卦说什么？"}]}


def until(what, attempt):
    """Retries until there is a result."""
    deadline = time.monotonic() + WAIT_SECONDS
    while (found := attempt()) is None:
        assert time.monotonic() < deadline, f"{what}: nothing for {WAIT_SECONDS} seconds"
        time.sleep(0.2)
    return found


def call(url, body=None, token=None, accept="application/json"):
    headers = {"content-type": "application/json", "accept": accept}
    if token:
        headers["authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


def start_proxy(directory):
    models = [{"model_name": name, "litellm_params": {"model": f"openai/{name}", "api_key": "none", "mock_response": text}}
              for name, text in MODELS.items()]
    settings = {"model_list": models, "general_settings": {"master_key": KEY}, "litellm_settings": {"num_retries": 0}}
    config = os.path.join(directory, "proxy.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump(settings, file)  # JSON is YAML, which the proxy reads.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [os.path.join(os.path.dirname(sys.executable), "litellm"), "--config", config, "--host", "127.0.0.1", "--port"]
    environment = os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([*command, str(port)], env=environment, cwd=directory, **quiet)

    def is_alive():
        try:
            return call(f"http://127.0.0.1:{port}/health/liveliness")[0] == 200 or None
        except OSError:
            return None

    until("the proxy", is_alive)
    return process, f"http://127.0.0.1:{port}/v1"


class Service:
    """A running server that uses this model of the proxy, with a signed-in user."""

    def __init__(self, program, directory, base_url, model, fallback=None):
        self.log_path = os.path.join(directory, f"{model}-{fallback}.log")
        settings = {"PROVIDER": "openai", "BASE_URL": base_url, "API_KEY": KEY, "MODEL": model}
        if fallback:
            settings |= {"FALLBACK_BASE_URL": base_url, "FALLBACK_API_KEY": KEY, "FALLBACK_MODEL": fallback}
        self.environment = os.environ | {f"YARROW_LLM_{name}": value for name, value in settings.items()}
        self.program, self.data = program, os.path.join(directory, f"{model}-{fallback}")
        command = [program, "serve", "--listen", "127.0.0.1:0", "--data-dir", self.data]
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stderr=log, env=self.environment)
        self.url = self.logged(r"yarrow is listening on (http://\S+)")
        address = {"email": "oracle@example.com"}
        assert call(f"{self.url}/api/v1/auth/send-code", address)[0] == 200
        _, signed_in = call(f"{self.url}/api/v1/auth/login", address | {"code": self.logged(r"\b(\d{8})\b")})
        self.token = json.loads(signed_in)["token"]

    def logged(self, pattern):
        def find():
            with open(self.log_path, encoding="utf-8") as log:
                found = re.search(pattern, log.read())
            return found and found.group(1)

        return until(pattern, find)

    def ask(self, path, body, accept="application/json"):
        return call(self.url + path, body, self.token, accept)

    def record(self):
        _, page = call(f"{self.url}/divination/records/user/1?size=1", token=self.token)
        return json.loads(page)["items"][0]

    def stop(self):
        self.process.terminate()
        self.process.wait(WAIT_SECONDS)


def well(service):
    status, answer = service.ask("/divination/enhanced", QUESTION)
    assert (status, json.loads(answer)["result"]) == (200, TEXT), answer
    record = service.record()
    assert record["status"] == "succeeded" and record["usage"]["completionTokens"] > 0, record
    status, events = service.ask("/divination/enhanced", QUESTION, "text/event-stream")
    told = "".join(json.loads(data)["text"] for data in re.findall(r"event: delta\ndata: (.*)", events))
    assert (status, told) == (200, TEXT) and "event: done" in events and events.count("event: delta") > 1, events
    assert service.record()["usage"]["completionTokens"] > 0, "the last chunk counts"
    status, answer = service.ask("/llm/chat", CONVERSATION)
    assert (status, json.loads(answer)["choices"][0]["message"]["content"]) == (200, TEXT), answer
    status, events = service.ask("/llm/chat", CONVERSATION | {"stream": True})
    chunks = [json.loads(data) for data in re.findall(r"data: (\{.*)", events)]
    pieces = [choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]]
    assert (status, "".join(pieces)) == (200, TEXT) and events.rstrip().endswith("data: [DONE]"), events
    command = [service.program, "ai", "test", "--json", "--data-dir", service.data]
    tried = subprocess.run(command, check=True, capture_output=True, env=service.environment)
    assert json.loads(tried.stdout)["text"] == TEXT, tried.stdout


def refused(service):
    for accept in ("application/json", "text/event-stream"):
        status, problem = service.ask("/divination/enhanced", QUESTION, accept)
        is_told = status == 503 if accept == "application/json" else "event: error" in problem
        assert is_told and "provider_unavailable" in problem, problem
    record = service.record()
    assert (record["status"], record["errorClass"]) == ("failed", "busy"), record


def stood_in_for(service):
    status, answer = service.ask("/divination/enhanced", QUESTION)
    assert (status, json.loads(answer)["result"]) == (200, TEXT), answer
    assert service.record()["failover"] == "busy", service.record()


def main():
    program, directory = sys.argv[1:]
    proxy, base_url = start_proxy(directory)
    try:
        for model, fallback, tried in (("oracle", None, well), ("busy", None, refused), ("busy", "oracle", stood_in_for)):
            service = Service(program, directory, base_url, model, fallback)
            try:
                tried(service)
            finally:
                service.stop()
    finally:
        proxy.terminate()
        proxy.wait(WAIT_SECONDS)
    print("a proxy of somebody else's making was asked, streamed from, refused by, and stood in for")


if __name__ == "__main__":
    main()
