package xlog

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// Changes is the set of pages of a data directory's relations that WAL changed. The zero value is empty.
type Changes struct {
	everything bool // or unknown
	databases  map[uint32]struct{}
	relations  map[Relation]*pageSet // nil: the whole relation

	last    Relation // cache for consecutive changes of one relation
	lastSet *pageSet
	parts   Parts
}

// MarkUnknown records that any page may have changed.
func (c *Changes) MarkUnknown() { c.everything = true }

// Unknown reports whether any page may have changed.
func (c *Changes) Unknown() bool { return c.everything }

// OIDs of the two tablespaces that every cluster has.
const (
	defaultTablespace = 1663
	globalTablespace  = 1664
)

// segmentPages is the maximum number of pages in a file of a relation (RELSEG_SIZE).
const segmentPages = 1 << 17

// Add adds the pages that r changes.
func (c *Changes) Add(r *Record) {
	if r.Resource >= firstCustomResource {
		c.everything = true // an extension's record; its effects are unknown
		return
	}
	if err := c.parts.Read(r); err != nil {
		c.everything = true // the CRC is correct, so the record's form is unknown
		return
	}
	for _, b := range c.parts.Blocks {
		if b.Fork == 0 {
			c.addPage(b.Relation, b.Number)
		}
	}
	switch r.Resource {
	case ResourceXLOG, ResourceXact, ResourceStorage, ResourceDatabase:
		c.addWhole(r, c.parts.Main)
	}
}

// addWhole adds the changes that a record makes without block references.
func (c *Changes) addWhole(r *Record, main []byte) {
	switch info := r.Info & infoMask; r.Resource {
	case ResourceStorage:
		c.addStorage(info, main)
	case ResourceDatabase:
		c.addDatabase(info, main)
	case ResourceXact:
		c.addDropped(r, main)
	case ResourceXLOG:
		// With wal_level = minimal (0), WAL does not contain every change.
		if info == xlogParameterChange && (len(main) < 24 || binary.LittleEndian.Uint32(main[20:]) == 0) {
			c.everything = true
		}
	}
}

// addStorage decodes xl_smgr_create (relation, fork) and xl_smgr_truncate
// (remaining pages, relation, flags).
func (c *Changes) addStorage(info uint8, main []byte) {
	if info == storageTruncate && len(main) >= 4 {
		main = main[4:]
	} else if info != storageCreate {
		c.everything = true
		return
	}
	if len(main) < 16 {
		c.everything = true
		return
	}
	if info == storageCreate && binary.LittleEndian.Uint32(main[12:]) != 0 {
		return // not the main fork; other forks are always read whole
	}
	c.addRelation(readRelation(main))
}

// addDatabase decodes xl_dbase_create_*_rec and xl_dbase_drop_rec, which all begin with the database.
func (c *Changes) addDatabase(info uint8, main []byte) {
	known := info == databaseCreateCopy || info == databaseCreateLog || info == databaseDrop
	if !known || len(main) < 4 {
		c.everything = true
		return
	}
	if c.databases == nil {
		c.databases = map[uint32]struct{}{}
	}
	c.databases[binary.LittleEndian.Uint32(main)] = struct{}{}
}

// Parts of a transaction's last record, by the bits of its xinfo.
const (
	xinfoDatabase      = 1 << 0
	xinfoSubxacts      = 1 << 1
	xinfoRelations     = 1 << 2
	transactionDropped = 12 // bytes of a relation
)

// addDropped adds the relations whose files are removed at the end of a transaction. Their numbers can then be
// reused; a relation that reuses one has its own record, so this is a precaution.
func (c *Changes) addDropped(r *Record, main []byte) {
	switch r.Info & xactMask {
	case xactCommit, xactAbort, xactCommitPrepare, xactAbortPrepare:
	default:
		return
	}
	if r.Info&xactHasInfo == 0 || len(main) < 12 {
		return
	}
	xinfo, in := binary.LittleEndian.Uint32(main[8:]), main[12:]
	if xinfo&xinfoDatabase != 0 {
		in = in[min(8, len(in)):]
	}
	if xinfo&xinfoSubxacts != 0 {
		_, in = counted(in, 4)
	}
	if xinfo&xinfoRelations == 0 {
		return
	}
	relations, _ := counted(in, transactionDropped)
	for ; len(relations) >= transactionDropped; relations = relations[transactionDropped:] {
		c.addRelation(readRelation(relations))
	}
	if c.parts.Cut {
		c.everything = true // the list may be longer
	}
}

// counted decodes a count and that many items of size bytes, or as many as are present.
func counted(in []byte, size int) (items, rest []byte) {
	if len(in) < 4 {
		return nil, nil
	}
	n := int(binary.LittleEndian.Uint32(in)) * size
	in = in[4:]
	return in[:min(n, len(in))], in[min(n, len(in)):]
}

func readRelation(in []byte) Relation {
	return Relation{
		Tablespace: binary.LittleEndian.Uint32(in), Database: binary.LittleEndian.Uint32(in[4:]),
		Number: binary.LittleEndian.Uint32(in[8:]),
	}
}

func (c *Changes) addRelation(r Relation) {
	if c.relations == nil {
		c.relations = map[Relation]*pageSet{}
	}
	c.relations[r] = nil
	c.lastSet = nil
}

func (c *Changes) addPage(r Relation, number uint32) {
	if c.lastSet != nil && c.last == r {
		c.lastSet.add(number)
		return
	}
	set, known := c.relations[r]
	switch {
	case known && set == nil:
		return
	case !known:
		if c.relations == nil {
			c.relations = map[Relation]*pageSet{}
		}
		set = &pageSet{}
		c.relations[r] = set
	}
	c.last, c.lastSet = r, set
	set.add(number)
}

// Merge adds the changes of o.
func (c *Changes) Merge(o *Changes) {
	c.everything = c.everything || o.everything
	for d := range o.databases {
		if c.databases == nil {
			c.databases = map[uint32]struct{}{}
		}
		c.databases[d] = struct{}{}
	}
	for r, set := range o.relations {
		if set == nil {
			c.addRelation(r)
			continue
		}
		for number := range set.all {
			c.addPage(r, number)
		}
	}
}

// Pages returns the changed page numbers, ascending, of the file at path, which is slash-separated and relative to
// the data directory; a relation's later segments ("base/5/16384.1") count their own pages from 0. known is false if
// the file must be read whole: it is not a relation's main fork, it was created, truncated or copied as a whole, or
// the changes are unknown. Pages does not recognize unlogged relations, which have an init fork and change without
// WAL.
func (c *Changes) Pages(path string) (pages []uint32, known bool) {
	r, segment, ok := relationOf(path)
	if !ok || c.everything {
		return nil, false
	}
	if _, whole := c.databases[r.Database]; whole {
		return nil, false
	}
	set, changed := c.relations[r]
	if !changed {
		return nil, true
	}
	if set == nil {
		return nil, false
	}
	first := segment * segmentPages
	for number := range set.from(first) {
		if number-first >= segmentPages {
			break
		}
		pages = append(pages, number-first)
	}
	return pages, true
}

// relationOf parses the path of a relation's main fork.
func relationOf(path string) (r Relation, segment uint32, ok bool) {
	parts := strings.Split(path, "/")
	switch {
	case len(parts) == 2 && parts[0] == "global":
		r.Tablespace = globalTablespace
	case len(parts) == 3 && parts[0] == "base":
		r.Tablespace = defaultTablespace
		if r.Database, ok = oid(parts[1]); !ok {
			return r, 0, false
		}
	default:
		return r, 0, false
	}
	name, later, cut := strings.Cut(parts[len(parts)-1], ".")
	if cut {
		// Page numbers have 32 bits, so a relation has at most 32768 files.
		if segment, ok = oid(later); !ok || segment >= 1<<15 {
			return r, 0, false
		}
	}
	r.Number, ok = oid(name)
	return r, segment, ok
}

// oid parses a number in PostgreSQL's form for file names.
func oid(s string) (uint32, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err == nil && n > 0 && s[0] != '0'
}
