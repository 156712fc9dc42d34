package api

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/connstring"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
)

// enumeration is a type of which the description lists the values, as a
// component that every field of the type refers to.
type enumeration struct {
	name, about string
	of          reflect.Type
	values      []any
}

func listed[T ~string](name, about string, values ...T) enumeration {
	e := enumeration{name: name, about: about, of: reflect.TypeFor[T]()}
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

// The values that only the API names.
type (
	// BackupMethod is how a backup is made.
	BackupMethod string
	// BillingStatus is how an organization pays.
	BillingStatus string
	// ExportFormat is the format of an export.
	ExportFormat string
	// ImportLevel is how grave a line of an import's log is.
	ImportLevel string
	// KeySource is how a key was made.
	KeySource string
	// RecoveryEventType is what happened on the line of time.
	RecoveryEventType string
	// RestoreMode is where a restore puts the data.
	RestoreMode string
	// RLSCommand is the statement a policy is for.
	RLSCommand string
	// RLSWarning is what is suspicious about a table.
	RLSWarning string
	// ScopePreset is a set of scopes that a device may ask for.
	ScopePreset string
	// WALArchivingStatus is how the WAL gets into the archive.
	WALArchivingStatus string
)

// The modes of a restore.
const (
	RestoreInPlace RestoreMode = "in_place"
	RestoreNew     RestoreMode = "new"
)

// enumerations returns every type of which the description lists the values.
func enumerations() []enumeration {
	return []enumeration{
		listed("ActorType", "What kind of actor it is.", model.ActorKey, model.ActorUser, model.ActorOperator, model.ActorSystem),
		listed("AuditOutcome", "How a request ended.", model.OutcomeSuccess, model.OutcomeDenied, model.OutcomeError),
		listed("BackupMethod", "How the backup is made.", BackupMethod("physical")),
		listed("BackupStatus", "How far the backup is; completed and failed are final.",
			model.BackupPending, model.BackupRunning, model.BackupCompleted, model.BackupFailed),
		listed("BackupType", "Why the backup was made.", model.BackupManual, model.BackupScheduled),
		listed("BillingStatus", "How the organization pays.", BillingStatus("active"), "trial", "trial_ended"),
		listed("DatabaseStatus", "Where the database is in its life.",
			model.DatabaseCreating, model.DatabaseAvailable, model.DatabaseRestarting, model.DatabaseRestoring, model.DatabaseImporting,
			model.DatabaseUnavailable, model.DatabaseFailed, model.DatabaseDeleting),
		listed("ErrorCode", "What went wrong, for programs.",
			model.CodeUnauthorized, model.CodeInsufficientScope, model.CodeDangerousNotAllowed, model.CodeForbidden, model.CodeNotFound,
			model.CodeConflict, model.CodeValidation, model.CodeRateLimited, model.CodeInternal,
			model.CodeAuthorizationPending, model.CodeSlowDown, model.CodeAccessDenied, model.CodeExpiredToken),
		listed("ExportFormat", "The format of pg_dump.", ExportFormat("custom")),
		listed("ExportStatus", "How far the export is; ready and failed are final.",
			model.ExportPending, model.ExportRunning, model.ExportReady, model.ExportFailed),
		listed("ImportLevel", "How severe the line is.", ImportLevel("info"), "warning", "error"),
		listed("ImportStatus", "How far the import is; the last three are final.",
			model.ImportPending, model.ImportChecking, model.ImportCopying, model.ImportVerifying,
			model.ImportCompleted, model.ImportCompletedWithErrors, model.ImportFailed),
		listed("KeyPreset", "The set of scopes the key was made with.", model.PresetReadOnly, model.PresetDeveloper, model.PresetFullAccess, model.PresetCustom),
		listed("KeySource", "How the key was made.", KeySource(model.KeySourceConsole), model.KeySourceDevice, model.KeySourceOperator, model.KeySourceFirstStart),
		listed("OperationStatus", "How far the operation is; completed and failed are final.",
			model.OperationPending, model.OperationRunning, model.OperationCompleted, model.OperationFailed),
		listed("OperationType", "What the operation does.",
			model.OperationBackup, model.OperationRestore, model.OperationPITR, model.OperationImport, model.OperationRestart, model.OperationDelete),
		listed("RecommendationCategory", "What the advice is about.",
			model.CategorySecurity, model.CategoryBackup, model.CategoryPerformance, model.CategoryCapacity),
		listed("RecommendationSeverity", "How urgent the advice is.", model.SeverityCritical, model.SeverityWarning, model.SeverityInfo),
		listed("RecoveryEventType", "What happened.", RecoveryEventType("backup"), "restore", "gap", "timeline_switch"),
		listed("RecoveryStatus", "Whether the database can be brought back.",
			recovery.RecoveryAvailable, recovery.RecoveryWaiting, recovery.RecoveryDegraded),
		listed("RestoreMode", "Where the data goes: in place of the present data, or into a new database.", RestoreInPlace, RestoreNew),
		listed("RLSCommand", "The statement that the policy is for.", RLSCommand("ALL"), "SELECT", "INSERT", "UPDATE", "DELETE"),
		listed("RLSWarning", "What is suspicious about the table.", RLSWarning("rls_disabled"), "enabled_without_policy", "policies_but_disabled"),
		listed("ScopePreset", "A set of scopes.", ScopePreset(model.PresetReadOnly), ScopePreset(model.PresetDeveloper), ScopePreset(model.PresetFullAccess)),
		listed("SSLMode", "The sslmode of libpq.", connstring.SSLPrefer, connstring.SSLRequire),
		listed("VerificationStatus", "What the trial restore has shown; verified and failed are final.",
			model.VerificationUnverified, model.VerificationRunning, model.VerificationVerified, model.VerificationFailed),
		listed("WALArchivingStatus", "How the WAL gets into the archive.", WALArchivingStatus("streaming"), "connecting", "failed", "stopped"),
	}
}
