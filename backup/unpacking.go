package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/klauspost/compress/zstd"

	"holdfast/blobstore"
)

// maxDecoderWindow bounds what a damaged frame can make the decoder allocate.
const maxDecoderWindow = 8 << 20

// unpacking is a backup on its way into a target.
type unpacking struct {
	ctx      context.Context
	store    *blobstore.Store
	source   Result
	target   *target
	progress *progress

	expected contents // of the manifest, and not yet unpacked
	wal      contents // unpacked, and not in the manifest
	buf      []byte
}

func (u *unpacking) run() error {
	u.expected, u.wal, u.buf = contents{}, contents{}, make([]byte, copyBuffer)
	if err := u.blob("manifest", u.source.Manifest, u.source.ManifestBLAKE3, u.readManifest); err != nil {
		return err
	}
	if err := u.blob("archive", u.source.Archive, u.source.ArchiveBLAKE3, u.readArchive); err != nil {
		return err
	}
	return u.target.finish()
}

// blob has read read a blob to its end, and compares its digest. Where the two
// disagree the digest is right: what read found follows from the damage.
func (u *unpacking) blob(what string, ref blobstore.Ref, digest string, read func(io.Reader) error) error {
	r, err := u.store.Open(ref)
	if err != nil {
		return fmt.Errorf("open %s: %w", what, err)
	}
	defer r.Close()
	in := newDigestReader(u.ctx, r)
	readErr := read(in)
	if isDisk(readErr) {
		return readErr
	}
	if err := in.drain(); err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	if got := in.digest(); got != digest {
		return errors.Join(fmt.Errorf("%w: %s in blob %s: its BLAKE3 is %s, and was %s when it was stored", ErrDamaged, what, ref, got, digest), readErr)
	}
	return readErr
}

// readManifest also puts the manifest where stock tools look for it.
func (u *unpacking) readManifest(in io.Reader) error {
	f, err := u.target.create(manifestFile)
	if err != nil {
		return err
	}
	wal, err := readManifest(io.TeeReader(in, f), u.expected.add)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if want, _ := u.source.walRange(); wal != want {
		return fmt.Errorf("manifest is of another backup: it needs WAL %v, not %v", wal, want)
	}
	return nil
}

func (u *unpacking) readArchive(in io.Reader) error {
	decoder, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxWindow(maxDecoderWindow))
	if err != nil {
		return fmt.Errorf("decompress archive: %w", err)
	}
	defer decoder.Close()
	if err := walkArchive(&countingReader{decoder, u.progress}, u.member); err != nil {
		return err
	}
	for name := range u.expected {
		return fmt.Errorf("%s and %d other files are in the manifest and not in the archive", name, len(u.expected)-1)
	}
	want, _ := u.source.walRange()
	return want.covered(u.wal)
}

func (u *unpacking) member(m member) error {
	if m.content == nil {
		return u.target.mkdir(m.name)
	}
	got, err := u.target.write(m.name, m.content, u.buf)
	if err != nil {
		return err
	}
	if _, listed := u.expected[m.name]; !listed && strings.HasPrefix(m.name, walPrefix) {
		return u.wal.add(m.name, got)
	}
	return u.expected.take(m.name, got)
}

// isDisk says that the disk is to blame, or its being full, and not the backup.
func isDisk(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EIO)
}
