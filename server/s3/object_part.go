package s3

import (
	"fmt"
	"strconv"

	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// checkPartNumber checks the part that a request reads.
func (q *request) checkPartNumber() error {
	text := q.query.Get("partNumber")
	if text == "" {
		return nil
	}
	if n, err := strconv.Atoi(text); err != nil || n < 1 || n > objects.MaxParts {
		return invalidArgument("partNumber", text, "Part number must be an integer between 1 and %d, inclusive.", objects.MaxParts)
	}
	if q.Request.Header.Get("Range") != "" {
		return fail("InvalidRequest", "Cannot specify both Range header and partNumber query parameter")
	}
	return nil
}

// selectPart makes the request one for the range of the part that it reads. An object that was not uploaded in parts is
// its own first part.
func (q *request) selectPart(o model.Object) error {
	number, _ := strconv.Atoi(q.query.Get("partNumber")) // checked
	sizes := []int64{o.SizeBytes}
	if o.Attributes != nil && o.Attributes.Upload != "" {
		if sizes = o.Attributes.PartSizes; sizes == nil {
			return fail("NotImplemented", "The sizes of the parts of this object are unknown")
		}
		q.Header().Set("X-Amz-Mp-Parts-Count", strconv.Itoa(len(sizes)))
	}
	if number > len(sizes) {
		return fail("InvalidPartNumber", "The requested partnumber is not satisfiable.").
			with("ActualPartCount", strconv.Itoa(len(sizes))).with("PartNumberRequested", strconv.Itoa(number))
	}
	from := int64(0)
	for _, size := range sizes[:number-1] {
		from += size
	}
	if size := sizes[number-1]; size > 0 {
		q.Request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, from+size-1))
	}
	return nil
}
