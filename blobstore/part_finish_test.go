package blobstore

import (
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"path/filepath"
	"testing"
)

// TestFinishWithoutReading finishes Parts of sections whose blocks' checksums are known, and of some that are not. A
// damaged byte in the middle tells whether FinishPart read the content.
func TestFinishWithoutReading(t *testing.T) {
	const block = blockSize
	for name, c := range map[string]struct {
		sizes  []int
		change func([]Section)
		reads  bool
	}{
		"whole blocks":        {sizes: []int{2 * block, 3 * block, 2 * block}},
		"a short last one":    {sizes: []int{2 * block, 3 * block, block + 77}},
		"a single one":        {sizes: []int{3*block - 1}},
		"an empty last one":   {sizes: []int{3 * block, 0}},
		"a short first one":   {sizes: []int{2*block + 1, 3 * block}, reads: true},
		"one is unknown":      {sizes: []int{2 * block, 2 * block}, change: func(s []Section) { s[1].Blocks = nil }, reads: true},
		"one lacks a block":   {sizes: []int{2 * block, 2 * block}, change: func(s []Section) { s[0].Blocks = s[0].Blocks[4:] }, reads: true},
		"a damaged checksum":  {sizes: []int{2 * block, 2 * block}, change: func(s []Section) { s[0].Blocks[1]++ }, reads: true},
		"those of each other": {sizes: []int{2 * block, 2 * block}, change: func(s []Section) { s[0].Blocks, s[1].Blocks = s[1].Blocks, s[0].Blocks }, reads: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir, Options{})
			id, sections, content := writeSections(t, s, c.sizes)
			if c.change != nil {
				c.change(sections)
			}
			path := filepath.Join(dir, "parts", id)
			flipByte(t, path, int64(len(content)/2))
			_, err := s.FinishPart(t.Context(), id, sections, nil)
			if reads := errors.Is(err, ErrDamaged); reads != c.reads || err != nil && !reads {
				t.Errorf("FinishPart: %v", err)
			}
			flipByte(t, path, int64(len(content)/2))
			w, err := s.FinishPart(t.Context(), id, sections, nil)
			if err != nil {
				t.Fatal(err)
			}
			sum := w.CRC32C()
			ref, err := w.Publish(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			mustRead(t, s, ref, string(content), name)
			if want := crc32.Checksum(content, castagnoli); sum != want {
				t.Errorf("the checksum is %x, not %x", sum, want)
			}
		})
	}
}

// TestUnknownBlocks writes a section that does not begin with a block.
func TestUnknownBlocks(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	id, err := s.CreatePart(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.OpenSection(id, blockSize+1, blockSize)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Write(make([]byte, blockSize))
	if p.Blocks() != nil {
		t.Error("the checksums of its blocks are known")
	}
}

// writeSections creates a Part with sections of random bytes of those sizes.
func writeSections(t *testing.T, s *Store, sizes []int) (id string, sections []Section, content []byte) {
	t.Helper()
	id, err := s.CreatePart(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	random := rand.NewChaCha8([32]byte{})
	for _, size := range sizes {
		b := make([]byte, size)
		random.Read(b)
		p, err := s.OpenSection(id, int64(len(content)), int64(size))
		if err != nil {
			t.Fatal(err)
		}
		for rest := b; len(rest) > 0; {
			n := min(len(rest), 100_000)
			p.Write(rest[:n])
			rest = rest[n:]
		}
		section := Section{}
		if section.Size, section.CRC32C, err = p.Sync(); err != nil {
			t.Fatal(err)
		}
		section.Blocks = p.Blocks()
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		sections, content = append(sections, section), append(content, b...)
	}
	return id, sections, content
}
