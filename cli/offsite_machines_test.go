package cli_test

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/objectstore"
	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// TestTwoMachines: a machine that lives on while another one recovers from its copy notices it under load. Then its API, its
// console's status and its databases take no change any more, it copies nothing, and nothing that it took meanwhile is in a recovery.
func TestTwoMachines(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	old := newMachine(t)
	c := old.prepareBucket(t)
	old.start(c.serveFlags()...)
	shop, bucket := old.prepareLoad(t)
	url := old.connectionURL(shop.ID)
	old.awaitCopied()

	fresh := old.elsewhere()
	fresh.env = old.env
	fresh.recoverFrom(c)
	var late acknowledged
	endLoad := late.load(t, old, url, bucket)
	testenv.Eventually(t, "the old machine to notice", func() bool {
		var copied wire.Offsite
		old.must("GET", "/account/offsite", nil, &copied)
		return copied.Status == "fenced"
	})
	endLoad()
	if len(late.rows) == 0 || len(late.objects) == 0 {
		t.Errorf("the old machine took %d rows and %d objects: it was not under load", len(late.rows), len(late.objects))
	}
	status, e := old.do("POST", "/buckets", map[string]any{"project": old.project(), "name": "late"})
	if status == http.StatusOK || e.Error == nil || e.Error.Code != "read_only" || !strings.Contains(e.Error.Message, "take-over") {
		t.Errorf("a change on the old machine: %d, %+v", status, e.Error)
	}
	testenv.Eventually(t, "read-only databases", func() bool {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			return false
		}
		defer conn.Close(t.Context())
		_, err = conn.Exec(t.Context(), "insert into t values (1000000)")
		return err != nil && strings.Contains(err.Error(), "read-only")
	})
	old.stop()

	fresh.awaitAvailable(shop.ID)
	query(t, fresh.connectionURL(shop.ID), "insert into t values (-1)")
	fresh.awaitCopied()
	fresh.killAll()
	third := old.elsewhere()
	third.env = old.env
	third.recoverFrom(c)
	third.awaitAvailable(shop.ID)
	if got := query(t, third.connectionURL(shop.ID), "select min(n) || ' ' || count(*) from t"); got != "-1 1" {
		t.Errorf("lowest row and number of rows after a recovery: %s, want -1 1", got)
	}
	var objects []wire.Object
	if third.must("GET", "/buckets/"+bucket+"/objects", nil, &objects); len(objects) > 0 {
		t.Errorf("%d late objects of the old machine are in a recovery", len(objects))
	}
}

// TestOffsiteOnHoldfast keeps the copy of an appliance in a bucket of another one, with Object Lock: the one that copies may not
// delete, everything is locked, an operator's key prunes nothing that is locked, and a recovery works.
func TestOffsiteOnHoldfast(t *testing.T) {
	t.Parallel()
	store := newMachine(t)
	store.start("--s3-listen", "127.0.0.1:0", "--warm", "0")
	vault := store.createBucket("vault")
	store.must("PATCH", "/buckets/"+vault, map[string]any{"versioning": "enabled"}, nil)
	store.must("PATCH", "/buckets/"+vault, map[string]any{"object_lock": map[string]any{}}, nil)
	credentials := func(key string) []string {
		store.key = key
		var c wire.StorageCredentials
		store.must("GET", "/account/storage-credentials", nil, &c)
		return []string{
			"AWS_ACCESS_KEY_ID=" + c.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + c.SecretAccessKey, "AWS_REGION=" + c.Region, "AWS_ENDPOINT_URL=" + *c.Endpoint,
		}
	}
	operator := createKey(t, store, "--preset", "full_access", "--allow-dangerous")
	m := newMachine(t)
	m.env = credentials(createKey(t, store, "--scopes", "storage:read,storage:create,storage:update"))
	_, passphrase := m.store(t)
	c := m.prepare(copied{url: "s3://vault/home", passphrase: passphrase})
	flags := append(c.serveFlags(), "--offsite-retention", "24h")
	m.start(flags...)
	shop := m.createDatabase("shop")
	query(t, m.connectionURL(shop.ID), "create table t as select 7 n")
	m.backup(shop.ID)
	testenv.Eventually(t, "the copy to have the backup", func() bool {
		var copied wire.Offsite
		m.must("GET", "/account/offsite", nil, &copied)
		return copied.Status == "copying" && copied.BacklogBytes == 0
	})
	m.awaitCopied()
	m.killAll()

	env := credentials(operator)
	open, err := objectstore.Open(t.Context(), c.url, objectstore.Options{Getenv: func(name string) string {
		for _, v := range env {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	locked := 0
	for info, err := range open.List(t.Context(), "e/", "") {
		if err == nil {
			info, err = open.Stat(t.Context(), info.Key)
		}
		if err != nil || time.Until(info.RetainUntil) < 23*time.Hour {
			t.Errorf("%s is locked until %s, %v", info.Key, info.RetainUntil, err)
		}
		if err := open.Delete(t.Context(), info.Key); err == nil {
			t.Errorf("%s is locked and was deleted", info.Key)
		}
		locked++
	}
	if locked < 5 {
		t.Errorf("%d objects", locked)
	}
	prune := m.command("offsite", "prune", c.url, "--passphrase-file", c.passphrase, "--retention", "1ns", "--yes")
	prune.Env = append(os.Environ(), env...)
	if out, err := prune.CombinedOutput(); err != nil || !bytes.HasPrefix(out, []byte("0 objects")) {
		t.Errorf("prune: %v: %s", err, out)
	}
	fresh := m.elsewhere()
	fresh.env = m.env
	fresh.recoverFrom(c)
	fresh.awaitAvailable(shop.ID)
	if got := query(t, fresh.connectionURL(shop.ID), "select n from t"); got != "7" {
		t.Errorf("from the copy on another appliance: %q", got)
	}
}
