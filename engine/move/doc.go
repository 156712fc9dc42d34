// Package move writes a directory as one file, and reads it again on another
// machine: a whole appliance. The file is a tar archive (POSIX.1-2001), so that
// anything can look into it. Its first entry is a Manifest; its last,
// SHA256SUMS, has the checksum of every other, as sha256sum(1) reads it. An
// archive without that entry is not whole.
package move
