package s3

import (
	"strconv"
	"strings"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/s3/sigv4"
)

func (q *request) putObject() error {
	in, attributes, err := q.upload()
	if err != nil {
		return err
	}
	if in.IfAbsent, in.IfMatch, err = q.writeConditions(); err != nil {
		return err
	}
	body, err := q.payload(true, sigv4.OfPayload)
	if err != nil {
		return err
	}
	in.Length = body.Length
	stored, err := q.store(in, attributes, body)
	if err != nil {
		return err
	}
	q.Header().Set("X-Amz-Object-Size", strconv.FormatInt(stored.SizeBytes, 10))
	q.writeChecksum(stored.Object)
	return nil
}

// upload returns what a request stores, without its body, and the attributes of the object.
func (q *request) upload() (in objects.Upload, a *model.Attributes, err error) {
	b, err := q.findBucket()
	if err != nil {
		return in, nil, err
	}
	in = objects.Upload{Bucket: b.ID, Key: q.key, Length: -1}
	if in.ContentType, a, err = attributesOf(q.Request.Header, q.key); err != nil {
		return in, nil, err
	}
	if err := checkKey(q.key); err != nil {
		return in, nil, err
	}
	if in.Lock, err = q.lockOf(); err != nil {
		return in, nil, err
	}
	in.Tags, err = tagsOf(q.Request.Header)
	return in, a, err
}

// store stores an object, and sets the headers of its response that name what was stored.
func (q *request) store(in objects.Upload, a *model.Attributes, body *payload) (objects.ObjectView, error) {
	body.Compute(sigv4.DefaultAlgorithm)
	in.Body = body
	in.Describe = func(o *model.Object) { describeUpload(o, a, body.MD5(), body.Checksum()) }
	stored, err := q.engine.Objects.ObjectUpload(q.Request.Context(), q.Call, in)
	if err != nil {
		return stored, q.conditionError(in, err)
	}
	q.Header().Set("Etag", quoted(stored.EntityTag()))
	q.describeNewVersion(stored.Object)
	return stored, nil
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
		return false, "", failedCondition("If-Match")
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
	switch {
	case model.CodeOf(err) != model.CodeConflict:
		return err
	case in.IfAbsent:
		return failedCondition("If-None-Match")
	case in.IfMatch != "":
		return failedCondition("If-Match")
	}
	return err
}
