package meta

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/engine/model"
)

// appendAudits appends n entries, numbered starting at from.
func appendAudits(t testing.TB, db *DB, organization string, from, n int, keep uint64) {
	t.Helper()
	update(t, db, func(tx *Tx) error {
		for i := range n {
			entry := model.AuditEntry{
				ID: fmt.Sprintf("evt_%d", from+i), Organization: organization, At: time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC),
				Action: "database.create", Details: map[string]string{"b": "2", "a": "1"},
			}
			if err := tx.AppendAudit(testChain(keep), &entry); err != nil {
				return err
			}
		}
		return nil
	})
}

// verifyAudit returns the number of entries in a chain, and its faults as an error.
func verifyAudit(t testing.TB, db *DB, organization string) (count int, err error) {
	t.Helper()
	v, err := db.VerifyAudit(testChain(0), organization, "")
	return v.Entries, errors.Join(err, faults(v))
}

func testChain(keep uint64) Chain { return Chain{Key: []byte("test"), Keep: keep} }

func faults(v Verification) error {
	var errs []error
	for _, f := range v.Faults {
		errs = append(errs, errors.New(f.String()))
	}
	return errors.Join(errs...)
}

// checkAuditIndex checks that the index contains exactly the terms of the entries.
func checkAuditIndex(tx *Tx, organization string) error {
	want, may := map[string]bool{}, map[string]bool{}
	var previous time.Time
	if err := tx.bolt.Bucket([]byte(auditBucket)).Bucket(auditName(organization)).ForEach(func(key, data []byte) error {
		entry, err := decodeAudit(organization, key, data)
		eachTerm(&entry, func(field byte, value string) {
			want[string(auditTerm(field, value))+string(key)] = true
		})
		// Whether a smaller step is noted depends on entries that may be gone.
		setBack := string(auditTerm(auditSetBack, "")) + string(key)
		if may[setBack] = true; entry.At.Before(previous.Add(-auditDisorder)) {
			want[setBack] = true
		}
		previous = entry.At
		return err
	}); err != nil {
		return err
	}
	err := tx.bolt.Bucket([]byte(auditIndexBucket)).Bucket(auditName(organization)).ForEach(func(key, _ []byte) error {
		if !want[string(key)] && !may[string(key)] {
			return fmt.Errorf("the audit index of %q has %x, which no entry does", organization, key)
		}
		delete(want, string(key))
		return nil
	})
	if err == nil && len(want) > 0 {
		err = fmt.Errorf("the audit index of %q lacks %d terms", organization, len(want))
	}
	return err
}

func TestAuditChain(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	entry := model.AuditEntry{ID: "evt_1", Organization: "org_1"}
	second := model.AuditEntry{ID: "evt_2", Organization: "org_1"}
	update(t, db, func(tx *Tx) error {
		if err := tx.AppendAudit(testChain(0), &entry); err != nil {
			return err
		}
		return tx.AppendAudit(testChain(0), &second)
	})
	if entry.PreviousHash != "" || len(entry.Hash) != 64 || second.PreviousHash != entry.Hash {
		t.Errorf("the first entry has %q and %q, the second follows %q", entry.PreviousHash, entry.Hash, second.PreviousHash)
	}
	view(t, db, func(tx *Tx) error {
		got, more, err := tx.AuditPage("org_1", AuditFilter{}, 0, 10)
		if diff := cmp.Diff([]model.AuditEntry{second, entry}, got); diff != "" || more || err != nil {
			t.Errorf("%v %v %s", err, more, diff)
		}
		return nil
	})
}

// TestAuditHashIsPinned: existing entries keep their hashes in every later version,
// even if the record has gained fields by then.
func TestAuditHashIsPinned(t *testing.T) {
	t.Parallel()
	text := `{"id":"evt_1","of_later":"é","previous_hash":"aa","hash":"`
	// printf '%s"}' "$text" | openssl dgst -sha256 -hmac test
	const want = "42694c875d33bdb29ad59b5e562a264a4a87e07dade40119a98d6956bbb171d1"
	hash := newHasher([]byte("test"))
	if got, ok := hash.entry([]byte(text+want+`"}`), want); got != want || !ok {
		t.Errorf("the hash is %s, %v", got, ok)
	}
	for _, other := range []string{text + want, text + want + `"} `, text + `"}`, text + strings.ToUpper(want) + `"}`} {
		if _, ok := hash.entry([]byte(other), want); ok {
			t.Errorf("%s ends with the hash", other)
		}
	}
}

// External input may contain anything; the stored entry must verify.
func TestAuditOfHostileText(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	hostile := "\xff\x00\"\\,\"hash\":\"\u2028<&>\xed\xa0\x80\ufffd"
	zone := time.FixedZone("", 5*3600+1800)
	update(t, db, func(tx *Tx) error {
		for range 3 {
			if err := tx.AppendAudit(testChain(0), &model.AuditEntry{
				Organization: "org_1", At: time.Now().In(zone), UserAgent: hostile, IP: hostile, RequestID: hostile,
				Actor:    model.Actor{Name: hostile},
				Resource: model.Resource{Name: hostile}, Details: map[string]string{hostile: hostile, "\xfe": "1", "\xfd": "2"},
			}); err != nil {
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
	swap := func(b *boltBucket, i, j int) error {
		a, c := bytes.Clone(b.Get(key(i))), bytes.Clone(b.Get(key(j)))
		return firstError(b.Put(key(i), c), b.Put(key(j), a))
	}
	rewrite := func(b *boltBucket, n int, change func(*model.AuditEntry)) error {
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
		tamper func(*boltBucket) error
		says   string
	}{
		{"changed", func(b *boltBucket) error {
			return rewrite(b, 7, func(e *model.AuditEntry) { e.Action = "database.list" })
		}, "entry 7 (evt_7): was changed"},
		{"changed with a hash of its own", func(b *boltBucket) error {
			return rewrite(b, 7, func(e *model.AuditEntry) { e.Action = "x"; _, _ = newHasher([]byte("guess")).seal(e) })
		}, "entry 7 (evt_7): was changed"},
		{"its details changed", func(b *boltBucket) error {
			return rewrite(b, 3, func(e *model.AuditEntry) { e.Details["a"] = "2" })
		}, "entry 3 (evt_3): was changed"},
		{"its time changed", func(b *boltBucket) error {
			return rewrite(b, 10, func(e *model.AuditEntry) { e.At = e.At.Add(time.Nanosecond) })
		}, "entry 10 (evt_10): was changed"},
		{"a field added", func(b *boltBucket) error {
			text, err := unframe("", b.Get(key(5)))
			return firstError(err, b.Put(key(5), frame(append([]byte(`{"x":1,`), text[1:]...))))
		}, "entry 5 (evt_5): was changed"},
		{"a bit flipped", func(b *boltBucket) error {
			data := bytes.Clone(b.Get(key(4)))
			data[100] ^= 1
			return b.Put(key(4), data)
		}, "entry 4: is damaged"},
		{"removed", func(b *boltBucket) error { return b.Delete(key(7)) }, "entry 8: the entries from 7 to 7 before it were removed"},
		{"the oldest removed", func(b *boltBucket) error { return b.Delete(key(3)) }, "entry 4: the entries from 3 to 3 before it were removed"},
		{"the newest removed", func(b *boltBucket) error { return b.Delete(key(12)) }, "entries from 12 to 12 at the end were removed"},
		{"all removed", func(b *boltBucket) error {
			for n := 3; n <= 12; n++ {
				if err := b.Delete(key(n)); err != nil {
					return err
				}
			}
			return nil
		}, "entries from 3 to 12 at the end were removed"},
		{"reordered", func(b *boltBucket) error { return swap(b, 5, 6) }, "entry 5 (evt_6): does not follow"},
		{"the ends exchanged", func(b *boltBucket) error { return swap(b, 3, 12) }, "entry 3 (evt_12): does not follow"},
		{"one said twice", func(b *boltBucket) error { return b.Put(key(6), b.Get(key(5))) }, "entry 6 (evt_5): does not follow"},
		{"one inserted at the end", func(b *boltBucket) error { return b.Put(key(13), b.Get(key(12))) }, "entry 13 (evt_12): does not follow"},
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
			for i := range 5 { // within one transaction and across several
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

// TestDamagedEntryDoesNotStopTheLog: verification reports the entry while it exists
// and right after it was pruned.
func TestDamagedEntryDoesNotStopTheLog(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	appendAudits(t, db, "org_1", 1, 3, 3)
	damage(t, db, 1)
	for i, want := range []string{"entry 1: is damaged", "entry 1: was damaged when it was pruned", ""} {
		if i > 0 {
			appendAudits(t, db, "org_1", 3+i, 1, 3)
		}
		count, err := verifyAudit(t, db, "org_1")
		if count != 3 || fmt.Sprint(err) != want && (err != nil || want != "") {
			t.Errorf("%d verify, %v, want %q", count, err, want)
		}
	}
	dropIndex(t, db, 1) // whose terms were unknown by then
}

// damage overwrites an entry; its index terms stay.
func damage(t *testing.T, db *DB, number uint64) {
	t.Helper()
	update(t, db, func(tx *Tx) error {
		return tx.bolt.Bucket([]byte(auditBucket)).Bucket([]byte("org_1")).Put(auditKey(number), []byte("damaged"))
	})
}

func dropIndex(t *testing.T, db *DB, number uint64) {
	t.Helper()
	update(t, db, func(tx *Tx) error {
		index := tx.bolt.Bucket([]byte(auditIndexBucket)).Bucket([]byte("org_1"))
		var keys [][]byte
		_ = index.ForEach(func(key, _ []byte) error {
			if bytes.HasSuffix(key, auditKey(number)) {
				keys = append(keys, bytes.Clone(key))
			}
			return nil
		})
		for _, key := range keys {
			if err := index.Delete(key); err != nil {
				return err
			}
		}
		return nil
	})
}

// A damaged or missing newest entry does not block its organization's changes: a new
// segment of the chain starts, Broken is called, and every later verification reports
// it.
func TestAuditGoesOnBehindADamagedNewestEntry(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tamper func(*Tx) error
		says   []string
	}{
		"damaged": {
			func(tx *Tx) error {
				return tx.bolt.Bucket([]byte(auditBucket)).Bucket([]byte("org_1")).Put(auditKey(5), []byte("damaged"))
			},
			[]string{"entry 5: is damaged", "entry 6 (evt_6): begins a new segment"},
		},
		"removed": {
			func(tx *Tx) error {
				return tx.bolt.Bucket([]byte(auditBucket)).Bucket([]byte("org_1")).Delete(auditKey(5))
			},
			[]string{"entry 6: the entries from 5 to 5 before it were removed", "entry 6 (evt_6): begins a new segment"},
		},
		"all removed": {
			func(tx *Tx) error {
				return firstError(tx.bolt.Bucket([]byte(auditBucket)).DeleteBucket([]byte("org_1")), tx.bolt.Bucket([]byte(auditIndexBucket)).DeleteBucket([]byte("org_1")))
			},
			[]string{"entry 6: the entries from 1 to 5 before it were removed", "entry 6 (evt_6): begins a new segment"},
		},
		"its record damaged": {
			func(tx *Tx) error {
				return tx.bolt.Bucket([]byte(auditHeadsBucket)).Put([]byte("org_1"), []byte("x"))
			},
			[]string{"entry 6 (evt_6): begins a new segment"},
		},
		"its record rewritten": {
			func(tx *Tx) error { // written without the key
				data, err := encodeRecord(auditMark{Number: 5, Hash: "", MAC: "00"})
				return firstError(err, tx.bolt.Bucket([]byte(auditHeadsBucket)).Put([]byte("org_1"), data))
			},
			[]string{"entry 6 (evt_6): begins a new segment"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := Open(filepath.Join(t.TempDir(), "meta.db")) // not checked: it is tampered with
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			appendAudits(t, db, "org_1", 1, 5, 0)
			update(t, db, tt.tamper)
			var told []string
			chain := testChain(0)
			chain.Broken = func(organization string, number uint64, why string) {
				told = append(told, fmt.Sprintf("%s %d %s", organization, number, why))
			}
			for n := 6; n <= 7; n++ {
				update(t, db, func(tx *Tx) error {
					return tx.AppendAudit(chain, &model.AuditEntry{ID: fmt.Sprintf("evt_%d", n), Organization: "org_1"})
				})
			}
			if len(told) != 1 || !strings.HasPrefix(told[0], "org_1 6 ") {
				t.Errorf("told %q", told)
			}
			_, err = verifyAudit(t, db, "org_1")
			for _, says := range tt.says {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("got %v, want %q", err, says)
				}
			}
			if ids := auditIDs(t, db, "org_1", 0, 2); !slices.Equal(ids, []string{"evt_7", "evt_6"}) {
				t.Errorf("the log has %v", ids)
			}
		})
	}
}

// Write access to the file without the key is not enough to cut off the oldest
// entries or to append others.
func TestAuditChainNeedsItsKey(t *testing.T) {
	t.Parallel()
	db, err := Open(filepath.Join(t.TempDir(), "meta.db")) // not checked: it is tampered with
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	appendAudits(t, db, "org_1", 1, 5, 0)
	forger := Chain{Key: []byte("guess"), Keep: 2}
	update(t, db, func(tx *Tx) error {
		log, err := tx.openAuditLog(forger, "org_1")
		if err != nil {
			return err
		}
		log.head = auditMark{Number: 5}
		return firstError(log.append(&model.AuditEntry{ID: "evt_6", Organization: "org_1"}), log.close())
	})
	_, err = verifyAudit(t, db, "org_1")
	for _, says := range []string{"where the log begins cannot be known", "entry 6 (evt_6): was changed", "whether it is the newest cannot be known"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

func TestAuditPruningBySize(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	chain := testChain(0)
	chain.KeepBytes = 4000
	for n := range 100 {
		update(t, db, func(tx *Tx) error {
			return tx.AppendAudit(chain, &model.AuditEntry{ID: fmt.Sprintf("evt_%d", n), Organization: "org_1", UserAgent: strings.Repeat("x", 10*(n%7))})
		})
	}
	var size int
	view(t, db, func(tx *Tx) error {
		return tx.bolt.Bucket([]byte(auditBucket)).Bucket([]byte("org_1")).ForEach(func(_, data []byte) error {
			size += len(data)
			return nil
		})
	})
	if size > 4000 || size < 3000 {
		t.Errorf("%d bytes are kept", size)
	}
	if _, err := verifyAudit(t, db, "org_1"); err != nil {
		t.Error(err)
	}
}

func TestAuditPruningByAge(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	appendAudits(t, db, "org_1", 1, 30, 0) // a second apart
	prune := func(before, limit int) (more bool) {
		update(t, db, func(tx *Tx) (err error) {
			more, err = tx.PruneAudit(testChain(0), "org_1", time.Date(2026, 1, 1, 0, 0, before, 0, time.UTC), limit)
			return err
		})
		return more
	}
	for _, tt := range []struct {
		before, limit, want int
		more                bool
	}{{0, 10, 30, false}, {5, 3, 27, true}, {5, 3, 25, false}, {5, 3, 25, false}, {1000, 100, 1, false}} {
		more := prune(tt.before, tt.limit)
		if count, err := verifyAudit(t, db, "org_1"); count != tt.want || more != tt.more || err != nil {
			t.Errorf("%+v: %d are kept, more %v, %v", tt, count, more, err)
		}
	}
}

func auditIDs(t testing.TB, db *DB, organization string, skip uint64, limit int) (ids []string) {
	t.Helper()
	view(t, db, func(tx *Tx) error {
		entries, _, err := tx.AuditPage(organization, AuditFilter{}, skip, limit)
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
						entries, more, err := tx.AuditPage("org_1", AuditFilter{}, uint64(skip), limit)
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
			entries, _, err := tx.AuditPage(org, AuditFilter{}, 0, 100)
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

// TestAuditEntryIsStoredAsItReads: the hashed text is the text of the entry, without
// anything that a reader does not see.
func TestAuditEntryIsStoredAsItReads(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	entry := model.AuditEntry{ID: "evt_1", Organization: "org_1", UserAgent: "curl"}
	update(t, db, func(tx *Tx) error { return tx.AppendAudit(testChain(0), &entry) })
	view(t, db, func(tx *Tx) error {
		data := tx.bolt.Bucket([]byte(auditBucket)).Bucket([]byte("org_1")).Get(binary.BigEndian.AppendUint64(nil, 1))
		want, err := json.Marshal(entry)
		if diff := cmp.Diff(string(want), string(data[recordHeader:])); diff != "" {
			t.Error(diff)
		}
		return err
	})
}

// The removal of a whole log is detected, even if the log has continued since.
func TestVerifyALogThatWasRemoved(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	created := model.AuditEntry{ID: "evt_1", Organization: "org_1", Action: model.ActionOrganizationCreate}
	update(t, db, func(tx *Tx) error { return tx.AppendAudit(testChain(0), &created) })
	appendAudits(t, db, "org_1", 2, 5, 0)
	verify := func() string {
		v, err := db.VerifyAudit(testChain(0), "org_1", created.Action)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(v.Faults)
	}
	if got := verify(); got != "[]" {
		t.Errorf("a whole log: %s", got)
	}
	update(t, db, func(tx *Tx) error {
		name := []byte("org_1")
		return errors.Join(tx.bolt.Bucket([]byte(auditBucket)).DeleteBucket(name), tx.bolt.Bucket([]byte(auditIndexBucket)).DeleteBucket(name),
			tx.bolt.Bucket([]byte(auditHeadsBucket)).Delete(name), tx.bolt.Bucket([]byte(auditAnchorsBucket)).Delete(name))
	})
	if got := verify(); !strings.Contains(got, "the whole log was removed") {
		t.Errorf("without the log: %s", got)
	}
	appendAudits(t, db, "org_1", 7, 3, 0)
	if got := verify(); !strings.Contains(got, "with which the log began") {
		t.Errorf("with another begun: %s", got)
	}
}
