#!/usr/bin/env bash
# Automates an appliance with curl and jq, without a sleep: endpoints that wait answer when there is something to say.
# HOLDFAST_URL ends with /v1. HOLDFAST_API_KEY has full access. WEBHOOK_PORT is a free port of this machine, to which the
# appliance may send webhooks (--webhook-allow-private); openssl verifies them, and python3 receives one.
# SOURCE_URL is the database to import, by default the new one.
set -euo pipefail
api() { curl -sS --fail-with-body -X "$1" "$HOLDFAST_URL$2" -H "Authorization: Bearer $HOLDFAST_API_KEY" -H 'Content-Type: application/json' "${@:3}"; }
await() { # the end of operation $1: shows its progress, and prints its status
  local op
  while op=$(api GET "/operations/$1?wait=1s"); do
    jq -r '.data | "\(.type): \(.phase) \(.progress_percent)%"' <<<"$op" >&2
    if jq -e .data.completed_at <<<"$op" >/dev/null; then jq -r .data.status <<<"$op"; return; fi
  done
}
receive() { # one request into $1, header by header, and its body into $2
  python3 -c 'import sys, http.server as h
class Receiver(h.BaseHTTPRequestHandler):
    def do_POST(self):
        open(sys.argv[2], "wb").write(self.rfile.read(int(self.headers["Content-Length"])))
        open(sys.argv[1], "w").write("\n".join(self.headers["webhook-" + n] for n in ("id", "timestamp", "signature")) + "\n")
        self.send_response(204); self.end_headers()
    def log_message(self, *_): pass
h.HTTPServer(("127.0.0.1", int(sys.argv[3])), Receiver).handle_request()' "$1" "$2" "$WEBHOOK_PORT"
}
dir=$(mktemp -d); trap 'rm -rf "$dir"; kill "${receiver:-}" 2>/dev/null || true' EXIT

project=$(api GET /agent/status | jq -r '.data.projects[0].id')
db=$(api GET "/databases?name=shop" | jq -r '.data[0].id // empty')
[ -n "$db" ] || db=$(api POST /databases -d "{\"project\":\"$project\",\"name\":\"shop\"}" | jq -r .data.id)
: "${SOURCE_URL:=$(api GET "/databases/$db/connection" | jq -r .data.connection_url)}"

receive "$dir/head" "$dir/body" & receiver=$!
hook=$(api POST /webhooks -d "{\"name\":\"deploy $$\",\"url\":\"http://127.0.0.1:$WEBHOOK_PORT/\",\"events\":[\"export.completed\"]}")
secret=$(jq -r .data.secret <<<"$hook")

copy=$(api POST /imports -d "$(jq -n --arg p "$project" --arg u "$SOURCE_URL" '{project: $p, name: "copy", source_url: $u}')" | jq -r .data.database_id)
echo "import: $(await "$(api GET "/operations?database_id=$copy&type=import" | jq -r '.data[0].id')")"

api PATCH "/databases/$db" -d '{"backup_every_seconds":21600,"maintenance_window":{"day":"sunday","start":"03:00","minutes":120}}' >/dev/null
echo "schedule: $(api GET "/databases/$db/recovery" | jq -c '.data.schedule | [.every_seconds, .next_run_at]')"
echo "log: $(api GET "/databases/$db/log?level=LOG&search=ready%20to%20accept&wait=30s" | jq -r '.data.lines[-1].text')"

api POST "/databases/$copy/backups" >/dev/null
op=$(api GET "/operations?database_id=$copy&type=backup" | jq -r '.data[0].id')
api POST "/operations/$op/cancel" >/dev/null || true # it may have ended already
echo "cancel: $(await "$op")"

api POST "/databases/$db/export" >/dev/null
wait "$receiver"
{ read -r id; read -r timestamp; read -r signature; } <"$dir/head"
key=$(base64 -d <<<"${secret#whsec_}" | od -An -tx1 | tr -d ' \n')
expected=$({ printf '%s.%s.' "$id" "$timestamp"; cat "$dir/body"; } | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64)
[[ " $signature " == *" v1,$expected "* ]] || { echo "the webhook's signature is wrong" >&2; exit 1; }
echo "webhook: verified $(jq -r .type "$dir/body")"
curl -sS --fail -o "${EXPORT_FILE:-shop.dump}" "$(api GET "/databases/$(jq -r .data.database_id "$dir/body")/export" | jq -r .data.download_url)"
api DELETE "/webhooks/$(jq -r .data.id <<<"$hook")" >/dev/null
