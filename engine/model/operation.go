package model

import "slices"

// RateClass names a budget of requests a key shares among the operations
// that draw on it.
type RateClass string

// The rate classes of the specification; "" is not limited.
const (
	RateNone           RateClass = ""
	RateCreateDatabase RateClass = "create_database"
	RateCreateBackup   RateClass = "create_backup"
	RateRestore        RateClass = "restore"
	RateCreateBucket   RateClass = "create_bucket"
	RateImport         RateClass = "import"
)

// RateClasses returns every limited class.
func RateClasses() []RateClass {
	return []RateClass{RateCreateDatabase, RateCreateBackup, RateRestore, RateCreateBucket, RateImport}
}

// Action names an operation. The same text is the action of its audit
// entries.
type Action string

// Operation is a row of the one table that says what each thing a client can
// ask for needs. Routes name the operation; the gate does the rest.
type Operation struct {
	Action Action
	// Name is the operation's name in the API's description (operationId).
	Name string
	// Scope is what the key must hold; "" where no key is asked for.
	Scope Scope
	// Role is the least a person must have for what has no scope, because no
	// key can do it.
	Role Role
	// Destructive operations also need the key's dangerous-operations toggle.
	Destructive bool
	Rate        RateClass
	// Others are acts of other operations that this one comes to as well.
	Others   []Also
	Resource ResourceType
	// Changes says that success alters something, so that the audit entry
	// must be on disk before the answer.
	Changes bool
}

// The API's operations.
const (
	ActionDeviceAuthorize Action = "device.authorize"
	ActionDeviceToken     Action = "device.token"

	ActionDatabaseList           Action = "database.list"
	ActionDatabaseCreate         Action = "database.create"
	ActionDatabaseGet            Action = "database.get"
	ActionDatabaseDelete         Action = "database.delete"
	ActionDatabaseRestart        Action = "database.restart"
	ActionDatabaseRotatePassword Action = "database.rotate_password"
	ActionDatabaseConnection     Action = "database.connection"

	ActionSSLGet       Action = "database.ssl.get"
	ActionAllowlistGet Action = "database.allowlist.get"
	ActionAllowlistSet Action = "database.allowlist.set"
	ActionRLSGet       Action = "database.rls.get"
	ActionRLSSet       Action = "database.rls.set"

	ActionBackupList     Action = "backup.list"
	ActionBackupCreate   Action = "backup.create"
	ActionBackupGet      Action = "backup.get"
	ActionBackupDelete   Action = "backup.delete"
	ActionBackupRestore  Action = "backup.restore"
	ActionBackupPin      Action = "backup.pin"
	ActionRecoveryGet    Action = "recovery.get"
	ActionRecoveryCreate Action = "recovery.request"
	ActionRecoveryUndo   Action = "recovery.undo"
	ActionExportGet      Action = "export.get"

	ActionImportList   Action = "import.list"
	ActionImportCreate Action = "import.create"
	ActionImportGet    Action = "import.get"

	ActionBucketList   Action = "bucket.list"
	ActionBucketCreate Action = "bucket.create"
	ActionBucketGet    Action = "bucket.get"
	ActionBucketUpdate Action = "bucket.update"
	ActionBucketDelete Action = "bucket.delete"
	ActionObjectList   Action = "object.list"
	ActionObjectUpload Action = "object.upload"
	ActionObjectGet    Action = "object.get"
	ActionObjectDelete Action = "object.delete"

	ActionUsageGet           Action = "account.usage"
	ActionLimitsGet          Action = "account.limits"
	ActionBillingGet         Action = "account.billing"
	ActionKeyList            Action = "key.list"
	ActionAuditList          Action = "audit.list"
	ActionAgentStatus        Action = "agent.status"
	ActionRecommendationList Action = "agent.recommendations"
)

// What people, the operator and the appliance itself do outside the API.
const (
	ActionKeyCreate          Action = "key.create"
	ActionKeyUpdate          Action = "key.update"
	ActionKeyRevoke          Action = "key.revoke"
	ActionOrganizationCreate Action = "organization.create"
	ActionOrganizationList   Action = "organization.list"
	ActionPlanSet            Action = "organization.set_plan"
	ActionTrialSet           Action = "organization.set_trial"
	ActionTrialEnd           Action = "organization.trial_end"
	ActionProjectCreate      Action = "project.create"
	ActionProjectList        Action = "project.list"
	ActionUserCreate         Action = "user.create"
	ActionUserList           Action = "user.list"
	ActionUserInvite         Action = "user.invite"
	ActionUserRole           Action = "user.role"
	ActionUserDelete         Action = "user.delete"
	ActionUserPassword       Action = "user.password"
	ActionSessionCreate      Action = "session.create"
	ActionSessionEnd         Action = "session.end"
	ActionSessionEndAll      Action = "session.end_all"
	ActionDeviceReview       Action = "device.review"
	ActionDeviceApprove      Action = "device.approve"
	ActionDeviceDeny         Action = "device.deny"
	ActionDatabaseLog        Action = "database.log"
	ActionSettingsGet        Action = "settings.get"
	ActionSetupLinkCreate    Action = "setup_link.create"
	ActionTrashList          Action = "trash.list"
	ActionTrashRestore       Action = "trash.restore"
	ActionTrashEmpty         Action = "trash.empty"
	ActionAuditVerify        Action = "audit.verify"
	ActionAuditExport        Action = "audit.export"
	ActionObjectDownload     Action = "object.download"
	ActionObjectDamaged      Action = "object.damaged"
	ActionUploadCreate       Action = "upload.create"
	ActionUploadGet          Action = "upload.get"
	ActionUploadAppend       Action = "upload.append"
	ActionUploadDelete       Action = "upload.delete"
	ActionUploadExpire       Action = "upload.expire"
	ActionObjectExpire       Action = "object.expire"
	ActionObjectPurge        Action = "object.purge"
	ActionBucketPurge        Action = "bucket.purge"
	ActionTrashBucketList    Action = "trash.bucket_list"
	ActionTrashBucketRestore Action = "trash.bucket_restore"
	ActionTrashObjectList    Action = "trash.object_list"
	ActionTrashObjectRestore Action = "trash.object_restore"
	ActionApplianceStart     Action = "appliance.start"
	ActionInstanceDown       Action = "instance.down"
	ActionInstanceUp         Action = "instance.up"
	ActionInstanceMoved      Action = "instance.moved"
	ActionCertificateRenew   Action = "certificate.renew"
	ActionPasswordChanged    Action = "database.password_changed"
	ActionPasswordPutBack    Action = "database.password_put_back"
	ActionLoginSettingsReset Action = "database.login_settings_reset"
	ActionBackupEnd          Action = "backup.end"
	ActionTrashExpire        Action = "trash.expire"
	ActionReplacedExpire     Action = "recovery.expire"
	ActionKeyExpire          Action = "key.expire"
	ActionOperationRollBack  Action = "operation.roll_back"
	ActionApplianceStop      Action = "appliance.stop"
	ActionDatabaseSettings   Action = "database.settings"
	ActionMetadataBackup     Action = "metadata.backup"
	ActionApplianceExport    Action = "appliance.export"
	ActionWALGap             Action = "wal.gap"
	ActionBackupExpire       Action = "backup.expire"
	ActionBackupProve        Action = "backup.prove"
	ActionExportCreate       Action = "export.create"
	ActionExportDownload     Action = "export.download"
	ActionImportEnd          Action = "import.end"
	// ActionUnknown is asked for at paths and methods that do not exist.
	ActionUnknown Action = "unknown"
)

// Operations returns the table of the API's operations, in the order of the
// specification.
func Operations() []Operation { return operations() }

// ConsoleOperations returns the table of what only people and the operator
// do. The rest of the console asks for the API's operations.
func ConsoleOperations() []Operation { return consoleOperations() }

// OperationFor returns the row of action. An action of no operation is a
// programming error and panics, at start-up, where routes are made.
func OperationFor(action Action) Operation {
	all := append(operations(), consoleOperations()...)
	i := slices.IndexFunc(all, func(o Operation) bool { return o.Action == action })
	if i < 0 {
		panic("model: no operation for action " + string(action))
	}
	return all[i]
}

func operations() []Operation {
	return []Operation{
		change(ActionDeviceAuthorize, "authorizeDevice", "", ResourceNone),
		change(ActionDeviceToken, "getDeviceToken", "", ResourceNone),

		read(ActionDatabaseList, "listDatabases", ScopeDatabaseRead, ResourceDatabase),
		change(ActionDatabaseCreate, "createDatabase", ScopeDatabaseCreate, ResourceDatabase).within(RateCreateDatabase),
		read(ActionDatabaseGet, "getDatabase", ScopeDatabaseRead, ResourceDatabase),
		destroy(ActionDatabaseDelete, "deleteDatabase", ScopeDatabaseDelete, ResourceDatabase),
		change(ActionDatabaseRestart, "restartDatabase", ScopeDatabaseUpdate, ResourceDatabase),
		change(ActionDatabaseRotatePassword, "rotateDatabasePassword", ScopeDatabaseUpdate, ResourceDatabase),
		read(ActionDatabaseConnection, "getDatabaseConnection", ScopeDatabaseRead, ResourceDatabase),

		read(ActionSSLGet, "getDatabaseSSL", ScopeDatabaseRead, ResourceDatabase),
		read(ActionAllowlistGet, "getDatabaseAllowlist", ScopeDatabaseRead, ResourceDatabase),
		change(ActionAllowlistSet, "replaceDatabaseAllowlist", ScopeDatabaseUpdate, ResourceDatabase),
		read(ActionRLSGet, "getDatabaseRLS", ScopeDatabaseRead, ResourceDatabase),
		change(ActionRLSSet, "setDatabaseRLS", ScopeDatabaseUpdate, ResourceDatabase),

		read(ActionBackupList, "listBackups", ScopeBackupList, ResourceBackup),
		change(ActionBackupCreate, "createBackup", ScopeBackupCreate, ResourceBackup).within(RateCreateBackup),
		read(ActionBackupGet, "getBackup", ScopeBackupList, ResourceBackup),
		destroy(ActionBackupDelete, "deleteBackup", ScopeBackupDelete, ResourceBackup),
		change(ActionBackupRestore, "restoreBackup", ScopeBackupRestore, ResourceBackup).within(RateRestore).
			alsoWith("mode", "new", ActionDatabaseCreate),
		change(ActionBackupPin, "pinBackup", ScopeBackupCreate, ResourceBackup),
		read(ActionRecoveryGet, "getRecovery", ScopeBackupList, ResourceDatabase),
		change(ActionRecoveryCreate, "requestRestore", ScopeBackupRestore, ResourceDatabase).within(RateRestore).
			alsoWith("mode", "new", ActionDatabaseCreate),
		change(ActionRecoveryUndo, "undoRestore", ScopeBackupRestore, ResourceDatabase).within(RateRestore),
		read(ActionExportGet, "getExport", ScopeBackupDownload, ResourceExport),

		read(ActionImportList, "listImports", ScopeDatabaseRead, ResourceImport),
		change(ActionImportCreate, "createImport", ScopeDatabaseCreate, ResourceImport).within(RateImport).also(ActionDatabaseCreate),
		read(ActionImportGet, "getImport", ScopeDatabaseRead, ResourceImport),

		read(ActionBucketList, "listBuckets", ScopeStorageRead, ResourceBucket),
		change(ActionBucketCreate, "createBucket", ScopeStorageCreate, ResourceBucket).within(RateCreateBucket),
		read(ActionBucketGet, "getBucket", ScopeStorageRead, ResourceBucket),
		change(ActionBucketUpdate, "updateBucket", ScopeStorageUpdate, ResourceBucket).
			alsoWhen("When `expire_after_days` has objects removed sooner than so far", ActionObjectDelete),
		destroy(ActionBucketDelete, "deleteBucket", ScopeStorageDelete, ResourceBucket),
		read(ActionObjectList, "listObjects", ScopeStorageRead, ResourceObject),
		change(ActionObjectUpload, "uploadObject", ScopeStorageCreate, ResourceObject),
		read(ActionObjectGet, "getObject", ScopeStorageRead, ResourceObject),
		destroy(ActionObjectDelete, "deleteObject", ScopeStorageDelete, ResourceObject),

		read(ActionUsageGet, "getUsage", ScopeAccountRead, ResourceOrganization),
		read(ActionLimitsGet, "getLimits", ScopeAccountRead, ResourceOrganization),
		read(ActionBillingGet, "getBilling", ScopeBillingRead, ResourceOrganization),
		read(ActionKeyList, "listKeys", ScopeAccountRead, ResourceKey),
		read(ActionAuditList, "listAuditLogs", ScopeAccountRead, ResourceAuditEntry),
		read(ActionAgentStatus, "getAgentStatus", ScopeAccountRead, ResourceOrganization),
		read(ActionRecommendationList, "listRecommendations", ScopeAccountRead, ResourceOrganization),
	}
}

func consoleOperations() []Operation {
	return []Operation{
		person(ActionUserList, RoleViewer, ResourceUser),
		person(ActionUserInvite, RoleAdmin, ResourceUser),
		person(ActionUserRole, RoleAdmin, ResourceUser),
		person(ActionUserDelete, RoleAdmin, ResourceUser),
		person(ActionUserPassword, RoleViewer, ResourceUser),
		person(ActionSetupLinkCreate, RoleAdmin, ResourceUser),
		person(ActionSessionEnd, RoleViewer, ResourceSession),
		person(ActionSessionEndAll, RoleViewer, ResourceSession),
		person(ActionKeyCreate, RoleAdmin, ResourceKey),
		person(ActionKeyUpdate, RoleAdmin, ResourceKey),
		person(ActionKeyRevoke, RoleAdmin, ResourceKey),
		person(ActionProjectList, RoleViewer, ResourceProject),
		person(ActionProjectCreate, RoleAdmin, ResourceProject),
		person(ActionDeviceReview, RoleViewer, ResourceDevice),
		person(ActionDeviceApprove, RoleViewer, ResourceDevice),
		person(ActionDeviceDeny, RoleViewer, ResourceDevice),
		person(ActionDatabaseLog, RoleAdmin, ResourceDatabase),
		person(ActionSettingsGet, RoleViewer, ResourceOrganization),
	}
}

// person makes the row of something only people do; which of it changes
// anything is known by the engine.
func person(a Action, least Role, t ResourceType) Operation {
	return Operation{Action: a, Role: least, Resource: t}
}

func read(a Action, name string, s Scope, t ResourceType) Operation {
	return Operation{Action: a, Name: name, Scope: s, Resource: t}
}

func change(a Action, name string, s Scope, t ResourceType) Operation {
	return Operation{Action: a, Name: name, Scope: s, Resource: t, Changes: true}
}

func destroy(a Action, name string, s Scope, t ResourceType) Operation {
	return Operation{Action: a, Name: name, Scope: s, Resource: t, Changes: true, Destructive: true}
}

// within puts the operation under the budget of class.
func (o Operation) within(class RateClass) Operation {
	o.Rate = class
	return o
}
