package model

import (
	"slices"
	"strings"
)

const (
	// MaxPublicPrefixes is the maximum number of a bucket's public prefixes.
	MaxPublicPrefixes = 20
	// MaxPublicPrefix is the longest public prefix, in bytes.
	MaxPublicPrefix = 512
)

// PublicRights are what everybody may do with a bucket without a key. Nothing lets everybody write.
type PublicRights struct {
	Read     bool     // all objects
	Prefixes []string // objects whose keys begin with one of them
	List     bool     // the keys, by the S3 endpoint: those below Prefixes if there are some, else all
}

// Any reports whether everybody may do anything.
func (r PublicRights) Any() bool { return r.Read || r.List || len(r.Prefixes) > 0 }

// Reads reports whether everybody may read the object of a key.
func (r PublicRights) Reads(key string) bool {
	return r.Read || slices.ContainsFunc(r.Prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

// Lists reports whether everybody may list the keys that begin with a prefix.
func (r PublicRights) Lists(prefix string) bool {
	return r.List && (len(r.Prefixes) == 0 || r.Reads(prefix))
}

func (r PublicRights) equal(other PublicRights) bool {
	return r.Read == other.Read && r.List == other.List && slices.Equal(r.Prefixes, other.Prefixes)
}

// PublicRights returns what everybody may do with the bucket.
func (b Bucket) PublicRights() PublicRights {
	return PublicRights{b.Public, b.PublicPrefixes, b.PublicListing}
}

// SetPublic says what everybody may do. A policy document that said something else is dropped.
func (b *Bucket) SetPublic(to PublicRights) error {
	if to.Any() && b.isBlocked() {
		return Errorf(CodeConflict, "the bucket's public access block keeps it private; remove it first (DELETE ?publicAccessBlock by S3)")
	}
	if !b.PublicRights().equal(to) {
		b.Public, b.PublicPrefixes, b.PublicListing, b.Policy = to.Read, to.Prefixes, to.List, ""
	}
	return nil
}

// ValidatePublicPrefixes checks prefixes, and returns them in order without those that others contain. A policy document has to
// be able to name them, so they have no wildcards.
func ValidatePublicPrefixes(field string, prefixes []string) ([]string, error) {
	for _, p := range prefixes {
		if err := validatePublicPrefix(field, p); err != nil {
			return nil, err
		}
	}
	all := outermost(prefixes)
	if len(all) > MaxPublicPrefixes {
		return nil, Invalid(field, "must have at most %d prefixes", MaxPublicPrefixes)
	}
	return all, nil
}

// outermost returns those of the prefixes that begin with no other one, sorted.
func outermost(prefixes []string) (all []string) {
	for _, p := range slices.Sorted(slices.Values(prefixes)) {
		if n := len(all); n == 0 || !strings.HasPrefix(p, all[n-1]) {
			all = append(all, p)
		}
	}
	return all
}

func validatePublicPrefix(field, prefix string) error {
	switch {
	case prefix == "":
		return Invalid(field, "must not have an empty prefix; public lets everybody read all objects")
	case len(prefix) > MaxPublicPrefix:
		return Invalid(field, "must have prefixes of at most %d bytes", MaxPublicPrefix)
	case strings.ContainsAny(prefix, "*?") || strings.Contains(prefix, "${"):
		return Invalid(field, "must not have *, ? or ${ in a prefix; write what the keys begin with, such as images/")
	}
	return ValidateObjectKey(field, prefix)
}

// PublicAccessBlock keeps a bucket from being made public. S3 has these four switches; either of the last two does it
// here, where there are no ACLs.
type PublicAccessBlock struct {
	BlockPublicACLs       bool `json:"block_public_acls"`
	IgnorePublicACLs      bool `json:"ignore_public_acls"`
	BlockPublicPolicy     bool `json:"block_public_policy"`
	RestrictPublicBuckets bool `json:"restrict_public_buckets"`
}

// Block sets or, with nil, removes the public access block. A public bucket that it blocks is public no more.
func (b *Bucket) Block(block *PublicAccessBlock) {
	if b.PublicAccessBlock = block; b.isBlocked() {
		b.Public, b.PublicPrefixes, b.PublicListing, b.Policy = false, nil, false, ""
	}
}

func (b *Bucket) isBlocked() bool {
	block := b.PublicAccessBlock
	return block != nil && (block.BlockPublicPolicy || block.RestrictPublicBuckets)
}
