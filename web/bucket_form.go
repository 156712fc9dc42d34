package web

import (
	"fmt"
	"strings"

	"holdfast/engine/model"
)

// bucketForm holds fields of the forms that change a bucket, as they are or were typed.
type bucketForm struct {
	Public, Listing bool
	Prefixes        string // one a line
	Days            string
}

func (req *request) bucketForm(b model.Bucket) bucketForm {
	const prefixes = "public_prefixes"
	return bucketForm{
		Public: req.ticked("public", prefixes, b.Public), Listing: req.ticked("public_listing", prefixes, b.PublicListing),
		Prefixes: req.typed(prefixes, strings.Join(b.PublicPrefixes, "\n")), Days: req.typed("expire_after_days", orEmpty(b.Expiry.Days())),
	}
}

// OtherRules describes the rules of the bucket by which files and versions are removed, except the one of the form.
func (d bucketData) OtherRules() (all []string) {
	for _, r := range d.Bucket.Expiry {
		below := ""
		if r.Prefix != "" {
			below = " below " + r.Prefix
		}
		if r.Days > 0 && below != "" {
			all = append(all, fmt.Sprintf("Files%s are removed after %d days.", below, r.Days))
		}
		if r.NoncurrentDays > 0 {
			all = append(all, fmt.Sprintf("Earlier versions%s are removed after %d days.", below, r.NoncurrentDays))
		}
	}
	return all
}
