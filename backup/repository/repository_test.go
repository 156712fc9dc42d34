package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLife stores, restores and deletes backups.
func TestLife(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	r := mustOpen(t, dir)
	n1 := mustStore(t, r, "b1", "", first())
	if total := sum(files(t, dir)); total != n1 {
		t.Errorf("the first backup says it stored %d bytes, there are %d", n1, total)
	}
	n2 := mustStore(t, r, "b2", "b1", second())
	// The changes: one page, a short chunk of 100 bytes, one of 8 KiB, a file.
	if raw := int64(PageSize + 100 + PageSize + ChunkSize + 1); n2 < raw || n2 > raw+4096 {
		t.Errorf("the second backup stored %d bytes, of which %d changed", n2, raw)
	}
	if n := mustStore(t, r, "b3", "b2", second()); n > 600 {
		t.Errorf("a backup without a change stored %d bytes", n)
	}
	if n := mustStore(t, r, "b4", "", second()); n > 600 {
		t.Errorf("a backup without a base, and without a change, stored %d bytes", n)
	}
	if _, err := store(r, "b4", "", first()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a backup in the place of another: %v", err)
	}
	mustHold(t, r, map[string]content{"b1": first(), "b2": second(), "b3": second(), "b4": second()})
	for _, id := range []string{"b1", "b4", "b2"} { // b3 uses chunks of b1
		if err := r.Delete(id); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Collect(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	mustHold(t, r, map[string]content{"b3": second()})
	r.Close()
	r = mustOpen(t, dir)
	mustHold(t, r, map[string]content{"b3": second()})
	if err := r.Delete("b3"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := files(t, dir); len(left) > 0 {
		t.Errorf("left without a backup: %v", left)
	}
}

// TestOverlays changes pages again and again: each backup is based on whole chunks, never on overlays, and a chunk
// of which more than a quarter changed is stored whole.
func TestOverlays(t *testing.T) {
	t.Parallel()
	r := mustOpen(t, filepath.Join(t.TempDir(), "r"))
	c := content{"a": noise(1, 8*ChunkSize)}
	mustStore(t, r, "b0", "", c)
	want := map[string]content{"b0": c}
	for n := range 12 {
		c = c.clone()
		page := rand.IntN(8 * pagesPerChunk)
		copy(c["a"][page*PageSize+100:], noise(uint64(100+n), 50))
		id := fmt.Sprintf("b%d", n+1)
		stored := mustStore(t, r, id, fmt.Sprintf("b%d", n), c)
		if stored > maxOverlay*PageSize+2000 && stored < ChunkSize {
			t.Errorf("%d bytes stored for one page", stored)
		}
		want[id] = c
	}
	mustHold(t, r, want)
}

// TestCollectMoves has a pack that is mostly garbage, and a reader that began before its records moved.
func TestCollectMoves(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	r := mustOpen(t, dir)
	whole := content{"a": noise(1, 40*ChunkSize)}
	kept := content{"a": whole["a"][7*ChunkSize : 11*ChunkSize]}
	mustStore(t, r, "whole", "", whole)
	mustStore(t, r, "kept", "", kept)
	reader, err := OpenForReading(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	other, err := reader.Snapshot("kept")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Check(); err != nil { // its index is open now
		t.Fatal(err)
	}
	if err := r.Delete("whole"); err != nil {
		t.Fatal(err)
	}
	before := sum(files(t, dir))
	done, err := r.Collect(t.Context())
	if err != nil || done.Chunks != 36 {
		t.Fatalf("collected %+v, %v", done, err)
	}
	if after := sum(files(t, dir)); before-after < 35*ChunkSize {
		t.Errorf("%d bytes became %d", before, after)
	}
	mustHold(t, r, map[string]content{"kept": kept})
	got, err := loadSnapshot(other)
	if err != nil {
		t.Fatalf("a reader from before: %v", err)
	}
	if diff := differ(got, kept); diff != "" {
		t.Error(diff)
	}
	if err := reader.Delete("kept"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("deleted through what was opened for reading: %v", err)
	}
}

// TestCollectBeside runs Collect continuously while backups are written, read and deleted.
func TestCollectBeside(t *testing.T) {
	t.Parallel()
	r := mustOpen(t, filepath.Join(t.TempDir(), "r"))
	mustStore(t, r, "keep", "", first())
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	collected := 0
	group.Go(func() {
		for ctx.Err() == nil {
			if _, err := r.Collect(ctx); err == nil {
				collected++
			} else if !errors.Is(err, ErrBusy) && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	for n := range 30 {
		id := fmt.Sprintf("b%d", n)
		c := second()
		c["a"] = noise(uint64(1000+n), ChunkSize)
		mustStore(t, r, id, "keep", c)
		s, err := r.Snapshot(id)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Delete(id); err != nil {
			t.Fatal(err)
		}
		got, err := loadSnapshot(s) // deleted, but open
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		if diff := differ(got, c); diff != "" {
			t.Error(diff)
		}
	}
	cancel()
	group.Wait()
	if collected == 0 {
		t.Error("Collect never came to its turn")
	}
	if _, err := r.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustHold(t, r, map[string]content{"keep": first()})
}

func TestCollectIsBusy(t *testing.T) {
	t.Parallel()
	r := mustOpen(t, filepath.Join(t.TempDir(), "r"))
	w, err := r.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Collect(t.Context()); !errors.Is(err, ErrBusy) {
		t.Errorf("Collect beside a backup: %v", err)
	}
	if _, err := r.Clean(); !errors.Is(err, ErrBusy) {
		t.Errorf("Clean beside a backup: %v", err)
	}
	if err := errors.Join(w.Abort(), w.Abort()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Collect(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestTwoWriters stores the same content twice concurrently.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	r := mustOpen(t, filepath.Join(t.TempDir(), "r"))
	var group sync.WaitGroup
	for _, id := range []string{"b1", "b2"} {
		group.Go(func() {
			if _, err := store(r, id, "", first()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	mustHold(t, r, map[string]content{"b1": first(), "b2": first()})
}

// TestFlippedByte damages every file, one byte at a time, at many positions: Verify finds and locates it, and a
// reader gets what was stored or an error.
func TestFlippedByte(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	r := mustOpen(t, dir)
	mustStore(t, r, "b1", "", first())
	mustStore(t, r, "b2", "b1", second())
	want := map[string]content{"b1": first(), "b2": second()}
	r.Close()
	for name, size := range files(t, dir) {
		whole, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		positions := []int64{0, 4, 6, 8, 12, 15, size / 2, size - 33, size - 32, size - 1}
		for range 25 {
			positions = append(positions, rand.Int64N(size))
		}
		for _, position := range positions {
			flip(t, filepath.Join(dir, name), position)
			mustFind(t, dir, name, position, want)
			if err := os.WriteFile(filepath.Join(dir, name), whole, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	mustHold(t, mustOpen(t, dir), want)
}

func mustFind(t *testing.T, dir, name string, position int64, want map[string]content) {
	t.Helper()
	r := mustOpen(t, dir)
	defer r.Close()
	for id, c := range want {
		if got, err := load(r, id); err == nil && differ(got, c) != "" {
			t.Errorf("byte %d of %s flipped: %s is read, and wrong", position, name, id)
		} else if err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d of %s flipped: %v", position, name, err)
		}
	}
	report, err := r.Verify(t.Context(), nil)
	if err != nil {
		t.Fatalf("byte %d of %s flipped: %v", position, name, err)
	}
	if err := report.Err(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), name) {
		t.Errorf("byte %d of %s flipped: verify found %v", position, name, err)
	}
}

// TestHeals stores everything again if the stored data is found to be damaged.
func TestHeals(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	r := mustOpen(t, dir)
	c := content{"a": noise(1, 4*ChunkSize)}
	mustStore(t, r, "b1", "", c)
	flip(t, filepath.Join(dir, packName(1, 0)), 2*ChunkSize)
	report, err := r.Verify(t.Context(), nil)
	if err != nil || report.Err() == nil || !r.Damaged() || !cmp.Equal(report.Affected, []string{"b1"}) {
		t.Fatalf("verify: %+v, %v", report, err)
	}
	mustStore(t, r, "b2", "b1", c)
	got, err := load(r, "b2")
	if err != nil || differ(got, c) != "" {
		t.Errorf("a backup after damage was found: %v", err)
	}
}

// TestHealsIndex: a damaged index does not prevent a new, complete backup; nothing
// is removed until the index is repaired or removed by hand.
func TestHealsIndex(t *testing.T) {
	t.Parallel()
	for _, position := range []int64{0, headerSize + 10, -digestSize - 5} {
		dir := filepath.Join(t.TempDir(), "r")
		r := mustOpen(t, dir)
		mustStore(t, r, "b1", "", first())
		r.Close()
		path := filepath.Join(dir, indexName(1))
		if position < 0 {
			position += files(t, dir)[indexName(1)]
		}
		flip(t, path, position)
		r = mustOpen(t, dir)
		mustStore(t, r, "b2", "b1", second())
		if got, err := load(r, "b2"); err != nil || differ(got, second()) != "" {
			t.Errorf("byte %d: the backup after it: %v", position, err)
		}
		if !r.Damaged() {
			t.Errorf("byte %d: the damage was not noticed", position)
		}
		before := len(files(t, dir))
		if _, err := r.Collect(t.Context()); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), indexName(1)) || len(files(t, dir)) != before {
			t.Errorf("byte %d: collect says %v", position, err)
		}
	}
}

// TestMissing removes files.
func TestMissing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{packName(1, 0), indexName(1)} {
		dir := filepath.Join(t.TempDir(), "r")
		r := mustOpen(t, dir)
		mustStore(t, r, "b1", "", first())
		r.Close()
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		r = mustOpen(t, dir)
		if _, err := load(r, "b1"); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
		report, err := r.Verify(t.Context(), nil)
		if err != nil || report.Err() == nil || !strings.Contains(report.Err().Error(), name) || len(report.Affected) != 1 {
			t.Errorf("without %s: %+v, %v", name, report, err)
		}
	}
}

func TestIsLocked(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	r := mustOpen(t, dir)
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("opened twice: %v", err)
	}
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, dir)
}

func TestIDs(t *testing.T) {
	t.Parallel()
	r := mustOpen(t, filepath.Join(t.TempDir(), "r"))
	for _, id := range []string{"", ".", "..", "../x", "a/b", "a\x00b", strings.Repeat("x", 200)} {
		if _, err := store(r, id, "", content{}); err == nil {
			t.Errorf("a backup was called %q", id)
		}
	}
}

func TestCombineCRC32C(t *testing.T) {
	t.Parallel()
	b := noise(1, 2*ChunkSize)
	for _, n := range []int{0, 1, 100, ChunkSize, 2 * ChunkSize} {
		whole := crc32.Checksum(b, castagnoli)
		got := CombineCRC32C(crc32.Checksum(b[:n], castagnoli), crc32.Checksum(b[n:], castagnoli), int64(len(b)-n))
		if got != whole {
			t.Errorf("cut at %d: %x, want %x", n, got, whole)
		}
		if got, want := ZerosCRC32C(int64(n)), crc32.Checksum(make([]byte, n), castagnoli); got != want {
			t.Errorf("%d zeros: %x, want %x", n, got, want)
		}
	}
}

func TestChunksSlice(t *testing.T) {
	t.Parallel()
	var all []Ref
	var c Chunks
	for n := range uint32(100) {
		ref := Ref{n / 10 % 3, n}
		if ref.Session == 0 {
			ref = Ref{}
		}
		all, c = append(all, ref), appendRef(c, ref)
	}
	for from := range 100 {
		for _, count := range []int{0, 1, 7, 30, 200} {
			var got []Ref
			_ = c.Slice(int64(from), int64(count)).Refs(func(ref Ref) error {
				got = append(got, ref)
				return nil
			})
			want := all[from:min(100, from+count)]
			if len(got) != len(want) || len(want) > 0 && !cmp.Equal(got, want) {
				t.Fatalf("%d chunks from %d: %v, want %v", count, from, got, want)
			}
		}
	}
}

// FuzzManifest decodes invalid manifests that look like valid ones.
func FuzzManifest(f *testing.F) {
	m := &Manifest{Backup: Backup{ID: "x"}, Entries: []Entry{{Path: "a", Size: 10, Chunks: Chunks{{1, 2, 1}}}}}
	b, _, err := encodeManifest(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, _, err := decodeManifest("m", b)
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("error %v", err)
		}
		if err == nil && m.Backup.ID == "x" && !bytes.Contains(b, []byte(magicManifest)) {
			t.Error("decoded something else")
		}
		d := manifestDecoder{b: b, next: map[uint32]uint32{}}
		d.manifest() // without the digest's protection: it must not panic
	})
}
