// Package offsite copies the whole appliance to a store on another machine or disk
// while it works, and brings it back from there. The store has an ordered log of all
// changes, files that never change, and checkpoints of the whole state (package stream).
//
// Every kind of data is a part, which gives the log its changes and a checkpoint its
// state, and has a restorer, which does the reverse on an empty data directory.
//
//   - No operation waits for the store. What is not stored yet stays in the files of
//     the appliance, and the parts read it from there. Only changes of metadata wait in
//     memory, and where they become too many, a snapshot in the log replaces them.
//   - Nothing starts or fails because the store is away. The service retries and says so.
//   - One machine writes. A machine that finds that another one took over never writes to
//     the store again, and is read-only from then on, also after a restart.
//   - The log of a run may lack what happened before the first checkpoint of the run. A
//     restorer notices, returns errGap, and the recovery ends before the gap. A gap in the WAL of one database ends only
//     that database.
//
// Files, by what they are about:
//
//   - the service: service.go, run.go (claim, writer, checkpoints), connect.go (store and
//     keys from a configuration), state.go (offsite/ in the data directory), status.go,
//     fence.go
//   - what the parts share: part.go, known.go, kinds.go
//   - metadata and secrets: part_metadata.go, part_metadata_source.go, part_secrets.go, restore_metadata.go,
//     restore_secrets.go
//   - databases: part_database.go, restore_database.go
//   - objects: part_objects.go with …_journal.go and …_bodies.go, restore_objects.go, body_location.go, fetch_objects.go, evict.go
//   - the operator's acts: init.go, verify.go, prune.go, rotate.go
//   - recovery: recover.go and recover_….go
//
// Words: a point names a checkpoint. An epoch is one run of one machine's writer. A
// machine is fenced once another one has claimed a later epoch. An owner is the id of a
// database, or empty for the appliance.
package offsite
