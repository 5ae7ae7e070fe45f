"""A link between two hosts that are addresses of loopback, which can be cut in several ways.

usage: relay.py STORE_PORT

Host A is 127.0.0.1, where rank 0 serves the store at STORE_PORT. Host B is 127.0.0.3. To both, the other one is 127.0.0.2: the relay.
It begins by printing the port at which host B finds the store. What ranks exchange through the store passes here. The relay replaces
socket addresses in it by its own ports, as a router that translates addresses does: so the ranks' connections pass here too. (Gloo
lets the end with the greater address connect. A < relay < B: both ends agree.)

Commands, a line each on standard input; each is answered by "done":
  drop    every connection is reset, and new ones are refused
  stall   nothing is carried any more, and every connection stays open
  half    host A's ends of the connections are reset; host B's stay open, and nothing comes
"""

import os
import re
import selectors
import socket
import struct
import sys
import time

A, RELAY, B = "127.0.0.1", "127.0.0.2", "127.0.0.3"
# A sockaddr_in in memory: family, port, address, and zeros after it.
SOCKADDR = re.compile(rb"\x02\x00(..)(\x7f\x00\x00[\x01-\x03])\x00{8}", re.DOTALL)
MOST = 1 << 20  # bytes on their way in one direction


class End:
    """One end of a connection that passes here. What it says goes to `other`."""

    def __init__(self, relay, host, sock, rewrite=None):
        self.relay, self.host, self.sock, self.rewrite = relay, host, sock, rewrite
        self.other, self.ended = None, False
        self.frames, self.pending = b"", b""  # not a whole frame yet; not taken yet
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def watch(self):
        events = 0
        if not self.ended and len(self.other.pending) < MOST:
            events |= selectors.EVENT_READ
        if self.pending:
            events |= selectors.EVENT_WRITE
        self.relay.watch(self.sock, events, self.handle)

    def handle(self, events):
        if self.relay.cut:  # found ready together with the command
            return
        try:
            if events & selectors.EVENT_WRITE:
                self.pending = self.pending[self.sock.send(self.pending) :]
                if not self.pending and self.other.ended:
                    self.sock.shutdown(socket.SHUT_WR)
            if events & selectors.EVENT_READ:
                data = self.sock.recv(1 << 18)
                self.ended = not data
                self.other.say(self.translated(data))
        except BlockingIOError:
            pass
        except OSError:  # the other side gets a reset
            self.relay.reset([self, self.other])
            return
        self.watch()
        self.other.watch()

    def say(self, data):
        if not self.pending and data:
            try:
                data = data[self.sock.send(data) :]
            except BlockingIOError:
                pass
        self.pending += data
        if self.other.ended and not self.pending:
            self.sock.shutdown(socket.SHUT_WR)

    def translated(self, data):
        if self.rewrite is None:
            return data
        # Frames of the store: 32 bits of length, then that many bytes.
        self.frames += data
        out = b""
        while len(self.frames) >= 4:
            size = 4 + struct.unpack("=I", self.frames[:4])[0]
            if len(self.frames) < size:
                break
            out += SOCKADDR.sub(self.rewrite, self.frames[:size])
            self.frames = self.frames[size:]
        return out


class Relay:
    def __init__(self, store_port):
        self.selector, self.ends, self.listeners = selectors.DefaultSelector(), [], []
        self.stands_for, self.place_of = {}, {}  # port of the relay: (host, port), and back
        self.open, self.cut = True, False
        os.set_blocking(0, False)
        self.watch(sys.stdin, selectors.EVENT_READ, self.command)
        print(self.place(A, store_port, carries_frames=True), flush=True)

    def watch(self, what, events, handler):
        try:
            known = self.selector.get_key(what)
        except KeyError:
            known = None
        if not events:
            if known:
                self.selector.unregister(what)
        elif not known:
            self.selector.register(what, events, handler)
        elif known.events != events:
            self.selector.modify(what, events, handler)

    def place(self, host, port, carries_frames=False):
        """The relay's port that leads to (host, port)."""
        if (host, port) not in self.place_of:
            listener = socket.create_server((RELAY, 0), backlog=64)
            mine = listener.getsockname()[1]
            self.place_of[host, port], self.stands_for[mine] = mine, (host, port)
            self.listeners.append(listener)
            self.watch(listener, selectors.EVENT_READ, lambda _: self.accept(listener, host, port, carries_frames))
        return self.place_of[host, port]

    def accept(self, listener, host, port, carries_frames):
        caller, _ = listener.accept()
        # Only rank 0, which serves the store, may come later than the process that asks for it; there is nothing else to carry
        # then.
        deadline = time.monotonic() + 60
        while True:
            try:
                called = socket.create_connection((host, port))
                break
            except OSError:
                if time.monotonic() > deadline:
                    caller.close()
                    return
                time.sleep(0.05)
        near = End(self, B if host == A else A, caller, self.from_b if carries_frames else None)
        far = End(self, host, called, self.to_b if carries_frames else None)
        near.other, far.other = far, near
        self.ends += [near, far]
        near.watch()
        far.watch()

    # In what host B sends to the store, B's addresses become the relay's. In what B receives, A's addresses do, and B's come back.
    def from_b(self, match):
        return self.sockaddr(match, lambda host, port: (RELAY, self.place(host, port)) if host == B else (host, port))

    def to_b(self, match):
        def translate(host, port):
            if host == A:
                return RELAY, self.place(host, port)
            return self.stands_for.get(port, (host, port)) if host == RELAY else (host, port)

        return self.sockaddr(match, translate)

    @staticmethod
    def sockaddr(match, translate):
        host, port = translate(socket.inet_ntoa(match[2]), struct.unpack(">H", match[1])[0])
        return b"\x02\x00" + struct.pack(">H", port) + socket.inet_aton(host) + bytes(8)

    def reset(self, ends):
        for end in ends:
            if end.sock.fileno() >= 0:
                self.watch(end.sock, 0, None)
                end.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.sock.close()

    def command(self, _):
        words = os.read(0, 4096).decode().split()
        if not words:
            self.open = False
        for word in words:
            if word not in ("drop", "stall", "half"):
                sys.exit("relay.py: no such command: %s" % word)
            self.cut = True
            for end in self.ends:
                if end.sock.fileno() >= 0:
                    self.watch(end.sock, 0, None)
            if word != "stall":
                self.reset([end for end in self.ends if word == "drop" or end.host == A])
            for listener in self.listeners:
                self.watch(listener, 0, None)
                if word == "drop":
                    listener.close()
            print("done", flush=True)

    def run(self):
        while self.open:
            for key, events in self.selector.select():
                if key.fileobj is sys.stdin or key.fileobj.fileno() >= 0:
                    key.data(events)


Relay(int(sys.argv[1])).run()
