package model

import "strings"

// CORSRule says from which pages of other origins browsers may use a bucket by the S3 protocol.
type CORSRule struct {
	ID string `json:"id,omitempty"`
	// Origins and Headers may have one * each, for any text.
	Origins []string `json:"origins"`
	Methods []string `json:"methods"`
	Headers []string `json:"headers,omitempty"`
	// Expose are the headers of responses that pages may read.
	Expose []string `json:"expose,omitempty"`
	// MaxAgeSeconds is how long browsers may keep the answer, nil for their own default.
	MaxAgeSeconds *int32 `json:"max_age_seconds,omitempty"`
}

// Allows reports whether the rule allows a request, and whether it allows those of every origin.
func (r CORSRule) Allows(origin, method string, headers []string) (allowed, everyOrigin bool) {
	if !anyMatches(r.Origins, origin) || !anyMatches(r.Methods, method) {
		return false, false
	}
	for _, h := range headers {
		if !anyMatches(r.Headers, h) {
			return false, false
		}
	}
	return true, anyMatches(r.Origins, "*")
}

// anyMatches reports whether one of the patterns, which may have one *, matches a text, in whatever case.
func anyMatches(patterns []string, text string) bool {
	for _, p := range patterns {
		p, text := strings.ToLower(p), strings.ToLower(text)
		before, after, wild := strings.Cut(p, "*")
		if p == text || wild && len(text) >= len(p)-1 && strings.HasPrefix(text, before) && strings.HasSuffix(text, after) {
			return true
		}
	}
	return false
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
		b.Public, b.Policy = false, ""
	}
}

func (b *Bucket) isBlocked() bool {
	block := b.PublicAccessBlock
	return block != nil && (block.BlockPublicPolicy || block.RestrictPublicBuckets)
}

// SetPublic makes a bucket public or private. The policy document that did the opposite is dropped.
func (b *Bucket) SetPublic(public bool) error {
	if public && b.isBlocked() {
		return Errorf(CodeConflict, "the bucket's public access block keeps it private; remove it first (DELETE ?publicAccessBlock by S3)")
	}
	if b.Public != public {
		b.Public, b.Policy = public, ""
	}
	return nil
}
