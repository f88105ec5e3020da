"""A Spark cluster on this machine: a master, and workers of one core each, on loopback."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import sleep

ON_LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1"}
"""Also needed in a driver's environment."""
_ROLE = "org.apache.spark.deploy"
_LOCAL = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")


@dataclass(frozen=True)
class SparkCluster:
    """`address` is `spark://HOST:PORT`, `workers` are the process ids."""

    address: str
    workers: tuple[int, ...]


@contextmanager
def spark_cluster(folder: Path, workers: int) -> Iterator[SparkCluster]:
    """Run so many workers, with logs and files in the folder."""
    with ExitStack() as running:
        master = _spark_process(folder / "master", f"{_ROLE}.master.Master", *_LOCAL)
        port, _ = running.enter_context(master)
        address, ids = f"spark://127.0.0.1:{port}", []
        for number in range(workers):
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{number}"))
            command = (f"{_ROLE}.worker.Worker", *_LOCAL, *size, address)
            _, id_ = running.enter_context(_spark_process(folder / f"worker-{number}", *command))
            ids.append(id_)
        yield SparkCluster(address, tuple(ids))


@contextmanager
def _spark_process(log: Path, *command: str) -> Iterator[tuple[str, int]]:
    """Run a process of the cluster; yields the port that it reports, and its process id."""
    import pyspark

    home = Path(pyspark.__file__).parent
    with (
        log.open("wb") as log_file,
        subprocess.Popen(
            [home / "bin" / "spark-class", *command],
            stdout=log_file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **ON_LOOPBACK, "SPARK_HOME": str(home)},
            cwd=log.parent,
        ) as process,
    ):
        try:
            while not (found := re.search(r"on port (\d+)|Starting Spark worker", log.read_text())):
                if process.poll() is not None:
                    raise OSError(log.read_text())
                sleep(0.1)
            yield found[1], process.pid
        finally:
            process.terminate()
