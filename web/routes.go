package web

import "holdfast/engine/model"

// route is a row of the table of pages: what is asked for, the row of the
// operations' tables that says who may, and who answers.
type route struct {
	pattern string
	action  model.Action
	handler handler
}

// openRoute is a page that needs nobody to be signed in; "" is not audited.
type openRoute route

// formAgain returns what shows the form for an action that has a budget, with
// what was typed and why it is not carried out.
func formAgain(action model.Action) func(*visit, error) (answer, error) {
	switch action {
	case model.ActionDatabaseCreate:
		return (*visit).databaseAgain
	case model.ActionBackupRestore:
		return (*visit).backupPage
	case model.ActionRecoveryCreate:
		return (*visit).recoveryAgain
	case model.ActionBucketCreate:
		return (*visit).bucketAgain
	case model.ActionImportCreate:
		return (*visit).importAgain
	case model.ActionBackupCreate, model.ActionRecoveryUndo:
		return (*visit).backupsPage
	default:
		return func(_ *visit, err error) (answer, error) { return answer{}, err }
	}
}

func openRoutes() []openRoute {
	return []openRoute{
		{"GET /sign-in", "", (*visit).signInForm},
		{"POST /sign-in", model.ActionSessionCreate, (*visit).signIn},
		{"GET /setup", "", (*visit).setupForm},
		{"POST /setup", model.ActionUserCreate, (*visit).setup},
		{"GET /docs", "", (*visit).referenceIndex},
		{"GET /docs/{area}", "", (*visit).referenceArea},
	}
}

func routes() []route {
	return []route{
		{"GET /{$}", model.ActionAgentStatus, (*visit).overview},

		{"GET /advice", model.ActionRecommendationList, (*visit).advice},

		{"GET /device", model.ActionDeviceReview, (*visit).device},
		{"POST /device/approve", model.ActionDeviceApprove, (*visit).deviceApprove},
		{"POST /device/deny", model.ActionDeviceDeny, (*visit).deviceDeny},

		{"GET /databases/new", model.ActionProjectList, (*visit).databaseNew},
		{"POST /databases", model.ActionDatabaseCreate, (*visit).databaseCreate},
		{"GET /databases/{id}", model.ActionDatabaseGet, (*visit).database},
		{"GET /databases/{id}/connect", model.ActionDatabaseConnection, (*visit).databaseConnect},
		{"GET /databases/{id}/ca.crt", model.ActionSSLGet, (*visit).databaseAuthority},
		{"GET /databases/{id}/backups", model.ActionBackupList, (*visit).backups},
		{"POST /databases/{id}/backups", model.ActionBackupCreate, (*visit).backupCreate},
		{"GET /databases/{id}/backups/{backup}", model.ActionBackupGet, (*visit).backup},
		{"POST /databases/{id}/backups/{backup}/restore", model.ActionBackupRestore, (*visit).backupRestore},
		{"POST /databases/{id}/backups/{backup}/delete", model.ActionBackupDelete, (*visit).backupDelete},
		{"POST /databases/{id}/backups/{backup}/pin", model.ActionBackupPin, (*visit).backupPin},
		{"GET /databases/{id}/export", model.ActionExportGet, (*visit).export},
		{"GET /databases/{id}/recovery", model.ActionRecoveryGet, (*visit).recoveryPlan},
		{"POST /databases/{id}/recovery", model.ActionRecoveryCreate, (*visit).recoveryRestore},
		{"POST /databases/{id}/undo", model.ActionRecoveryUndo, (*visit).recoveryUndo},
		{"GET /databases/{id}/access", model.ActionAllowlistGet, (*visit).databaseAccess},
		{"POST /databases/{id}/allowlist", model.ActionAllowlistSet, (*visit).allowlistSet},
		{"GET /databases/{id}/tables", model.ActionRLSGet, (*visit).tables},
		{"POST /databases/{id}/tables", model.ActionRLSSet, (*visit).rlsSet},
		{"GET /databases/{id}/log", model.ActionDatabaseLog, (*visit).databaseLog},
		{"GET /databases/{id}/settings", model.ActionDatabaseGet, (*visit).databaseSettings},
		{"POST /databases/{id}/restart", model.ActionDatabaseRestart, (*visit).databaseRestart},
		{"POST /databases/{id}/password", model.ActionDatabaseRotatePassword, (*visit).databasePassword},
		{"POST /databases/{id}/delete", model.ActionDatabaseDelete, (*visit).databaseDelete},

		{"GET /buckets", model.ActionBucketList, (*visit).buckets},
		{"POST /buckets", model.ActionBucketCreate, (*visit).bucketCreate},
		{"GET /buckets/{id}", model.ActionObjectList, (*visit).bucket},
		{"POST /buckets/{id}", model.ActionObjectUpload, (*visit).uploadForm},
		{"PUT /buckets/{id}", model.ActionObjectUpload, (*visit).upload},
		{"POST /buckets/{id}/settings", model.ActionBucketUpdate, (*visit).bucketUpdate},
		{"POST /buckets/{id}/expiry", model.ActionBucketUpdate, (*visit).bucketExpire},
		{"GET /buckets/{id}/download", model.ActionObjectGet, (*visit).download},
		{"POST /buckets/{id}/objects/delete", model.ActionObjectDelete, (*visit).objectDelete},
		{"POST /buckets/{id}/delete", model.ActionBucketDelete, (*visit).bucketDelete},

		{"GET /imports", model.ActionImportList, (*visit).imports},
		{"GET /imports/new", model.ActionProjectList, (*visit).importNew},
		{"POST /imports", model.ActionImportCreate, (*visit).importCreate},
		{"GET /imports/{id}", model.ActionImportGet, (*visit).importRecord},
		{"POST /imports/{id}/cancel", model.ActionDatabaseDelete, (*visit).importCancel},

		{"GET /keys", model.ActionKeyList, (*visit).keys},
		{"GET /keys/new", model.ActionKeyList, (*visit).keyNew},
		{"POST /keys", model.ActionKeyCreate, (*visit).keyCreate},
		{"GET /keys/{id}", model.ActionKeyList, (*visit).key},
		{"POST /keys/{id}/dangerous", model.ActionKeyUpdate, (*visit).keyDangerous},
		{"POST /keys/{id}/revoke", model.ActionKeyRevoke, (*visit).keyRevoke},

		{"GET /audit", model.ActionAuditList, (*visit).audit},

		{"GET /people", model.ActionUserList, (*visit).people},
		{"POST /people", model.ActionUserInvite, (*visit).personInvite},
		{"POST /people/{id}/role", model.ActionUserRole, (*visit).personRole},
		{"POST /people/{id}/link", model.ActionSetupLinkCreate, (*visit).personLink},
		{"POST /people/{id}/delete", model.ActionUserDelete, (*visit).personDelete},

		{"GET /projects", model.ActionProjectList, (*visit).projects},
		{"POST /projects", model.ActionProjectCreate, (*visit).projectCreate},

		{"GET /settings", model.ActionSettingsGet, (*visit).settings},
		{"POST /settings/password", model.ActionUserPassword, (*visit).password},
		{"POST /sign-out", model.ActionSessionEnd, (*visit).signOut},
		{"POST /sign-out/everywhere", model.ActionSessionEndAll, (*visit).signOutEverywhere},
	}
}
