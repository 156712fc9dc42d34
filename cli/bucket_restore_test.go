package cli_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// TestBucketRestoreKilled brings a bucket back to a moment and back again, while the appliance is killed again and again.
func TestBucketRestoreKilled(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const objects = 700 // more than one transaction changes
	m := newMachine(t)
	flags := []string{"--object-trash-retention", "1h", "--warm", "0"} // a kill would leave the processes that fill the warm pool
	m.start(flags...)
	m.key = createKey(t, m, "--preset", "full_access", "--allow-dangerous")
	for name, versioned := range map[string]bool{"plain": false, "versioned": true} {
		bucket := m.createBucket(name)
		path := "/buckets/" + bucket
		if versioned {
			m.must("PATCH", path, map[string]any{"versioning": "enabled"}, nil)
		}
		put := func(n int, content string) {
			m.must("POST", fmt.Sprintf("%s/objects?key=o%d", path, n), strings.NewReader(content), nil)
		}
		for n := range objects {
			put(n, fmt.Sprint("good ", n))
		}
		good := time.Now()
		for n := range objects {
			if n%3 == 0 {
				m.must("DELETE", fmt.Sprintf("%s/objects/o%d", path, n), nil, nil)
			} else {
				put(n, fmt.Sprint("bad ", n))
			}
			put(objects+n, "new")
		}
		bad := time.Now()
		m.restoreKilled(t, path, good, flags)
		m.holdsObjects(t, path, 2*objects, func(n int) string {
			if n >= objects {
				return ""
			}
			return fmt.Sprint("good ", n)
		})
		m.restoreKilled(t, path, bad, flags) // undoes it
		m.holdsObjects(t, path, 2*objects, func(n int) string {
			switch {
			case n >= objects:
				return "new"
			case n%3 == 0:
				return ""
			}
			return fmt.Sprint("bad ", n)
		})
	}
}

// restoreKilled restores a bucket and kills the appliance, at random moments, until that is done.
func (m *machine) restoreKilled(t *testing.T, path string, target time.Time, flags []string) {
	t.Helper()
	m.must("POST", path+"/restore", map[string]any{"target_time": target}, nil)
	for kills := 0; ; kills++ {
		time.Sleep(rand.N(40 * time.Millisecond)) // the moment of the kill
		m.kill()
		m.start(flags...)
		var history wire.BucketHistory
		if m.must("GET", path+"/restore", nil, &history); history.Restore.Status == wire.BucketRestoreCompleted {
			t.Logf("%d kills", kills+1)
			return
		} else if kills == 3 {
			break
		}
	}
	testenv.Eventually(t, "the restore of the bucket", func() bool {
		var history wire.BucketHistory
		m.must("GET", path+"/restore", nil, &history)
		if history.Restore.Status == wire.BucketRestoreFailed {
			t.Fatalf("the restore failed: %s", deref(history.Restore.Error))
		}
		return history.Restore.Status == wire.BucketRestoreCompleted
	})
}

// holdsObjects checks the content of the objects o0 to on, "" for none.
func (m *machine) holdsObjects(t *testing.T, path string, n int, want func(int) string) {
	t.Helper()
	for i := range n {
		var object wire.Object
		status, e := m.do("GET", fmt.Sprintf("%s/objects/o%d", path, i), nil)
		if status == http.StatusNotFound && want(i) == "" {
			continue
		}
		if status != http.StatusOK {
			t.Fatalf("o%d: %d %+v", i, status, e.Error)
		}
		m.must("GET", fmt.Sprintf("%s/objects/o%d", path, i), nil, &object)
		if status, got := download(t, *object.DownloadURL); status != http.StatusOK || got != want(i) {
			t.Fatalf("o%d: %d %q, want %q", i, status, got, want(i))
		}
	}
}
