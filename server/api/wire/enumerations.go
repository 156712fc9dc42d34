package wire

// ActorType is the kind of actor.
type ActorType string

// The values of ActorType.
const (
	ActorKey      ActorType = "api_key"
	ActorUser     ActorType = "user"
	ActorOperator ActorType = "operator"
	ActorSystem   ActorType = "system"
)

// AuditOutcome is how a request ended.
type AuditOutcome string

// The values of AuditOutcome.
const (
	OutcomeSuccess AuditOutcome = "success"
	OutcomeDenied  AuditOutcome = "denied"
	OutcomeError   AuditOutcome = "error"
)

// BackupMethod is how a backup is made.
type BackupMethod string

// The values of BackupMethod.
const (
	BackupPhysical BackupMethod = "physical"
)

// BackupStatus is how far a backup is. BackupCompleted and BackupFailed are final.
type BackupStatus string

// The values of BackupStatus.
const (
	BackupPending   BackupStatus = "pending"
	BackupRunning   BackupStatus = "running"
	BackupCompleted BackupStatus = "completed"
	BackupFailed    BackupStatus = "failed"
)

// BackupType is why a backup was made.
type BackupType string

// The values of BackupType.
const (
	BackupManual    BackupType = "manual"
	BackupScheduled BackupType = "scheduled"
)

// BillingStatus is how an organization pays.
type BillingStatus string

// The values of BillingStatus.
const (
	BillingActive     BillingStatus = "active"
	BillingTrial      BillingStatus = "trial"
	BillingTrialEnded BillingStatus = "trial_ended"
)

// DatabaseStatus is the state of a database.
type DatabaseStatus string

// The values of DatabaseStatus.
const (
	DatabaseCreating    DatabaseStatus = "creating"
	DatabaseAvailable   DatabaseStatus = "available"
	DatabaseRestarting  DatabaseStatus = "restarting"
	DatabaseRestoring   DatabaseStatus = "restoring"
	DatabaseImporting   DatabaseStatus = "importing"
	DatabaseUnavailable DatabaseStatus = "unavailable"
	DatabaseFailed      DatabaseStatus = "failed"
	DatabaseDeleting    DatabaseStatus = "deleting"
)

// ErrorCode is what went wrong, for programs. The last four answer polls of a device login (RFC 8628, section 3.5).
type ErrorCode string

// The values of ErrorCode.
const (
	CodeUnauthorized         ErrorCode = "unauthorized"
	CodeInsufficientScope    ErrorCode = "insufficient_scope"
	CodeDangerousNotAllowed  ErrorCode = "dangerous_not_allowed"
	CodeForbidden            ErrorCode = "forbidden"
	CodeNotFound             ErrorCode = "not_found"
	CodeConflict             ErrorCode = "conflict"
	CodeValidation           ErrorCode = "validation_error"
	CodeRateLimited          ErrorCode = "rate_limited"
	CodeInternal             ErrorCode = "internal_error"
	CodeAuthorizationPending ErrorCode = "authorization_pending"
	CodeSlowDown             ErrorCode = "slow_down"
	CodeAccessDenied         ErrorCode = "access_denied"
	CodeExpiredToken         ErrorCode = "expired_token"
)

// ExportFormat is the format of an export, as pg_dump names it.
type ExportFormat string

// The values of ExportFormat.
const (
	ExportCustom ExportFormat = "custom"
)

// ExportStatus is how far an export is. ExportReady and ExportFailed are final.
type ExportStatus string

// The values of ExportStatus.
const (
	ExportPending ExportStatus = "pending"
	ExportRunning ExportStatus = "running"
	ExportReady   ExportStatus = "ready"
	ExportFailed  ExportStatus = "failed"
)

// ImportLevel is how severe a line of an import's log is.
type ImportLevel string

// The values of ImportLevel.
const (
	ImportInfo    ImportLevel = "info"
	ImportWarning ImportLevel = "warning"
	ImportError   ImportLevel = "error"
)

// ImportStatus is how far an import is. See ImportStatus.Final.
type ImportStatus string

// The values of ImportStatus.
const (
	ImportPending             ImportStatus = "pending"
	ImportChecking            ImportStatus = "checking"
	ImportCopying             ImportStatus = "copying"
	ImportVerifying           ImportStatus = "verifying"
	ImportCompleted           ImportStatus = "completed"
	ImportCompletedWithErrors ImportStatus = "completed_with_errors"
	ImportFailed              ImportStatus = "failed"
)

// KeyPreset is the set of scopes that a key was made with.
type KeyPreset string

// The values of KeyPreset.
const (
	KeyPresetReadOnly   KeyPreset = "read_only"
	KeyPresetDeveloper  KeyPreset = "developer"
	KeyPresetFullAccess KeyPreset = "full_access"
	KeyPresetCustom     KeyPreset = "custom"
)

// KeySource is how a key was made.
type KeySource string

// The values of KeySource.
const (
	KeySourceConsole    KeySource = "console"
	KeySourceDevice     KeySource = "device"
	KeySourceOperator   KeySource = "operator"
	KeySourceFirstStart KeySource = "first_start"
)

// OperationStatus is how far an operation is. OperationCompleted and OperationFailed are final.
type OperationStatus string

// The values of OperationStatus.
const (
	OperationPending   OperationStatus = "pending"
	OperationRunning   OperationStatus = "running"
	OperationCompleted OperationStatus = "completed"
	OperationFailed    OperationStatus = "failed"
)

// OperationType is what an operation does.
type OperationType string

// The values of OperationType.
const (
	OperationBackup  OperationType = "backup"
	OperationRestore OperationType = "restore"
	OperationPITR    OperationType = "point_in_time_restore"
	OperationImport  OperationType = "import"
	OperationRestart OperationType = "restart"
	OperationDelete  OperationType = "delete"
)

// RecommendationCategory is what a recommendation is about.
type RecommendationCategory string

// The values of RecommendationCategory.
const (
	CategorySecurity    RecommendationCategory = "security"
	CategoryBackup      RecommendationCategory = "backup"
	CategoryPerformance RecommendationCategory = "performance"
	CategoryCapacity    RecommendationCategory = "capacity"
)

// RecommendationSeverity is how urgent a recommendation is.
type RecommendationSeverity string

// The values of RecommendationSeverity.
const (
	SeverityCritical RecommendationSeverity = "critical"
	SeverityWarning  RecommendationSeverity = "warning"
	SeverityInfo     RecommendationSeverity = "info"
)

// RecoveryEventType is what happened on a database's recovery timeline.
type RecoveryEventType string

// The values of RecoveryEventType.
const (
	RecoveryEventBackup         RecoveryEventType = "backup"
	RecoveryEventRestore        RecoveryEventType = "restore"
	RecoveryEventGap            RecoveryEventType = "gap"
	RecoveryEventTimelineSwitch RecoveryEventType = "timeline_switch"
)

// RecoveryStatus is whether a database can be recovered.
type RecoveryStatus string

// The values of RecoveryStatus.
const (
	RecoveryAvailable RecoveryStatus = "available"
	RecoveryWaiting   RecoveryStatus = "waiting_for_first_backup"
	RecoveryDegraded  RecoveryStatus = "degraded"
)

// RestoreMode is where a restore puts the data.
type RestoreMode string

// The values of RestoreMode.
const (
	RestoreInPlace RestoreMode = "in_place"
	RestoreNew     RestoreMode = "new"
)

// RLSCommand is the statement that a policy applies to.
type RLSCommand string

// The values of RLSCommand.
const (
	RLSAll    RLSCommand = "ALL"
	RLSSelect RLSCommand = "SELECT"
	RLSInsert RLSCommand = "INSERT"
	RLSUpdate RLSCommand = "UPDATE"
	RLSDelete RLSCommand = "DELETE"
)

// RLSWarning is what is suspicious about a table's row-level security.
type RLSWarning string

// The values of RLSWarning.
const (
	RLSDisabled             RLSWarning = "rls_disabled"
	RLSEnabledWithoutPolicy RLSWarning = "enabled_without_policy"
	RLSPoliciesButDisabled  RLSWarning = "policies_but_disabled"
)

// ScopePreset is a set of scopes that a device may ask for.
type ScopePreset string

// The values of ScopePreset.
const (
	PresetReadOnly   ScopePreset = "read_only"
	PresetDeveloper  ScopePreset = "developer"
	PresetFullAccess ScopePreset = "full_access"
)

// SSLMode is a value of libpq's parameter sslmode.
type SSLMode string

// The values of SSLMode.
const (
	SSLPrefer  SSLMode = "prefer"
	SSLRequire SSLMode = "require"
)

// VerificationStatus is what the trial restore of a backup has shown. VerificationVerified and VerificationFailed are final.
type VerificationStatus string

// The values of VerificationStatus.
const (
	VerificationUnverified VerificationStatus = "unverified"
	VerificationRunning    VerificationStatus = "running"
	VerificationVerified   VerificationStatus = "verified"
	VerificationFailed     VerificationStatus = "failed"
)

// WALArchivingStatus is the state of WAL archiving.
type WALArchivingStatus string

// The values of WALArchivingStatus.
const (
	WALStreaming  WALArchivingStatus = "streaming"
	WALConnecting WALArchivingStatus = "connecting"
	WALFailed     WALArchivingStatus = "failed"
	WALStopped    WALArchivingStatus = "stopped"
)

// Final reports whether the import has ended.
func (s ImportStatus) Final() bool {
	return s == ImportCompleted || s == ImportCompletedWithErrors || s == ImportFailed
}
