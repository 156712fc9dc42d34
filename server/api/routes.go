package api

import (
	"holdfast/engine/model"
)

// route is a row of the table: a method and path, their operation, and its handler. The operations table of
// engine/model has the rest: scope, budget and audit action.
type route struct {
	method, path string
	action       model.Action
	handler      registrar
	// variant is a suffix of the operation's name for its second path.
	variant string
}

// routes returns the routes of the API in the order of the specification.
func (h *handlers) routes() []route {
	return []route{
		{"POST", "/device/authorize", model.ActionDeviceAuthorize, one(h.deviceAuthorize), ""},
		{"POST", "/device/token", model.ActionDeviceToken, one(h.deviceToken), ""},

		{"GET", "/databases", model.ActionDatabaseList, list(h.databaseList), ""},
		{"POST", "/databases", model.ActionDatabaseCreate, one(h.databaseCreate), ""},
		{"GET", "/databases/{id}", model.ActionDatabaseGet, one(h.databaseGet), ""},
		{"PATCH", "/databases/{id}", model.ActionDatabaseUpdate, one(h.databaseUpdate), ""},
		{"DELETE", "/databases/{id}", model.ActionDatabaseDelete, one(h.databaseDelete), ""},
		{"POST", "/databases/{id}/restart", model.ActionDatabaseRestart, one(h.databaseRestart), ""},
		{"POST", "/databases/{id}/rotate-password", model.ActionDatabaseRotatePassword, one(h.databaseRotatePassword), ""},
		{"GET", "/databases/{id}/connection", model.ActionDatabaseConnection, one(h.databaseConnection), ""},
		{"GET", "/databases/{id}/log", model.ActionDatabaseLog, one(h.databaseLog), ""},
		{"GET", "/databases/{id}/metrics", model.ActionDatabaseMetrics, one(h.databaseMetrics), ""},
		{"POST", "/databases/{id}/upgrade", model.ActionDatabaseUpgrade, one(h.databaseUpgrade), ""},

		{"GET", "/databases/{id}/branches", model.ActionBranchList, list(h.branchList), ""},
		{"POST", "/databases/{id}/branches", model.ActionBranchCreate, one(h.branchCreate), ""},
		{"POST", "/databases/{id}/branch/reset", model.ActionBranchReset, one(h.branchReset), ""},
		{"GET", "/databases/{id}/branch/diff", model.ActionBranchDiff, one(h.branchDiff), ""},

		{"GET", "/databases/{id}/ssl", model.ActionSSLGet, one(h.sslGet), ""},
		{"GET", "/databases/{id}/allowlist", model.ActionAllowlistGet, one(h.allowlistGet), ""},
		{"PUT", "/databases/{id}/allowlist", model.ActionAllowlistSet, one(h.allowlistSet), ""},
		{"GET", "/databases/{id}/rls", model.ActionRLSGet, one(h.rlsGet), ""},
		{"POST", "/databases/{id}/rls", model.ActionRLSSet, one(h.rlsSet), ""},

		{"GET", "/databases/{id}/roles", model.ActionDatabaseRoleList, one(h.roleList), ""},
		{"POST", "/databases/{id}/roles", model.ActionDatabaseRoleCreate, one(h.roleCreate), ""},
		{"GET", "/databases/{id}/roles/{name}", model.ActionDatabaseRoleGet, one(h.roleGet), ""},
		{"PATCH", "/databases/{id}/roles/{name}", model.ActionDatabaseRoleUpdate, one(h.roleUpdate), ""},
		{"DELETE", "/databases/{id}/roles/{name}", model.ActionDatabaseRoleDelete, one(h.roleDelete), ""},
		{"POST", "/databases/{id}/roles/{name}/rotate-password", model.ActionDatabaseRoleRotate, one(h.roleRotatePassword), ""},

		{"GET", "/databases/{id}/databases", model.ActionPostgresDatabaseList, one(h.postgresDatabaseList), ""},

		{"GET", "/databases/{id}/sessions", model.ActionDatabaseSessionList, one(h.databaseSessionList), ""},
		{"POST", "/databases/{id}/sessions/{sessionId}/cancel", model.ActionDatabaseSessionCancel, one(h.databaseSessionCancel), ""},
		{"POST", "/databases/{id}/sessions/{sessionId}/terminate", model.ActionDatabaseSessionTerminate, one(h.databaseSessionTerminate), ""},

		{"GET", "/databases/{id}/statements", model.ActionStatementList, one(h.statementList), ""},
		{"POST", "/databases/{id}/statements/reset", model.ActionStatementReset, one(h.statementReset), ""},
		{"POST", "/databases/{id}/statements/explain", model.ActionStatementPlan, one(h.statementExplain), ""},
		{"GET", "/databases/{id}/locks", model.ActionLockList, one(h.lockList), ""},
		{"GET", "/databases/{id}/relations", model.ActionRelationList, one(h.relationList), ""},
		{"GET", "/versions", model.ActionDatabaseVersionList, one(h.postgresVersionList), ""},

		{"GET", "/databases/{id}/replication", model.ActionReplicationGet, one(h.replicationGet), ""},
		{"DELETE", "/databases/{id}/replication/slots/{slot}", model.ActionReplicationSlotDrop, one(h.replicationSlotDrop), ""},
		{"GET", "/databases/{id}/settings", model.ActionSettingsList, one(h.settingsList), ""},
		{"PATCH", "/databases/{id}/settings", model.ActionSettingsUpdate, one(h.settingsUpdate), ""},
		{"GET", "/databases/{id}/extensions", model.ActionExtensionList, one(h.extensionList), ""},
		{"POST", "/databases/{id}/extensions", model.ActionExtensionSet, one(h.extensionSet), ""},
		{"DELETE", "/databases/{id}/extensions/{name}", model.ActionExtensionDelete, one(h.extensionDelete), ""},

		{"GET", "/databases/{id}/backups", model.ActionBackupList, list(h.backupList), ""},
		{"POST", "/databases/{id}/backups", model.ActionBackupCreate, one(h.backupCreate), ""},
		{"GET", "/databases/{id}/backups/{backupId}", model.ActionBackupGet, one(h.backupGet), ""},
		{"DELETE", "/databases/{id}/backups/{backupId}", model.ActionBackupDelete, one(h.backupDelete), ""},
		{"POST", "/databases/{id}/backups/{backupId}/restore", model.ActionBackupRestore, one(h.backupRestore), ""},
		{"POST", "/databases/{id}/backups/{backupId}/pin", model.ActionBackupPin, one(h.backupPin), ""},
		{"GET", "/databases/{id}/recovery", model.ActionRecoveryGet, one(h.recoveryGet), ""},
		{"POST", "/databases/{id}/recovery/restore-request", model.ActionRecoveryCreate, one(h.recoveryRequest), ""},
		{"POST", "/databases/{id}/recovery/undo", model.ActionRecoveryUndo, one(h.recoveryUndo), ""},
		{"GET", "/databases/{id}/export", model.ActionExportGet, one(h.exportGet), ""},
		{"POST", "/databases/{id}/export", model.ActionExportCreate, one(h.exportCreate), ""},

		{"GET", "/operations", model.ActionOperationList, list(h.operationList), ""},
		{"GET", "/operations/{operationId}", model.ActionOperationGet, one(h.operationGet), ""},
		{"POST", "/operations/{operationId}/cancel", model.ActionOperationCancel, one(h.operationCancel), ""},

		{"GET", "/operations/{operationId}/events", model.ActionOperationStream, streaming(eventStream, "Server-sent events, until the operation has ended.", h.operationEvents), ""},
		{"GET", "/events", model.ActionEventStream, streaming(eventStream, "Server-sent events, until the client or the appliance ends them.", h.events), ""},

		{"GET", "/webhooks", model.ActionWebhookList, list(h.webhookList), ""},
		{"POST", "/webhooks", model.ActionWebhookCreate, one(h.webhookCreate), ""},
		{"GET", "/webhooks/{webhookId}", model.ActionWebhookGet, one(h.webhookGet), ""},
		{"PATCH", "/webhooks/{webhookId}", model.ActionWebhookUpdate, one(h.webhookUpdate), ""},
		{"DELETE", "/webhooks/{webhookId}", model.ActionWebhookDelete, one(h.webhookDelete), ""},
		{"POST", "/webhooks/{webhookId}/rotate-secret", model.ActionWebhookRotate, one(h.webhookRotate), ""},
		{"POST", "/webhooks/{webhookId}/ping", model.ActionWebhookPing, one(h.webhookPing), ""},
		{"GET", "/webhooks/{webhookId}/deliveries", model.ActionWebhookDeliveries, list(h.webhookDeliveries), ""},
		{"POST", "/webhooks/{webhookId}/deliveries/{deliveryId}/resend", model.ActionWebhookResend, one(h.webhookResend), ""},

		{"GET", "/imports", model.ActionImportList, list(h.importList), ""},
		{"POST", "/imports", model.ActionImportCreate, one(h.importCreate), ""},
		{"GET", "/imports/{importId}", model.ActionImportGet, one(h.importGet), ""},
		{"POST", "/imports/{importId}/cutover", model.ActionImportCutover, one(h.importCutover), ""},

		{"GET", "/buckets", model.ActionBucketList, list(h.bucketList), ""},
		{"POST", "/buckets", model.ActionBucketCreate, one(h.bucketCreate), ""},
		{"GET", "/buckets/{id}", model.ActionBucketGet, one(h.bucketGet), ""},
		{"PATCH", "/buckets/{id}", model.ActionBucketUpdate, one(h.bucketUpdate), ""},
		{"DELETE", "/buckets/{id}", model.ActionBucketDelete, one(h.bucketDelete), ""},
		{"GET", "/buckets/{id}/restore", model.ActionBucketHistory, one(h.bucketHistory), ""},
		{"POST", "/buckets/{id}/restore", model.ActionBucketRestore, one(h.bucketRestore), ""},
		{"GET", "/buckets/{id}/objects", model.ActionObjectList, folder(h.objectList), ""},
		{"POST", "/buckets/{id}/objects", model.ActionObjectUpload, streamed(one(h.objectUpload), uploadBody), ""},
		{"GET", "/buckets/{id}/objects/{key}", model.ActionObjectGet, one(h.objectGet), ""},
		{"PATCH", "/buckets/{id}/objects/{key}", model.ActionObjectUpdate, one(h.objectUpdate), ""},
		{"DELETE", "/buckets/{id}/objects/{key}", model.ActionObjectDelete, one(h.objectDelete), ""},
		{"DELETE", "/buckets/{id}/objects", model.ActionObjectDelete, one(h.objectDeleteByQuery), "ByQuery"},
		{"POST", "/buckets/{id}/copy-object", model.ActionObjectCopy, one(h.objectCopy), ""},
		{"POST", "/buckets/{id}/upload-links", model.ActionUploadLink, one(h.uploadLinkCreate), ""},
		{"POST", "/buckets/{id}/download-links", model.ActionDownloadLink, one(h.downloadLinkCreate), ""},
		{"GET", "/buckets/{id}/versions", model.ActionVersionList, list(h.versionList), ""},

		{"GET", "/projects", model.ActionProjectList, list(h.projectList), ""},
		{"POST", "/projects", model.ActionProjectCreate, one(h.projectCreate), ""},
		{"GET", "/projects/{projectId}", model.ActionProjectGet, one(h.projectGet), ""},
		{"PATCH", "/projects/{projectId}", model.ActionProjectUpdate, one(h.projectUpdate), ""},
		{"DELETE", "/projects/{projectId}", model.ActionProjectDelete, one(h.projectDelete), ""},

		{"GET", "/users", model.ActionUserList, list(h.userList), ""},
		{"POST", "/users", model.ActionUserInvite, one(h.userInvite), ""},
		{"GET", "/users/{userId}", model.ActionUserGet, one(h.userGet), ""},
		{"PATCH", "/users/{userId}", model.ActionUserRole, one(h.userUpdate), ""},
		{"DELETE", "/users/{userId}", model.ActionUserDelete, one(h.userDelete), ""},
		{"POST", "/users/{userId}/setup-link", model.ActionSetupLinkCreate, one(h.setupLinkCreate), ""},
		{"DELETE", "/users/{userId}/sessions", model.ActionSessionEndAll, one(h.sessionsEnd), ""},
		{"GET", "/sessions", model.ActionSessionList, list(h.sessionList), ""},
		{"DELETE", "/sessions/{sessionId}", model.ActionSessionEnd, one(h.sessionEnd), ""},

		{"GET", "/trash/databases", model.ActionTrashList, list(h.trashList), ""},
		{"POST", "/trash/databases/{trashId}/restore", model.ActionTrashRestore, one(h.trashRestore), ""},
		{"DELETE", "/trash/databases/{trashId}", model.ActionTrashPurge, one(h.trashPurge), ""},
		{"GET", "/trash/buckets", model.ActionTrashBucketList, list(h.trashBucketList), ""},
		{"POST", "/trash/buckets/{trashId}/restore", model.ActionTrashBucketRestore, one(h.trashBucketRestore), ""},
		{"DELETE", "/trash/buckets/{trashId}", model.ActionTrashBucketPurge, one(h.trashBucketPurge), ""},
		{"GET", "/trash/objects", model.ActionTrashObjectList, list(h.trashObjectList), ""},
		{"POST", "/trash/objects/{trashId}/restore", model.ActionTrashObjectRestore, one(h.trashObjectRestore), ""},
		{"DELETE", "/trash/objects/{trashId}", model.ActionTrashObjectPurge, one(h.trashObjectPurge), ""},
		{"DELETE", "/trash", model.ActionTrashEmpty, one(h.trashEmpty), ""},

		{"GET", "/account/usage", model.ActionUsageGet, one(h.usageGet), ""},
		{"GET", "/account/limits", model.ActionLimitsGet, one(h.limitsGet), ""},
		{"GET", "/account/billing", model.ActionBillingGet, one(h.billingGet), ""},
		{"GET", "/account/offsite", model.ActionOffsiteGet, one(h.offsiteGet), ""},
		{"GET", "/account/api-keys", model.ActionKeyList, list(h.keyList), ""},
		{"POST", "/account/api-keys", model.ActionKeyCreate, one(h.keyCreate), ""},
		{"GET", "/account/api-keys/{keyId}", model.ActionKeyGet, one(h.keyGet), ""},
		{"PATCH", "/account/api-keys/{keyId}", model.ActionKeyUpdate, one(h.keyUpdate), ""},
		{"DELETE", "/account/api-keys/{keyId}", model.ActionKeyRevoke, one(h.keyRevoke), ""},
		{"GET", "/account/storage-credentials", model.ActionKeyCredentials, one(h.storageCredentials), ""},
		{"GET", "/account/audit-logs", model.ActionAuditList, numbered(h.auditList), ""},
		{"GET", "/account/audit-logs/export", model.ActionAuditExport, streaming(auditLines, "Lines of JSON: an AuditEntry each, and at last an AuditExportEnd. Without that line the export was cut off.", h.auditExport), ""},
		{"GET", "/agent/status", model.ActionAgentStatus, one(h.agentStatus), ""},
		{"GET", "/agent/recommendations", model.ActionRecommendationList, list(h.recommendationList), ""},
	}
}
