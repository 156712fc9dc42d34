export PATH=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1):$PATH PGHOST=$PWD PGUSER=postgres TZ=UTC
printf '%s\n' '[global]' repo1-type=s3 "repo1-s3-bucket=$BUCKET" "repo1-s3-endpoint=${TLS_HOST%:*}" "repo1-storage-port=${TLS_HOST#*:}" \
  repo1-storage-verify-tls=n repo1-s3-region=us-east-1 repo1-s3-uri-style=path "repo1-s3-key=$AWS_ACCESS_KEY_ID" \
  "repo1-s3-key-secret=$AWS_SECRET_ACCESS_KEY" repo1-path=/repository repo1-retention-full=1 start-fast=y process-max=2 \
  "log-path=$PWD" log-level-console=warn "lock-path=$PWD/locks" "spool-path=$PWD" '[main]' "pg1-path=$PWD/data" "pg1-socket-path=$PWD" >config
backrest="pgbackrest --config=$PWD/config --stanza=main"
run() { pg_ctl -D data -w -l log -o "-k $PWD -c listen_addresses= -c fsync=off -c archive_mode=on -c archive_command='$backrest archive-push %p'" start >/dev/null; }
query() { psql -XAtqc "$1" postgres; }
initdb -D data -A trust -U postgres --no-sync >/dev/null
trap 'pg_ctl -D data -m immediate stop >/dev/null 2>&1 || true' EXIT
run
$backrest stanza-create
$backrest check
query 'create table orders as select n, repeat(md5(n::text), 10) as text from generate_series(1, 20000) n'
$backrest backup --type=full
query 'insert into orders select n + 20000, text from orders'
$backrest backup --type=incr
query 'insert into orders select n + 40000, text from orders'
query 'select pg_switch_wal()' >/dev/null
pg_ctl -D data -m fast stop >/dev/null # waits for the archive
rm -r data
mkdir -m 700 data
$backrest restore
run
until [ "$(query 'select pg_is_in_recovery()')" = f ]; do sleep 0.1; done
[ "$(query 'select count(*) from orders')" = 80000 ]
$backrest backup --type=full # expires those before
[ "$($backrest info --output=json | grep -o '"type":"[a-z]*"' | grep -c incr)" = 0 ]
$backrest verify --output=text
