# Runs where there is a shell, a C library and the program, and nothing else.
PATH=/bin
holdfast serve --postgres-ports 7432-7440 --warm 1 > /announced 2> /log &
appliance=$!
trap 'code=$?; [ $code -eq 0 ] || cat /log; kill $appliance' EXIT
until [ -s /announced ]; do kill -0 $appliance; sleep 0.1; done
cat /announced
while read -r first second rest; do
	if [ "$first $second" = "API key" ]; then export HOLDFAST_API_KEY="$rest"; fi
done < /announced

echo "-- licences"
ls /data/postgres/bundled-*/holdfast-licences
set -- /data/postgres/bundled-*/holdfast-licences/*postgres*
[ -s "$1" ]

echo "-- client tools"
holdfast whoami
holdfast db create shop
echo "create table t as select generate_series(1, 1000) n;" > /schema.sql
holdfast run --import /schema.sql -- sh -c 'echo "a sandbox: ${DATABASE_URL%%:*}"'

echo "-- back up, restore"
set -- /data/postgres/bundled-*/lib/postgresql/*/bin/psql
[ -x "$1" ] || set -- /data/postgres/bundled-*/bin/psql
psql=$1
libraries=$(echo /data/postgres/bundled-*/holdfast-lib)
ask() { sh -c 'eval "$(holdfast db env shop)"; LD_LIBRARY_PATH=$1 $2 -XAtqc "$3"' - "$libraries" "$psql" "$1"; }
ask 'create table t as select generate_series(1, 1000) n'
holdfast backup create shop --wait || { sleep 5; holdfast backup create shop --wait; }
ask 'drop table t'
holdfast backup restore shop latest --yes --wait
[ "$(ask 'select count(*) from t')" = 1000 ]

HOLDFAST_IMPORT=$(holdfast db url shop) holdfast run -- sh -c 'echo "a copy: $PGDATABASE"'

echo "-- export"
holdfast backup export shop /shop.dump --wait
[ "$(head -c 5 /shop.dump)" = PGDMP ]
echo everything works
