package advice

import "time"

// Thresholds determine when something is worth a recommendation.
type Thresholds struct {
	BackupAge     time.Duration // of the newest completed backup
	WALBehind     time.Duration // how long WAL was not received
	OffsiteBehind time.Duration // how much the copy off-site lacks
	// OffsiteUnverified is how long the copy off-site was not read back.
	OffsiteUnverified time.Duration
	CertificateLeft   time.Duration // less than the time at which it is renewed automatically
	KeyUnused         time.Duration
	DiskFree          float64 // fraction of the disk; half of it is critical
	PlanUsed          float64 // fraction of a limit

	Window          time.Duration // age of the counters to compare with
	StatisticsAge   time.Duration // how long an index must have been unused
	IndexBytes      int64         // size of an index worth dropping
	SeqScans        int64         // of a table within Window
	SeqRows         int64         // rows read by each
	ForeignKeyRows  int64         // rows of the referencing table
	DeadRows        int64
	DeadShare       float64 // of all rows
	BloatBytes      int64   // size of a table worth rewriting
	BloatShare      float64 // fraction of its size that is empty
	FreezeFactor    float64 // times autovacuum_freeze_max_age
	ConnectionShare float64 // fraction of those a tenant can have
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
		BackupAge: 2 * day, WALBehind: time.Minute, OffsiteBehind: 5 * time.Minute, OffsiteUnverified: 3 * day, CertificateLeft: 14 * day, KeyUnused: 90 * day, DiskFree: 0.10, PlanUsed: 0.80,
		Window: time.Hour, StatisticsAge: 7 * day, IndexBytes: 1 << 20,
		SeqScans: 100, SeqRows: 10_000, ForeignKeyRows: 1000,
		DeadRows: 10_000, DeadShare: 0.20, BloatBytes: 16 << 20, BloatShare: 0.50, FreezeFactor: 1.5,
		ConnectionShare: 0.80, IdleSession: 10 * time.Minute, IdleTransaction: time.Hour,
		CacheBlocks: 50_000, CacheRatio: 0.90, SlowCalls: 10, SlowMean: time.Second,
	}
}
