package s3

import (
	"net/http"
	"strings"

	"holdfast/engine/model"
)

// handler serves a request that may perform the operation of its route.
type handler func(q *request) error

// level is what a request is about.
type level int

const (
	service level = iota
	bucket
	object
)

// route is a row of the table: what a request must be like, the operation it performs, and its handler.
type route struct {
	method string
	level  level
	// query is the parameter that distinguishes the request, "" for none.
	query     string
	copies    bool // it has the header x-amz-copy-source, or the parameter in its stead
	operation model.Operation
	serve     handler
}

// routeKey is what distinguishes a request from those of other routes.
type routeKey struct {
	method string
	level  level
	query  string
	copies bool
}

// routeTable is the table of the protocol's operations by what distinguishes their requests.
type routeTable map[routeKey]route

func newRouteTable() routeTable {
	table := routeTable{}
	for _, r := range routes() {
		table[routeKey{r.method, r.level, r.query, r.copies}] = r
	}
	return table
}

// routes returns the protocol's operations.
func routes() []route {
	operation := model.OperationFor
	upload := func(a model.Action) model.Operation {
		return model.Operation{Action: a, Scope: model.ScopeStorageCreate}
	}
	update := operation(model.ActionObjectUpdate)
	each := operation(model.ActionObjectDelete)
	each.Destructive = false // what the toggle forbids is refused for each object
	copying := func(a model.Action) model.Operation {
		op := upload(a)
		op.Others = []model.Also{{Act: model.ActionObjectGet}}
		return op
	}
	return []route{
		{http.MethodGet, service, "", false, operation(model.ActionBucketList), (*request).listBuckets},

		{http.MethodPut, bucket, "", false, operation(model.ActionBucketCreate), (*request).createBucket},
		{http.MethodHead, bucket, "", false, operation(model.ActionBucketGet), (*request).headBucket},
		{http.MethodDelete, bucket, "", false, operation(model.ActionBucketDelete), (*request).deleteBucket},
		{http.MethodGet, bucket, "location", false, operation(model.ActionBucketGet), (*request).bucketLocation},
		{http.MethodGet, bucket, "versioning", false, operation(model.ActionBucketGet), (*request).bucketVersioning},
		{http.MethodPut, bucket, "versioning", false, operation(model.ActionBucketUpdate), (*request).setBucketVersioning},
		{http.MethodGet, bucket, "versions", false, operation(model.ActionObjectList), (*request).listVersions},
		{http.MethodGet, bucket, "object-lock", false, operation(model.ActionBucketGet), (*request).bucketLock},
		{http.MethodPut, bucket, "object-lock", false, operation(model.ActionBucketUpdate), (*request).setBucketLock},
		{http.MethodGet, bucket, "tagging", false, operation(model.ActionBucketGet), (*request).bucketTags},
		{http.MethodPut, bucket, "tagging", false, operation(model.ActionBucketUpdate), (*request).setBucketTags},
		{http.MethodDelete, bucket, "tagging", false, operation(model.ActionBucketUpdate), (*request).deleteBucketTags},
		{http.MethodGet, bucket, "acl", false, operation(model.ActionBucketGet), (*request).getACL},
		{http.MethodGet, object, "acl", false, operation(model.ActionObjectGet), (*request).getACL},
		{http.MethodPut, bucket, "acl", false, operation(model.ActionBucketGet), (*request).putACL}, // changes nothing
		{http.MethodPut, object, "acl", false, operation(model.ActionObjectGet), (*request).putACL},
		{http.MethodPut, bucket, "cors", false, operation(model.ActionBucketUpdate), (*request).putCORS},
		{http.MethodGet, bucket, "cors", false, operation(model.ActionBucketGet), (*request).getCORS},
		{http.MethodDelete, bucket, "cors", false, operation(model.ActionBucketUpdate), (*request).deleteCORS},
		{http.MethodPut, bucket, "policy", false, operation(model.ActionBucketUpdate), (*request).putPolicy},
		{http.MethodGet, bucket, "policy", false, operation(model.ActionBucketGet), (*request).getPolicy},
		{http.MethodDelete, bucket, "policy", false, operation(model.ActionBucketUpdate), (*request).deletePolicy},
		{http.MethodGet, bucket, "policyStatus", false, operation(model.ActionBucketGet), (*request).policyStatus},
		{http.MethodPut, bucket, "publicAccessBlock", false, operation(model.ActionBucketUpdate), (*request).putAccessBlock},
		{http.MethodGet, bucket, "publicAccessBlock", false, operation(model.ActionBucketGet), (*request).getAccessBlock},
		{http.MethodDelete, bucket, "publicAccessBlock", false, operation(model.ActionBucketUpdate), (*request).deleteAccessBlock},
		{http.MethodPut, bucket, "ownershipControls", false, operation(model.ActionBucketUpdate), (*request).putOwnership},
		{http.MethodGet, bucket, "ownershipControls", false, operation(model.ActionBucketGet), (*request).getOwnership},
		{http.MethodPut, bucket, "lifecycle", false, operation(model.ActionBucketUpdate), (*request).putLifecycle},
		{http.MethodGet, bucket, "lifecycle", false, operation(model.ActionBucketGet), (*request).getLifecycle},
		{http.MethodDelete, bucket, "lifecycle", false, operation(model.ActionBucketUpdate), (*request).deleteLifecycle},
		{http.MethodGet, bucket, "accelerate", false, operation(model.ActionBucketGet), empty("AccelerateConfiguration")},
		{http.MethodGet, bucket, "encryption", false, operation(model.ActionBucketGet), unset("ServerSideEncryptionConfigurationNotFoundError", "The server side encryption configuration was not found")},
		{http.MethodGet, bucket, "logging", false, operation(model.ActionBucketGet), empty("BucketLoggingStatus")},
		{http.MethodGet, bucket, "notification", false, operation(model.ActionBucketGet), empty("NotificationConfiguration")},
		{http.MethodGet, bucket, "replication", false, operation(model.ActionBucketGet), unset("ReplicationConfigurationNotFoundError", "The replication configuration was not found")},
		{http.MethodGet, bucket, "requestPayment", false, operation(model.ActionBucketGet), (*request).requestPayment},
		{http.MethodPut, bucket, "website", false, operation(model.ActionBucketUpdate), (*request).putWebsite},
		{http.MethodGet, bucket, "website", false, operation(model.ActionBucketGet), (*request).getWebsite},
		{http.MethodDelete, bucket, "website", false, operation(model.ActionBucketUpdate), (*request).deleteWebsite},
		{http.MethodGet, bucket, "uploads", false, operation(model.ActionObjectList), (*request).listUploads},
		{http.MethodGet, bucket, "", false, operation(model.ActionObjectList), (*request).listObjects},
		{http.MethodPost, bucket, "", false, operation(model.ActionObjectUpload), (*request).postObject},
		{http.MethodPost, bucket, "delete", false, each, (*request).deleteObjects},

		{http.MethodGet, object, "uploadId", false, operation(model.ActionObjectList), (*request).listParts},
		{http.MethodGet, object, "attributes", false, operation(model.ActionObjectGet), (*request).getObjectAttributes},
		{http.MethodGet, object, "retention", false, operation(model.ActionObjectGet), (*request).objectRetention},
		{http.MethodPut, object, "retention", false, update, (*request).setObjectRetention},
		{http.MethodGet, object, "legal-hold", false, operation(model.ActionObjectGet), (*request).objectHold},
		{http.MethodPut, object, "legal-hold", false, update, (*request).setObjectHold},
		{http.MethodGet, object, "tagging", false, operation(model.ActionObjectGet), (*request).objectTags},
		{http.MethodPut, object, "tagging", false, update, (*request).setObjectTags},
		{http.MethodDelete, object, "tagging", false, update, (*request).deleteObjectTags},
		{http.MethodGet, object, "", false, operation(model.ActionObjectGet), (*request).getObject},
		{http.MethodHead, object, "", false, operation(model.ActionObjectGet), (*request).headObject},
		{http.MethodPut, object, "uploadId", false, upload(model.ActionUploadAppend), (*request).uploadPart},
		{http.MethodPut, object, "uploadId", true, copying(model.ActionUploadAppend), (*request).copyPart},
		{http.MethodPut, object, "", false, operation(model.ActionObjectUpload), (*request).putObject},
		{http.MethodPut, object, "", true, copying(model.ActionObjectUpload), (*request).copyObject},
		{http.MethodPost, object, "uploads", false, upload(model.ActionUploadCreate), (*request).createMultipart},
		{http.MethodPost, object, "uploadId", false, operation(model.ActionObjectUpload), (*request).completeMultipart},
		{http.MethodDelete, object, "uploadId", false, upload(model.ActionUploadDelete), (*request).abortMultipart},
		{http.MethodDelete, object, "", false, operation(model.ActionObjectDelete), (*request).deleteObject},
	}
}

// isSubresource reports whether a parameter makes a request another operation: of S3, or of MinIO, whose clients would take
// the answer to another operation for that to theirs.
func isSubresource(name string) bool {
	switch name {
	case "abac", "accelerate", "acl", "analytics", "attributes", "cors", "delete", "encryption", "intelligent-tiering", "inventory",
		"legal-hold", "lifecycle", "location", "logging", "metadataConfiguration", "metadataInventoryTable", "metadataJournalTable",
		"metadataTable", "metrics", "notification", "object-lock", "ownershipControls", "policy", "policyStatus", "publicAccessBlock",
		"renameObject", "replication", "requestPayment", "restore", "retention", "select", "session", "tagging", "torrent", "uploadId",
		"uploads", "versioning", "versions", "website":
		return true
	case "events", "lambdaArn", "object-lambda", "qos", "qos-metrics", "replication-check", "replication-metrics", "replication-reset",
		"replication-reset-status":
		return true
	}
	return false
}

// subresource returns the parameter that makes the request another operation, the last in the alphabet if there are
// several, "" for none.
func (q *request) subresource() (found string) {
	for name := range q.query.Names() {
		if name > found && isSubresource(name) {
			found = name
		}
	}
	return found
}

// of returns the route of a request.
func (t routeTable) of(r *http.Request, q *request) route {
	at := service
	if q.bucket != "" {
		at = bucket
	}
	if q.key != "" {
		at = object
	}
	subresource := q.subresource()
	copies := q.given(r.Header, "X-Amz-Copy-Source") != nil
	if found, ok := t[routeKey{r.Method, at, subresource, copies}]; ok {
		return found
	}
	return route{operation: model.Operation{Action: model.ActionUnknown, Scope: model.ScopeStorageRead}, serve: func(q *request) error {
		if subresource == "" {
			return q.notAllowed(at)
		}
		if q.bucket != "" {
			if _, err := q.findBucket(); err != nil {
				return err
			}
		}
		return fail("NotImplemented", "A parameter you provided implies functionality that is not implemented: %s", subresource)
	}}
}

// notAllowed refuses the method of a request about a resource of a level.
func (q *request) notAllowed(at level) error {
	resource := []string{"SERVICE", "BUCKET", "OBJECT"}[at]
	if q.query.Has("uploadId") {
		resource = "UPLOAD"
	}
	return fail("MethodNotAllowed", "The specified method is not allowed against this resource.").
		with("Method", q.method).with("ResourceType", resource)
}

// misrouted returns the error for a request that means no operation, whoever sends it, or nil.
func (q *request) misrouted(copySource []string) error {
	source := strings.Join(copySource, ",")
	get, put := q.method == http.MethodGet, q.method == http.MethodPut
	switch {
	case q.bucket == "" && q.method == http.MethodPost:
		return q.notAllowed(service)
	case len(copySource) > 0 && !put && (q.method != http.MethodPost || q.query.Has("uploadId")):
		return invalidArgument("x-amz-copy-source", source, "You can only specify a copy source header for copy requests.")
	case q.key == "":
		return nil
	case put && q.query.Has("partNumber") && !q.query.Has("uploadId"):
		return invalidArgument("partNumber", "partNumber", "This operation does not accept partNumber without uploadId")
	case q.method == http.MethodPost && q.subresource() == "", put && q.query.Has("uploadId") && !q.query.Has("partNumber"):
		return q.notAllowed(object)
	case get && q.query.Has("uploads"):
		return fail("InvalidRequest", "Key is not expected for the GET method ?uploads subresource")
	case get && q.query.Has("versions"):
		return fail("InvalidRequest", "There is no such thing as the ?versions sub-resource for a key")
	}
	return nil
}
