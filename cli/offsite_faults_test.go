package cli_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/internal/objectstore"
	"holdfast/internal/objectstore/objectstoretest"
	"holdfast/internal/testenv"
)

// throughProxy prepares a new bucket for the copy of a machine, which reaches it through a proxy.
func (m *machine) throughProxy(t *testing.T, locked bool) (c copied, proxy *objectstoretest.Proxy, server *objectstoretest.Server) {
	t.Helper()
	server = objectstoretest.Servers(t)[0]
	proxy = objectstoretest.NewProxy(t, server.URL)
	for name, value := range server.Environment(proxy.URL) {
		m.env = append(m.env, name+"="+value)
	}
	_, passphrase := m.store(t)
	return m.prepare(copied{url: "s3://" + server.Bucket(t, locked) + "/home", passphrase: passphrase}), proxy, server
}

// TestOffsiteFaults: under load, whatever the store does, no client notices, the status says what it is, and the copy catches
// up by itself. Then everything is recovered, while downloads of what cannot be fetched are answered with 503.
func TestOffsiteFaults(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	old := newMachine(t)
	c, proxy, _ := old.throughProxy(t, false)
	old.start(c.serveFlags()...)
	shop, bucket := old.prepareLoad(t)
	old.awaitCopied()
	var l acknowledged
	endLoad := l.load(t, old, old.connectionURL(shop.ID), bucket)
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return min(len(l.rows), len(l.objects))
	}
	for _, fault := range []struct {
		name, says string
		act        objectstoretest.Act
	}{
		{"credentials revoked", "denies access", objectstoretest.Denied()},
		{"bucket gone", "not there", objectstoretest.NoBucket()},
		{"clock skew", "clocks", objectstoretest.ClockSkew(time.Hour)},
		{"store full", "full", objectstoretest.Full()},
		{"busy", "", objectstoretest.SlowDown()},
		{"half answers", "", objectstoretest.HalfAnswer()},
		{"lost answers", "", objectstoretest.LoseAnswer()},
		{"wrong uploads", "", objectstoretest.WrongUpload()},
		{"slow", "", objectstoretest.Slow(20_000)},
	} {
		before := count()
		proxy.Inject(objectstoretest.Fault{Act: fault.act})
		testenv.Eventually(t, "load during "+fault.name, func() bool { return count() > before+20 })
		if fault.says != "" {
			testenv.Eventually(t, "the status to say "+fault.says, func() bool {
				var status struct{ Problem string }
				old.must("GET", "/account/offsite", nil, &status)
				return strings.Contains(status.Problem, fault.says)
			})
		}
		proxy.Clear()
	}
	endLoad()
	old.awaitCopied()
	if status, e := old.do("POST", "/buckets", map[string]any{"project": old.project(), "name": "late"}); status != http.StatusOK {
		t.Fatalf("the machine is not what it was: %d %+v", status, e.Error)
	}
	end := time.Now()
	old.killAll()

	fresh := old.elsewhere()
	fresh.env = old.env
	fresh.recoverFrom(c)
	fresh.awaitAvailable(shop.ID)
	l.holdsUntil(t, fresh, shop.ID, bucket, end, end)
}

// TestAwayOverHTTP: an object whose bytes are in the copy alone, while that cannot be read, is answered with 503 and when to try
// again; a HEAD is answered from the record.
func TestAwayOverHTTP(t *testing.T) {
	t.Parallel()
	old := newMachine(t)
	c, proxy, _ := old.throughProxy(t, false)
	old.start(c.serveFlags()...)
	bucket := old.createBucket("files")
	var l acknowledged
	endLoad := l.load(t, old, "postgres://nobody@127.0.0.1:1/none", bucket)
	testenv.Eventually(t, "a large object", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.objects) > 10
	})
	endLoad()
	old.awaitCopied()
	old.killAll()

	fresh := old.elsewhere()
	fresh.env = old.env
	announced := fresh.launchRecover(c)
	fresh.awaitRecovered(announced)
	// From here on no body can be fetched. What came before stays.
	proxy.Inject(objectstoretest.Fault{Act: objectstoretest.SlowDown()})
	var object struct {
		URL string `json:"download_url"`
	}
	fresh.must("GET", "/buckets/"+bucket+"/objects/o9", nil, &object)
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		request, err := http.NewRequestWithContext(t.Context(), method, object.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		away := answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") != ""
		if answer.StatusCode != http.StatusOK && (method == http.MethodHead || !away) {
			t.Errorf("%s: %s, Retry-After %q", method, answer.Status, answer.Header.Get("Retry-After"))
		}
	}
	proxy.Clear()
	testenv.Eventually(t, "the object to come", func() bool {
		status, got := download(t, object.URL)
		return status == http.StatusOK && got == objectContent(9)
	})
}

// TestOffsiteLocks: in a bucket with Object Lock, everything is locked for the retention, and prune removes nothing.
func TestOffsiteLocks(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	c, _, server := m.throughProxy(t, true)
	m.start(append(c.serveFlags(), "--offsite-retention", "24h")...)
	m.backup(m.createDatabase("shop").ID)
	m.awaitCopied()
	store, err := objectstore.Open(t.Context(), c.url, objectstore.Options{Getenv: server.Environment("").Getenv})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	locked := 0
	for info, err := range store.List(t.Context(), "e/", "") {
		if err != nil {
			t.Fatal(err)
		}
		if info, err = store.Stat(t.Context(), info.Key); err != nil || time.Until(info.RetainUntil) < 23*time.Hour {
			t.Errorf("%s is locked until %s, %v", info.Key, info.RetainUntil, err)
		}
		locked++
	}
	if locked < 5 {
		t.Errorf("%d objects", locked)
	}
	m.stop()
	prune := m.command("offsite", "prune", c.url, "--passphrase-file", c.passphrase, "--retention", "1ns", "--yes")
	prune.Stderr = os.Stderr
	if out, err := prune.Output(); err != nil || !strings.Contains(string(out), "0") {
		t.Errorf("prune: %v: %s", err, out)
	}
}
