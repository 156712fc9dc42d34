package advice

import "time"

// Thresholds say from when on something is worth a recommendation.
type Thresholds struct {
	BackupAge       time.Duration // of the newest completed backup
	WALBehind       time.Duration // for how long WAL was not received
	CertificateLeft time.Duration // shorter than when it is renewed by itself
	KeyUnused       time.Duration
	DiskFree        float64 // share of the disk; half of it is critical
	PlanUsed        float64 // share of a limit

	Window          time.Duration // counters are compared with those of so long ago
	StatisticsAge   time.Duration // for how long an index must not have been used
	IndexBytes      int64         // size of an index worth dropping
	SeqScans        int64         // of a table within Window
	SeqRows         int64         // rows that each of them read
	ForeignKeyRows  int64         // rows of the table that refers
	DeadRows        int64
	DeadShare       float64 // of all rows
	BloatBytes      int64   // size of a table worth rewriting
	BloatShare      float64 // of its size that is empty
	FreezeFactor    float64 // times autovacuum_freeze_max_age
	ConnectionShare float64 // of those a tenant can have
	IdleSession     time.Duration
	IdleTransaction time.Duration
	CacheBlocks     int64 // read within Window
	CacheRatio      float64
	SlowCalls       int64 // of a statement within Window
	SlowMean        time.Duration
}

// Defaults returns the thresholds of an appliance in use.
func Defaults() Thresholds {
	const day = 24 * time.Hour
	return Thresholds{
		BackupAge: 2 * day, WALBehind: time.Minute, CertificateLeft: 14 * day, KeyUnused: 90 * day, DiskFree: 0.10, PlanUsed: 0.80,
		Window: time.Hour, StatisticsAge: 7 * day, IndexBytes: 1 << 20,
		SeqScans: 100, SeqRows: 10_000, ForeignKeyRows: 1000,
		DeadRows: 10_000, DeadShare: 0.20, BloatBytes: 16 << 20, BloatShare: 0.50, FreezeFactor: 1.5,
		ConnectionShare: 0.80, IdleSession: 10 * time.Minute, IdleTransaction: time.Hour,
		CacheBlocks: 50_000, CacheRatio: 0.90, SlowCalls: 10, SlowMean: time.Second,
	}
}
