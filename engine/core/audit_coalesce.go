package core

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"time"

	"holdfast/engine/model"
)

// coalesceWindow is how long the entries of a source are counted together.
const coalesceWindow = time.Minute

// The number of entries of a source that are written per coalesceWindow, before one
// that stands for the rest.
const (
	// keyEntries is for an API key that is invalid or beyond a budget.
	keyEntries = 60
	// keylessEntries is for all requests without a known key, and again for all of people who are not signed in,
	// keylessAddressEntries for those from one address.
	keylessEntries, keylessAddressEntries = 60, 30
	// linkEntries is for the signed downloads of a bucket or an export, for those by presigned URLs
	// of one maker, or for the refused requests by links, presigned URLs and forms of one maker;
	// linkAddressEntries for those from one address.
	linkEntries, linkAddressEntries = 60, 30
	// anonymousEntries is for the unsigned downloads of an organization, and again for
	// those that are refused. anonymousBucketEntries is for one bucket,
	// anonymousAddressEntries for one address there.
	anonymousEntries, anonymousBucketEntries, anonymousAddressEntries = 12, 6, 3
)

// AuditCoalescer bounds the entries of requests that no budget bounds: enough of
// them would push older entries out of the log. Each request counts for several
// sources, from the widest to the narrowest. Once one of them has used up its
// entries in the window, further entries are not written, except the last: it is
// written when the window ends, with the number of those left out.
//
// The narrow bounds keep one requester from hiding another: what does not fit
// into a narrow source does not count for the wide ones. The wide bounds hold for
// any number of addresses, buckets and object keys. Sources share a wide one only
// if they have the same rights.
type AuditCoalescer struct {
	mu      sync.Mutex
	began   time.Time // the window
	sources map[auditBound]*coalesced
}

// auditSource identifies entries that are counted together, by requester, resource
// and address; "" means that any value counts.
type auditSource struct {
	organization, who, what, address string
}

// auditBound limits how many entries a source may write in a window.
type auditBound struct {
	source auditSource
	limit  int
}

type coalesced struct {
	entries int
	last    *model.AuditEntry // not written yet; nil within the bound
	skipped int               // number not written, including last
}

// newAuditCoalescer returns a coalescer whose first window begins with the first
// entry.
func newAuditCoalescer() *AuditCoalescer {
	return &AuditCoalescer{sources: map[auditBound]*coalesced{}}
}

// auditBounds returns the bounds on the entry of a call, widest first; nil for
// calls that a budget limits.
func auditBounds(call *model.Call, err error) []auditBound {
	organization, address := call.Organization, model.VisitorOf(call.IP)
	source := func(who, what, address string) auditSource { return auditSource{organization, who, what, address} }
	switch {
	case call.Actor == model.DownloadLink():
		what := call.Resource.ID // the bucket or the export
		return []auditBound{{source("link", what, ""), linkEntries}, {source("link", what, address), linkAddressEntries}}
	case call.Actor == model.Anybody():
		who := "anonymous"
		if err != nil {
			who = "refused"
		}
		what := boundedResource(call.Resource).ID
		return []auditBound{
			{source(who, "", ""), anonymousEntries}, {source(who, what, ""), anonymousBucketEntries}, {source(who, what, address), anonymousAddressEntries},
		}
	case call.Actor.Type == model.ActorKey && call.Actor.ID == "":
		return []auditBound{{source("keyless", "", ""), keylessEntries}, {source("keyless", "", address), keylessAddressEntries}}
	case call.IsPerson() && call.Actor.ID == "":
		return []auditBound{{source("signed out", "", ""), keylessEntries}, {source("signed out", "", address), keylessAddressEntries}}
	case call.Linked && err != nil:
		maker := call.Actor.ID
		return []auditBound{{source("refused link", maker, ""), linkEntries}, {source("refused link", maker, address), linkAddressEntries}}
	case call.Linked && !call.Operation.Changes():
		who, what := "link of "+call.Actor.ID, call.Resource.ID // the bucket
		return []auditBound{{source(who, what, ""), linkEntries}, {source(who, what, address), linkAddressEntries}}
	case call.Actor.Type == model.ActorKey && call.Key == nil, model.CodeOf(err) == model.CodeRateLimited:
		return []auditBound{{source("key "+call.Actor.ID, "", ""), keyEntries}}
	default:
		return nil
	}
}

// admit takes an entry with its bounds and returns the entries to write now.
func (f *AuditCoalescer) admit(entry *model.AuditEntry, bounds []auditBound) []*model.AuditEntry {
	write := f.NextWindow(entry.At)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range bounds { // a source below an exhausted one is not recorded, which also bounds memory
		if s := f.sources[b]; s != nil && s.entries >= b.limit {
			s.last = entry
			s.skipped++
			return write
		}
	}
	for _, b := range bounds {
		s := f.sources[b]
		if s == nil {
			s = &coalesced{}
			f.sources[b] = s
		}
		s.entries++
	}
	return append(write, entry)
}

// NextWindow starts another window if the current one is over, and returns the remaining
// entries to write for it.
func (f *AuditCoalescer) NextWindow(now time.Time) []*model.AuditEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	if past := now.Sub(f.began); past >= 0 && past < coalesceWindow {
		return nil
	}
	f.began = now
	return f.rest()
}

// End returns the entries that remain to be written.
func (f *AuditCoalescer) End() []*model.AuditEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rest()
}

func (f *AuditCoalescer) rest() (write []*model.AuditEntry) {
	for _, s := range f.sources {
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
	clear(f.sources)
	slices.SortFunc(write, func(a, b *model.AuditEntry) int { return cmp.Compare(a.ID, b.ID) })
	return write
}
