package wire

// ActorType is the kind of actor.
type ActorType string

const (
	ActorKey      ActorType = "api_key"
	ActorUser     ActorType = "user"
	ActorOperator ActorType = "operator"
	ActorSystem   ActorType = "system"
)

// AuditOutcome is how a request ended.
type AuditOutcome string

const (
	OutcomeSuccess AuditOutcome = "success"
	OutcomeDenied  AuditOutcome = "denied"
	OutcomeError   AuditOutcome = "error"
)

// BackupMethod is how a backup is made.
type BackupMethod string

const (
	BackupPhysical BackupMethod = "physical"
)

// BackupStatus is the progress of a backup. BackupCompleted and BackupFailed are
// final.
type BackupStatus string

const (
	BackupPending   BackupStatus = "pending"
	BackupRunning   BackupStatus = "running"
	BackupCompleted BackupStatus = "completed"
	BackupFailed    BackupStatus = "failed"
)

// BackupType is why a backup was made.
type BackupType string

const (
	BackupManual    BackupType = "manual"
	BackupScheduled BackupType = "scheduled"
)

// BillingStatus is the state of an organization's billing.
type BillingStatus string

const (
	BillingActive     BillingStatus = "active"
	BillingTrial      BillingStatus = "trial"
	BillingTrialEnded BillingStatus = "trial_ended"
)

// BucketRestoreStatus is how far the restore of a bucket is. BucketRestoreCompleted and
// BucketRestoreFailed are final.
type BucketRestoreStatus string

const (
	BucketRestorePlanned   BucketRestoreStatus = "planned"
	BucketRestoreRunning   BucketRestoreStatus = "running"
	BucketRestoreCompleted BucketRestoreStatus = "completed"
	BucketRestoreFailed    BucketRestoreStatus = "failed"
)

// DatabaseStatus is the state of a database.
type DatabaseStatus string

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

// ErrorCode is what went wrong, for programs. The last four are responses to polls of a device login (RFC 8628,
// section 3.5).
type ErrorCode string

const (
	CodeUnauthorized         ErrorCode = "unauthorized"
	CodeInsufficientScope    ErrorCode = "insufficient_scope"
	CodeDangerousNotAllowed  ErrorCode = "dangerous_not_allowed"
	CodeForbidden            ErrorCode = "forbidden"
	CodeNotFound             ErrorCode = "not_found"
	CodeConflict             ErrorCode = "conflict"
	CodeValidation           ErrorCode = "validation_error"
	CodeRateLimited          ErrorCode = "rate_limited"
	CodeReadOnly             ErrorCode = "read_only"
	CodeInternal             ErrorCode = "internal_error"
	CodeAuthorizationPending ErrorCode = "authorization_pending"
	CodeSlowDown             ErrorCode = "slow_down"
	CodeAccessDenied         ErrorCode = "access_denied"
	CodeExpiredToken         ErrorCode = "expired_token"
)

// ExportFormat is the format of an export, as pg_dump names it.
type ExportFormat string

const (
	ExportCustom ExportFormat = "custom"
)

// ExportStatus is the progress of an export. ExportReady and ExportFailed are
// final.
type ExportStatus string

const (
	ExportPending ExportStatus = "pending"
	ExportRunning ExportStatus = "running"
	ExportReady   ExportStatus = "ready"
	ExportFailed  ExportStatus = "failed"
)

// ImportLevel is the severity of a line of an import's log.
type ImportLevel string

const (
	ImportInfo    ImportLevel = "info"
	ImportWarning ImportLevel = "warning"
	ImportError   ImportLevel = "error"
)

// ImportMode is what an import does after the copy.
type ImportMode string

const (
	ImportCopy   ImportMode = "copy"
	ImportFollow ImportMode = "follow"
)

// ImportStatus is the progress of an import. See ImportStatus.Final.
type ImportStatus string

const (
	ImportPending             ImportStatus = "pending"
	ImportChecking            ImportStatus = "checking"
	ImportCopying             ImportStatus = "copying"
	ImportVerifying           ImportStatus = "verifying"
	ImportFollowing           ImportStatus = "following"
	ImportCuttingOver         ImportStatus = "cutting_over"
	ImportCompleted           ImportStatus = "completed"
	ImportCompletedWithErrors ImportStatus = "completed_with_errors"
	ImportFailed              ImportStatus = "failed"
)

// KeyPreset is the set of scopes that a key was created with.
type KeyPreset string

const (
	KeyPresetReadOnly   KeyPreset = "read_only"
	KeyPresetDeveloper  KeyPreset = "developer"
	KeyPresetFullAccess KeyPreset = "full_access"
	KeyPresetCustom     KeyPreset = "custom"
)

// KeySource is how a key was created.
type KeySource string

const (
	KeySourceAPI        KeySource = "api"
	KeySourceConsole    KeySource = "console"
	KeySourceDevice     KeySource = "device"
	KeySourceOperator   KeySource = "operator"
	KeySourceFirstStart KeySource = "first_start"
)

// OffsiteStreamName names a part of the data that is copied off-site.
type OffsiteStreamName string

// The streams of a copy.
const (
	OffsiteStreamMetadata     OffsiteStreamName = "metadata"
	OffsiteStreamWAL          OffsiteStreamName = "wal"
	OffsiteStreamBackups      OffsiteStreamName = "backups"
	OffsiteStreamObjects      OffsiteStreamName = "objects"
	OffsiteStreamLargeObjects OffsiteStreamName = "large_objects"
)

// OffsiteStatus is what the copy in a store elsewhere does.
type OffsiteStatus string

const (
	OffsiteOff        OffsiteStatus = "off"
	OffsiteStarting   OffsiteStatus = "starting"
	OffsiteRecovering OffsiteStatus = "recovering"
	OffsiteCopying    OffsiteStatus = "copying"
	OffsiteFailing    OffsiteStatus = "failing"
	OffsiteFenced     OffsiteStatus = "fenced"
)

// OperationStatus is the progress of an operation. The last three are final.
type OperationStatus string

// Final reports whether s is a final status.
func (s OperationStatus) Final() bool {
	return s == OperationCompleted || s == OperationFailed || s == OperationCancelled
}

const (
	OperationPending   OperationStatus = "pending"
	OperationRunning   OperationStatus = "running"
	OperationCompleted OperationStatus = "completed"
	OperationFailed    OperationStatus = "failed"
	OperationCancelled OperationStatus = "cancelled"
)

// OperationType is what an operation does.
type OperationType string

const (
	OperationBackup       OperationType = "backup"
	OperationRestore      OperationType = "restore"
	OperationPITR         OperationType = "point_in_time_restore"
	OperationImport       OperationType = "import"
	OperationRestart      OperationType = "restart"
	OperationDelete       OperationType = "delete"
	OperationExport       OperationType = "export"
	OperationVerification OperationType = "verification"
	OperationBranch       OperationType = "branch"
	OperationReset        OperationType = "reset"

	OperationUpgrade       OperationType = "upgrade"
	OperationUpgradeDryRun OperationType = "upgrade_dry_run"
)

// RecommendationCategory is what a recommendation is about.
type RecommendationCategory string

const (
	CategorySecurity    RecommendationCategory = "security"
	CategoryBackup      RecommendationCategory = "backup"
	CategoryPerformance RecommendationCategory = "performance"
	CategoryCapacity    RecommendationCategory = "capacity"
)

// RecommendationSeverity is how urgent a recommendation is.
type RecommendationSeverity string

const (
	SeverityCritical RecommendationSeverity = "critical"
	SeverityWarning  RecommendationSeverity = "warning"
	SeverityInfo     RecommendationSeverity = "info"
)

// RecoveryEventType is the kind of an event on a database's recovery timeline.
type RecoveryEventType string

const (
	RecoveryEventBackup         RecoveryEventType = "backup"
	RecoveryEventRestore        RecoveryEventType = "restore"
	RecoveryEventGap            RecoveryEventType = "gap"
	RecoveryEventTimelineSwitch RecoveryEventType = "timeline_switch"
)

// RecoveryStatus says whether a database can be recovered.
type RecoveryStatus string

const (
	RecoveryAvailable RecoveryStatus = "available"
	RecoveryWaiting   RecoveryStatus = "waiting_for_first_backup"
	RecoveryDegraded  RecoveryStatus = "degraded"
)

// RestoreMode is where a restore puts the data.
type RestoreMode string

const (
	RestoreInPlace RestoreMode = "in_place"
	RestoreNew     RestoreMode = "new"
)

// SettingKind says what the values of a setting are.
type SettingKind string

const (
	SettingBoolean  SettingKind = "boolean"
	SettingInteger  SettingKind = "integer"
	SettingNumber   SettingKind = "number"
	SettingMemory   SettingKind = "memory"
	SettingDuration SettingKind = "duration"
	SettingChoice   SettingKind = "choice"
	SettingText     SettingKind = "text"
)

// SettingSource says who chose the value of a setting.
type SettingSource string

const (
	SettingDefault  SettingSource = "default"
	SettingDatabase SettingSource = "database"
	SettingOperator SettingSource = "operator"
)

// ExtensionClass says who may create an extension.
type ExtensionClass string

const (
	ExtensionSelf      ExtensionClass = "self"
	ExtensionAppliance ExtensionClass = "appliance"
	ExtensionPreload   ExtensionClass = "preload"
	ExtensionForbidden ExtensionClass = "forbidden"
	ExtensionUnknown   ExtensionClass = "unknown"
)

// RLSCommand is the statement that a policy applies to.
type RLSCommand string

const (
	RLSAll    RLSCommand = "ALL"
	RLSSelect RLSCommand = "SELECT"
	RLSInsert RLSCommand = "INSERT"
	RLSUpdate RLSCommand = "UPDATE"
	RLSDelete RLSCommand = "DELETE"
)

// RLSWarning is a problem with a table's row-level security.
type RLSWarning string

const (
	RLSDisabled             RLSWarning = "rls_disabled"
	RLSEnabledWithoutPolicy RLSWarning = "enabled_without_policy"
	RLSPoliciesButDisabled  RLSWarning = "policies_but_disabled"
)

// ScopePreset is a set of scopes that a device may request.
type ScopePreset string

const (
	PresetReadOnly   ScopePreset = "read_only"
	PresetDeveloper  ScopePreset = "developer"
	PresetFullAccess ScopePreset = "full_access"
)

// Scope is one permission of a key, "area:verb".
type Scope string

// SSLMode is a value of libpq's sslmode parameter.
type SSLMode string

const (
	SSLPrefer  SSLMode = "prefer"
	SSLRequire SSLMode = "require"
)

// UserRole determines what a person may do.
type UserRole string

const (
	RoleOwner  UserRole = "owner"
	RoleAdmin  UserRole = "admin"
	RoleViewer UserRole = "viewer"
)

// VerificationStatus is the progress of a backup's trial restore. VerificationVerified and VerificationFailed are
// final.
type VerificationStatus string

const (
	VerificationUnverified VerificationStatus = "unverified"
	VerificationRunning    VerificationStatus = "running"
	VerificationVerified   VerificationStatus = "verified"
	VerificationFailed     VerificationStatus = "failed"
)

// WALArchivingStatus is the state of WAL archiving.
type WALArchivingStatus string

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

// Versioning says whether a bucket keeps versions that are overwritten or deleted.
type Versioning string

const (
	VersioningOff       Versioning = "off"
	VersioningEnabled   Versioning = "enabled"
	VersioningSuspended Versioning = "suspended"
)

// LockMode says who may remove a version before its time.
type LockMode string

const (
	LockGovernance LockMode = "governance"
	LockCompliance LockMode = "compliance"
)

// CORSMethod is a method of HTTP that a rule allows.
type CORSMethod string

const (
	CORSGet    CORSMethod = "GET"
	CORSHead   CORSMethod = "HEAD"
	CORSPut    CORSMethod = "PUT"
	CORSPost   CORSMethod = "POST"
	CORSDelete CORSMethod = "DELETE"
)

// WebsiteProtocol is the scheme of the URLs that a website redirects to.
type WebsiteProtocol string

const (
	WebsiteHTTP  WebsiteProtocol = "http"
	WebsiteHTTPS WebsiteProtocol = "https"
)

// LinkMethod is the method of an upload by a link.
type LinkMethod string

const (
	LinkPut  LinkMethod = "PUT"
	LinkPost LinkMethod = "POST"
)
