package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"holdfast/internal/durable"
	"holdfast/internal/pgcontrol"
)

// copyTemplate makes dest, which must not exist, a durable copy of the template, a
// data directory whose server was shut down, and checks it. The copy is a cluster of its own: it
// has its own system identifier in pg_control and in the WAL, as after an initdb.
func copyTemplate(ctx context.Context, template, dest string) error {
	if err := os.Mkdir(dest, 0o700); err != nil {
		return err
	}
	tree, err := durable.OpenTree(dest)
	if err != nil {
		return err
	}
	defer tree.Close()
	files, err := readManifest(template)
	if err != nil {
		return err
	}
	control, err := os.ReadFile(filepath.Join(template, pgcontrol.File))
	if err != nil {
		return err
	}
	if pgcontrol.Content(control) == nil {
		return fmt.Errorf("%w: %s", errTemplateDamaged, pgcontrol.File)
	}
	wal := filepath.Join("pg_wal", segmentOf(control))
	if err := copyFiles(ctx, template, dest, wal); err != nil {
		return err
	}
	copied, err := sumTree(dest)
	if err == nil {
		err = files.needed(wal).compare(copied)
	}
	if err != nil {
		return err
	}
	if err := changeIdentity(dest, wal, control); err != nil {
		return fmt.Errorf("change the system identifier: %w", err)
	}
	return tree.Sync()
}

// copyFiles copies the directories and files of a template. Of the WAL it copies
// only that file: a server that was shut down needs nothing older than its last
// checkpoint.
func copyFiles(ctx context.Context, template, dest, wal string) error {
	return filepath.WalkDir(template, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == template {
			return err
		}
		name, err := filepath.Rel(template, path)
		if err != nil {
			return err
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.IsDir():
			return os.Mkdir(filepath.Join(dest, name), 0o700)
		case name == manifestFile || filepath.Dir(name) == filepath.Dir(wal) && name != wal:
			return nil
		case name == wal:
			return copyWAL(path, filepath.Join(dest, name))
		}
		return copyFile(path, filepath.Join(dest, name))
	})
}

// copyWAL copies a WAL file and leaves out the zeros after its last record, a third of
// the bytes of a whole copy. Their space is allocated, as PostgreSQL needs it to be; on
// file systems that cannot allocate, such as those that never overwrite, it makes no
// difference.
func copyWAL(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	dest, err := durable.OS{}.Create(to)
	if err != nil {
		return err
	}
	return errors.Join(writeAllocated(dest, source), dest.Close())
}

// writeAllocated writes what is not zero in the source.
func writeAllocated(dest durable.File, source *os.File) error {
	info, err := source.Stat()
	if err == nil {
		err = dest.Allocate(info.Size())
	}
	block, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); err == nil && at < info.Size(); at += int64(len(block)) {
		part := block[:min(int64(len(block)), info.Size()-at)]
		if _, err = source.ReadAt(part, at); err == nil && !bytes.Equal(part, zeros[:len(part)]) {
			_, err = dest.WriteAt(part, at)
		}
	}
	return err
}

// copyFile copies a file. Where the file system can share blocks, the copy shares
// them: os.File uses copy_file_range(2).
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	dest, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dest, source)
	return errors.Join(err, dest.Close())
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

// changeIdentity gives the cluster in dir, whose pg_control is control, another
// system identifier. wal is its only WAL file.
func changeIdentity(dir, wal string, control []byte) error {
	identifier := newSystemIdentifier()
	if err := changeWALIdentity(filepath.Join(dir, wal), pgcontrol.SystemIdentifier(control), identifier); err != nil {
		return err
	}
	pgcontrol.Renew(control, identifier)
	f, err := os.OpenFile(filepath.Join(dir, pgcontrol.File), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(control)
	return errors.Join(err, f.Close())
}

// walIdentifier is the offset of the system identifier in a WAL file
// (XLogLongPageHeaderData). It occurs only in the first page's header, which has no
// checksum.
const walIdentifier = 24

func changeWALIdentity(path string, from, to uint64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	field := make([]byte, 8)
	if _, err := f.ReadAt(field, walIdentifier); err != nil {
		return err
	}
	if binary.LittleEndian.Uint64(field) != from {
		return fmt.Errorf("%s belongs to another cluster", filepath.Base(path))
	}
	binary.LittleEndian.PutUint64(field, to)
	_, err = f.WriteAt(field, walIdentifier)
	return err
}

// newSystemIdentifier returns an identifier as initdb makes it (BootStrapXLOG): the
// time in microseconds, and 12 bits that distinguish clusters made at once, which
// initdb takes from the process number.
func newSystemIdentifier() uint64 {
	now := time.Now()
	var random [2]byte
	_, _ = rand.Read(random[:])
	return uint64(now.Unix())<<32 | uint64(now.Nanosecond()/1000)<<12 | uint64(binary.LittleEndian.Uint16(random[:])&0xfff)
}
