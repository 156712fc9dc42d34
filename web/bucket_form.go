package web

import (
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
		Prefixes: req.typed(prefixes, strings.Join(b.PublicPrefixes, "\n")), Days: req.typed("expire_after_days", orEmpty(b.ExpireAfterDays)),
	}
}
