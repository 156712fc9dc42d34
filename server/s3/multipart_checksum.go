package s3

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"holdfast/engine/model"
	"holdfast/internal/crc"
	"holdfast/server/s3/sigv4"
)

// compositeChecksum returns the checksum of the parts' checksums.
func compositeChecksum(algorithm string, parts []model.MultipartPart) string {
	digest := sigv4.NewHash(algorithm)
	for _, p := range parts {
		raw, _ := base64.StdEncoding.DecodeString(p.Checksum) // verified when it arrived
		digest.Write(raw)
	}
	return fmt.Sprintf("%s-%d", base64.StdEncoding.EncodeToString(digest.Sum(nil)), len(parts))
}

// joinedChecksum returns the checksum of the joined parts, or false if it cannot be computed from theirs.
func joinedChecksum(algorithm string, parts []model.MultipartPart) (string, bool) {
	switch algorithm {
	case "CRC32":
		return joinCRC(crc.IEEE, parts)
	case "CRC32C":
		return joinCRC(crc.Castagnoli, parts)
	case "CRC64NVME":
		return joinCRC(crc.NVME, parts)
	}
	return "", false
}

func joinCRC[T uint32 | uint64](polynomial T, parts []model.MultipartPart) (string, bool) {
	var joined T
	for _, p := range parts {
		raw, err := base64.StdEncoding.DecodeString(p.Checksum)
		var sum T
		if n, decodeErr := binary.Decode(raw, binary.BigEndian, &sum); err != nil || decodeErr != nil || n != len(raw) {
			return "", false
		}
		joined = crc.Combine(polynomial, joined, sum, p.SizeBytes)
	}
	raw, err := binary.Append(nil, binary.BigEndian, joined)
	return base64.StdEncoding.EncodeToString(raw), err == nil
}
