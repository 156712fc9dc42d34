sql() { python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("pragma journal_mode = wal")
print(*(row[0] for row in db.execute(sys.argv[2])))' "$@"; }
cat >config <<EOF
dbs:
  - path: $PWD/shop.db
    replica:
      type: s3
      bucket: litestream
      path: shop
      endpoint: http://$HOST
      region: us-east-1
      access-key-id: $AWS_ACCESS_KEY_ID
      secret-access-key: $AWS_SECRET_ACCESS_KEY
      force-path-style: true
EOF
aws s3 mb s3://litestream
sql shop.db 'create table orders as with recursive n(n) as (select 1 union all select n + 1 from n where n < 10000) select n from n'
litestream replicate -config config &
trap 'kill %1 2>/dev/null || true' EXIT
# Each restored copy must reach what was written, also after litestream has restarted.
restored() {
  for _ in $(seq 100); do
    rm -f copy.db*
    if litestream restore -config config -o copy.db "$PWD/shop.db" && [ "$(sql copy.db 'select count(*) from orders')" = "$1" ]; then return 0; fi
    sleep 0.2
  done
  echo "the copy never has $1 rows"
  return 1
}
restored 10000
sql shop.db 'insert into orders select n + 10000 from orders'
restored 20000
kill %1
wait %1 || true
litestream replicate -config config &
sql shop.db 'delete from orders where n > 15000'
restored 15000
