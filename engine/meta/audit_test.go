package meta

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"holdfast/engine/model"
)

// appendAudits adds n entries, numbered on from what id says.
func appendAudits(t testing.TB, db *DB, organization string, from, n int, keep uint64) {
	t.Helper()
	update(t, db, func(tx *Tx) error {
		for i := range n {
			entry := model.AuditEntry{
				ID: fmt.Sprintf("evt_%d", from+i), Organization: organization, At: time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC),
				Action: "database.create", Details: map[string]string{"b": "2", "a": "1"},
			}
			if err := tx.AppendAudit(&entry, keep); err != nil {
				return err
			}
		}
		return nil
	})
}

func verifyAudit(t testing.TB, db *DB, organization string) (count int, err error) {
	t.Helper()
	view(t, db, func(tx *Tx) error { count, err = tx.VerifyAudit(organization); return nil })
	return count, err
}

func TestAuditChain(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	entry := model.AuditEntry{ID: "evt_1", Organization: "org_1"}
	second := model.AuditEntry{ID: "evt_2", Organization: "org_1"}
	update(t, db, func(tx *Tx) error {
		if err := tx.AppendAudit(&entry, 0); err != nil {
			return err
		}
		return tx.AppendAudit(&second, 0)
	})
	if entry.PreviousHash != "" || len(entry.Hash) != 64 || second.PreviousHash != entry.Hash {
		t.Errorf("the first entry has %q and %q, the second follows %q", entry.PreviousHash, entry.Hash, second.PreviousHash)
	}
	view(t, db, func(tx *Tx) error {
		got, more, err := tx.AuditPage("org_1", 0, 10)
		if diff := cmp.Diff([]model.AuditEntry{second, entry}, got); diff != "" || more || err != nil {
			t.Errorf("%v %v %s", err, more, diff)
		}
		return nil
	})
}

// TestAuditHashIsPinned: entries that exist keep their hashes in every later
// version, also when the record has got more fields by then.
func TestAuditHashIsPinned(t *testing.T) {
	t.Parallel()
	text := `{"id":"evt_1","of_later":"é","previous_hash":"aa","hash":"`
	// printf '%s"}' "$text" | sha256sum
	const want = "b539ac9e68c8d1f28a19de833a6855feccb503462f159002f11d6849fc6b63f1"
	if got, ok := hashAudit([]byte(text+want+`"}`), want); got != want || !ok {
		t.Errorf("the hash is %s, %v", got, ok)
	}
	for _, other := range []string{text + want, text + want + `"} `, text + `"}`, text + strings.ToUpper(want) + `"}`} {
		if _, ok := hashAudit([]byte(other), want); ok {
			t.Errorf("%s ends with the hash", other)
		}
	}
}

// What comes from outside may hold anything; what is stored must verify.
func TestAuditOfHostileText(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	hostile := "\xff\x00\"\\,\"hash\":\"\u2028<&>\xed\xa0\x80\ufffd"
	zone := time.FixedZone("", 5*3600+1800)
	update(t, db, func(tx *Tx) error {
		for range 3 {
			if err := tx.AppendAudit(&model.AuditEntry{
				Organization: "org_1", At: time.Now().In(zone), UserAgent: hostile, IP: hostile, RequestID: hostile,
				Actor:    model.Actor{Name: hostile},
				Resource: model.Resource{Name: hostile}, Details: map[string]string{hostile: hostile, "\xfe": "1", "\xfd": "2"},
			}, 0); err != nil {
				return err
			}
		}
		return nil
	})
	if count, err := verifyAudit(t, db, "org_1"); count != 3 || err != nil {
		t.Errorf("%d entries verify, %v", count, err)
	}
}

func TestAuditTamperingIsFound(t *testing.T) {
	t.Parallel()
	key := func(n int) []byte { return auditKey(uint64(n)) }
	swap := func(b *bbolt.Bucket, i, j int) error {
		a, c := bytes.Clone(b.Get(key(i))), bytes.Clone(b.Get(key(j)))
		return firstError(b.Put(key(i), c), b.Put(key(j), a))
	}
	rewrite := func(b *bbolt.Bucket, n int, change func(*model.AuditEntry)) error {
		entry, err := decodeAudit("org_1", key(n), b.Get(key(n)))
		if err != nil {
			return err
		}
		change(&entry)
		data, err := encodeRecord(entry)
		return firstError(err, b.Put(key(n), data))
	}
	for _, tt := range []struct {
		name   string
		tamper func(*bbolt.Bucket) error
		says   string
	}{
		{"changed", func(b *bbolt.Bucket) error {
			return rewrite(b, 7, func(e *model.AuditEntry) { e.Action = "database.list" })
		}, "entry 7 (evt_7) was changed"},
		{"changed with a hash of its own", func(b *bbolt.Bucket) error {
			return rewrite(b, 7, func(e *model.AuditEntry) { e.Action = "x"; _, _ = sealAudit(e) })
		}, "entry 8 (evt_8) does not follow"},
		{"its details changed", func(b *bbolt.Bucket) error {
			return rewrite(b, 3, func(e *model.AuditEntry) { e.Details["a"] = "2" })
		}, "entry 3 (evt_3) was changed"},
		{"its time changed", func(b *bbolt.Bucket) error {
			return rewrite(b, 10, func(e *model.AuditEntry) { e.At = e.At.Add(time.Nanosecond) })
		}, "entry 10 (evt_10) was changed"},
		{"a field added", func(b *bbolt.Bucket) error {
			text, err := unframe("", b.Get(key(5)))
			return firstError(err, b.Put(key(5), frame(append([]byte(`{"x":1,`), text[1:]...))))
		}, "entry 5 (evt_5) was changed"},
		{"a bit flipped", func(b *bbolt.Bucket) error {
			data := bytes.Clone(b.Get(key(4)))
			data[100] ^= 1
			return b.Put(key(4), data)
		}, "audit/org_1/4 is damaged"},
		{"removed", func(b *bbolt.Bucket) error { return b.Delete(key(7)) }, "entry 8 (evt_8) does not follow"},
		{"the oldest removed", func(b *bbolt.Bucket) error { return b.Delete(key(3)) }, "entry 4 (evt_4) does not follow"},
		{"the newest removed", func(b *bbolt.Bucket) error { return b.Delete(key(12)) }, "entries from 12 to 12 were removed"},
		{"all removed", func(b *bbolt.Bucket) error {
			for n := 3; n <= 12; n++ {
				if err := b.Delete(key(n)); err != nil {
					return err
				}
			}
			return nil
		}, "entries from 1 to 12 were removed"},
		{"reordered", func(b *bbolt.Bucket) error { return swap(b, 5, 6) }, "entry 5 (evt_6) does not follow"},
		{"the ends exchanged", func(b *bbolt.Bucket) error { return swap(b, 3, 12) }, "entry 3 (evt_12) does not follow"},
		{"one said twice", func(b *bbolt.Bucket) error { return b.Put(key(6), b.Get(key(5))) }, "entry 6 (evt_5) does not follow"},
		{"one inserted at the end", func(b *bbolt.Bucket) error { return b.Put(key(13), b.Get(key(12))) }, "entry 13 (evt_12) does not follow"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db, err := Open(filepath.Join(t.TempDir(), "meta.db")) // not checked: it is tampered with
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			appendAudits(t, db, "org_1", 1, 12, 10) // 1 and 2 are pruned
			if count, err := verifyAudit(t, db, "org_1"); count != 10 || err != nil {
				t.Fatalf("before: %d, %v", count, err)
			}
			update(t, db, func(tx *Tx) error {
				return tt.tamper(tx.bolt.Bucket([]byte(auditBucket)).Bucket([]byte("org_1")))
			})
			if _, err := verifyAudit(t, db, "org_1"); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
		})
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestAuditPruning(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		keep       uint64
		want, from int
	}{{0, 25, 1}, {1, 1, 25}, {10, 10, 16}, {25, 25, 1}, {26, 25, 1}} {
		t.Run(fmt.Sprint(tt.keep), func(t *testing.T) {
			t.Parallel()
			db := openTest(t)
			for i := range 5 { // within one transaction and across them
				appendAudits(t, db, "org_1", 1+5*i, 5, tt.keep)
				if _, err := verifyAudit(t, db, "org_1"); err != nil {
					t.Fatal(err)
				}
			}
			if count, err := verifyAudit(t, db, "org_1"); count != tt.want || err != nil {
				t.Errorf("%d are kept, want %d, %v", count, tt.want, err)
			}
			if ids := auditIDs(t, db, "org_1", 0, 100); ids[len(ids)-1] != fmt.Sprintf("evt_%d", tt.from) {
				t.Errorf("kept %v, want them from %d", ids, tt.from)
			}
		})
	}
}

func TestAuditPruningReachesALowerLimit(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	appendAudits(t, db, "org_1", 1, 60, 0)
	appendAudits(t, db, "org_1", 61, 20, 5)
	if count, err := verifyAudit(t, db, "org_1"); count != 5 || err != nil {
		t.Errorf("%d are kept, %v", count, err)
	}
}

// TestDamagedEntryDoesNotStopTheLog: it is found as long as it is there, and
// once it is pruned the gap is.
func TestDamagedEntryDoesNotStopTheLog(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	appendAudits(t, db, "org_1", 1, 3, 3)
	update(t, db, func(tx *Tx) error {
		return tx.bolt.Bucket([]byte(auditBucket)).Bucket([]byte("org_1")).Put(auditKey(1), []byte("damaged"))
	})
	if _, err := verifyAudit(t, db, "org_1"); !isCorrupt(err) {
		t.Errorf("got %v, want a CorruptError", err)
	}
	appendAudits(t, db, "org_1", 4, 1, 3)
	if _, err := verifyAudit(t, db, "org_1"); err == nil || !strings.Contains(err.Error(), "entry 2 (evt_2) does not follow") {
		t.Errorf("got %v", err)
	}
	appendAudits(t, db, "org_1", 5, 1, 3)
	if count, err := verifyAudit(t, db, "org_1"); count != 3 || err != nil {
		t.Errorf("%d verify, %v", count, err)
	}
}

func auditIDs(t testing.TB, db *DB, organization string, skip uint64, limit int) (ids []string) {
	t.Helper()
	view(t, db, func(tx *Tx) error {
		entries, _, err := tx.AuditPage(organization, skip, limit)
		for _, e := range entries {
			ids = append(ids, e.ID)
		}
		return err
	})
	return ids
}

func TestAuditPages(t *testing.T) {
	t.Parallel()
	for _, keep := range []uint64{0, 1, 10, 23} {
		t.Run(fmt.Sprintf("keep %d", keep), func(t *testing.T) {
			t.Parallel()
			db := openTest(t)
			const made = 23
			appendAudits(t, db, "org_1", 1, made, keep)
			kept := made
			if keep != 0 {
				kept = int(keep)
			}
			for skip := range made + 5 {
				for limit := 1; limit <= made+1; limit++ {
					var want []string
					for n := made - skip; n > max(made-skip-limit, made-kept); n-- {
						want = append(want, fmt.Sprintf("evt_%d", n))
					}
					view(t, db, func(tx *Tx) error {
						entries, more, err := tx.AuditPage("org_1", uint64(skip), limit)
						var got []string
						for _, e := range entries {
							got = append(got, e.ID)
						}
						if diff := cmp.Diff(want, got); diff != "" || more != (skip+limit < kept) || err != nil {
							t.Errorf("skip %d, limit %d: more %v, %v %s", skip, limit, more, err, diff)
						}
						return nil
					})
				}
			}
		})
	}
}

func TestAuditPageEdges(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	appendAudits(t, db, "org_1", 1, 5, 3)
	for _, skip := range []uint64{3, 4, 5, 6, 1 << 40, 1<<64 - 1} {
		if ids := auditIDs(t, db, "org_1", skip, 10); ids != nil {
			t.Errorf("behind %d there is %v", skip, ids)
		}
	}
	if ids := auditIDs(t, db, "org_2", 0, 10); ids != nil {
		t.Errorf("an organization without entries has %v", ids)
	}
}

func TestAuditsOfOrganizationsAreApart(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	organizations := []string{"", "org_1", "org_2"}
	for i := range 4 {
		for _, org := range organizations {
			appendAudits(t, db, org, 1+10*i, 10, 15)
		}
	}
	for _, org := range organizations {
		view(t, db, func(tx *Tx) error {
			entries, _, err := tx.AuditPage(org, 0, 100)
			if len(entries) != 15 {
				t.Errorf("%q has %d entries", org, len(entries))
			}
			for i, e := range entries {
				if want := fmt.Sprintf("evt_%d", 40-i); e.Organization != org || e.ID != want {
					t.Errorf("%q has %s of %q, want %s", org, e.ID, e.Organization, want)
				}
			}
			return err
		})
		if count, err := verifyAudit(t, db, org); count != 15 || err != nil {
			t.Errorf("%q: %d, %v", org, count, err)
		}
	}
}

// TestAuditEntryIsStoredAsItReads: the text that is hashed is the text of the
// entry, with nothing that a reader does not see.
func TestAuditEntryIsStoredAsItReads(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	entry := model.AuditEntry{ID: "evt_1", Organization: "org_1", UserAgent: "curl"}
	update(t, db, func(tx *Tx) error { return tx.AppendAudit(&entry, 0) })
	view(t, db, func(tx *Tx) error {
		data := tx.bolt.Bucket([]byte(auditBucket)).Bucket([]byte("org_1")).Get(binary.BigEndian.AppendUint64(nil, 1))
		want, err := json.Marshal(entry)
		if diff := cmp.Diff(string(want), string(data[recordHeader:])); diff != "" {
			t.Error(diff)
		}
		return err
	})
}
