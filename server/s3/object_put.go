package s3

import (
	"strconv"
	"strings"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/s3/sigv4"
)

func (q *request) putObject() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	in := objects.Upload{Bucket: b.ID, Key: q.key}
	var attributes *model.Attributes
	if in.ContentType, attributes, err = attributesOf(q.Request.Header); err != nil {
		return err
	}
	if in.IfAbsent, in.IfMatch, err = q.writeConditions(); err != nil {
		return err
	}
	if err := checkKey(q.key); err != nil {
		return err
	}
	if in.Lock, err = q.lockOf(); err != nil {
		return err
	}
	if in.Tags, err = tagsOf(q.Request.Header); err != nil {
		return err
	}
	body, err := q.payload(true, sigv4.OfPayload)
	if err != nil {
		return err
	}
	body.Compute(sigv4.DefaultAlgorithm)
	in.Body, in.Length = body, body.Length
	in.Describe = func(o *model.Object) { describeUpload(o, attributes, body.MD5(), body.Checksum()) }
	stored, err := q.engine.Objects.ObjectUpload(q.Request.Context(), q.Call, in)
	if err != nil {
		return q.conditionError(in, err)
	}
	q.Header().Set("Etag", quoted(stored.EntityTag()))
	q.Header().Set("X-Amz-Object-Size", strconv.FormatInt(stored.SizeBytes, 10))
	q.describeNewVersion(stored.Object)
	q.writeChecksum(stored.Object)
	return nil
}

// describeUpload sets what is known of an object once its body was read.
func describeUpload(o *model.Object, a *model.Attributes, md5 string, c sigv4.Checksum) {
	o.ETag = md5
	if c.Value != "" {
		a.ChecksumAlgorithm, a.Checksum = c.Algorithm, c.Value
	}
	if !isEmpty(a) {
		o.Attributes = a
	}
}

func isEmpty(a *model.Attributes) bool {
	for _, text := range storedHeaders(a) {
		if *text != "" {
			return false
		}
	}
	return len(a.Metadata) == 0 && a.Checksum == "" && a.Upload == ""
}

// writeChecksum adds the verified checksum of a stored object to the response.
func (q *request) writeChecksum(o model.Object) {
	if c := checksumOf(o); c.Value != "" {
		q.Header().Set(sigv4.HeaderOf(c.Algorithm), c.Value)
		q.Header().Set("X-Amz-Checksum-Type", checksumType(o))
	}
}

// checkKey gives keys that cannot be stored S3's errors.
func checkKey(key string) error {
	if len(key) > model.MaxObjectKey {
		return fail("KeyTooLongError", "Your key is too long").with("Size", strconv.Itoa(len(key))).with("MaxSizeAllowed", strconv.Itoa(model.MaxObjectKey))
	}
	return model.ValidateObjectKey("key", key)
}

// writeConditions reads the conditions on a write.
func (q *request) writeConditions() (absent bool, match string, err error) {
	header := q.Request.Header
	match = strings.Trim(strings.TrimPrefix(header.Get("If-Match"), "W/"), `"`)
	switch none := header.Get("If-None-Match"); {
	case len(header["If-Match"]) > 0 && match == "": // no object has an empty tag
		return false, "", failedCondition()
	case none != "" && none != "*":
		return false, "", notImplemented("If-None-Match", "On a write it can only be *")
	case none != "" && match != "" || match == "*":
		return false, "", notImplemented("If-Match", "On a write it cannot be * or stand beside If-None-Match")
	case header.Get("If-Modified-Since") != "" || header.Get("If-Unmodified-Since") != "":
		return false, "", notImplemented("If-Modified-Since", "A write cannot have conditions by time")
	default:
		return none != "", match, nil
	}
}

// conditionError gives a write whose condition does not hold the error of S3.
func (q *request) conditionError(in objects.Upload, err error) error {
	if model.CodeOf(err) == model.CodeConflict && (in.IfAbsent || in.IfMatch != "") {
		return failedCondition()
	}
	return err
}
