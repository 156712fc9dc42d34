package s3

import (
	"encoding/xml"
	"strings"

	"holdfast/engine/objects"
)

type listedVersion struct {
	XMLName           xml.Name
	Key               string
	VersionID         string `xml:"VersionId"`
	IsLatest          bool
	LastModified      string
	ETag              string `xml:",omitempty"`
	ChecksumAlgorithm string `xml:",omitempty"`
	ChecksumType      string `xml:",omitempty"`
	Size              *int64
	StorageClass      string `xml:",omitempty"`
	Owner             *owner
}

// versionListing is the response to a list of versions.
type versionListing struct {
	XMLName             xml.Name `xml:"ListVersionsResult"`
	Xmlns               string   `xml:"xmlns,attr"`
	Name                string
	Prefix              string
	KeyMarker           string
	VersionIDMarker     string `xml:"VersionIdMarker"`
	NextKeyMarker       string `xml:",omitempty"`
	NextVersionIDMarker string `xml:"NextVersionIdMarker,omitempty"`
	MaxKeys             int
	Delimiter           string `xml:",omitempty"`
	EncodingType        string `xml:",omitempty"`
	IsTruncated         bool
	Versions            []listedVersion
	CommonPrefixes      []commonPrefix
}

func (q *request) listVersions() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	if text := q.query.Get("max-keys"); strings.HasPrefix(text, "-") { // other words than for objects
		return invalidArgument("maxKeys", text, "max-keys cannot be negative")
	}
	limit, err := q.limit("max-keys")
	if err != nil {
		return err
	}
	encode, err := q.encoding()
	if err != nil {
		return err
	}
	key, version := q.query.Get("key-marker"), q.query.Get("version-id-marker")
	if version != "" {
		if key == "" {
			return fail("InvalidArgument", "A version-id marker cannot be specified without a key marker.")
		}
		if err := checkVersion(version); err != nil {
			return err
		}
	}
	answer := versionListing{
		Xmlns: namespace, Name: b.Name, Prefix: encode(q.query.Get("prefix")), Delimiter: encode(q.query.Get("delimiter")),
		KeyMarker: encode(key), VersionIDMarker: version, MaxKeys: limit, EncodingType: q.query.Get("encoding-type"),
	}
	if limit > 0 {
		found, err := q.engine.Objects.VersionList(q.Call, b.ID, q.query.Get("prefix"), q.query.Get("delimiter"), key, version, limit)
		if err != nil {
			return err
		}
		q.fillVersions(&answer, found, encode)
	}
	return writeXML(q.Exchange, answer)
}

// fillVersions adds the entries to a list.
func (q *request) fillVersions(answer *versionListing, found objects.VersionPage, encode func(string) string) {
	for _, v := range found.Versions {
		answer.Versions = append(answer.Versions, q.listedVersion(v, encode))
	}
	for _, prefix := range found.Prefixes {
		answer.CommonPrefixes = append(answer.CommonPrefixes, commonPrefix{encode(prefix)})
	}
	if answer.IsTruncated = found.More; found.More {
		answer.NextKeyMarker, answer.NextVersionIDMarker = encode(found.LastKey), found.LastVersion
	}
}

func (q *request) listedVersion(v objects.ListedVersion, encode func(string) string) listedVersion {
	entry := listedVersion{
		XMLName: xml.Name{Local: "DeleteMarker"}, Key: encode(v.Key), VersionID: v.VersionID(), IsLatest: v.Latest,
		LastModified: timestamp(v.LastModified), Owner: q.owner(),
	}
	if v.DeleteMarker {
		return entry
	}
	entry.XMLName.Local, entry.ETag, entry.Size, entry.StorageClass = "Version", quoted(v.EntityTag()), &v.SizeBytes, "STANDARD"
	if c := checksumOf(v.Object); c.Value != "" {
		entry.ChecksumAlgorithm, entry.ChecksumType = c.Algorithm, checksumType(v.Object)
	}
	return entry
}
