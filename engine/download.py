"""Downloads a hub's model into the hub's cache on this machine, where other programs find it too.

Blobs are named by their checksum (sha256 of what lies in LFS, git's sha1 of the rest), each grows as `.incomplete` and
gets its name when the checksum is right. The snapshot is linked when all are there, so it is never seen half done.
Asking again after a break, a kill or a pause goes on where the bytes end (HTTP Range).
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from engine.download_control import Cancelled, DownloadControl, Left
from engine.messages import DownloadProgress
from engine.models import BLOCK, ModelError, Progress

if TYPE_CHECKING:
    from huggingface_hub.hf_api import ModelInfo

logger = logging.getLogger("surtitle.engine")

ATTEMPTS = 5  # without one new byte
RETRY_S = 1.0  # before the second attempt; doubled before each further one
TIMEOUT_S = 20.0  # of silence on a connection
TELL_S = 0.2
_RETRIED = (408, 429, 500, 502, 503, 504)
_HEX = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# The same weights in formats that nothing here reads, where a repository has them as safetensors too.
_DUPLICATES = (".bin", ".pt", ".pth", ".h5", ".msgpack", ".ot", ".onnx", ".tflite", ".gguf")


class _Broken(Exception):
    """The connection or the server failed; worth another attempt."""


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository; `digest` is sha256 when `lfs`, otherwise git's blob sha1."""

    path: str
    size: int
    digest: str
    lfs: bool

    def hasher(self) -> Any:
        """A fresh hash of this file's kind, to be fed all its bytes."""
        return hashlib.sha256() if self.lfs else hashlib.sha1(b"blob %d\0" % self.size, usedforsecurity=False)


def download(
    name: str,
    repository: Path,
    tell: Progress,
    control: DownloadControl,
    revision: str | None = None,
    endpoint: str | None = None,
) -> Path:
    """The snapshot folder of the hub's `owner/name`, after downloading what of it is not here yet.

    `repository`: its folder in the hub's cache. `revision`: a branch, tag or commit; the newest of main without one.
    Raises `ModelError` with one sentence for whatever is in the way, and when the person cancels.
    """
    try:
        from huggingface_hub import HfApi, constants
    except ImportError as error:
        raise ModelError(
            f"Downloading {name} needs huggingface-hub: pip install 'surtitle[laptop]', or give the folder of a copy."
        ) from error
    if constants.HF_HUB_OFFLINE:
        raise ModelError(
            f"The weights of {name} are not on this machine and HF_HUB_OFFLINE forbids downloading them: "
            "unset it, or give the folder of a copy as the model."
        )
    api = HfApi(endpoint=endpoint)
    with control.running(), _sentences(name, repository):
        info = _look_up(api, name, revision)
        files = wanted_files(name, info)
        run = _Download(name, repository, files, str(info.sha), api.endpoint, control, tell)
        state = "failed"
        try:
            run.fetch_all()
            folder = run.link(revision or "main")
            state = "done"
        except Cancelled:
            state = "cancelled"
            run.discard()
            raise
        except Left:
            state = "paused"
            raise
        finally:
            run.report(state)
        return folder


def wanted_files(name: str, info: ModelInfo) -> list[HubFile]:
    """What of a repository is loaded: all but the weights that are there a second time in another format."""
    files = []
    for one in info.siblings or ():
        digest = one.lfs.sha256 if one.lfs else one.blob_id
        path = PurePosixPath(one.rfilename)
        sound = digest and _HEX.fullmatch(digest) and one.size is not None
        if not sound or path.is_absolute() or ".." in path.parts or "\\" in one.rfilename:
            raise ModelError(f"The hub's list of the files of {name} cannot be used ({path}): choose another model.")
        files.append(HubFile(one.rfilename, one.size or 0, str(digest), one.lfs is not None))
    suffixes = [PurePosixPath(file.path).suffix.lower() for file in files]
    if ".safetensors" in suffixes:
        files = [file for file, suffix in zip(files, suffixes, strict=True) if suffix not in _DUPLICATES]
    elif suffixes.count(".gguf") > 1:
        raise ModelError(f"{name} holds several GGUF files: download the one you want and give its path as the model.")
    if not files or not _HEX.fullmatch(info.sha or ""):
        raise ModelError(f"The hub has no files of {name}: check the name of the model.")
    return files


class _Download:
    """One download on its way."""

    def __init__(
        self,
        name: str,
        repository: Path,
        files: list[HubFile],
        commit: str,
        endpoint: str,
        control: DownloadControl,
        tell: Progress,
    ) -> None:
        self._name, self._repository, self._files, self._commit = name, repository, files, commit
        self._endpoint, self._control, self._tell = endpoint, control, tell
        self._sizes = {file.digest: file.size for file in files}  # equal files are one blob
        self._total = sum(self._sizes.values())
        self._done = dict.fromkeys(self._sizes, 0)
        self._told_s = 0.0

    def fetch_all(self) -> None:
        """Bring every blob. Raises `ModelError`, `Cancelled`, `Left` or `OSError`."""
        blobs = self._repository / "blobs"
        blobs.mkdir(parents=True, exist_ok=True)
        for digest, size in self._sizes.items():
            for path in (self._blob(digest), self._part(digest)):
                if path.is_file():
                    self._done[digest] = min(size, path.stat().st_size)
                    break
        needed, free = self._total - sum(self._done.values()), shutil.disk_usage(blobs).free
        if free < needed:
            text = f"{needed / 1e6:.0f} MB are needed and {free / 1e6:.0f} MB are free; make room on this disk"
            raise OSError(errno.ENOSPC, text)
        self.report("running")
        for file in self._files:
            blob = self._blob(file.digest)
            if not (blob.is_file() and blob.stat().st_size == file.size):
                with self._locked(file):
                    self._fetch(file)

    def link(self, reference: str) -> Path:
        """Make the snapshot of the blobs, and the branch or tag point to it."""
        snapshot = self._repository / "snapshots" / self._commit
        for file in self._files:
            pointer, blob = snapshot / file.path, self._blob(file.digest)
            pointer.parent.mkdir(parents=True, exist_ok=True)
            pointer.unlink(missing_ok=True)
            try:
                pointer.symlink_to(os.path.relpath(blob, pointer.parent))
            except OSError:  # Windows lets only some people make symbolic links
                pointer.hardlink_to(blob)
        if reference != self._commit:
            target = self._repository / "refs" / reference
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self._commit, encoding="ascii")
        return snapshot

    def discard(self) -> None:
        """Remove what this download has brought and no snapshot uses."""
        used = {path.resolve() for path in self._repository.glob("snapshots/**/*") if path.is_symlink()}
        for digest in self._sizes:
            self._part(digest).unlink(missing_ok=True)
            blob = self._blob(digest)
            if blob.is_file() and blob.resolve() not in used and blob.stat().st_nlink == 1:
                blob.unlink()

    def report(self, state: str) -> None:
        """Say how far it is."""
        self._told_s, done = time.monotonic(), sum(self._done.values())
        self._control.emit(DownloadProgress(self._name, done, self._total, state))
        if state == "running":
            self._tell(done / self._total if self._total else 1.0, f"Downloading {self._name}")

    def _blob(self, digest: str) -> Path:
        return self._repository / "blobs" / digest

    def _part(self, digest: str) -> Path:
        return self._repository / "blobs" / f"{digest}.incomplete"

    @contextmanager
    def _locked(self, file: HubFile) -> Iterator[None]:
        """The lock that the hub's own programs take too. Raises `ModelError` when one of them holds it."""
        from filelock import FileLock, Timeout

        folder = self._repository.parent / ".locks" / self._repository.name
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f"{file.digest}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise ModelError(f"Another program is downloading {self._name}: wait for it, then try again.") from error
        try:
            yield
        finally:
            lock.release()

    def _fetch(self, file: HubFile) -> None:
        """Bring one blob, over as many connections as it takes."""
        part, digest = self._part(file.digest), file.hasher()
        part.touch()
        with part.open("r+b") as out:
            while block := out.read(BLOCK):
                digest.update(block)
            failures = 0
            while (before := out.tell()) < file.size:
                if self._control.paused:
                    self.report("paused")
                    self._control.go_on()
                    self.report("running")
                try:
                    digest = self._stream(file, out, digest)
                except _Broken as error:
                    failures = 1 if out.tell() > before else failures + 1
                    logger.warning("Download of %s (%s), attempt %d: %s", self._name, file.path, failures, error)
                    if failures >= ATTEMPTS:
                        raise ModelError(
                            f"The download of {self._name} broke off ({error}): what has arrived is kept, "
                            "check the network and load the preset again to go on."
                        ) from error
                    self._control.sleep(RETRY_S * 2 ** (failures - 1))
            out.flush()
            os.fsync(out.fileno())
        if part.stat().st_size != file.size or digest.hexdigest() != file.digest:
            part.unlink()
            raise ModelError(
                f"{file.path} of {self._name} arrived damaged (its checksum is wrong) and was removed: "
                "load the preset again to download it anew."
            )
        part.replace(self._blob(file.digest))

    def _stream(self, file: HubFile, out: Any, digest: Any) -> Any:
        """One connection, from where the part ends. Ends early when paused. Raises `_Broken`."""
        from huggingface_hub.utils import build_hf_headers, get_session

        url = f"{self._endpoint}/{self._name}/resolve/{self._commit}/{quote(file.path)}"
        start = out.tell()
        headers = {**build_hf_headers(), "Accept-Encoding": "identity", "Range": f"bytes={start}-"}
        try:
            with get_session().stream(
                "GET", url, headers=headers, timeout=TIMEOUT_S, follow_redirects=True
            ) as response:
                self._admit(response)
                if not response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
                    out.seek(0)  # this server gives only the whole
                    out.truncate()
                    digest = file.hasher()
                for block in response.iter_raw():
                    out.write(block)
                    digest.update(block)
                    self._done[file.digest] = min(file.size, out.tell())
                    if time.monotonic() - self._told_s >= TELL_S:
                        self.report("running")
                    if out.tell() > file.size or self._control.paused:
                        return digest
        except _http_error() as error:
            raise _Broken(str(error) or type(error).__name__) from error
        if out.tell() < file.size:
            raise _Broken("the connection ended too early")
        return digest

    def _admit(self, response: Any) -> None:
        status = response.status_code
        if status in _RETRIED:
            raise _Broken(f"the hub answered {status}")
        if status not in (200, 206):
            raise _refused(self._name, self._endpoint, status, response.headers.get("X-Error-Code", ""))


def _look_up(api: Any, name: str, revision: str | None) -> ModelInfo:
    from huggingface_hub.errors import HfHubHTTPError

    try:
        info: ModelInfo = api.model_info(name, revision=revision, files_metadata=True, timeout=TIMEOUT_S)
    except HfHubHTTPError as error:
        code = error.response.headers.get("X-Error-Code", "")
        raise _refused(name, api.endpoint, error.response.status_code, code) from error
    except _http_error() as error:
        raise ModelError(
            f"The weights of {name} are not on this machine and {api.endpoint} cannot be reached "
            f"({error}): check the network, or give the folder of a copy as the model."
        ) from error
    return info


def _http_error() -> type[Exception]:
    """What the hub's HTTP client raises: httpx or httpx2, as the hub's own errors are derived from it."""
    from huggingface_hub.errors import HfHubHTTPError

    base: type[Exception] = HfHubHTTPError.__bases__[0]
    return base


def _refused(name: str, endpoint: str, status: int, code: str) -> ModelError:
    page = f"{endpoint}/{name}"
    if code == "GatedRepo" or status == 403:
        return ModelError(
            f"The weights of {name} are only for who has accepted their terms: accept them at {page}, "
            "then log in with `hf auth login`."
        )
    if status == 401:  # the hub does not tell strangers whether there is such a model
        return ModelError(
            f"The hub shows no model {name}: check the name, or, if {page} asks for it, accept the terms there "
            "and log in with `hf auth login`."
        )
    if status == 404:
        return ModelError(f"The hub has no model {name}, or not all of it: look at {page} and check the name.")
    return ModelError(f"The hub does not give out the weights of {name} (it answered {status}): try again later.")


@contextmanager
def _sentences(name: str, repository: Path) -> Iterator[None]:
    try:
        yield
    except Cancelled as error:
        raise ModelError(
            f"The download of {name} was cancelled: load the preset again to start it, or choose another."
        ) from error
    except Left as error:
        raise ModelError(f"The download of {name} was left; it goes on the next time the preset is loaded.") from error
    except OSError as error:
        what = error.strerror or str(error)
        raise ModelError(f"The weights of {name} cannot be stored in {repository}: {what}.") from error
