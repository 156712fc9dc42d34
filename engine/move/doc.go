// Package move writes a directory that holds a whole appliance as one file, and reads it on another machine. The file
// is a tar archive (POSIX.1-2001), which common tools read. Its first entry is a Manifest. Its last, SHA256SUMS, has
// the checksum of every other entry in the format of sha256sum(1). An archive without that entry is incomplete.
package move
