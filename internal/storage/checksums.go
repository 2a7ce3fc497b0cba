package storage

// Checksums hold digests of a whole content, in raw bytes; a nil one is
// unknown.
type Checksums struct {
	MD5, SHA1, SHA256        []byte
	CRC32, CRC32C, CRC64NVME []byte
}

func (c *Checksums) isZero() bool {
	return c.MD5 == nil && c.SHA1 == nil && c.SHA256 == nil && c.CRC32 == nil && c.CRC32C == nil && c.CRC64NVME == nil
}
