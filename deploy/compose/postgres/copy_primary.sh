#!/bin/bash
# The standby: a copy of the primary when its folder is empty, then a server that follows it.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  install --directory --owner=postgres --group=postgres --mode=0700 "$PGDATA"
  gosu postgres pg_basebackup --host=primary --username=postgres --pgdata="$PGDATA" \
    --checkpoint=fast --write-recovery-conf
fi
exec gosu postgres postgres
