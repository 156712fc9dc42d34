package repository

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/zeebo/blake3"

	"holdfast/internal/durable"
)

// indexWriter writes an index under a temporary name; publish renames it.
type indexWriter struct {
	r       *Repository
	number  uint32
	f       durable.File // nil once closed
	hash    *blake3.Hasher
	size    int64
	entries uint32
	spans   []span
	packs   []packInfo

	published bool // the rename happened, even if publish failed
}

func (r *Repository) createIndex(number uint32) (*indexWriter, error) {
	f, err := r.create(r.path(indexName(number)) + durable.NewSuffix)
	if err != nil {
		return nil, fmt.Errorf("create index: %w", err)
	}
	x := &indexWriter{r: r, number: number, f: f, hash: blake3.New()}
	if err := x.write(header(magicIndex, number, 0)); err != nil {
		return nil, errors.Join(err, x.abort())
	}
	return x, nil
}

func (x *indexWriter) write(b []byte) error {
	n, err := x.f.Write(b)
	x.size += int64(n)
	x.hash.Write(b[:n])
	if err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	return nil
}

// add appends the encoded entries of consecutive records starting at ref.
func (x *indexWriter) add(ref Ref, encoded []byte) error {
	count := uint32(len(encoded) / entrySize)
	next := span{session: ref.Session, first: ref.Ordinal, count: count, at: x.entries}
	if n := len(x.spans); n > 0 && x.spans[n-1].session == ref.Session && x.spans[n-1].first+x.spans[n-1].count == ref.Ordinal {
		x.spans[n-1].count += count
	} else {
		x.spans = append(x.spans, next)
	}
	x.entries += count
	return x.write(encoded)
}

// publish completes the index and renames it durably, replacing any index with that name.
func (x *indexWriter) publish() error {
	if err := x.write(x.tables()); err != nil {
		return err
	}
	if err := x.write(x.hash.Sum(nil)); err != nil {
		return err
	}
	path := x.r.path(indexName(x.number))
	err := x.r.sync(x.f, path)
	err = errors.Join(err, x.close())
	if err != nil {
		return fmt.Errorf("publish index: %w", err)
	}
	if err := x.r.fs.Rename(path+durable.NewSuffix, path); err != nil {
		return fmt.Errorf("publish index: %w", err)
	}
	x.published = true
	return x.r.syncDir(x.r.path(indexDir))
}

func (x *indexWriter) tables() (b []byte) {
	for _, p := range x.packs {
		b = binary.LittleEndian.AppendUint32(b, p.number)
		b = binary.LittleEndian.AppendUint64(b, uint64(p.size))
		b = append(b, p.digest[:]...)
	}
	for _, s := range x.spans {
		b = binary.LittleEndian.AppendUint32(b, s.session)
		b = binary.LittleEndian.AppendUint32(b, s.first)
		b = binary.LittleEndian.AppendUint32(b, s.count)
	}
	b = binary.LittleEndian.AppendUint32(b, x.entries)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(x.packs)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(x.spans)))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func (x *indexWriter) close() error {
	if x.f == nil {
		return nil
	}
	err := x.f.Close()
	x.f = nil
	return err
}

// abort closes and removes the temporary file.
func (x *indexWriter) abort() error {
	return errors.Join(x.close(), x.r.remove(x.r.path(indexName(x.number))+durable.NewSuffix))
}
