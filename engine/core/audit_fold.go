package core

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"time"

	"holdfast/engine/model"
)

// AuditFoldWindow is the time in which the entries of a source are counted.
const AuditFoldWindow = time.Minute

// How many entries of a source are written in an AuditFoldWindow, before one that
// stands for the rest.
const (
	// FoldKey is for an API key: one that is not in force, or beyond a budget.
	FoldKey = 60
	// foldNobody is for all requests without a known key, foldNobodyAddress for
	// those of one address.
	foldNobody, foldNobodyAddress = 60, 30
	// foldSigned is for the signed downloads of a bucket, or of an export,
	// FoldSignedAddress for those of one address.
	foldSigned, FoldSignedAddress = 60, 30
	// FoldAnybody is for what anybody may ask for of an organization: the downloads
	// that need no signature, and those that are refused. foldAnybodyBucket is for
	// one bucket, FoldAnybodyAddress for one address there.
	FoldAnybody, foldAnybodyBucket, FoldAnybodyAddress = 12, 6, 3
)

// AuditFold bounds what requests leave in the log that nothing else bounds:
// enough of them would push out what matters. Each request counts for several
// sources, from the widest to the narrowest. While one of them has used up its
// entries of the window, no more are written; the last is written at the end of
// the window, and says how many are not.
//
// The narrow bounds keep one requester from hiding another: what does not fit
// into a narrow source leaves the wide ones as they are. The wide bounds hold
// whatever number of addresses, buckets and keys of objects are used. Sources
// share a wide one only where they are alike in what they may do.
type AuditFold struct {
	mu      sync.Mutex
	began   time.Time // the window
	Sources map[auditBound]*folded
}

// auditSource names entries that are counted together: by requester, resource
// and address, each "" if it does not matter.
type auditSource struct {
	organization, who, what, address string
}

// auditBound is how many entries a source may write in a window.
type auditBound struct {
	source auditSource
	limit  int
}

type folded struct {
	entries int
	last    *model.AuditEntry // not written yet; nil within the bound
	skipped int               // how many were not written, the last included
}

func NewAuditFold() *AuditFold { return &AuditFold{Sources: map[auditBound]*folded{}} }

// AuditBounds returns what bounds the entry of a call, the widest first; nil for
// calls that a budget bounds.
func AuditBounds(call *model.Call, err error) []auditBound {
	organization, address := call.Organization, model.VisitorOf(call.IP)
	source := func(who, what, address string) auditSource { return auditSource{organization, who, what, address} }
	switch {
	case call.Actor == model.DownloadLink():
		what := call.Resource.ID // the bucket or the export
		return []auditBound{{source("link", what, ""), foldSigned}, {source("link", what, address), FoldSignedAddress}}
	case call.Actor == model.Anybody():
		who := "anybody"
		if err != nil {
			who = "refused"
		}
		what := boundedResource(call.Resource).ID
		return []auditBound{
			{source(who, "", ""), FoldAnybody}, {source(who, what, ""), foldAnybodyBucket}, {source(who, what, address), FoldAnybodyAddress},
		}
	case call.Actor.Type == model.ActorKey && call.Actor.ID == "":
		return []auditBound{{source("nobody", "", ""), foldNobody}, {source("nobody", "", address), foldNobodyAddress}}
	case call.Actor.Type == model.ActorKey && call.Key == nil, model.CodeOf(err) == model.CodeRateLimited:
		return []auditBound{{source("key "+call.Actor.ID, "", ""), FoldKey}}
	default:
		return nil
	}
}

// Admit takes an entry with its bounds and returns those that are to be written
// now.
func (f *AuditFold) Admit(entry *model.AuditEntry, bounds []auditBound) []*model.AuditEntry {
	write := f.Turn(entry.At)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range bounds { // no source is noted below one that is used up: memory is bounded, too
		if s := f.Sources[b]; s != nil && s.entries >= b.limit {
			s.last = entry
			s.skipped++
			return write
		}
	}
	for _, b := range bounds {
		s := f.Sources[b]
		if s == nil {
			s = &folded{}
			f.Sources[b] = s
		}
		s.entries++
	}
	return append(write, entry)
}

// Turn begins another window when the one before is over, and returns what is
// to be written of that.
func (f *AuditFold) Turn(now time.Time) []*model.AuditEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	if past := now.Sub(f.began); past >= 0 && past < AuditFoldWindow {
		return nil
	}
	f.began = now
	return f.rest()
}

// End returns what is still to be written.
func (f *AuditFold) End() []*model.AuditEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rest()
}

func (f *AuditFold) rest() (write []*model.AuditEntry) {
	for _, s := range f.Sources {
		if s.last == nil {
			continue
		}
		details := map[string]string{"not_logged": strconv.Itoa(s.skipped - 1)}
		for name, value := range s.last.Details {
			details[name] = value
		}
		s.last.Details = details
		write = append(write, s.last)
	}
	clear(f.Sources)
	slices.SortFunc(write, func(a, b *model.AuditEntry) int { return cmp.Compare(a.ID, b.ID) })
	return write
}
