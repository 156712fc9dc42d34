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
func formAgain(action model.Action) func(*request, error) (answer, error) {
	switch action {
	case model.ActionDatabaseCreate:
		return (*request).databaseAgain
	case model.ActionBackupRestore:
		return (*request).backupPage
	case model.ActionRecoveryCreate:
		return (*request).recoveryAgain
	case model.ActionBucketCreate:
		return (*request).bucketAgain
	case model.ActionImportCreate:
		return (*request).importAgain
	case model.ActionBackupCreate, model.ActionRecoveryUndo:
		return (*request).backupsPage
	default:
		return func(_ *request, err error) (answer, error) { return answer{}, err }
	}
}

func openRoutes() []openRoute {
	return []openRoute{
		{"GET /sign-in", "", (*request).signInForm},
		{"POST /sign-in", model.ActionSessionCreate, (*request).signIn},
		{"GET /setup", "", (*request).setupForm},
		{"POST /setup", model.ActionUserCreate, (*request).setup},
		{"GET /docs", "", (*request).referenceIndex},
		{"GET /docs/{area}", "", (*request).referenceArea},
	}
}

func routes() []route {
	return []route{
		{"GET /{$}", model.ActionAgentStatus, (*request).overview},

		{"GET /advice", model.ActionRecommendationList, (*request).advice},

		{"GET /device", model.ActionDeviceReview, (*request).device},
		{"POST /device/approve", model.ActionDeviceApprove, (*request).deviceApprove},
		{"POST /device/deny", model.ActionDeviceDeny, (*request).deviceDeny},

		{"GET /databases/new", model.ActionProjectList, (*request).databaseNew},
		{"POST /databases", model.ActionDatabaseCreate, (*request).databaseCreate},
		{"GET /databases/{id}", model.ActionDatabaseGet, (*request).database},
		{"GET /databases/{id}/connect", model.ActionDatabaseConnection, (*request).databaseConnect},
		{"GET /databases/{id}/ca.crt", model.ActionSSLGet, (*request).databaseAuthority},
		{"GET /databases/{id}/backups", model.ActionBackupList, (*request).backups},
		{"POST /databases/{id}/backups", model.ActionBackupCreate, (*request).backupCreate},
		{"GET /databases/{id}/backups/{backup}", model.ActionBackupGet, (*request).backup},
		{"POST /databases/{id}/backups/{backup}/restore", model.ActionBackupRestore, (*request).backupRestore},
		{"POST /databases/{id}/backups/{backup}/delete", model.ActionBackupDelete, (*request).backupDelete},
		{"POST /databases/{id}/backups/{backup}/pin", model.ActionBackupPin, (*request).backupPin},
		{"GET /databases/{id}/export", model.ActionExportGet, (*request).export},
		{"GET /databases/{id}/recovery", model.ActionRecoveryGet, (*request).recoveryPlan},
		{"POST /databases/{id}/recovery", model.ActionRecoveryCreate, (*request).recoveryRestore},
		{"POST /databases/{id}/undo", model.ActionRecoveryUndo, (*request).recoveryUndo},
		{"GET /databases/{id}/access", model.ActionAllowlistGet, (*request).databaseAccess},
		{"POST /databases/{id}/allowlist", model.ActionAllowlistSet, (*request).allowlistSet},
		{"GET /databases/{id}/tables", model.ActionRLSGet, (*request).tables},
		{"POST /databases/{id}/tables", model.ActionRLSSet, (*request).rlsSet},
		{"GET /databases/{id}/log", model.ActionDatabaseLog, (*request).databaseLog},
		{"GET /databases/{id}/settings", model.ActionDatabaseGet, (*request).databaseSettings},
		{"POST /databases/{id}/restart", model.ActionDatabaseRestart, (*request).databaseRestart},
		{"POST /databases/{id}/password", model.ActionDatabaseRotatePassword, (*request).databasePassword},
		{"POST /databases/{id}/delete", model.ActionDatabaseDelete, (*request).databaseDelete},

		{"GET /buckets", model.ActionBucketList, (*request).buckets},
		{"POST /buckets", model.ActionBucketCreate, (*request).bucketCreate},
		{"GET /buckets/{id}", model.ActionObjectList, (*request).bucket},
		{"POST /buckets/{id}", model.ActionObjectUpload, (*request).uploadForm},
		{"PUT /buckets/{id}", model.ActionObjectUpload, (*request).upload},
		{"POST /buckets/{id}/settings", model.ActionBucketUpdate, (*request).bucketUpdate},
		{"POST /buckets/{id}/expiry", model.ActionBucketUpdate, (*request).bucketExpire},
		{"GET /buckets/{id}/download", model.ActionObjectGet, (*request).download},
		{"POST /buckets/{id}/objects/delete", model.ActionObjectDelete, (*request).objectDelete},
		{"POST /buckets/{id}/delete", model.ActionBucketDelete, (*request).bucketDelete},

		{"GET /imports", model.ActionImportList, (*request).imports},
		{"GET /imports/new", model.ActionProjectList, (*request).importNew},
		{"POST /imports", model.ActionImportCreate, (*request).importCreate},
		{"GET /imports/{id}", model.ActionImportGet, (*request).importRecord},
		{"POST /imports/{id}/cancel", model.ActionDatabaseDelete, (*request).importCancel},

		{"GET /keys", model.ActionKeyList, (*request).keys},
		{"GET /keys/new", model.ActionKeyList, (*request).keyNew},
		{"POST /keys", model.ActionKeyCreate, (*request).keyCreate},
		{"GET /keys/{id}", model.ActionKeyList, (*request).key},
		{"POST /keys/{id}/dangerous", model.ActionKeyUpdate, (*request).keyDangerous},
		{"POST /keys/{id}/revoke", model.ActionKeyRevoke, (*request).keyRevoke},

		{"GET /audit", model.ActionAuditList, (*request).audit},

		{"GET /people", model.ActionUserList, (*request).people},
		{"POST /people", model.ActionUserInvite, (*request).personInvite},
		{"POST /people/{id}/role", model.ActionUserRole, (*request).personRole},
		{"POST /people/{id}/link", model.ActionSetupLinkCreate, (*request).personLink},
		{"POST /people/{id}/delete", model.ActionUserDelete, (*request).personDelete},

		{"GET /projects", model.ActionProjectList, (*request).projects},
		{"POST /projects", model.ActionProjectCreate, (*request).projectCreate},

		{"GET /settings", model.ActionSettingsGet, (*request).settings},
		{"POST /settings/password", model.ActionUserPassword, (*request).password},
		{"POST /sign-out", model.ActionSessionEnd, (*request).signOut},
		{"POST /sign-out/everywhere", model.ActionSessionEndAll, (*request).signOutEverywhere},
	}
}
