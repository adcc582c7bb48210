"""One running program a person: the first start holds a lock and listens; a second one asks it to come to the front.

The lock decides who is first, also between two starts at the same moment; it ends with its process, however that ends.
"""

from __future__ import annotations

import getpass
import hashlib
import logging
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

log = logging.getLogger(__name__)

RAISE = b"raise\n"
ANSWER_MS = 2000
MOST_BYTES = 64


class SingleInstance(QObject):
    """`raised`: another start asks this one to show itself. `folder` belongs to the person and holds the lock."""

    raised = Signal()

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folder = folder
        digest = hashlib.sha256(f"{_user()}\n{folder}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self.name = f"surtitle-{digest}"
        self._lock: QLockFile | None = None
        self._server: QLocalServer | None = None

    def claim(self) -> bool:
        """Whether this is the first; then it listens. A folder that cannot hold a lock makes everybody the first."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            log.warning("There can be no lock in %s: %s", self._folder, error)
            return True
        lock = QLockFile(str(self._folder / "running.lock"))
        lock.setStaleLockTime(0)  # it is held as long as the program runs; a dead holder is seen by its process id
        if not lock.tryLock(0):
            if lock.error() is QLockFile.LockError.LockFailedError:
                return False
            log.warning("There can be no lock in %s.", self._folder)
            return True
        self._lock = lock
        QLocalServer.removeServer(self.name)  # what a killed holder has left
        server = QLocalServer(self)
        server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        server.newConnection.connect(self._heard)
        if not server.listen(self.name):
            log.warning("Another start cannot find this one: %s", server.errorString())
        self._server = server
        return True

    def ask_first(self) -> bool:
        """Ask the running program to come to the front; whether it has heard."""
        socket = QLocalSocket()
        socket.connectToServer(self.name)
        if not socket.waitForConnected(ANSWER_MS):
            return False
        socket.write(RAISE)
        heard = socket.waitForBytesWritten(ANSWER_MS) and socket.waitForReadyRead(ANSWER_MS)
        socket.disconnectFromServer()
        return heard

    def close(self) -> None:
        """Let the next start be the first."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._lock is not None:
            self._lock.unlock()
            self._lock = None

    def _heard(self) -> None:
        while self._server is not None and (socket := self._server.nextPendingConnection()) is not None:
            socket.readyRead.connect(lambda socket=socket: self._read(socket))
            socket.disconnected.connect(socket.deleteLater)
            if socket.bytesAvailable():
                self._read(socket)

    def _read(self, socket: QLocalSocket) -> None:
        if socket.bytesAvailable() > MOST_BYTES:
            socket.abort()  # nobody of ours says so much
        elif socket.canReadLine():
            if bytes(socket.readLine().data()) == RAISE:
                socket.write(b"here\n")
                socket.flush()
                self.raised.emit()
            else:
                socket.abort()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "somebody"
