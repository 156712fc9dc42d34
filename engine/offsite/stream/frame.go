package stream

import (
	"encoding/binary"
	"fmt"
	"time"
)

// MaxFrame is the largest frame, encoded. A Source divides what is larger.
const MaxFrame = 4 << 20

// Frame is one change, in the order of the log.
type Frame struct {
	Time time.Time // when it was durable on the machine; the times of a Source never go back
	Body Body
	Log  uint64 // the number of its log object, 0 until it is in one
}

// Body is the content of a frame: one of the types WAL, WALFile, Journal,
// JournalDrop, Meta, File, FileDrop and OwnerDrop. Decoded ones share memory with
// the others of their log object.
type Body interface {
	kind() byte
	append(b []byte) []byte
}

// WAL is a part of a database's write-ahead log.
type WAL struct {
	Owner      string // the database
	Generation uint64
	Timeline   uint32
	From       uint64 // the LSN of the first byte
	Bytes      []byte
}

// WALFile is a small file of a database's WAL archive, whole.
type WALFile struct {
	Owner      string
	Generation uint64
	Name       string
	Content    []byte
}

// Journal is a part of a segment of the blob store's journal.
type Journal struct {
	Segment uint64
	From    uint64 // offset of the first byte
	Bytes   []byte
}

// JournalDrop says that a segment of the journal is not needed any more.
type JournalDrop struct{ Segment uint64 }

// Meta is the redo of one transaction of the metadata.
type Meta struct {
	Transaction uint64
	Changes     []MetaChange
}

// MetaChange sets a key of a bucket, or deletes it. FORMAT.md says what it means
// without a key and without a bucket.
type MetaChange struct {
	Bucket  []string // path
	Key     []byte
	Value   []byte
	Deleted bool
}

// File says that a file is in the store. It follows the file.
type File struct {
	Owner, Kind, Name string
	Ref               Reference
}

// FileDrop says that a file is not needed any more.
type FileDrop struct{ Owner, Kind, Name string }

// OwnerDrop says that everything of an owner is gone.
type OwnerDrop struct{ Owner string }

func (WAL) kind() byte         { return 1 }
func (WALFile) kind() byte     { return 2 }
func (Journal) kind() byte     { return 3 }
func (JournalDrop) kind() byte { return 4 }
func (Meta) kind() byte        { return 5 }
func (File) kind() byte        { return 6 }
func (FileDrop) kind() byte    { return 7 }
func (OwnerDrop) kind() byte   { return 8 }

func (f WAL) append(b []byte) []byte {
	b = binary.AppendUvarint(appendBytes(b, f.Owner), f.Generation)
	b = binary.AppendUvarint(b, uint64(f.Timeline))
	return appendBytes(binary.AppendUvarint(b, f.From), f.Bytes)
}

func (f WALFile) append(b []byte) []byte {
	b = binary.AppendUvarint(appendBytes(b, f.Owner), f.Generation)
	return appendBytes(appendBytes(b, f.Name), f.Content)
}

func (f Journal) append(b []byte) []byte {
	b = binary.AppendUvarint(b, f.Segment)
	return appendBytes(binary.AppendUvarint(b, f.From), f.Bytes)
}

func (f JournalDrop) append(b []byte) []byte { return binary.AppendUvarint(b, f.Segment) }

func (f Meta) append(b []byte) []byte {
	b = binary.AppendUvarint(b, f.Transaction)
	b = binary.AppendUvarint(b, uint64(len(f.Changes)))
	for _, c := range f.Changes {
		b = c.append(b)
	}
	return b
}

func (c MetaChange) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(c.Bucket)))
	for _, name := range c.Bucket {
		b = appendBytes(b, name)
	}
	b = appendBytes(b, c.Key)
	if c.Deleted {
		return append(b, 1)
	}
	return appendBytes(append(b, 0), c.Value)
}

func (f File) append(b []byte) []byte {
	return f.Ref.append(appendBytes(appendBytes(appendBytes(b, f.Owner), f.Kind), f.Name))
}

func (f FileDrop) append(b []byte) []byte {
	return appendBytes(appendBytes(appendBytes(b, f.Owner), f.Kind), f.Name)
}

func (f OwnerDrop) append(b []byte) []byte { return appendBytes(b, f.Owner) }

func decodeBody(kind byte, b []byte) (Body, error) {
	d := &decoder{b: b}
	f := d.body(kind)
	return f, d.end("a frame")
}

func (d *decoder) body(kind byte) Body {
	switch kind {
	case WAL{}.kind():
		return WAL{d.string("a database"), d.uvarint("a generation"), uint32(d.number("a timeline", 1<<32-1)), d.uvarint("an LSN"), d.rest("WAL")}
	case WALFile{}.kind():
		return WALFile{d.string("a database"), d.uvarint("a generation"), d.string("a name"), d.rest("a file")}
	case Journal{}.kind():
		return Journal{d.uvarint("a segment"), d.uvarint("an offset"), d.rest("a journal")}
	case JournalDrop{}.kind():
		return JournalDrop{d.uvarint("a segment")}
	case Meta{}.kind():
		return d.meta()
	case File{}.kind():
		return File{d.string("an owner"), d.string("a kind"), d.string("a name"), d.reference()}
	case FileDrop{}.kind():
		return FileDrop{d.string("an owner"), d.string("a kind"), d.string("a name")}
	case OwnerDrop{}.kind():
		return OwnerDrop{d.string("an owner")}
	}
	d.b, d.err = nil, fmt.Errorf("%w: frame of kind %d", ErrVersion, kind)
	return nil
}

func (d *decoder) rest(what string) []byte { return d.bytes(what, MaxFrame) }

func (d *decoder) meta() Meta {
	m := Meta{Transaction: d.uvarint("a transaction")}
	// A change has three bytes at least, so the input bounds what is allocated.
	n := d.number("a count", uint64(len(d.b)/3))
	for range n {
		m.Changes = append(m.Changes, d.change())
		if d.err != nil {
			break
		}
	}
	return m
}

func (d *decoder) change() (c MetaChange) {
	for range d.number("a path", 16) {
		c.Bucket = append(c.Bucket, d.string("a bucket"))
	}
	c.Key = d.rest("a key")
	switch d.byte("a change") {
	case 0:
		c.Value = d.rest("a value")
	case 1:
		c.Deleted = true
	default:
		d.fail("a change")
	}
	return c
}
