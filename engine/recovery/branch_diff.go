package recovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"holdfast/engine/databases"
	"holdfast/engine/model"
)

const (
	// maxSchema and maxSchemaLines are how many bytes and lines of a schema's dump are compared, and maxDiff how many bytes of the
	// difference are returned. A comparison takes up to two hundred bytes of memory for each line.
	maxSchema      = 8 << 20
	maxSchemaLines = 400_000
	maxDiff        = 2 << 20
	// diffWait bounds a comparison, and diffLockWait the wait for a table that a session has locked.
	diffWait     = 2 * time.Minute
	diffLockWait = 10 * time.Second
)

// SchemaDiff is the difference between the schemas of a parent and of its branch.
type SchemaDiff struct {
	Parent, Branch string // ids
	Unified        []byte // empty if there is none
	Truncated      bool   // Unified is only its beginning
}

// BranchDiff compares the schema of a branch with that of its parent, as pg_dump writes them.
func (s *Service) BranchDiff(ctx context.Context, call *model.Call, id string) (SchemaDiff, error) {
	db, err := s.databases.Database(call, id)
	if err != nil {
		return SchemaDiff{}, err
	}
	parent, err := s.parentOf(db)
	if err != nil {
		return SchemaDiff{}, err
	}
	for _, it := range []model.Database{db, parent} {
		if status, reason := s.databases.LiveStatus(it); status != model.DatabaseAvailable {
			return SchemaDiff{}, databases.NotAvailable(it, status, it.Name+reasonAfter(reason))
		}
		awake, err := s.databases.Awaken(it, false)
		if err != nil {
			return SchemaDiff{}, err
		}
		defer awake()
	}
	release, err := s.core.Claims.Take(db.Organization+"/diff", "another comparison of this organization")
	if err != nil {
		return SchemaDiff{}, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, diffWait)
	defer cancel()
	before, after, err := s.dumpSchemas(ctx, parent, db)
	if err != nil {
		return SchemaDiff{}, s.core.ExplainFailed(err)
	}
	unified := diff.Diff(parent.Name, before, db.Name, after)
	found := SchemaDiff{Parent: parent.ID, Branch: db.ID, Unified: unified}
	if len(unified) > maxDiff {
		end := bytes.LastIndexByte(unified[:maxDiff], '\n') + 1
		found.Unified, found.Truncated = unified[:end], true
	}
	return found, nil
}

func reasonAfter(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// dumpSchemas dumps both schemas at once.
func (s *Service) dumpSchemas(ctx context.Context, parent, branch model.Database) (before, after []byte, err error) {
	var both sync.WaitGroup
	var errs [2]error
	both.Go(func() { before, errs[0] = s.dumpSchema(ctx, parent) })
	both.Go(func() { after, errs[1] = s.dumpSchema(ctx, branch) })
	both.Wait()
	return before, after, errors.Join(errs[:]...)
}

// dumpSchema returns the schema of a database, without what differs between two dumps of one schema.
func (s *Service) dumpSchema(ctx context.Context, db model.Database) ([]byte, error) {
	tool, err := s.dumpTool(ctx, db)
	if err != nil {
		return nil, err
	}
	out := &boundedBuffer{most: maxSchema, lines: maxSchemaLines}
	err = s.databases.Instances.DumpSchema(ctx, db.ID, tool, db.Name, diffLockWait, out)
	if out.full {
		return nil, model.Errorf(model.CodeForbidden, "the schema of %s has more than %d MiB or %d lines, too much to be compared here: "+
			"compare dumps made by pg_dump --schema-only", db.Name, maxSchema>>20, maxSchemaLines)
	}
	if err != nil {
		return nil, fmt.Errorf("dump the schema of %s: %w", db.Name, err)
	}
	return withoutKeys(out.kept.Bytes()), nil
}

// withoutKeys removes the lines \restrict and \unrestrict of a dump, which have a random key.
func withoutKeys(dump []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(dump) {
		if !bytes.HasPrefix(line, []byte(`\restrict `)) && !bytes.HasPrefix(line, []byte(`\unrestrict `)) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// boundedBuffer is a buffer that refuses to grow beyond most bytes or lines. It does not embed the buffer, whose ReadFrom io.Copy
// would call instead of Write.
type boundedBuffer struct {
	kept        bytes.Buffer
	most, lines int
	full        bool
}

// Write implements io.Writer.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	b.lines -= bytes.Count(p, []byte("\n"))
	if b.lines < 0 || b.kept.Len()+len(p) > b.most {
		b.full = true
		return 0, errors.New("the schema is too large")
	}
	return b.kept.Write(p)
}
