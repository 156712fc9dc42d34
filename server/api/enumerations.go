package api

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// enumeration is a type whose values the description lists, in a component that every field of the type refers to.
type enumeration struct {
	name, about string
	of          reflect.Type
	values      []any
}

// listed returns the enumeration of T with T's name.
func listed[T ~string](about string, values ...T) enumeration {
	of := reflect.TypeFor[T]()
	e := enumeration{name: of.Name(), about: about, of: of}
	for _, v := range values {
		e.values = append(e.values, string(v))
	}
	return e
}

func (e enumeration) schema() *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Description: e.about, Enum: e.values}
	s.PrecomputeMessages()
	return s
}

// enumerations returns every type whose values the description lists.
func enumerations() []enumeration {
	return []enumeration{
		listed("What kind of actor it is.", wire.ActorKey, wire.ActorUser, wire.ActorOperator, wire.ActorSystem),
		listed("How a request ended.", wire.OutcomeSuccess, wire.OutcomeDenied, wire.OutcomeError),
		listed("How the backup is made.", wire.BackupPhysical),
		listed("How far the backup is; completed and failed are final.", wire.BackupPending, wire.BackupRunning, wire.BackupCompleted, wire.BackupFailed),
		listed("Why the backup was made.", wire.BackupManual, wire.BackupScheduled),
		listed("How the organization pays.", wire.BillingActive, wire.BillingTrial, wire.BillingTrialEnded),
		listed("How far the restore is: planned with dry_run; completed and failed are final.",
			wire.BucketRestorePlanned, wire.BucketRestoreRunning, wire.BucketRestoreCompleted, wire.BucketRestoreFailed),
		listed("Where the database is in its life.",
			wire.DatabaseCreating, wire.DatabaseAvailable, wire.DatabaseRestarting, wire.DatabaseRestoring, wire.DatabaseImporting,
			wire.DatabaseUnavailable, wire.DatabaseFailed, wire.DatabaseDeleting),
		listed("What went wrong, for programs.",
			wire.CodeUnauthorized, wire.CodeInsufficientScope, wire.CodeDangerousNotAllowed, wire.CodeForbidden, wire.CodeNotFound,
			wire.CodeConflict, wire.CodeValidation, wire.CodeRateLimited, wire.CodeReadOnly, wire.CodeInternal, wire.CodeAuthorizationPending,
			wire.CodeSlowDown, wire.CodeAccessDenied, wire.CodeExpiredToken),
		listed("How far the delivery is; delivered and failed are final.", wire.DeliveryPending, wire.DeliveryDelivered, wire.DeliveryFailed),
		listed("Selects events: a type, an area with a star, or all.", eventSelectors()...),
		listed("The format of pg_dump.", wire.ExportCustom),
		listed("How far the export is; ready and failed are final.", wire.ExportPending, wire.ExportRunning, wire.ExportReady, wire.ExportFailed),
		listed("Who may create the extension: the owner with SQL or this API, this API only, this API with a restart, nobody; unknown ones are not in the catalogue, and nobody may create them.",
			wire.ExtensionSelf, wire.ExtensionAppliance, wire.ExtensionPreload, wire.ExtensionForbidden, wire.ExtensionUnknown),
		listed("How severe the line is.", wire.ImportInfo, wire.ImportWarning, wire.ImportError),
		listed("What the import does: copy ends with the copy, follow applies the source's changes to it until a cutover.", wire.ImportCopy, wire.ImportFollow),
		listed("How far the import is; the last three are final. following and cutting_over are those of mode follow.",
			wire.ImportPending, wire.ImportChecking, wire.ImportCopying, wire.ImportVerifying, wire.ImportFollowing, wire.ImportCuttingOver,
			wire.ImportCompleted, wire.ImportCompletedWithErrors, wire.ImportFailed),
		listed("The set of scopes the key was made with.",
			wire.KeyPresetReadOnly, wire.KeyPresetDeveloper, wire.KeyPresetFullAccess, wire.KeyPresetCustom),
		listed("How the key was made.", wire.KeySourceAPI, wire.KeySourceConsole, wire.KeySourceDevice, wire.KeySourceOperator, wire.KeySourceFirstStart),
		listed("What the copy off-site does: off without a store, starting before the first checkpoint of a run, recovering while the backups of an appliance that is brought back are fetched, failing while the store takes nothing, fenced once another machine has taken over.",
			wire.OffsiteOff, wire.OffsiteStarting, wire.OffsiteRecovering, wire.OffsiteCopying, wire.OffsiteFailing, wire.OffsiteFenced),
		listed("The part of the data: wal is that of one database, large_objects is the content of large ones, and objects everything else of objects.",
			wire.OffsiteStreamMetadata, wire.OffsiteStreamWAL, wire.OffsiteStreamBackups, wire.OffsiteStreamObjects, wire.OffsiteStreamLargeObjects),
		listed("The day on which a maintenance window opens.",
			wire.EveryDay, wire.Monday, wire.Tuesday, wire.Wednesday, wire.Thursday, wire.Friday, wire.Saturday, wire.Sunday),
		listed("The level of an entry of a server's log.", wire.LogLog, wire.LogWarning, wire.LogError, wire.LogFatal, wire.LogPanic, wire.LogStatement,
			wire.LogDetail, wire.LogHint, wire.LogContext),
		listed("What statements are sorted by, the largest first.", wire.ByTotalTime, wire.ByMeanTime, wire.ByCalls, wire.ByRows),
		listed("How far back metrics go: a day in steps of five minutes, or thirty days in steps of an hour.", wire.MetricsDay, wire.MetricsMonth),
		listed("How far the operation is; completed, failed and cancelled are final.",
			wire.OperationPending, wire.OperationRunning, wire.OperationCompleted, wire.OperationFailed, wire.OperationCancelled),
		listed("What the operation does.",
			wire.OperationBackup, wire.OperationRestore, wire.OperationPITR, wire.OperationImport, wire.OperationRestart,
			wire.OperationDelete, wire.OperationExport, wire.OperationVerification, wire.OperationBranch, wire.OperationReset,
			wire.OperationUpgrade, wire.OperationUpgradeDryRun),
		listed("How the branch gets its data: a clone shares the blocks of the parent's files, a restore copies a backup.", wire.BranchClone, wire.BranchRestore),
		listed("What the advice is about.", wire.CategorySecurity, wire.CategoryBackup, wire.CategoryPerformance, wire.CategoryCapacity),
		listed("How urgent the advice is.", wire.SeverityCritical, wire.SeverityWarning, wire.SeverityInfo),
		listed("What the values of a setting are; memory and durations are numbers with a unit.",
			wire.SettingBoolean, wire.SettingInteger, wire.SettingNumber, wire.SettingMemory, wire.SettingDuration, wire.SettingChoice, wire.SettingText),
		listed("Who chose the value: the appliance or PostgreSQL, a change of this database, or the operator, who has fixed it.",
			wire.SettingDefault, wire.SettingDatabase, wire.SettingOperator),
		listed("What happened.", wire.RecoveryEventBackup, wire.RecoveryEventRestore, wire.RecoveryEventGap, wire.RecoveryEventTimelineSwitch),
		listed("Whether the database can be brought back.", wire.RecoveryAvailable, wire.RecoveryWaiting, wire.RecoveryDegraded),
		listed("Where the data goes: in place of the present data, or into a new database.", wire.RestoreInPlace, wire.RestoreNew),
		listed("The statement that the policy is for.", wire.RLSAll, wire.RLSSelect, wire.RLSInsert, wire.RLSUpdate, wire.RLSDelete),
		listed("What is suspicious about the table.", wire.RLSDisabled, wire.RLSEnabledWithoutPolicy, wire.RLSPoliciesButDisabled),
		listed("What a role of a database may do: read what the owner makes, also change rows, everything the owner may, or nothing in this database but create others beside it, for tests.",
			wire.AccessRead, wire.AccessWrite, wire.AccessOwner, wire.AccessCreate),
		listed("A set of scopes.", wire.PresetReadOnly, wire.PresetDeveloper, wire.PresetFullAccess),
		listed("One permission of a key.", convert(model.Scopes(), func(s model.Scope) wire.Scope { return wire.Scope(s) })...),
		listed("The sslmode of libpq.", wire.SSLPrefer, wire.SSLRequire),
		listed("What the person may do: everything, everything but the accounts of owners, or see everything.", wire.RoleOwner, wire.RoleAdmin, wire.RoleViewer),
		listed("What the trial restore has shown; verified and failed are final.",
			wire.VerificationUnverified, wire.VerificationRunning, wire.VerificationVerified, wire.VerificationFailed),
		listed("Whether versions are kept that are overwritten or deleted. Where this is suspended, those that were kept are still there.",
			wire.VersioningOff, wire.VersioningEnabled, wire.VersioningSuspended),
		listed("Who may remove a version before its time: with governance a key with every permission that asks for it by S3, with compliance nobody.",
			wire.LockGovernance, wire.LockCompliance),
		listed("The order of objects: newest first, or by key, which also lists an object that is replaced between two pages.", wire.ByNewest, wire.ByKey),
		listed("How a link uploads: PUT a request with the bytes, POST an HTML form.", wire.LinkPut, wire.LinkPost),
		listed("A method of HTTP.", wire.CORSGet, wire.CORSHead, wire.CORSPut, wire.CORSPost, wire.CORSDelete),
		listed("The scheme of the URLs that a website redirects to.", wire.WebsiteHTTP, wire.WebsiteHTTPS),
		listed("How the WAL gets into the archive.", wire.WALStreaming, wire.WALConnecting, wire.WALFailed, wire.WALStopped),
	}
}

// eventSelectors returns what a webhook can select.
func eventSelectors() []wire.EventSelector {
	all := []wire.EventSelector{"*"}
	for _, area := range model.EventAreas() {
		all = append(all, wire.EventSelector(area+".*"))
	}
	for _, t := range model.EventTypes() {
		if t != model.EventWebhookPing {
			all = append(all, wire.EventSelector(t))
		}
	}
	return all
}
