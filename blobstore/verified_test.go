package blobstore

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestVerified: only blocks that were read, and have not been changed since, may be sent without being read again.
func TestVerified(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("when a file was changed is known on Linux only")
	}
	s, err := Open(filepath.Join(t.TempDir(), "store"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	content := make([]byte, 5*blockSize+1000)
	rand.Read(content)
	w, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	ref, _, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	open := func() *Reader {
		t.Helper()
		r, err := s.Open(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return r
	}
	// expect checks how many bytes from an offset on may be sent as they are.
	expect := func(r *Reader, from, want int64) {
		t.Helper()
		if _, err := r.Seek(from, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		f, n := r.Verified(int64(len(content)))
		if n != want || (f == nil) != (want == 0) {
			t.Errorf("from %d on: %d bytes, not %d", from, n, want)
		}
		if f == nil {
			return
		}
		if got, err := io.ReadAll(io.LimitReader(f, n)); err != nil || string(got) != string(content[from:from+n]) {
			t.Errorf("from %d on: other bytes, %v", from, err)
		}
	}
	expect(open(), 0, 0)
	r := open()
	if err := r.Verify(blockSize, 2*blockSize); err != nil {
		t.Fatal(err)
	}
	expect(r, 0, 0)
	expect(r, blockSize, 2*blockSize)
	expect(r, blockSize+100, 2*blockSize-100)
	expect(r, 3*blockSize-100, 0) // so few
	expect(open(), blockSize, 2*blockSize)
	if err := r.Verify(0, r.Size()); err != nil {
		t.Fatal(err)
	}
	expect(r, 0, r.Size())
	expect(r, r.Size(), 0)

	path, err := ref.path(s.blobs)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("damage"), blockSize); err != nil {
		t.Fatal(err)
	}
	r = open()
	expect(r, 0, 0)
	if err := r.Verify(0, r.Size()); !errors.Is(err, ErrDamaged) {
		t.Errorf("damaged: %v", err)
	}
	expect(r, 0, blockSize)
	expect(r, blockSize, 0)
}

// TestVerifiedForAMinute: what was verified a minute ago is verified again.
func TestVerifiedForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v, file := newVerified(), fileID{"ref", 1}
		v.add(file, 2)
		time.Sleep(verifiedFor - time.Second)
		if !v.has(file, 2) || v.has(file, 3) || v.has(fileID{"ref", 2}, 2) || v.has(fileID{"other", 1}, 2) {
			t.Error("it is not the block that was verified")
		}
		time.Sleep(time.Second)
		if v.has(file, 2) {
			t.Error("a minute later it still is")
		}
	})
}

// TestVerifiedWholeFile: the blocks of a file that is as large as the memory of blocks do not take one another's places.
func TestVerifiedWholeFile(t *testing.T) {
	t.Parallel()
	v, file := newVerified(), fileID{"ref", 1}
	for block := range int64(verifiedBlocks) {
		v.add(file, block)
	}
	for block := range int64(verifiedBlocks) {
		if !v.has(file, block) {
			t.Fatalf("block %d is forgotten", block)
		}
	}
}
