#!/bin/bash
# Run once, by the image of the primary, when its folder is made: it holds from the next start on, as
# before that no standby could be there for a commit to wait for.
set -eu
echo "host replication postgres all scram-sha-256" >> "$PGDATA/pg_hba.conf"
cat >> "$PGDATA/postgresql.conf" <<'SETTINGS'
synchronous_standby_names = '*'
wal_keep_size = 512MB
SETTINGS
