"""Check whether a service with these settings would start, without starting it."""

from __future__ import annotations

from contextlib import closing

from tollkeeper.api.http.serve import listening, openid_of, require_data, require_telemetry
from tollkeeper.api.http.settings import Settings, StartError
from tollkeeper.engine.journal import schema
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.lock import holder
from tollkeeper.engine.journal.source import connect_to_journal


def obstacles(settings: Settings) -> list[str]:
    """Return the problems that would prevent the start, one line each; another service on the
    folder is one.
    """
    found = []
    listeners = [(settings.host, settings.port)]
    if (pages := settings.console_listener()) is not None:
        listeners.append(pages)
    if settings.admin_port is not None:
        listeners.append((settings.admin_host, settings.admin_port))
    for host, port in listeners:
        try:
            with listening(host, port):
                pass
        except StartError as error:
            found.append(str(error))
    for require in (require_telemetry, openid_of):
        try:
            require(settings)
        except StartError as error:
            found.append(str(error))
    try:
        require_data(settings)
        if settings.database is not None:
            connect_to_journal(settings.source).close()
        elif holder(settings.folder) is not None:
            found.append(f"the data folder `{settings.folder}` is in use")
        elif (settings.folder / schema.DATABASE_FILE).exists():
            with closing(schema.connect_for_reading(settings.folder)) as connection:
                schema.require_ours(connection, settings.folder / schema.DATABASE_FILE)
    except JournalError as error:
        found.append(str(error))
    return found
