package offsite

// The kinds of the entries of a checkpoint and of the files in the store.
const (
	// KindMetadata is a chunk of the metadata, named by its hash, and the list of them.
	KindMetadata = "metadata"
	// KindSecret is a file of the data directory that is kept as it is: secret.key,
	// webhook.secret and those in tls.
	KindSecret = "secret"
	// KindSegment is a segment of the blob store's journal, or the beginning of the last one.
	KindSegment = "segment"
	// KindBlob is the body of a large object.
	KindBlob = "blob"
	// KindRepository is a pack, index or manifest of a database's backups.
	KindRepository = "repository"
	// KindWAL is a file of a database's WAL archive.
	KindWAL = "wal"
	// KindStale marks a database some of whose backups or WAL could not be read for the checkpoint: it has what could be
	// and what the copy had before, and its WAL may have holes.
	KindStale = "stale"
)

// The streams whose recovery points the status has.
const (
	StreamMetadata     = "metadata"
	StreamWAL          = "wal" // of one database each
	StreamBackups      = "backups"
	StreamObjects      = "objects"       // the journal, with the bytes of small objects
	StreamLargeObjects = "large_objects" // the bytes of large ones
)
