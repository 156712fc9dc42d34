package model

import "strings"

// ResourceType is the kind of resource that an id or an audit entry refers to.
type ResourceType string

// The kinds of resource.
const (
	ResourceOrganization ResourceType = "organization"
	ResourceProject      ResourceType = "project"
	ResourceUser         ResourceType = "user"
	ResourceKey          ResourceType = "api_key"
	ResourceDatabase     ResourceType = "database"
	ResourceBackup       ResourceType = "backup"
	ResourceOperation    ResourceType = "operation"
	ResourceExport       ResourceType = "export"
	ResourceImport       ResourceType = "import"
	ResourceBucket       ResourceType = "bucket"
	ResourceObject       ResourceType = "object"
	ResourceUpload       ResourceType = "upload"
	ResourceAuditEntry   ResourceType = "audit_entry"
	ResourceSetup        ResourceType = "setup_link"
	ResourceDevice       ResourceType = "device_authorization"
	ResourceEvent        ResourceType = "event"
	ResourceWebhook      ResourceType = "webhook"
	ResourceDelivery     ResourceType = "webhook_delivery"
	ResourceSession      ResourceType = "session"
	ResourceNone         ResourceType = ""
)

// Prefix returns the prefix of ids of this kind, "" for kinds without ids of
// their own.
func (t ResourceType) Prefix() string {
	switch t {
	case ResourceOrganization:
		return "org_"
	case ResourceProject:
		return "proj_"
	case ResourceUser:
		return "user_"
	case ResourceKey:
		return "key_"
	case ResourceDatabase:
		return "db_"
	case ResourceBackup:
		return "bkp_"
	case ResourceOperation:
		return "op_"
	case ResourceExport:
		return "exp_"
	case ResourceImport:
		return "imp_"
	case ResourceBucket:
		return "bucket_"
	case ResourceUpload:
		return "upl_"
	case ResourceAuditEntry:
		return "evt_"
	case ResourceDevice:
		return "dev_"
	case ResourceEvent:
		return "event_"
	case ResourceWebhook:
		return "wh_"
	case ResourceDelivery:
		return "dlv_"
	case ResourceSession:
		return "sess_"
	default:
		return ""
	}
}

// Resource identifies the resource of an operation.
type Resource struct {
	Type ResourceType `json:"type"`
	ID   string       `json:"id"`
	Name string       `json:"name"`
}

// HasPrefix reports whether id has the prefix of kind t.
func (t ResourceType) HasPrefix(id string) bool {
	return t.Prefix() != "" && strings.HasPrefix(id, t.Prefix())
}
