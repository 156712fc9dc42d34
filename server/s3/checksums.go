package s3

// checksums are the elements with checksums that XML documents have.
type checksums struct {
	ChecksumCRC32     string `xml:",omitempty"`
	ChecksumCRC32C    string `xml:",omitempty"`
	ChecksumCRC64NVME string `xml:",omitempty"`
	ChecksumMD5       string `xml:",omitempty"`
	ChecksumSHA1      string `xml:",omitempty"`
	ChecksumSHA256    string `xml:",omitempty"`
	ChecksumSHA512    string `xml:",omitempty"`
	ChecksumXXHASH128 string `xml:",omitempty"`
	ChecksumXXHASH3   string `xml:",omitempty"`
	ChecksumXXHASH64  string `xml:",omitempty"`
}

// of returns the element of an algorithm, nil if there is none.
func (c *checksums) of(algorithm string) *string {
	switch algorithm {
	case "CRC32":
		return &c.ChecksumCRC32
	case "CRC32C":
		return &c.ChecksumCRC32C
	case "CRC64NVME":
		return &c.ChecksumCRC64NVME
	case "MD5":
		return &c.ChecksumMD5
	case "SHA1":
		return &c.ChecksumSHA1
	case "SHA256":
		return &c.ChecksumSHA256
	case "SHA512":
		return &c.ChecksumSHA512
	case "XXHASH128":
		return &c.ChecksumXXHASH128
	case "XXHASH3":
		return &c.ChecksumXXHASH3
	case "XXHASH64":
		return &c.ChecksumXXHASH64
	}
	return nil
}

// checksumsOf returns the elements for one checksum.
func checksumsOf(algorithm, value string) (c checksums) {
	if to := c.of(algorithm); to != nil {
		*to = value
	}
	return c
}
