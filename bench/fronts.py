"""What would front processes gain that handle HTTP and read payments for the deciding process?

    python -m tollkeeper.bench.fronts [--payments 20000]

Measures the interface between the two alone. A front reads and checks payments, packs them
(MessagePack) and writes them to a socket, several at a time; the decider unpacks them, packs
answers and writes them back. The difference on each side is the cost of the interface; what the
decider saves is in the table of `bench.stages`. CPU of each process, with `--batches` payments at a
time.
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
from tollkeeper.bench.tables import Cell, show
from tollkeeper.engine.instants import now
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.intake.read import read_creation

BATCHES = (1, 4, 16)
_LENGTH = 4
_ANSWER = PaymentCreated(
    PaymentResult("p", "initiated", Analyses(None, BotBehaviour("allow", 0.02)))
)


class ForwardedPayment(msgspec.Struct, array_like=True):
    """A payment on its way to the decider: its key, its arrival, and the decoded payment."""

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
    rows: list[list[Cell]] = []
    for batch in BATCHES:
        front, decider = trial(payments, arrived, count // batch, batch)
        rows.append([f"{batch} at a time", front, decider])
    show(
        f"µs of CPU a payment that the joint takes (reading it: {reading:.1f})",
        ["", "in front", "where it is decided"],
        rows,
    )


def trial(payments: list[Payment], arrived: int, turns: int, batch: int) -> tuple[float, float]:
    """Return µs of CPU per payment, of the front and of the decider."""
    front_end, decider_end = socket.socketpair()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        front_end.close()
        os.write(write_end, msgspec.json.encode(decide(decider_end, turns * batch)))
        os._exit(0)
    decider_end.close()
    encode, decode = (
        msgspec.msgpack.Encoder().encode,
        msgspec.msgpack.Decoder(PaymentCreated).decode,
    )
    buffer = b""
    begun = time.process_time()
    for turn in range(turns):
        for place in range(batch):
            packed = encode(
                ForwardedPayment("toll_abcdefgh", arrived, payments[(turn + place) % len(payments)])
            )
            front_end.sendall(len(packed).to_bytes(_LENGTH) + packed)
        answered = 0
        while answered < batch:
            buffer += front_end.recv(1 << 16)
            while (answer := first_of(buffer)) is not None:
                buffer = buffer[_LENGTH + len(answer) :]
                decode(answer)
                answered += 1
    front = time.process_time() - begun
    os.waitpid(child, 0)
    decider = msgspec.json.decode(os.read(read_end, 100), type=float)
    return front / turns / batch * 1e6, decider / turns / batch * 1e6


def decide(connection: socket.socket, count: int) -> float:
    """Return the seconds of CPU to unpack and answer so many payments."""
    encode, decode = (
        msgspec.msgpack.Encoder().encode,
        msgspec.msgpack.Decoder(ForwardedPayment).decode,
    )
    buffer = b""
    begun = time.process_time()
    while count:
        buffer += connection.recv(1 << 16)
        answers = b""
        while (packed := first_of(buffer)) is not None:
            buffer = buffer[_LENGTH + len(packed) :]
            decode(packed)
            answer = encode(_ANSWER)
            answers += len(answer).to_bytes(_LENGTH) + answer
            count -= 1
        connection.sendall(answers)
    return time.process_time() - begun


def first_of(buffer: bytes) -> bytes | None:
    """Return the first complete message; None if there is none yet."""
    if len(buffer) < _LENGTH:
        return None
    end = _LENGTH + int.from_bytes(buffer[:_LENGTH])
    return buffer[_LENGTH:end] if len(buffer) >= end else None


if __name__ == "__main__":
    main()
