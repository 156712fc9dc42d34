package model

import (
	"slices"
	"time"
)

// RateClass names a request budget of a key, shared by the operations that draw
// on it and by the keys that the key makes.
type RateClass string

// The rate classes: the specification's, and those of new keys and of invitations. "" is unlimited.
const (
	RateNone           RateClass = ""
	RateCreateDatabase RateClass = "create_database"
	RateCreateBackup   RateClass = "create_backup"
	RateRestore        RateClass = "restore"
	RateCreateBucket   RateClass = "create_bucket"
	RateImport         RateClass = "import"
	RateCreateKey      RateClass = "create_key"
	RateInvite         RateClass = "invite"
)

// Budget is the state of one request budget.
type Budget struct {
	Class  RateClass
	Limit  int
	Window time.Duration
	Left   int           // how many more requests are admitted now
	More   time.Duration // until another one is; 0 if none was used
}

// RateClasses returns every limited class.
func RateClasses() []RateClass {
	return []RateClass{RateCreateDatabase, RateCreateBackup, RateRestore, RateCreateBucket, RateImport, RateCreateKey, RateInvite}
}

// Action names an operation. The same text is the action of its audit
// entries.
type Action string

// Operation is a row of the one table of what each client operation requires.
// Routes name the operation; the gate enforces the row.
type Operation struct {
	Action Action
	// Name is the operation's name in the API's description (operationId).
	Name string
	// Scope is the scope that the key must hold; "" if no key is required.
	Scope Scope
	// Role is the minimum role of people, "" if the scope decides. No key can perform
	// an operation without a scope.
	Role Role
	// Destructive operations also need the key's dangerous-operations toggle.
	Destructive bool
	Rate        RateClass
	// Conditional operations may be limited to a known state of their resource (Call.Match).
	Conditional bool
	// Others are other operations that this one also performs.
	Others []Also
}

// The API's operations.
const (
	ActionDeviceAuthorize Action = "device.authorize"
	ActionDeviceToken     Action = "device.token"

	ActionDatabaseList           Action = "database.list"
	ActionDatabaseCreate         Action = "database.create"
	ActionDatabaseGet            Action = "database.get"
	ActionDatabaseUpdate         Action = "database.update"
	ActionDatabaseDelete         Action = "database.delete"
	ActionDatabaseRestart        Action = "database.restart"
	ActionDatabaseRotatePassword Action = "database.rotate_password"
	ActionDatabaseConnection     Action = "database.connection"
	ActionDatabaseLog            Action = "database.log"
	ActionDatabaseMetrics        Action = "database.metrics"
	ActionDatabaseUpgrade        Action = "database.upgrade"

	ActionBranchList   Action = "branch.list"
	ActionBranchCreate Action = "branch.create"
	ActionBranchReset  Action = "branch.reset"
	ActionBranchDiff   Action = "branch.diff"

	ActionSSLGet       Action = "database.ssl.get"
	ActionAllowlistGet Action = "database.allowlist.get"
	ActionAllowlistSet Action = "database.allowlist.set"
	ActionRLSGet       Action = "database.rls.get"
	ActionRLSSet       Action = "database.rls.set"

	ActionDatabaseRoleList   Action = "database.role.list"
	ActionDatabaseRoleCreate Action = "database.role.create"
	ActionDatabaseRoleGet    Action = "database.role.get"
	ActionDatabaseRoleUpdate Action = "database.role.update"
	ActionDatabaseRoleDelete Action = "database.role.delete"
	ActionDatabaseRoleRotate Action = "database.role.rotate_password"

	ActionPostgresDatabaseList Action = "database.database.list"

	ActionDatabaseSessionList      Action = "database.session.list"
	ActionDatabaseSessionCancel    Action = "database.session.cancel"
	ActionDatabaseSessionTerminate Action = "database.session.terminate"

	ActionStatementList       Action = "database.statement.list"
	ActionStatementReset      Action = "database.statement.reset"
	ActionStatementPlan       Action = "database.statement.plan"
	ActionLockList            Action = "database.lock.list"
	ActionRelationList        Action = "database.relation.list"
	ActionDatabaseVersionList Action = "database.version.list"

	ActionReplicationGet      Action = "database.replication.get"
	ActionReplicationSlotDrop Action = "database.replication.slot_drop"
	ActionSettingsList        Action = "database.settings.list"
	ActionSettingsUpdate      Action = "database.settings.update"

	ActionExtensionList   Action = "database.extension.list"
	ActionExtensionSet    Action = "database.extension.set"
	ActionExtensionDelete Action = "database.extension.delete"

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
	ActionExportCreate   Action = "export.create"

	ActionOperationList   Action = "operation.list"
	ActionOperationGet    Action = "operation.get"
	ActionOperationCancel Action = "operation.cancel"
	ActionOperationStream Action = "operation.stream"
	ActionEventStream     Action = "event.stream"

	ActionWebhookList       Action = "webhook.list"
	ActionWebhookCreate     Action = "webhook.create"
	ActionWebhookGet        Action = "webhook.get"
	ActionWebhookUpdate     Action = "webhook.update"
	ActionWebhookDelete     Action = "webhook.delete"
	ActionWebhookRotate     Action = "webhook.rotate_secret"
	ActionWebhookPing       Action = "webhook.ping"
	ActionWebhookDeliveries Action = "webhook.delivery_list"
	ActionWebhookResend     Action = "webhook.resend"

	ActionImportList   Action = "import.list"
	ActionImportCreate Action = "import.create"
	ActionImportGet    Action = "import.get"

	ActionImportCutover Action = "import.cutover"

	ActionBucketList   Action = "bucket.list"
	ActionBucketCreate Action = "bucket.create"
	ActionBucketGet    Action = "bucket.get"
	ActionBucketUpdate Action = "bucket.update"
	ActionBucketDelete Action = "bucket.delete"
	ActionObjectList   Action = "object.list"
	ActionObjectUpload Action = "object.upload"
	ActionObjectGet    Action = "object.get"
	ActionObjectDelete Action = "object.delete"
	ActionObjectUpdate Action = "object.update"
	ActionObjectCopy   Action = "object.copy"
	ActionVersionList  Action = "object.versions"
	ActionUploadLink   Action = "object.upload_link"
	ActionDownloadLink Action = "object.download_link"

	ActionBucketHistory Action = "bucket.history"
	ActionBucketRestore Action = "bucket.restore"

	ActionProjectList   Action = "project.list"
	ActionProjectCreate Action = "project.create"
	ActionProjectGet    Action = "project.get"
	ActionProjectUpdate Action = "project.update"
	ActionProjectDelete Action = "project.delete"

	ActionUserList        Action = "user.list"
	ActionUserInvite      Action = "user.invite"
	ActionUserGet         Action = "user.get"
	ActionUserRole        Action = "user.role"
	ActionUserDelete      Action = "user.delete"
	ActionSetupLinkCreate Action = "user.setup_link"
	ActionSessionList     Action = "session.list"
	ActionSessionEnd      Action = "session.end"
	ActionSessionEndAll   Action = "session.end_all"

	ActionTrashList          Action = "trash.list"
	ActionTrashRestore       Action = "trash.restore"
	ActionTrashPurge         Action = "trash.purge"
	ActionTrashBucketList    Action = "trash.bucket_list"
	ActionTrashBucketRestore Action = "trash.bucket_restore"
	ActionTrashBucketPurge   Action = "trash.bucket_purge"
	ActionTrashObjectList    Action = "trash.object_list"
	ActionTrashObjectRestore Action = "trash.object_restore"
	ActionTrashObjectPurge   Action = "trash.object_purge"
	ActionTrashEmpty         Action = "trash.empty"

	ActionUsageGet           Action = "account.usage"
	ActionLimitsGet          Action = "account.limits"
	ActionBillingGet         Action = "account.billing"
	ActionOffsiteGet         Action = "account.offsite"
	ActionKeyList            Action = "key.list"
	ActionKeyCreate          Action = "key.create"
	ActionKeyGet             Action = "key.get"
	ActionKeyUpdate          Action = "key.update"
	ActionKeyRevoke          Action = "key.revoke"
	ActionKeyCredentials     Action = "key.credentials"
	ActionAuditList          Action = "audit.list"
	ActionAuditExport        Action = "audit.export"
	ActionAgentStatus        Action = "agent.status"
	ActionRecommendationList Action = "agent.recommendations"
)

// The actions of people, the operator and the appliance itself outside the API.
const (
	ActionKeyDangerous       Action = "key.allow_dangerous"
	ActionOrganizationCreate Action = "organization.create"
	ActionOrganizationList   Action = "organization.list"
	ActionPlanSet            Action = "organization.set_plan"
	ActionTrialSet           Action = "organization.set_trial"
	ActionTrialEnd           Action = "organization.trial_end"
	ActionUserCreate         Action = "user.create"
	ActionUserPassword       Action = "user.password"
	ActionSessionCreate      Action = "session.create"
	ActionSignOut            Action = "session.sign_out"
	ActionSignOutAll         Action = "session.sign_out_all"
	ActionDeviceReview       Action = "device.review"
	ActionDeviceApprove      Action = "device.approve"
	ActionDeviceDeny         Action = "device.deny"
	ActionAuditVerify        Action = "audit.verify"
	ActionObjectDownload     Action = "object.download"
	ActionObjectDamaged      Action = "object.damaged"
	ActionUploadCreate       Action = "upload.create"
	ActionUploadGet          Action = "upload.get"
	ActionUploadAppend       Action = "upload.append"
	ActionUploadDelete       Action = "upload.delete"
	ActionUploadExpire       Action = "upload.expire"
	ActionObjectExpire       Action = "object.expire"
	ActionObjectsRestore     Action = "object.restore"
	ActionBucketRestoreEnd   Action = "bucket.restore_end"
	ActionObjectPurge        Action = "object.purge"
	ActionBucketPurge        Action = "bucket.purge"
	ActionApplianceStart     Action = "appliance.start"
	ActionInstanceDown       Action = "instance.down"
	ActionInstanceUp         Action = "instance.up"
	ActionSlotLost           Action = "database.replication.slot_lost"
	ActionSlotDropped        Action = "database.replication.slot_dropped"
	ActionInstanceMoved      Action = "instance.moved"
	ActionCertificateRenew   Action = "certificate.renew"
	ActionPasswordChanged    Action = "database.password_changed"
	ActionPasswordPutBack    Action = "database.password_put_back"
	ActionLoginSettingsReset Action = "database.login_settings_reset"
	ActionBackupEnd          Action = "backup.end"
	ActionTrashExpire        Action = "trash.expire"
	ActionBranchExpire       Action = "branch.expire"
	ActionReplacedExpire     Action = "recovery.expire"
	ActionKeyExpire          Action = "key.expire"
	ActionOperationRollBack  Action = "operation.roll_back"
	ActionApplianceStop      Action = "appliance.stop"
	ActionDatabaseSettings   Action = "database.settings"
	ActionMetadataBackup     Action = "metadata.backup"
	ActionApplianceExport    Action = "appliance.export"
	ActionWALGap             Action = "wal.gap"
	ActionBackupExpire       Action = "backup.expire"
	ActionBackupVerify       Action = "backup.verify"
	ActionExportDownload     Action = "export.download"
	ActionImportEnd          Action = "import.end"
	ActionApplianceFenced    Action = "appliance.fenced"
	// ActionUnknown is the action of requests for unknown paths and methods.
	ActionUnknown Action = "unknown"
)

// Operations returns the table of the API's operations, in the order of the
// specification.
func Operations() []Operation {
	return []Operation{
		operation(ActionDeviceAuthorize, "authorizeDevice", ""),
		operation(ActionDeviceToken, "getDeviceToken", ""),

		operation(ActionDatabaseList, "listDatabases", ScopeDatabaseRead),
		operation(ActionDatabaseCreate, "createDatabase", ScopeDatabaseCreate).within(RateCreateDatabase),
		operation(ActionDatabaseGet, "getDatabase", ScopeDatabaseRead),
		operation(ActionDatabaseUpdate, "updateDatabase", ScopeDatabaseUpdate).conditional().
			alsoWhen("When `backup_retention_days` has backups removed sooner than so far", ActionBackupDelete).
			alsoWhen("When `expires_at` has the branch deleted sooner than so far", ActionDatabaseDelete),
		operation(ActionDatabaseDelete, "deleteDatabase", ScopeDatabaseDelete).destructive().conditional(),
		operation(ActionDatabaseRestart, "restartDatabase", ScopeDatabaseUpdate),
		operation(ActionDatabaseRotatePassword, "rotateDatabasePassword", ScopeDatabaseUpdate),
		operation(ActionDatabaseConnection, "getDatabaseConnection", ScopeDatabaseRead),
		operation(ActionDatabaseLog, "getDatabaseLog", ScopeDatabaseUpdate).from(RoleAdmin),
		operation(ActionDatabaseMetrics, "getDatabaseMetrics", ScopeDatabaseRead),
		operation(ActionDatabaseUpgrade, "upgradeDatabase", ScopeDatabaseUpdate).within(RateRestore),

		operation(ActionBranchList, "listBranches", ScopeDatabaseRead),
		operation(ActionBranchCreate, "createBranch", ScopeBackupRestore).also(ActionDatabaseCreate),
		operation(ActionBranchReset, "resetBranch", ScopeBackupRestore).within(RateRestore),
		operation(ActionBranchDiff, "getBranchDiff", ScopeDatabaseRead),

		operation(ActionSSLGet, "getDatabaseSSL", ScopeDatabaseRead),
		operation(ActionAllowlistGet, "getDatabaseAllowlist", ScopeDatabaseRead),
		operation(ActionAllowlistSet, "replaceDatabaseAllowlist", ScopeDatabaseUpdate).conditional(),
		operation(ActionRLSGet, "getDatabaseRLS", ScopeDatabaseRead),
		operation(ActionRLSSet, "setDatabaseRLS", ScopeDatabaseUpdate),

		operation(ActionDatabaseRoleList, "listDatabaseRoles", ScopeDatabaseRead),
		operation(ActionDatabaseRoleCreate, "createDatabaseRole", ScopeDatabaseUpdate),
		operation(ActionDatabaseRoleGet, "getDatabaseRole", ScopeDatabaseRead),
		operation(ActionDatabaseRoleUpdate, "updateDatabaseRole", ScopeDatabaseUpdate).conditional(),
		operation(ActionDatabaseRoleDelete, "deleteDatabaseRole", ScopeDatabaseUpdate).conditional(),
		operation(ActionDatabaseRoleRotate, "rotateDatabaseRolePassword", ScopeDatabaseUpdate),

		operation(ActionPostgresDatabaseList, "listPostgresDatabases", ScopeDatabaseRead),

		operation(ActionDatabaseSessionList, "listDatabaseSessions", ScopeDatabaseRead),
		operation(ActionDatabaseSessionCancel, "cancelDatabaseSession", ScopeDatabaseUpdate),
		operation(ActionDatabaseSessionTerminate, "terminateDatabaseSession", ScopeDatabaseUpdate),

		operation(ActionStatementList, "listStatements", ScopeDatabaseRead),
		operation(ActionStatementReset, "resetStatements", ScopeDatabaseUpdate),
		operation(ActionStatementPlan, "explainStatement", ScopeDatabaseUpdate),
		operation(ActionLockList, "listLocks", ScopeDatabaseRead),
		operation(ActionRelationList, "listRelations", ScopeDatabaseRead),
		operation(ActionDatabaseVersionList, "listPostgresVersions", ScopeDatabaseRead),

		operation(ActionReplicationGet, "getDatabaseReplication", ScopeDatabaseRead),
		operation(ActionReplicationSlotDrop, "dropReplicationSlot", ScopeDatabaseUpdate),
		operation(ActionSettingsList, "listDatabaseSettings", ScopeDatabaseRead),
		operation(ActionSettingsUpdate, "updateDatabaseSettings", ScopeDatabaseUpdate),

		operation(ActionExtensionList, "listExtensions", ScopeDatabaseRead),
		operation(ActionExtensionSet, "setExtension", ScopeDatabaseUpdate),
		operation(ActionExtensionDelete, "deleteExtension", ScopeDatabaseUpdate),

		operation(ActionBackupList, "listBackups", ScopeBackupList),
		operation(ActionBackupCreate, "createBackup", ScopeBackupCreate).within(RateCreateBackup),
		operation(ActionBackupGet, "getBackup", ScopeBackupList),
		operation(ActionBackupDelete, "deleteBackup", ScopeBackupDelete).destructive(),
		operation(ActionBackupRestore, "restoreBackup", ScopeBackupRestore).within(RateRestore).
			alsoWith("mode", "new", ActionDatabaseCreate),
		operation(ActionBackupPin, "pinBackup", ScopeBackupCreate),
		operation(ActionRecoveryGet, "getRecovery", ScopeBackupList),
		operation(ActionRecoveryCreate, "requestRestore", ScopeBackupRestore).within(RateRestore).
			alsoWith("mode", "new", ActionDatabaseCreate),
		operation(ActionRecoveryUndo, "undoRestore", ScopeBackupRestore).within(RateRestore),
		operation(ActionExportGet, "getExport", ScopeBackupDownload),
		operation(ActionExportCreate, "createExport", ScopeBackupCreate).within(RateCreateBackup),

		operation(ActionOperationList, "listOperations", ScopeDatabaseRead),
		operation(ActionOperationGet, "getOperation", ScopeDatabaseRead),
		operation(ActionOperationCancel, "cancelOperation", ScopeDatabaseRead).
			alsoWhen("To cancel a backup, an export or a verification", ActionBackupCreate).
			alsoWhen("To cancel a restore, or the creation or a reset of a branch", ActionRecoveryUndo).
			alsoWhen("To cancel an upgrade or its dry run", ActionDatabaseUpgrade).
			alsoWhen("To cancel an import", ActionDatabaseCreate),
		operation(ActionOperationStream, "getOperationEvents", ScopeDatabaseRead),
		operation(ActionEventStream, "getEvents", ScopeDatabaseRead),

		operation(ActionWebhookList, "listWebhooks", ScopeWebhookManage),
		operation(ActionWebhookCreate, "createWebhook", ScopeWebhookManage),
		operation(ActionWebhookGet, "getWebhook", ScopeWebhookManage),
		operation(ActionWebhookUpdate, "updateWebhook", ScopeWebhookManage).conditional(),
		operation(ActionWebhookDelete, "deleteWebhook", ScopeWebhookManage).conditional(),
		operation(ActionWebhookRotate, "rotateWebhookSecret", ScopeWebhookManage),
		operation(ActionWebhookPing, "pingWebhook", ScopeWebhookManage),
		operation(ActionWebhookDeliveries, "listWebhookDeliveries", ScopeWebhookManage),
		operation(ActionWebhookResend, "resendWebhookDelivery", ScopeWebhookManage),

		operation(ActionImportList, "listImports", ScopeDatabaseRead),
		operation(ActionImportCreate, "createImport", ScopeDatabaseCreate).within(RateImport).also(ActionDatabaseCreate),
		operation(ActionImportGet, "getImport", ScopeDatabaseRead),
		operation(ActionImportCutover, "cutOverImport", ScopeDatabaseCreate),

		operation(ActionBucketList, "listBuckets", ScopeStorageRead),
		operation(ActionBucketCreate, "createBucket", ScopeStorageCreate).within(RateCreateBucket),
		operation(ActionBucketGet, "getBucket", ScopeStorageRead),
		operation(ActionBucketUpdate, "updateBucket", ScopeStorageUpdate).conditional().
			alsoWhen("When `expire_after_days` or `expiry_rules` has objects or versions removed sooner than so far", ActionObjectDelete),
		operation(ActionBucketDelete, "deleteBucket", ScopeStorageDelete).destructive().conditional(),
		operation(ActionBucketHistory, "getBucketRestore", ScopeStorageRead),
		operation(ActionBucketRestore, "restoreBucket", ScopeStorageUpdate).within(RateRestore).
			alsoWhen("Unless `dry_run` is true", ActionObjectDelete),
		operation(ActionObjectList, "listObjects", ScopeStorageRead),
		operation(ActionObjectUpload, "uploadObject", ScopeStorageCreate),
		operation(ActionObjectGet, "getObject", ScopeStorageRead),
		operation(ActionObjectUpdate, "updateObject", ScopeStorageUpdate).
			alsoWhen("When `bypass_governance` weakens a retention", ActionObjectDelete),
		operation(ActionObjectDelete, "deleteObject", ScopeStorageDelete).destructive(),
		operation(ActionObjectCopy, "copyObject", ScopeStorageCreate).also(ActionObjectGet),
		operation(ActionVersionList, "listVersions", ScopeStorageRead),
		operation(ActionUploadLink, "createUploadLink", ScopeStorageCreate),
		operation(ActionDownloadLink, "createDownloadLink", ScopeStorageRead),

		operation(ActionProjectList, "listProjects", ScopeAccountRead),
		operation(ActionProjectCreate, "createProject", ScopeProjectManage),
		operation(ActionProjectGet, "getProject", ScopeAccountRead),
		operation(ActionProjectUpdate, "updateProject", ScopeProjectManage).conditional(),
		operation(ActionProjectDelete, "deleteProject", ScopeProjectManage).conditional(),

		operation(ActionUserList, "listUsers", ScopeTeamRead),
		operation(ActionUserInvite, "inviteUser", ScopeTeamManage).within(RateInvite),
		operation(ActionUserGet, "getUser", ScopeTeamRead),
		operation(ActionUserRole, "updateUser", ScopeTeamManage),
		operation(ActionUserDelete, "deleteUser", ScopeTeamManage),
		operation(ActionSetupLinkCreate, "createSetupLink", ScopeTeamManage).within(RateInvite),
		operation(ActionSessionList, "listUserSessions", ScopeSessionManage),
		operation(ActionSessionEnd, "endUserSession", ScopeSessionManage),
		operation(ActionSessionEndAll, "endUserSessions", ScopeSessionManage),

		operation(ActionTrashList, "listTrashedDatabases", ScopeTrashManage),
		operation(ActionTrashRestore, "restoreTrashedDatabase", ScopeTrashManage),
		operation(ActionTrashPurge, "purgeTrashedDatabase", ScopeTrashDelete).destructive(),
		operation(ActionTrashBucketList, "listTrashedBuckets", ScopeTrashManage),
		operation(ActionTrashBucketRestore, "restoreTrashedBucket", ScopeTrashManage),
		operation(ActionTrashBucketPurge, "purgeTrashedBucket", ScopeTrashDelete).destructive(),
		operation(ActionTrashObjectList, "listTrashedObjects", ScopeTrashManage),
		operation(ActionTrashObjectRestore, "restoreTrashedObject", ScopeTrashManage),
		operation(ActionTrashObjectPurge, "purgeTrashedObject", ScopeTrashDelete).destructive(),
		operation(ActionTrashEmpty, "emptyTrash", ScopeTrashDelete).destructive(),

		operation(ActionUsageGet, "getUsage", ScopeAccountRead),
		operation(ActionLimitsGet, "getLimits", ScopeAccountRead),
		operation(ActionBillingGet, "getBilling", ScopeBillingRead),
		operation(ActionOffsiteGet, "getOffsite", ScopeAccountRead),
		operation(ActionKeyList, "listKeys", ScopeAccountRead),
		operation(ActionKeyCreate, "createKey", ScopeKeyManage).within(RateCreateKey),
		operation(ActionKeyGet, "getKey", ScopeAccountRead),
		operation(ActionKeyUpdate, "updateKey", ScopeKeyManage).conditional(),
		operation(ActionKeyRevoke, "revokeKey", ScopeKeyManage),
		operation(ActionKeyCredentials, "getStorageCredentials", ScopeStorageRead),
		operation(ActionAuditList, "listAuditLogs", ScopeAccountRead),
		operation(ActionAuditExport, "exportAuditLogs", ScopeAccountRead),
		operation(ActionAgentStatus, "getAgentStatus", ScopeAccountRead),
		operation(ActionRecommendationList, "listRecommendations", ScopeAccountRead),
	}
}

// ConsoleOperations returns the table of operations that only people and the
// operator perform: a key can do everything else that the console does.
func ConsoleOperations() []Operation {
	return []Operation{
		person(ActionUserPassword, RoleViewer),
		person(ActionSignOut, RoleViewer),
		person(ActionSignOutAll, RoleViewer),
		person(ActionKeyDangerous, RoleAdmin),
		person(ActionDeviceReview, RoleViewer),
		person(ActionDeviceApprove, RoleViewer),
		person(ActionDeviceDeny, RoleViewer),
	}
}

// OperationFor returns the row of action. It panics if there is none: a
// programming error, found at start-up when the routes are made.
func OperationFor(action Action) Operation {
	all := append(Operations(), ConsoleOperations()...)
	i := slices.IndexFunc(all, func(o Operation) bool { return o.Action == action })
	if i < 0 {
		panic("model: no operation for action " + string(action))
	}
	return all[i]
}

func operation(a Action, name string, s Scope) Operation {
	return Operation{Action: a, Name: name, Scope: s}
}

// person makes the row of an operation that only people perform.
func person(a Action, least Role) Operation { return Operation{Action: a, Role: least} }

// destructive makes the operation require the key's dangerous-operations toggle.
func (o Operation) destructive() Operation {
	o.Destructive = true
	return o
}

// conditional lets clients name the state of the resource that they know.
func (o Operation) conditional() Operation {
	o.Conditional = true
	return o
}

// from sets the minimum role of people, besides the scope.
func (o Operation) from(least Role) Operation {
	o.Role = least
	return o
}

// Changes reports whether the operation changes anything that is worth keeping.
func (o Operation) Changes() bool {
	switch o.Scope {
	case ScopeDatabaseCreate, ScopeDatabaseUpdate, ScopeDatabaseDelete, ScopeStorageCreate, ScopeStorageUpdate, ScopeStorageDelete,
		ScopeBackupCreate, ScopeBackupRestore, ScopeBackupDelete, ScopeProjectManage, ScopeKeyManage, ScopeTeamManage, ScopeTrashDelete:
		return true
	}
	switch o.Action {
	case ActionOperationCancel, ActionTrashRestore, ActionTrashBucketRestore, ActionTrashObjectRestore,
		ActionUserPassword, ActionKeyDangerous, ActionDeviceApprove, ActionDeviceDeny,
		ActionWebhookCreate, ActionWebhookUpdate, ActionWebhookDelete, ActionWebhookRotate, ActionWebhookPing, ActionWebhookResend:
		return true
	}
	return false
}

// within makes the operation draw on the budget of class.
func (o Operation) within(class RateClass) Operation {
	o.Rate = class
	return o
}
