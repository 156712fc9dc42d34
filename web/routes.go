package web

import "holdfast/engine/model"

// route is a row of the table of pages: the pattern, the action, whose row in
// the operations table says who may see the page, and the handler.
type route struct {
	pattern string
	action  model.Action
	handler handler
	// form is the page with the submitted form. It is shown again if the
	// handler fails; without it, an error has a page of its own.
	form page
}

// openRoute is a page that needs no session; one with action "" is not audited.
// Its handler's own page shows an error.
type openRoute route

func openRoutes() []openRoute {
	return []openRoute{
		{"GET /sign-in", "", (*request).signInForm, nil},
		{"POST /sign-in", model.ActionSessionCreate, (*request).signIn, nil},
		{"GET /setup", "", (*request).setupForm, nil},
		{"POST /setup", model.ActionUserCreate, (*request).setup, nil},
		{"GET /docs", "", (*request).referenceIndex, nil},
		{"GET /docs/{area}", "", (*request).referenceArea, nil},
	}
}

func routes() []route {
	backups, backup := aboutDatabase("backups", (*request).backups), aboutDatabase("backups", (*request).backup)
	plan := aboutDatabase("backups", (*request).recoveryPlan)
	access, tables := aboutDatabase("access", (*request).databaseAccess), aboutDatabase("tables", (*request).tables)
	roles := aboutDatabase("roles", (*request).databaseRoles)
	extensions := aboutDatabase("extensions", (*request).extensions)
	replication := aboutDatabase("replication", (*request).replication)
	sessions := aboutDatabase("sessions", (*request).databaseSessions)
	statements, locks, sizes := aboutDatabase("statements", (*request).statements), aboutDatabase("sessions", (*request).locks), aboutDatabase("sizes", (*request).sizes)
	branches := aboutDatabase("branches", (*request).branches)
	settings := aboutDatabase("settings", (*request).databaseSettings)
	return []route{
		{"GET /{$}", model.ActionAgentStatus, (*request).overview, nil},

		{"GET /advice", model.ActionRecommendationList, (*request).advice, nil},

		{"GET /offsite", model.ActionOffsiteGet, (*request).offsite, nil},

		{"GET /device", model.ActionDeviceReview, (*request).device, nil},
		{"POST /device/approve", model.ActionDeviceApprove, (*request).deviceApprove, (*request).deviceAgain},
		{"POST /device/deny", model.ActionDeviceDeny, (*request).deviceDeny, (*request).deviceAgain},

		{"GET /databases/new", model.ActionProjectList, show((*request).databaseNew), nil},
		{"POST /databases", model.ActionDatabaseCreate, (*request).databaseCreate, (*request).databaseNew},
		{"GET /databases/{id}", model.ActionDatabaseGet, show(aboutDatabase("", (*request).database)), nil},
		{"GET /databases/{id}/connect", model.ActionDatabaseConnection, show(aboutDatabase("connect", (*request).databaseConnect)), nil},
		{"GET /databases/{id}/ca.crt", model.ActionSSLGet, (*request).databaseAuthority, nil},
		{"GET /databases/{id}/backups", model.ActionBackupList, show(backups), nil},
		{"POST /databases/{id}/backups", model.ActionBackupCreate, (*request).backupCreate, backups},
		{"GET /databases/{id}/backups/{backup}", model.ActionBackupGet, show(backup), nil},
		{"POST /databases/{id}/backups/{backup}/restore", model.ActionBackupRestore, (*request).backupRestore, backup},
		{"POST /databases/{id}/backups/{backup}/delete", model.ActionBackupDelete, (*request).backupDelete, backup},
		{"POST /databases/{id}/backups/{backup}/pin", model.ActionBackupPin, (*request).backupPin, backup},
		{"GET /databases/{id}/export", model.ActionExportGet, (*request).export, nil},
		{"POST /databases/{id}/export", model.ActionExportCreate, (*request).exportCreate, roles},
		{"GET /databases/{id}/recovery", model.ActionRecoveryGet, show(plan), nil},
		{"POST /databases/{id}/recovery", model.ActionRecoveryCreate, (*request).recoveryRestore, plan},
		{"POST /databases/{id}/undo", model.ActionRecoveryUndo, (*request).recoveryUndo, backups},
		{"GET /databases/{id}/branches", model.ActionBranchList, show(branches), nil},
		{"POST /databases/{id}/branches", model.ActionBranchCreate, (*request).branchCreate, branches},
		{"GET /databases/{id}/branches/diff", model.ActionBranchDiff, show(aboutDatabase("branches", (*request).branchDiff)), nil},
		{"POST /databases/{id}/branches/reset", model.ActionBranchReset, (*request).branchReset, branches},
		{"POST /databases/{id}/branches/expiry", model.ActionDatabaseUpdate, (*request).branchExpiry, branches},
		{"GET /databases/{id}/access", model.ActionAllowlistGet, show(access), nil},
		{"POST /databases/{id}/allowlist", model.ActionAllowlistSet, (*request).allowlistSet, access},
		{"GET /databases/{id}/roles", model.ActionDatabaseRoleList, show(roles), nil},
		{"POST /databases/{id}/roles", model.ActionDatabaseRoleCreate, (*request).roleCreate, roles},
		{"POST /databases/{id}/roles/update", model.ActionDatabaseRoleUpdate, (*request).roleUpdate, roles},
		{"POST /databases/{id}/roles/password", model.ActionDatabaseRoleRotate, (*request).roleRotate, roles},
		{"POST /databases/{id}/roles/delete", model.ActionDatabaseRoleDelete, (*request).roleDelete, roles},
		{"GET /databases/{id}/tables", model.ActionRLSGet, show(tables), nil},
		{"POST /databases/{id}/tables", model.ActionRLSSet, (*request).rlsSet, tables},
		{"GET /databases/{id}/extensions", model.ActionExtensionList, show(extensions), nil},
		{"POST /databases/{id}/extensions", model.ActionExtensionSet, (*request).extensionSet, extensions},
		{"POST /databases/{id}/extensions/delete", model.ActionExtensionDelete, (*request).extensionDelete, extensions},
		{"GET /databases/{id}/replication", model.ActionReplicationGet, show(replication), nil},
		{"POST /databases/{id}/replication", model.ActionDatabaseUpdate, (*request).replicationSwitch, replication},
		{"POST /databases/{id}/replication/drop-slot", model.ActionReplicationSlotDrop, (*request).replicationSlotDrop, replication},
		{"GET /databases/{id}/sessions", model.ActionDatabaseSessionList, show(sessions), nil},
		{"POST /databases/{id}/sessions/cancel", model.ActionDatabaseSessionCancel, (*request).databaseSessionCancel, sessions},
		{"POST /databases/{id}/sessions/terminate", model.ActionDatabaseSessionTerminate, (*request).databaseSessionTerminate, sessions},
		{"GET /databases/{id}/locks", model.ActionLockList, show(locks), nil},
		{"GET /databases/{id}/statements", model.ActionStatementList, show(statements), nil},
		{"POST /databases/{id}/statements/reset", model.ActionStatementReset, (*request).statementsReset, statements},
		{"POST /databases/{id}/statements/explain", model.ActionStatementPlan, (*request).statementExplain, statements},
		{"GET /databases/{id}/sizes", model.ActionRelationList, show(sizes), nil},
		{"GET /databases/{id}/log", model.ActionDatabaseLog, show(aboutDatabase("log", (*request).databaseLog)), nil},
		{"GET /databases/{id}/settings", model.ActionDatabaseGet, show(settings), nil},
		{"POST /databases/{id}/settings", model.ActionDatabaseUpdate, (*request).databaseUpdate, settings},
		{"POST /databases/{id}/postgresql", model.ActionSettingsUpdate, (*request).settingsUpdate, settings},
		{"POST /databases/{id}/sleep", model.ActionDatabaseUpdate, (*request).databaseSleep, settings},
		{"POST /databases/{id}/retention", model.ActionDatabaseUpdate, (*request).databaseRetention, settings},
		{"POST /databases/{id}/rename", model.ActionDatabaseUpdate, (*request).databaseRename, settings},
		{"POST /databases/{id}/cancel", model.ActionOperationCancel, (*request).operationCancel, settings},
		{"POST /databases/{id}/restart", model.ActionDatabaseRestart, (*request).databaseRestart, settings},
		{"POST /databases/{id}/upgrade", model.ActionDatabaseUpgrade, (*request).databaseUpgrade, settings},
		{"POST /databases/{id}/password", model.ActionDatabaseRotatePassword, (*request).databasePassword, settings},
		{"POST /databases/{id}/delete", model.ActionDatabaseDelete, (*request).databaseDelete, settings},

		{"GET /buckets", model.ActionBucketList, show((*request).buckets), nil},
		{"POST /buckets", model.ActionBucketCreate, (*request).bucketCreate, (*request).buckets},
		{"GET /buckets/{id}", model.ActionObjectList, show((*request).bucket), nil},
		{"POST /buckets/{id}", model.ActionObjectUpload, (*request).uploadForm, nil},
		{"PUT /buckets/{id}", model.ActionObjectUpload, (*request).upload, nil},
		{"POST /buckets/{id}/settings", model.ActionBucketUpdate, (*request).bucketUpdate, (*request).bucket},
		{"POST /buckets/{id}/expiry", model.ActionBucketUpdate, (*request).bucketExpire, (*request).bucket},
		{"POST /buckets/{id}/versioning", model.ActionBucketUpdate, (*request).bucketVersioning, (*request).bucket},
		{"POST /buckets/{id}/lock", model.ActionBucketUpdate, (*request).bucketLock, (*request).bucket},
		{"POST /buckets/{id}/website", model.ActionBucketUpdate, (*request).bucketWebsite, (*request).bucket},
		{"GET /buckets/{id}/restore", model.ActionBucketHistory, show((*request).bucketPlan), nil},
		{"POST /buckets/{id}/restore", model.ActionBucketRestore, (*request).bucketRestore, (*request).bucketPlan},
		{"GET /buckets/{id}/object", model.ActionObjectGet, show((*request).object), nil},
		{"POST /buckets/{id}/object", model.ActionObjectUpdate, (*request).objectUpdate, (*request).object},
		{"POST /buckets/{id}/object/lock", model.ActionObjectUpdate, (*request).objectLock, (*request).object},
		{"POST /buckets/{id}/upload-links", model.ActionUploadLink, (*request).uploadLinkCreate, (*request).bucket},
		{"GET /buckets/{id}/download", model.ActionObjectGet, (*request).download, nil},
		{"POST /buckets/{id}/objects/delete", model.ActionObjectDelete, (*request).objectDelete, (*request).bucket},
		{"POST /buckets/{id}/delete", model.ActionBucketDelete, (*request).bucketDelete, (*request).bucket},

		{"GET /imports", model.ActionImportList, (*request).imports, nil},
		{"GET /imports/new", model.ActionProjectList, show((*request).importNew), nil},
		{"POST /imports", model.ActionImportCreate, (*request).importCreate, (*request).importNew},
		{"GET /imports/{id}", model.ActionImportGet, show((*request).importRecord), nil},
		{"POST /imports/{id}/cutover", model.ActionImportCutover, (*request).importCutover, (*request).importRecord},
		{"POST /imports/{id}/cancel", model.ActionOperationCancel, (*request).importCancel, (*request).importRecord},

		{"GET /keys", model.ActionKeyList, (*request).keys, nil},
		{"GET /keys/new", model.ActionKeyList, show((*request).keyNew), nil},
		{"POST /keys", model.ActionKeyCreate, (*request).keyCreate, (*request).keyNew},
		{"GET /keys/{id}", model.ActionKeyList, (*request).key, nil},
		{"POST /keys/{id}", model.ActionKeyUpdate, (*request).keyUpdate, (*request).keyAgain},
		{"POST /keys/{id}/dangerous", model.ActionKeyDangerous, (*request).keyDangerous, nil},
		{"POST /keys/{id}/revoke", model.ActionKeyRevoke, (*request).keyRevoke, nil},

		{"GET /webhooks", model.ActionWebhookList, show((*request).webhooks), nil},
		{"POST /webhooks", model.ActionWebhookCreate, (*request).webhookCreate, (*request).webhooks},
		{"GET /webhooks/{id}", model.ActionWebhookDeliveries, show((*request).webhook), nil},
		{"POST /webhooks/{id}", model.ActionWebhookUpdate, (*request).webhookUpdate, (*request).webhook},
		{"POST /webhooks/{id}/ping", model.ActionWebhookPing, (*request).webhookPing, (*request).webhook},
		{"POST /webhooks/{id}/secret", model.ActionWebhookRotate, (*request).webhookRotate, (*request).webhook},
		{"POST /webhooks/{id}/deliveries/{delivery}/resend", model.ActionWebhookResend, (*request).webhookResend, (*request).webhook},
		{"POST /webhooks/{id}/delete", model.ActionWebhookDelete, (*request).webhookDelete, (*request).webhook},

		{"GET /audit", model.ActionAuditList, (*request).audit, nil},
		{"GET /audit/export", model.ActionAuditExport, (*request).auditExport, nil},

		{"GET /people", model.ActionUserList, show((*request).people), nil},
		{"POST /people", model.ActionUserInvite, (*request).personInvite, (*request).people},
		{"POST /people/{id}/role", model.ActionUserRole, (*request).personRole, (*request).people},
		{"POST /people/{id}/link", model.ActionSetupLinkCreate, (*request).personLink, (*request).people},
		{"POST /people/{id}/sign-out", model.ActionSessionEndAll, (*request).personSignOut, (*request).people},
		{"GET /sessions", model.ActionSessionList, show((*request).sessions), nil},
		{"POST /sessions/{id}/end", model.ActionSessionEnd, (*request).sessionEnd, (*request).sessions},
		{"POST /people/{id}/delete", model.ActionUserDelete, (*request).personDelete, (*request).people},

		{"GET /projects", model.ActionProjectList, show((*request).projects), nil},
		{"POST /projects", model.ActionProjectCreate, (*request).projectCreate, (*request).projects},
		{"POST /projects/{id}", model.ActionProjectUpdate, (*request).projectRename, (*request).projects},
		{"POST /projects/{id}/delete", model.ActionProjectDelete, (*request).projectDelete, (*request).projects},

		{"GET /trash", model.ActionTrashList, show((*request).trash), nil},
		{"POST /trash/databases/{id}/restore", model.ActionTrashRestore, (*request).trashRestore, (*request).trash},
		{"POST /trash/databases/{id}/purge", model.ActionTrashPurge, (*request).trashPurge, (*request).trash},
		{"POST /trash/buckets/{id}/restore", model.ActionTrashBucketRestore, (*request).trashBucketRestore, (*request).trash},
		{"POST /trash/buckets/{id}/purge", model.ActionTrashBucketPurge, (*request).trashBucketPurge, (*request).trash},
		{"POST /trash/objects/{id}/restore", model.ActionTrashObjectRestore, (*request).trashObjectRestore, (*request).trash},
		{"POST /trash/objects/{id}/purge", model.ActionTrashObjectPurge, (*request).trashObjectPurge, (*request).trash},

		{"GET /settings", model.ActionUsageGet, show((*request).settings), nil},
		{"POST /settings/password", model.ActionUserPassword, (*request).password, (*request).settings},
		{"POST /sign-out", model.ActionSignOut, (*request).signOut, nil},
		{"POST /sign-out/everywhere", model.ActionSignOutAll, (*request).signOutEverywhere, nil},
	}
}
