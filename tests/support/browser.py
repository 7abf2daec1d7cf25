"""A headless Chromium, driven over its debugging protocol: no package is needed."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions",
    "--remote-debugging-port=0",
)  # fmt: skip

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_browser() -> str | None:
    """Return the path of a browser that can be driven, None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Tab:
    """A page in the browser.

    Parameters
    ----------
    address
        Of its web socket, as the browser told.
    """

    def __init__(self, address: str) -> None:
        host, port, path = re.fullmatch(r"ws://([^:/]+):(\d+)(/.*)", address).groups()
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self.received = b""
        while b"\r\n\r\n" not in self.received:
            self.received += self.socket.recv(4096)
        self.received = self.received.partition(b"\r\n\r\n")[2]
        self.asked = 0
        self.complaints: list[str] = []
        self.requests: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol, and return its result."""
        self.asked += 1
        self._send(json.dumps({"id": self.asked, "method": method, "params": parameters}))
        while True:
            message = self._receive()
            if message.get("id") == self.asked:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def open(self, path: Path, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Show a file in a window of this size."""
        self.complaints, self.requests = [], []
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=path.resolve().as_uri())
        while self.run("document.readyState") != "complete":
            pass

    def run(self, script: str) -> Any:
        """Return the value of an expression of JavaScript, which may be a promise."""
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True,
                          awaitPromise=True)  # fmt: skip
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        code = {"Tab": 9, "Escape": 27, "Enter": 13}[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                     windowsVirtualKeyCode=code, **(text if kind == "keyDown" else {}))  # fmt: skip

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded":
                self.complaints.append(json.dumps(parameters))
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])

    def _send(self, text: str) -> None:
        data, mask = text.encode(), os.urandom(4)
        head = b"\x81"
        if len(data) < 126:
            head += bytes([128 | len(data)])
        elif len(data) < 1 << 16:
            head += bytes([128 | 126]) + struct.pack(">H", len(data))
        else:
            head += bytes([128 | 127]) + struct.pack(">Q", len(data))
        body = bytes(byte ^ mask[k % 4] for k, byte in enumerate(data))
        self.socket.sendall(head + mask + body)

    def _receive(self) -> dict[str, Any]:
        text = b""
        while True:
            first, second = self._take(2)
            size = second & 127
            if size == 126:
                size = struct.unpack(">H", self._take(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self._take(8))[0]
            text += self._take(size)
            if first & 128:
                return dict(json.loads(text))

    def _take(self, count: int) -> bytes:
        while len(self.received) < count:
            more = self.socket.recv(1 << 16)
            assert more, "the browser has hung up"
            self.received += more
        taken, self.received = self.received[:count], self.received[count:]
        return taken


@contextmanager
def tab_of(browser: str) -> Iterator[Tab]:
    """Start a browser without a window, and end it again."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [browser, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        try:
            assert process.stderr is not None
            address = next(line for line in process.stderr if "DevTools listening" in line)
            port = re.search(r"ws://[^:]+:(\d+)/", address).group(1)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
                pages = [page for page in json.load(answer) if page["type"] == "page"]
            tab = Tab(pages[0]["webSocketDebuggerUrl"])
            try:
                yield tab
            finally:
                tab.socket.close()
        finally:
            process.terminate()
            process.communicate(timeout=20)
