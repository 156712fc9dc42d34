package postgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"

	"holdfast/internal/durable"
	"holdfast/internal/pgcontrol"
)

// copyTo makes dest, which must not exist, a durable copy of the template, a data directory whose server was shut
// down, and checks what it reads. The copy is a cluster of its own: it has its own system identifier in pg_control and
// in the WAL, as after an initdb.
func (t *template) copyTo(ctx context.Context, dest string) error {
	if err := os.Mkdir(dest, 0o700); err != nil {
		return err
	}
	tree, err := durable.OpenTree(dest)
	if err != nil {
		return err
	}
	defer tree.Close()
	for _, name := range t.directories {
		if err := os.Mkdir(filepath.Join(dest, name), 0o700); err != nil {
			return err
		}
	}
	buffer := make([]byte, copyBuffer)
	for _, file := range t.files {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := t.copyFile(dest, file, buffer); err != nil {
			return err
		}
	}
	if err := t.writeIdentity(dest); err != nil {
		return fmt.Errorf("change the system identifier: %w", err)
	}
	return tree.Sync()
}

// copyBuffer is the size up to which a file is read into memory at once. Larger ones, a tenth of the files, are copied
// by the kernel, which shares their blocks where the file system can.
const copyBuffer = 128 << 10

// copyFile copies a file and checks it.
func (t *template) copyFile(dest string, file templateFile, buffer []byte) error {
	source, err := os.Open(filepath.Join(t.dir, file.name))
	if err != nil {
		return err
	}
	defer source.Close()
	to, err := os.OpenFile(filepath.Join(dest, file.name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	found, err := copyContent(to, source, file.Size, buffer)
	if err == nil && found != file.fileSum {
		err = fmt.Errorf("%w: %s", errTemplateDamaged, file.name)
	}
	return errors.Join(err, to.Close())
}

// copyContent copies a file of the given size and returns what it was.
func copyContent(to, from *os.File, size int64, buffer []byte) (fileSum, error) {
	if size >= copyBuffer {
		if _, err := to.ReadFrom(from); err != nil {
			return fileSum{}, err
		}
		if _, err := to.Seek(0, io.SeekStart); err != nil {
			return fileSum{}, err
		}
		return sumReader(to, buffer)
	}
	n, err := io.ReadFull(from, buffer[:size+1])
	switch {
	case err == nil: // a byte too many
		return fileSum{Size: int64(n)}, nil
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return fileSum{}, err
	}
	if _, err := to.Write(buffer[:n]); err != nil {
		return fileSum{}, err
	}
	return fileSum{Size: int64(n), CRC: crc32.Checksum(buffer[:n], castagnoli)}, nil
}

// writeIdentity writes pg_control and the WAL file with a new system identifier. The rest of the WAL file, which was
// zeros, is allocated, as PostgreSQL needs it to be; on file systems that cannot allocate, such as those that never
// overwrite, it makes no difference.
func (t *template) writeIdentity(dest string) error {
	identifier := newSystemIdentifier()
	control, wal := append([]byte(nil), t.control...), append([]byte(nil), t.walContent...)
	pgcontrol.Renew(control, identifier)
	binary.LittleEndian.PutUint64(wal[walIdentifier:], identifier)
	if err := os.WriteFile(filepath.Join(dest, pgcontrol.File), control, 0o600); err != nil {
		return err
	}
	f, err := durable.OS{}.Create(filepath.Join(dest, t.wal))
	if err != nil {
		return err
	}
	err = f.Allocate(walSegment)
	if err == nil {
		_, err = f.WriteAt(wal, 0)
	}
	return errors.Join(err, f.Close())
}

// walSegment is the size of a WAL file: Init keeps initdb's default.
const walSegment = 16 << 20

// segmentOf returns the name of the WAL file that contains the last checkpoint.
func segmentOf(control []byte) string {
	const perLog = 1 << 32 / walSegment
	timeline, checkpoint := pgcontrol.Checkpoint(control)
	segment := checkpoint / walSegment
	return fmt.Sprintf("%08X%08X%08X", timeline, segment/perLog, segment%perLog)
}

// walIdentifier is the offset of the system identifier in a WAL file
// (XLogLongPageHeaderData). It occurs only in the first page's header, which has no
// checksum.
const walIdentifier = 24

// newSystemIdentifier returns an identifier as initdb makes it (BootStrapXLOG): the
// time in microseconds, and 12 bits that distinguish clusters made at once, which
// initdb takes from the process number.
func newSystemIdentifier() uint64 {
	now := time.Now()
	var random [2]byte
	_, _ = rand.Read(random[:])
	return uint64(now.Unix())<<32 | uint64(now.Nanosecond()/1000)<<12 | uint64(binary.LittleEndian.Uint16(random[:])&0xfff)
}
