"""`surtitle mt-server`: load a preset's translator and serve it until a signal comes."""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import logging
import os
import signal
import socket
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from engine.alignatt.heads import HeadSet, HeadSetError, load_head_set
from engine.files import why
from engine.models import ModelError
from engine.mt.contract import TranslationError
from engine.mt.factory import create_translator
from engine.mt.wire import DEFAULT_PORT
from engine.presets import Preset, PresetError, load_preset, preset_ids, resources
from engine.server.server import MtServer, ServerConfig, Service, settle
from engine.server.translation import MAX_UTTERANCE_WORDS, Terms

logger = logging.getLogger("surtitle.server")

Pair = tuple[str, str]
VLLM_WORKERS = 32


class ServerError(Exception):
    """A server that cannot be started; the message is one sentence."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of the server."""
    served = ", ".join(name for name in preset_ids() if name != "remote")
    parser.add_argument("--preset", default="laptop", help=f"whose translator is served: {served} (default: laptop)")
    parser.add_argument("--pairs", default="", help="directions, for example en-de,en-fr (default: all of the preset)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; other than loopback needs a token")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"0: any free one (default: {DEFAULT_PORT})")
    secret = parser.add_mutually_exclusive_group()
    secret.add_argument("--token", default="", help="what a client must present (seen by other users of this machine)")
    secret.add_argument("--token-file", type=Path, help="read the token from a file")
    parser.add_argument("--max-sessions", type=int, default=64, metavar="N", help="sessions at once (default: 64)")
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="drafts at once (default: by translator)")
    parser.add_argument(
        "--max-utterance-words",
        type=int,
        default=MAX_UTTERANCE_WORDS,
        metavar="N",
        help=f"the server closes an open utterance beyond so many words (default: {MAX_UTTERANCE_WORDS})",
    )
    parser.add_argument("--grace", type=float, default=10.0, metavar="S", help="seconds a stop waits for due answers")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help="change a value of the preset"
    )
    parser.add_argument("--verbose", action="store_true", help="log every session")


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C. Status 2 and one sentence for bad input."""
    if args.verbose:
        logging.getLogger("surtitle").setLevel(logging.INFO)
    try:
        config = server_config(args)
        asyncio.run(check_address(config))
        service = load_service(args)
    except (ServerError, PresetError, ModelError, HeadSetError, TranslationError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt:
        return 130  # while the model was loading; later a signal ends the server in good order
    settle()
    try:
        return asyncio.run(serve_until_signal(service, config))
    finally:
        service.translator.close()


def server_config(args: argparse.Namespace) -> ServerConfig:
    """Raises `ServerError`."""
    token = args.token.strip()
    if args.token_file is not None:
        try:
            token = args.token_file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise ServerError(f"The token cannot be read from {args.token_file}: {why(error)}.") from error
        if not token:
            raise ServerError(f"{args.token_file} holds no token.")
    if not token and not is_loopback(args.host):
        raise ServerError(f"{args.host} can be reached from other machines: give a token with --token-file.")
    if not 0 <= args.port <= 65535:
        raise ServerError(f"{args.port} is no port; ports go from 0 to 65535.")
    for name in ("max_sessions", "max_utterance_words"):
        if getattr(args, name) < 1:
            raise ServerError(f"--{name.replace('_', '-')} must be at least 1.")
    if args.workers < 0 or args.grace < 0:
        raise ServerError("--workers and --grace cannot be negative.")
    workers = drafts_at_once(args.workers, load_preset(args.preset, parse_overrides(args.overrides)))
    return ServerConfig(args.host, args.port, token, args.max_sessions, workers, grace_s=args.grace)


def drafts_at_once(workers: int, preset: Preset) -> int:
    """What was asked for, or what suits the preset's translator."""
    return workers or (VLLM_WORKERS if preset.translator.kind == "vllm" else 1)


async def check_address(config: ServerConfig) -> None:
    """See before a model is loaded that the address can be listened on. Raises `ServerError`."""
    try:
        listening = await asyncio.get_running_loop().create_server(
            asyncio.Protocol, config.host, config.port, start_serving=False
        )
    except (OSError, UnicodeError) as error:
        raise ServerError(_not_listening(config, error)) from error
    listening.close()


def _not_listening(config: ServerConfig, error: Exception) -> str:
    number = getattr(error, "errno", None) or 0
    if isinstance(error, UnicodeError):
        reason = "this can be no name of a host"
    else:
        reason = os.strerror(number).lower() if number > 0 else why(error)  # what is wrong with a name has a text only
    return f"{config.host}:{config.port} cannot be listened on: {reason}."


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def load_service(args: argparse.Namespace) -> Service:
    """The translator of the preset, warm for its first direction, and what it serves. Progress goes to stderr."""
    preset = load_preset(args.preset, parse_overrides(args.overrides))
    if preset.translator.kind == "remote":
        raise ServerError(f"Preset '{preset.id}' has no translator of its own: serve another preset.")
    pairs = served_pairs(preset, _pairs(args.pairs))
    said = ""

    def progress(fraction: float, text: str) -> None:
        nonlocal said
        if text != said:
            said = text
            sys.stderr.write(f"{fraction:4.0%} {text}\n")

    drafts = drafts_at_once(args.workers, preset)
    translator = create_translator(preset, *pairs[0], progress, sessions=drafts)
    wanted = preset.translator
    terms = Terms(preset.policy, wanted.max_history_utterances, max_words=args.max_utterance_words)
    return Service(translator, preset.id, wanted.model, tuple(pairs), terms)


def served_pairs(preset: Preset, asked: Sequence[Pair]) -> list[Pair]:
    """The directions one translator can serve: those whose heads are the first one's, for its rows are read from them.

    Raises `ServerError` when one was asked for that differs, `PresetError` when the preset lacks one.
    """
    for pair in asked:
        preset.check_pair(*pair)
    first, *others = asked or preset.pairs
    served = [first]
    for pair in others:
        if _heads(preset, pair) == _heads(preset, first):
            served.append(pair)
            continue
        text = f"{'-'.join(pair)} needs other heads than {'-'.join(first)}: serve it from a server of its own."
        if asked:
            raise ServerError(text)
        logger.warning("%s", text)
    return served


def _heads(preset: Preset, pair: Pair) -> tuple[set[tuple[int, int]], str]:
    head_set: HeadSet = load_head_set(resources() / "heads" / preset.translator.heads, "-".join(pair))[0]
    return {(head.layer, head.head) for head in head_set.top(preset.policy.top_k)}, head_set.query_row


async def serve_until_signal(service: Service, config: ServerConfig) -> int:
    """Listen; on SIGTERM or SIGINT answer what is due and leave. A second signal ends the process at once."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def signalled(number: int) -> None:
        stop.set()
        loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled, number)
    server = MtServer(service, config)
    try:
        port = await server.start()
    except OSError as error:
        sys.stderr.write(f"{_not_listening(config, error)}\n")
        return 2
    directions = ", ".join(service.directions)
    host = f"[{config.host}]" if ":" in config.host else config.host
    sys.stderr.write(f"Listening on ws://{host}:{port} ({service.preset}: {directions})\n")
    _notify("READY=1")
    await stop.wait()
    _notify("STOPPING=1")
    await server.stop()
    return 0


def _notify(state: str) -> None:
    """Tell systemd, when it started us and wants to know."""
    if path := os.environ.get("NOTIFY_SOCKET"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.connect("\0" + path[1:] if path.startswith("@") else path)
            channel.sendall(state.encode())


def _pairs(text: str) -> list[Pair]:
    pairs = []
    for direction in filter(None, (part.strip().lower() for part in text.split(","))):
        source, dash, target = direction.partition("-")
        if not (source and dash and target):
            raise ServerError(f"'{direction}' is no direction; write it like en-de.")
        pairs.append((source, target))
    return pairs


def parse_overrides(texts: Sequence[str]) -> dict[str, object]:
    """KEY=VALUE, the value as in a preset file, or plain text. Raises `ServerError`."""
    found: dict[str, object] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise ServerError(f"--set takes KEY=VALUE, not '{text}'.")
        try:
            found[key] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[key] = value
    return found
