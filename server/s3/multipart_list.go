package s3

import (
	"cmp"
	"encoding/xml"
	"slices"
	"strings"

	"holdfast/engine/model"
)

type listedUpload struct {
	Key               string
	UploadID          string `xml:"UploadId"`
	Initiator         *owner
	Owner             *owner
	StorageClass      string
	Initiated         string
	ChecksumAlgorithm string `xml:",omitempty"`
	ChecksumType      string `xml:",omitempty"`
}

// checkUploadMarker refuses an upload-id-marker that no list ended with: one that is no id, or that of another key's upload. The
// upload of a good one may have ended since.
func checkUploadMarker(all []model.Multipart, key, id string) error {
	if key == "" || id == "" { // without a key it is passed over
		return nil
	}
	i := slices.IndexFunc(all, func(m model.Multipart) bool { return m.ID == id })
	if !model.ResourceUpload.HasPrefix(id) || i >= 0 && all[i].Key != key {
		return invalidArgument("upload-id-marker", id, "Invalid uploadId marker")
	}
	return nil
}

func (q *request) listUploads() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	limit, err := q.limit("max-uploads")
	if err != nil {
		return err
	}
	encode, err := q.encoding()
	if err != nil {
		return err
	}
	all, err := q.engine.Objects.MultipartList(q.Call, b.ID)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b model.Multipart) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.ID, b.ID)) })
	prefix, delimiter := q.query.Get("prefix"), q.query.Get("delimiter")
	keyMarker, idMarker := q.query.Get("key-marker"), q.query.Get("upload-id-marker")
	if err := checkUploadMarker(all, keyMarker, idMarker); err != nil {
		return err
	}
	answer := struct {
		XMLName            xml.Name `xml:"ListMultipartUploadsResult"`
		Xmlns              string   `xml:"xmlns,attr"`
		Bucket             string
		KeyMarker          string
		UploadIDMarker     string `xml:"UploadIdMarker"`
		NextKeyMarker      string
		NextUploadIDMarker string `xml:"NextUploadIdMarker"`
		Prefix             string
		Delimiter          string `xml:",omitempty"`
		EncodingType       string `xml:",omitempty"`
		MaxUploads         int
		IsTruncated        bool
		Uploads            []listedUpload `xml:"Upload"`
		CommonPrefixes     []commonPrefix
	}{
		Xmlns: namespace, Bucket: q.bucket, KeyMarker: encode(keyMarker), UploadIDMarker: idMarker, Prefix: encode(prefix), Delimiter: encode(delimiter),
		EncodingType: q.query.Get("encoding-type"), MaxUploads: limit,
	}
	last := ""
	for _, m := range all {
		if !strings.HasPrefix(m.Key, prefix) || m.Key < keyMarker || m.Key == keyMarker && (idMarker == "" || m.ID <= idMarker) {
			continue
		}
		folder := ""
		if rest := m.Key[len(prefix):]; delimiter != "" && strings.Contains(rest, delimiter) {
			folder = prefix + rest[:strings.Index(rest, delimiter)+len(delimiter)]
			if folder == last || folder == keyMarker {
				continue
			}
		}
		if len(answer.Uploads)+len(answer.CommonPrefixes) == limit {
			answer.IsTruncated = limit > 0
			break
		}
		if folder != "" {
			last = folder
			answer.CommonPrefixes = append(answer.CommonPrefixes, commonPrefix{encode(folder)})
			answer.NextKeyMarker, answer.NextUploadIDMarker = encode(folder), ""
			continue
		}
		answer.NextKeyMarker, answer.NextUploadIDMarker = encode(m.Key), m.ID
		entry := listedUpload{Key: encode(m.Key), UploadID: m.ID, Initiator: q.owner(), Owner: q.owner(), StorageClass: "STANDARD", Initiated: timestamp(m.CreatedAt)}
		if algorithm := m.Attributes.ChecksumAlgorithm; algorithm != "" {
			entry.ChecksumAlgorithm, entry.ChecksumType = algorithm, multipartType(m)
		}
		answer.Uploads = append(answer.Uploads, entry)
	}
	if !answer.IsTruncated {
		answer.NextKeyMarker, answer.NextUploadIDMarker = "", ""
	}
	return writeXML(q.Exchange, answer)
}
