# SPDX-License-Identifier: Apache-2.0
"""A PUB socket, and a ROUTER socket that replays, of libzmq. usage: peer.py EVENTS REPLAY [connect] [ping]

Prints the two endpoints. Reads lines from stdin: "send HEX HEX HEX" publishes a message of three frames and keeps it,
"keep HEX HEX HEX" only keeps it. With ping, the PUB socket sends heartbeats.
"""
import sys
import threading

import zmq

context = zmq.Context()
pub, router = context.socket(zmq.PUB), context.socket(zmq.ROUTER)
for socket in (pub, router):
    socket.linger = 0
pub.sndhwm = 0
kept = []


def replay():
    while True:
        client, empty, start = router.recv_multipart()
        for message in kept[int.from_bytes(start, "big"):]:
            router.send_multipart([client, empty, message[1], message[2]])
        router.send_multipart([client, empty, (2**64 - 1).to_bytes(8, "big"), b""])


if "ping" in sys.argv:
    pub.setsockopt(zmq.HEARTBEAT_IVL, 30)
    pub.setsockopt(zmq.HEARTBEAT_TIMEOUT, 300)
pub.connect(sys.argv[1]) if "connect" in sys.argv else pub.bind(sys.argv[1])
router.bind(sys.argv[2])
threading.Thread(target=replay, daemon=True).start()
print(pub.last_endpoint.decode(), router.last_endpoint.decode(), "libzmq", zmq.zmq_version(), flush=True)
for line in sys.stdin:
    command, *frames = line.split(" ")
    frames = [bytes.fromhex(f) for f in frames]
    kept.append(frames)
    if command == "send":
        pub.send_multipart(frames)
