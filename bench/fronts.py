"""What would front processes give, that do HTTP and read payments beside the one that decides?

    python -m tollkeeper.bench.fronts [--payments 20000]

A trial of the joint alone. A front reads and checks a payment, packs it (MessagePack) and writes it
to a socket, so many at a time; the decider unpacks it, packs an answer and writes that back. What a
payment takes on each side is what the joint adds to the way; what the decider is spared is in the
table of `bench.stages`. CPU of each process, with a payment in `--batches` at a time.
"""

from __future__ import annotations

import argparse
import os
import socket
import time
from random import Random

import msgspec

from tollkeeper.api.http.answers import Analyses, BotBehaviour, PaymentCreated, PaymentResult
from tollkeeper.bench.payments import body
from tollkeeper.bench.tables import show
from tollkeeper.engine.instants import now
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.intake.read import read_creation

BATCHES = (1, 4, 16)
_LENGTH = 4
_ANSWER = PaymentCreated(
    PaymentResult("p", "initiated", Analyses(None, BotBehaviour("allow", 0.02)))
)


class Sent(msgspec.Struct, array_like=True):
    """A payment on its way to who decides: by which key, when, and what was read."""

    key: str
    arrived: int
    payment: Payment


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--payments", type=int, default=20_000)
    count = parser.parse_args().payments
    random, arrived = Random(3), now()
    bodies = [body(random) for _ in range(500)]
    begun = time.process_time()
    read = [read_creation(each, arrived) for each in bodies]
    reading = (time.process_time() - begun) / len(bodies) * 1e6
    payments = [each for each in read if isinstance(each, Payment)]
    rows = []
    for batch in BATCHES:
        front, decider = trial(payments, arrived, count // batch, batch)
        rows.append([f"{batch} at a time", front, decider])
    show(
        f"µs of CPU a payment that the joint takes (reading it: {reading:.1f})",
        ["", "in front", "where it is decided"],
        rows,
    )


def trial(payments: list[Payment], arrived: int, turns: int, batch: int) -> tuple[float, float]:
    """µs of CPU a payment of the front, and of the decider."""
    here, there = socket.socketpair()
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        here.close()
        os.write(tell, msgspec.json.encode(decide(there, turns * batch)))
        os._exit(0)
    there.close()
    encode, decode = (
        msgspec.msgpack.Encoder().encode,
        msgspec.msgpack.Decoder(PaymentCreated).decode,
    )
    buffer = b""
    begun = time.process_time()
    for turn in range(turns):
        for place in range(batch):
            packed = encode(
                Sent("toll_abcdefgh", arrived, payments[(turn + place) % len(payments)])
            )
            here.sendall(len(packed).to_bytes(_LENGTH) + packed)
        answered = 0
        while answered < batch:
            buffer += here.recv(1 << 16)
            while (packed := first_of(buffer)) is not None:
                buffer = buffer[_LENGTH + len(packed) :]
                decode(packed)
                answered += 1
    front = time.process_time() - begun
    os.waitpid(child, 0)
    decider = msgspec.json.decode(os.read(told, 100), type=float)
    return front / turns / batch * 1e6, decider / turns / batch * 1e6


def decide(there: socket.socket, count: int) -> float:
    """Seconds of CPU to unpack so many payments and to answer them."""
    encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(Sent).decode
    buffer = b""
    begun = time.process_time()
    while count:
        buffer += there.recv(1 << 16)
        answers = b""
        while (packed := first_of(buffer)) is not None:
            buffer = buffer[_LENGTH + len(packed) :]
            decode(packed)
            answer = encode(_ANSWER)
            answers += len(answer).to_bytes(_LENGTH) + answer
            count -= 1
        there.sendall(answers)
    return time.process_time() - begun


def first_of(buffer: bytes) -> bytes | None:
    """The first whole message, None while there is none."""
    if len(buffer) < _LENGTH:
        return None
    end = _LENGTH + int.from_bytes(buffer[:_LENGTH])
    return buffer[_LENGTH:end] if len(buffer) >= end else None


if __name__ == "__main__":
    main()
