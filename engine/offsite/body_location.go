package offsite

import (
	"encoding/binary"
	"fmt"

	"holdfast/blobstore"
	"holdfast/engine/objects"
	"holdfast/engine/offsite/stream"
)

// awayOf describes a body in a repository for the blob store's list of what is away. The location is the number of the epoch
// (4 bytes) and of the file (8), the hash, the length of the nonce of the epoch (1), the nonce, and the id of the repository.
func awayOf(repository, name string, ref stream.Reference) blobstore.Away {
	b := binary.BigEndian.AppendUint32(nil, ref.Epoch.Number)
	b = binary.BigEndian.AppendUint64(b, ref.ID)
	b = append(append(b, ref.Hash[:]...), byte(len(ref.Epoch.Nonce)))
	b = append(append(b, ref.Epoch.Nonce...), repository...)
	return blobstore.Away{Ref: blobstore.Ref(name), Size: ref.Size, Location: b}
}

// locate returns where a body is in a repository. It refuses one that is in another repository.
func locate(repository string, a blobstore.Away) (stream.Reference, error) {
	ref := stream.Reference{Size: a.Size}
	b := a.Location
	fixed := 12 + len(ref.Hash) + 1
	if len(b) < fixed || len(b) < fixed+int(b[fixed-1]) {
		return ref, fmt.Errorf("the place of %s in the off-site copy: %w", a.Ref, blobstore.ErrDamaged)
	}
	ref.Epoch.Number = binary.BigEndian.Uint32(b)
	ref.ID = binary.BigEndian.Uint64(b[4:])
	copy(ref.Hash[:], b[12:])
	nonce := fixed + int(b[fixed-1])
	ref.Epoch.Nonce = string(b[fixed:nonce])
	if other := string(b[nonce:]); other != repository {
		return ref, &objects.OtherCopyError{Repository: other}
	}
	return ref, nil
}
