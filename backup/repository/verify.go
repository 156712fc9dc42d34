package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"

	"holdfast/internal/parallel"

	"github.com/zeebo/blake3"
)

// Report is the result of Verify.
type Report struct {
	Backups int   // number of undamaged backups
	Chunks  int64 // stored records read
	Bytes   int64 // of packs

	Damage []error // each wraps ErrDamaged and names a file
	// Affected are the backups that cannot be restored, sorted.
	Affected []string
}

// Err returns all damage as one error, or nil.
func (p Report) Err() error { return errors.Join(p.Damage...) }

// Verify reads every byte of every pack, index and manifest, and verifies the content of every chunk and the
// checksum of every file. The Report contains the damage; an error means that not everything was read. Backups taken
// meanwhile are not verified; nothing is removed meanwhile.
//
// progress, if set, is called with the bytes of packs read and their total.
func (r *Repository) Verify(ctx context.Context, progress func(done, total int64)) (Report, error) {
	r.removal.RLock()
	defer r.removal.RUnlock()
	v := &verification{r: r, progress: progress, broken: map[uint32]bool{}}
	ids, err := r.Backups()
	if err != nil {
		return Report{}, err
	}
	all, unreadable := r.opened()
	for _, err := range unreadable {
		v.lost = true
		if err := v.note(r.noteIndex(err)); err != nil {
			return Report{}, err
		}
	}
	for _, x := range all {
		if r.isMerged(x) {
			continue
		}
		if err := v.index(x); err != nil {
			return Report{}, err
		}
	}
	if err := parallel.Do(ctx, parallel.Processors(), slices.Values(v.all), v.packs); err != nil {
		return Report{}, fmt.Errorf("verify backups: %w", err)
	}
	for _, id := range ids {
		if err := v.backup(id); err != nil {
			return Report{}, err
		}
	}
	r.setVerified()
	return v.report, nil
}

type verification struct {
	r        *Repository
	progress func(done, total int64)
	all      []verifiedPack
	total    int64
	broken   map[uint32]bool // numbers of damaged indexes
	lost     bool            // an index cannot be opened

	mu     sync.Mutex
	report Report
}

type verifiedPack struct {
	index   uint32
	info    packInfo
	records Chunks
}

// note adds damage to the report, and returns any other error.
func (v *verification) note(err error) error {
	if err == nil || !errors.Is(err, ErrDamaged) {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.report.Damage = append(v.report.Damage, err)
	return nil
}

// noteIndex is note for an index error. It marks the index as damaged.
func (v *verification) noteIndex(x *index, err error) error {
	if err != nil {
		v.broken[x.number] = true
	}
	return v.note(v.r.noteIndex(err))
}

// index checks an index and finds the records of each of its packs.
func (v *verification) index(x *index) error {
	records := map[uint32]Chunks{}
	if err := v.noteIndex(x, x.check()); err != nil {
		return err
	}
	err := v.noteIndex(x, x.each(func(ref Ref, e entry) error {
		records[e.pack] = appendRef(records[e.pack], ref)
		return nil
	}))
	if err != nil {
		return err
	}
	for _, p := range x.packs {
		v.all = append(v.all, verifiedPack{x.number, p, records[p.number]})
		v.total += p.size
	}
	return nil
}

// packs verifies the packs that it receives.
func (v *verification) packs(ctx context.Context, next <-chan verifiedPack) error {
	rd, err := v.r.NewReader()
	if err != nil {
		return err
	}
	defer rd.Close()
	for p := range next {
		if err := v.note(v.digest(ctx, p)); err != nil {
			return err
		}
		if err := v.chunks(ctx, rd, p); err != nil {
			return err
		}
	}
	return nil
}

// digest verifies all bytes of a pack against its digest in the index.
func (v *verification) digest(ctx context.Context, p verifiedPack) error {
	name := packName(p.index, p.info.number)
	f, err := v.r.openStored(name)
	if errors.Is(err, fs.ErrNotExist) {
		return damaged(name, "it is missing")
	}
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, headerSize)
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := checkHeader(name, head, magicPack, p.index, p.info.number); err != nil {
		return err
	}
	h := blake3.New()
	n, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{&verifyReader{ctx, v, f}}, make([]byte, 1<<20))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if n != p.info.size {
		return damaged(name, fmt.Sprintf("it has %d bytes, and had %d", n, p.info.size))
	}
	if Hash(h.Sum(nil)) != p.info.digest {
		return damaged(name, "its digest is wrong")
	}
	return nil
}

// verifyReader reads until ctx ends, and reports progress.
type verifyReader struct {
	ctx context.Context
	v   *verification
	f   *stored
}

// Read implements io.Reader.
func (r *verifyReader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	n, err := r.f.Read(p)
	r.v.mu.Lock()
	defer r.v.mu.Unlock()
	r.v.report.Bytes += int64(n)
	if r.v.progress != nil {
		r.v.progress(r.v.report.Bytes, max(r.v.total, r.v.report.Bytes))
	}
	return n, err
}

// chunks decodes every chunk of a pack. It reports only the first damage, so that a missing pack does not flood the
// report.
func (v *verification) chunks(ctx context.Context, rd *Reader, p verifiedPack) error {
	noted := false
	err := v.r.eachEntry(p.records, func(ref Ref, e entry) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if !v.r.isWhole(e) {
			return nil // garbage; the check of manifests covers what backups need
		}
		_, err := rd.chunk(ref, e, rd.content)
		if errors.Is(err, ErrDamaged) {
			if noted {
				return nil
			}
			noted = true
		}
		return v.note(err)
	})
	err = v.note(err)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.report.Chunks += p.records.Len()
	return err
}

// backup verifies a manifest and everything it names.
func (v *verification) backup(id string) error {
	m, _, err := v.r.Manifest(id)
	if errors.Is(err, ErrNotFound) {
		return nil // deleted meanwhile
	}
	if err == nil {
		err = v.manifest(m)
	}
	if err == nil {
		v.report.Backups++
		return nil
	}
	v.report.Affected = append(v.report.Affected, id)
	slices.Sort(v.report.Affected)
	if errors.Is(err, errAffected) {
		return nil
	}
	return v.note(err)
}

// errAffected means that a backup needs data known to be damaged.
var errAffected = errors.New("backup needs damaged chunks")

func (v *verification) manifest(m *Manifest) error {
	s := &Snapshot{Manifest: m, r: v.r}
	if err := v.checkAffected(m); err != nil {
		return err
	}
	if err := s.Check(); err != nil {
		return err
	}
	for i := range m.Entries {
		e := &m.Entries[i]
		crc, err := v.r.FileCRC32C(e.Chunks, e.Size)
		if err != nil {
			return err
		}
		if crc != e.CRC32C {
			return damaged(ManifestName(m.Backup.ID), fmt.Sprintf("%s has another checksum than its chunks", e.Path))
		}
	}
	return nil
}

// checkAffected returns errAffected if the backup needs a damaged record.
func (v *verification) checkAffected(m *Manifest) error {
	for i := range m.Entries {
		err := m.Entries[i].Chunks.Refs(func(ref Ref) error {
			if ref == (Ref{}) {
				return nil
			}
			if err := v.r.locate(ref.Session); err != nil && !v.lost {
				return err
			} else if err != nil || v.broken[v.r.homeOf(ref.Session).number] || v.r.distrusted(ref) {
				return errAffected
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
