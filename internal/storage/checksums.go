package storage

// Checksums hold digests of a whole content, in raw bytes; a nil one is
// unknown.
type Checksums struct {
	MD5, SHA1, SHA256        []byte
	CRC32, CRC32C, CRC64NVME []byte
}
