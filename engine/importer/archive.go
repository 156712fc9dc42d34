package importer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"holdfast/engine/model"
)

// entry is the definition of one object in pg_dump's archive.
type entry struct {
	id         int
	catalog    uint32 // oid of the object's system catalog
	oid        uint32 // of the object, in the source
	tag        string // the object's name, for display
	desc       string // the kind of object: TABLE, INDEX, COMMENT, …
	section    section
	definition string // SQL, "" for none
	namespace  string
	owner      string // role, in the source
	needs      []int  // ids of the entries it depends on
}

// section is the phase of a restore in which an entry is created.
type section int

// The sections of an archive (pg_backup.h, teSection).
const (
	sectionNone section = iota + 1
	sectionPreData
	sectionData
	sectionPostData
)

// name returns what flaws call the entry.
func (e entry) name() string {
	if strings.HasPrefix(e.tag, e.desc+" ") { // a user mapping's tag starts with its kind
		return e.tag
	}
	if e.namespace == "" {
		return e.desc + " " + e.tag
	}
	return e.desc + " " + e.namespace + "." + e.tag
}

// Limits of a schema archive.
const (
	largestArchive = 128 << 20 // bytes, held in memory
	mostEntries    = 1_000_000
	mostNeeds      = 1_000_000
)

// The supported versions of the archive format, as major*256+minor: those that pg_dump has written since PostgreSQL 12.
const (
	oldestArchive    = 1<<8 | 14
	newestArchive    = 1<<8 | 16
	withAlgorithm    = 1<<8 | 15 // the header names the compression algorithm
	withRelationKind = 1<<8 | 16 // entries have the relation kind
)

var errArchive = errors.New("not an archive of pg_dump's that is known here")

// readArchive reads the entries of a pg_dump custom-format archive that contains no data. PostgreSQL's
// pg_backup_archiver.c (ReadHead, ReadToc) and pg_backup_custom.c (_ReadExtraToc) define the format.
func readArchive(r io.Reader) ([]entry, error) {
	limited := &io.LimitedReader{R: r, N: largestArchive}
	a := &archiveReader{r: bufio.NewReaderSize(limited, 1<<16)}
	a.header()
	count := a.int()
	if count < 0 || count > mostEntries {
		a.fail(fmt.Errorf("%w: it has %d entries", errArchive, count))
	}
	var entries []entry
	for range count {
		if a.err != nil {
			break
		}
		entries = append(entries, a.entry())
	}
	if count > mostEntries || a.err != nil && limited.N <= 0 {
		return nil, model.Errorf(model.CodeValidation, "the definitions of the source's objects are more than an import takes, which is %d objects and %s; "+
			"copy it with pg_dump, part by part", mostEntries, megabytes(largestArchive))
	}
	if a.err != nil {
		return nil, fmt.Errorf("read archive: %w", a.err)
	}
	return entries, nil
}

// archiveReader reads an archive until its first error, which it keeps.
type archiveReader struct {
	r          *bufio.Reader
	version    int
	intSize    int
	offsetSize int
	err        error
}

func (a *archiveReader) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

func (a *archiveReader) header() {
	var magic [5]byte
	if _, err := io.ReadFull(a.r, magic[:]); err != nil {
		a.fail(err)
		return
	}
	a.version = int(a.byte())<<8 | int(a.byte())
	a.byte() // revision
	a.intSize, a.offsetSize = int(a.byte()), int(a.byte())
	format := a.byte()
	const custom = 1
	if string(magic[:]) != "PGDMP" || a.version < oldestArchive || a.version > newestArchive ||
		a.intSize < 4 || a.intSize > 8 || a.offsetSize < 4 || a.offsetSize > 8 || format != custom {
		a.fail(fmt.Errorf("%w: version %d.%d", errArchive, a.version>>8, a.version&0xff))
		return
	}
	if a.version >= withAlgorithm {
		a.byte()
	} else {
		a.int()
	}
	for range 7 { // the time of the dump
		a.int()
	}
	for range 3 { // database, server version, pg_dump version
		a.text()
	}
}

func (a *archiveReader) entry() entry {
	e := entry{id: a.int()}
	a.int() // whether it contains data
	e.catalog, e.oid = a.oid(), a.oid()
	e.tag, e.desc, e.section, e.definition = a.text(), a.text(), section(a.int()), a.text()
	a.text() // DROP statement
	a.text() // COPY statement
	e.namespace = a.text()
	a.text() // tablespace
	a.text() // table access method
	if a.version >= withRelationKind {
		a.int()
	}
	e.owner = a.text()
	a.text() // whether it has oids
	e.needs = a.needs()
	a.byte() // whether there is data
	for range a.offsetSize {
		a.byte()
	}
	return e
}

// needs reads a list of ids, which ends with an absent string.
func (a *archiveReader) needs() []int {
	var ids []int
	for len(ids) < mostNeeds {
		text, ok := a.textOrNone()
		if !ok || a.err != nil {
			return ids
		}
		id, err := strconv.Atoi(text)
		if err != nil {
			a.fail(fmt.Errorf("%w: %q is no id", errArchive, text))
			return ids
		}
		ids = append(ids, id)
	}
	a.fail(fmt.Errorf("%w: an entry needs too many others", errArchive))
	return ids
}

func (a *archiveReader) byte() byte {
	if a.err != nil {
		return 0
	}
	b, err := a.r.ReadByte()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		a.fail(err)
	}
	return b
}

// int reads a number: its sign, then its bytes, lowest first.
func (a *archiveReader) int() int {
	negative := a.byte() != 0
	n := 0
	for i := range a.intSize {
		if b := int(a.byte()); i < 4 {
			n |= b << (8 * i)
		}
	}
	if negative {
		return -n
	}
	return n
}

func (a *archiveReader) text() string {
	text, _ := a.textOrNone()
	return text
}

func (a *archiveReader) textOrNone() (string, bool) {
	length := a.int()
	if length < 0 || a.err != nil {
		return "", false
	}
	// Memory grows with the text that arrives, whatever the length claims.
	var text []byte
	for length > 0 {
		part := make([]byte, min(length, 1<<20))
		if _, err := io.ReadFull(a.r, part); err != nil {
			a.fail(err)
			return "", false
		}
		text, length = append(text, part...), length-len(part)
	}
	return string(text), true
}

func (a *archiveReader) oid() uint32 {
	text := a.text()
	oid, err := strconv.ParseUint(text, 10, 32)
	if err != nil && a.err == nil {
		a.fail(fmt.Errorf("%w: %q is no oid", errArchive, text))
	}
	return uint32(oid)
}
