package model

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// ExpiryRule removes objects of a bucket by their age.
type ExpiryRule struct {
	// Prefix is what the keys of the objects begin with, "" for all of the bucket.
	Prefix string `json:"prefix,omitempty"`
	// Days is the age at which objects are removed; 0 means never.
	Days int `json:"days,omitempty"`
	// NoncurrentDays is how long versions are kept that are not current any more, and delete markers without any other
	// version of their key; 0 means for ever.
	NoncurrentDays int `json:"noncurrent_days,omitempty"`
}

// Expiry are the rules by which objects of a bucket are removed for their age. Of several that concern an object, the
// shortest time counts.
type Expiry []ExpiryRule

const (
	// MaxExpireDays is the largest number of days of a rule.
	MaxExpireDays = 36500
	// MaxExpiryRules is the largest number of rules.
	MaxExpiryRules = 100
	// MaxExpiryBytes is the maximum size in bytes of the rules of a bucket, whose record has them, and of the document that says
	// them.
	MaxExpiryBytes = 64 << 10
)

const day = 24 * time.Hour

// Life returns how long the rules keep an object with that key, 0 for ever.
func (e Expiry) Life(key string) time.Duration {
	return e.shortest(key, func(r ExpiryRule) int { return r.Days })
}

// NoncurrentLife returns how long the rules keep an earlier version of that key, 0 for ever.
func (e Expiry) NoncurrentLife(key string) time.Duration {
	return e.shortest(key, func(r ExpiryRule) int { return r.NoncurrentDays })
}

// NoncurrentPrefixes returns what the keys begin with of which versions expire, sorted, none of them beginning with another.
func (e Expiry) NoncurrentPrefixes() []string {
	var prefixes []string
	for _, r := range e {
		if r.NoncurrentDays > 0 {
			prefixes = append(prefixes, r.Prefix)
		}
	}
	return outermost(prefixes)
}

func (e Expiry) shortest(key string, daysOf func(ExpiryRule) int) (life time.Duration) {
	for _, r := range e {
		of := time.Duration(daysOf(r)) * day
		if strings.HasPrefix(key, r.Prefix) && of > 0 && (life == 0 || of < life) {
			life = of
		}
	}
	return life
}

// Days returns the age in days at which the rule for the whole bucket removes objects; 0 means never.
func (e Expiry) Days() int {
	for _, r := range e {
		if r.Prefix == "" {
			return r.Days
		}
	}
	return 0
}

// WithDays returns the rules with that age in the rule for the whole bucket.
func (e Expiry) WithDays(days int) Expiry {
	whole := ExpiryRule{Days: days}
	var others Expiry
	for _, r := range e {
		if r.Prefix == "" {
			whole.NoncurrentDays = r.NoncurrentDays
		} else {
			others = append(others, r)
		}
	}
	if whole == (ExpiryRule{}) {
		return others
	}
	return append(Expiry{whole}, others...)
}

// Sooner reports whether there may be objects or versions that the rules remove and others keep, or keep longer.
func (e Expiry) Sooner(others Expiry) bool {
	return e.sooner(others, Expiry.Life) || e.sooner(others, Expiry.NoncurrentLife)
}

// RemovesSooner is Sooner for current objects alone.
func (e Expiry) RemovesSooner(others Expiry) bool { return e.sooner(others, Expiry.Life) }

// sooner compares at the prefixes of all rules: the rules that concern a key are those that concern the longest of these
// prefixes with which it begins.
func (e Expiry) sooner(others Expiry, life func(Expiry, string) time.Duration) bool {
	return slices.ContainsFunc(slices.Concat(e, others), func(r ExpiryRule) bool {
		here, there := life(e, r.Prefix), life(others, r.Prefix)
		return here > 0 && (there == 0 || here < there)
	})
}

// ValidateExpiry checks rules and returns them sorted by their prefixes.
func ValidateExpiry(field string, rules Expiry) (Expiry, error) {
	if len(rules) > MaxExpiryRules {
		return nil, Invalid(field, "must have at most %d rules", MaxExpiryRules)
	}
	sorted := slices.SortedFunc(slices.Values(rules), func(a, b ExpiryRule) int { return strings.Compare(a.Prefix, b.Prefix) })
	for i, r := range sorted {
		if r.Prefix != "" {
			if err := ValidateObjectKey(field+".prefix", r.Prefix); err != nil {
				return nil, err
			}
		}
		for name, days := range map[string]int{".days": r.Days, ".noncurrent_days": r.NoncurrentDays} {
			if days < 0 || days > MaxExpireDays {
				return nil, Invalid(field+name, "must be from 1 to %d days, or 0 to keep objects", MaxExpireDays)
			}
		}
		switch {
		case r.Days == 0 && r.NoncurrentDays == 0:
			return nil, Invalid(field, "must say days or noncurrent_days for the prefix %q", r.Prefix)
		case i > 0 && sorted[i-1].Prefix == r.Prefix:
			return nil, Invalid(field, "must not have two rules for the prefix %q", r.Prefix)
		}
	}
	if stored, err := json.Marshal(sorted); err != nil || len(stored) > MaxExpiryBytes {
		return nil, Invalid(field, "must take at most %d bytes in all: shorten their prefixes, or remove some", MaxExpiryBytes)
	}
	return sorted, nil
}
