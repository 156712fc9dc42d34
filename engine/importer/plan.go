package importer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Plan is what a cutover needs to know of the copy that it completes, also after a restart of the appliance.
type Plan struct {
	Number      int   // server_version_num of the source
	Fingerprint int64 // of the source's definitions
	Publication []PlannedPart
	Tables      []PlannedTable
	Views       []PlannedView  // materialized views to fill
	Entries     []PlannedEntry // definitions to execute
	Comment     *string        // of the source's database
	Settings    []PlannedSetting
	// LargeObjects is how many large objects the copy has.
	LargeObjects int64
}

// PlannedTable is a table of the copy.
type PlannedTable struct {
	OID          uint32
	Schema, Name string
	Column       string  // one that holds data, as SQL; "" for a table without
	Heap         float64 // bytes
	Followed     bool
	Counted      bool
	// Together is the root below which rows may be in other partitions here: all of them are counted together.
	Together uint32
}

// PlannedPart is a row of the source's catalog that the publication consists of.
type PlannedPart struct {
	Object uint32 // the table or schema that it publishes, 0 for the publication itself
	Row    string // its oid and xmin, which no other row has, nor the row once it was changed
}

// PlannedView is a materialized view of the copy.
type PlannedView struct {
	OID          uint32
	Schema, Name string
}

// PlannedEntry is an entry of the archive.
type PlannedEntry struct {
	ID                              int
	OID                             uint32
	Tag, Desc, Namespace, SQL, Role string
}

// PlannedSetting is a setting of the source's database, or of its user.
type PlannedSetting struct {
	Text string // name=value
	Own  bool   // the user's
}

// planHead is the first line of a plan, before its checksum: the version of the format.
const planHead = "holdfast follow 1 "

// Encode returns the plan as bytes, with the version of the format and a checksum.
func (p Plan) Encode() ([]byte, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode plan: %w", err)
	}
	sum := sha256.Sum256(body)
	return slices.Concat([]byte(planHead+hex.EncodeToString(sum[:])+"\n"), body), nil
}

// ErrPlan says that a plan cannot be used.
var ErrPlan = errors.New("what the cutover needs is damaged, or of another version of holdfast")

// DecodePlan is the reverse of Encode.
func DecodePlan(data []byte) (p Plan, err error) {
	head, body, _ := bytes.Cut(data, []byte("\n"))
	sum := sha256.Sum256(body)
	if string(head) != planHead+hex.EncodeToString(sum[:]) {
		return p, ErrPlan
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return p, errors.Join(ErrPlan, err)
	}
	return p, nil
}

// plan returns what remains to be done at the cutover.
func (c *copying) plan() Plan {
	p := Plan{Number: c.number, LargeObjects: c.inventory.largeObjects}
	for _, t := range c.inventory.tables {
		first, _ := cutColumn(t.columns)
		planned := PlannedTable{OID: t.oid, Schema: t.schema, Name: t.name, Column: first, Heap: t.heap, Followed: t.published, Counted: c.rows[t.oid] != told}
		if c.follow.publication.viaRoot { // the root routes the rows
			planned.Together = t.root
		}
		p.Tables = append(p.Tables, planned)
	}
	for _, v := range c.inventory.views {
		p.Views = append(p.Views, PlannedView{v.oid, v.schema, v.name})
	}
	for _, e := range c.entries {
		if e.desc == "ACL" && slices.ContainsFunc(e.needs, c.hasFailed) || c.hasFailed(e.id) || !isLast(e) && e.desc != "MATERIALIZED VIEW" {
			continue
		}
		p.Entries = append(p.Entries, PlannedEntry{e.id, e.oid, e.tag, e.desc, e.namespace, e.definition, e.owner})
	}
	return p
}

// cutColumn returns the first of a list of columns as SQL, and the rest.
func cutColumn(columns string) (first, rest string) {
	end := 0
	if columns != "" {
		end = quoted(columns)
	}
	return columns[:end], columns[end:]
}

// copying returns the plan as a copy that has only its end before it. open opens the target.
func (p Plan) copying(s *Session, owner string, open Target) *copying {
	s.number = p.Number
	c := s.newCopy(Job{Owner: owner, Target: open})
	for _, t := range p.Tables {
		c.inventory.tables = append(c.inventory.tables, table{
			oid: t.OID, schema: t.Schema, name: t.Name, columns: t.Column, heap: t.Heap, published: t.Followed, counted: t.Counted, together: t.Together,
		})
	}
	for _, v := range p.Views {
		c.inventory.views = append(c.inventory.views, view{v.OID, v.Schema, v.Name})
	}
	for _, e := range p.Entries {
		c.entries = append(c.entries, entry{id: e.ID, oid: e.OID, tag: e.Tag, desc: e.Desc, namespace: e.Namespace, definition: e.SQL, owner: e.Role})
	}
	return c
}
