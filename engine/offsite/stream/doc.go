// Package stream keeps an ordered log in a store of objects, with checkpoints and
// files beside it. It knows nothing of databases and buckets but the types of frames
// that its users exchange.
//
// A [Repository] is a store and the master keys. To write, a machine claims an epoch
// ([Repository.Claim]) and opens a [Writer], which reads a [Source] for each stream of
// changes and cuts what is new into log objects. Files that never change are stored
// beside the log, and a frame or a checkpoint refers to them. To read, a [History]
// joins the epochs to one log.
//
// Invariants:
//
//   - Every object is created once and never overwritten. Object names are part of
//     what is encrypted.
//   - A log object is acknowledged to the sources when it is stored and all objects
//     before it are. What readers see is a prefix of what the sources returned.
//   - What a log object or checkpoint refers to was stored before it.
//   - A claim cuts off the epoch before it: nothing that a machine writes after
//     another one took over reaches a reader. The machine notices before its next
//     checkpoint, or within [Options.CheckEvery], and its Writer ends for good.
//   - What waits for the store stays where the sources have it: the Writer takes at
//     most Options.Memory and two buffers of a log object, and nothing on disk, however
//     long the store is away.
//   - Damaged or hostile bytes never make a reader panic or take memory beyond the limits in
//     FORMAT.md. Damage is named, and older checkpoints are used.
//
// Words: an epoch is one run of one machine's Writer. A cut is where an epoch ends. A
// point names a checkpoint. FORMAT.md has the bytes.
package stream
