package s3

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// chunkSize is the size of the content's pieces in the aws-chunked encoding.
const chunkSize = 64 << 10

const (
	chunkSignature = ";chunk-signature="
	trailerName    = "x-amz-checksum-crc32"
	headerRoom     = 8 + len(chunkSignature) + 2*sha256.Size + 2
	trailerRoom    = len(trailerName) + 1 + 8 + 4
)

var chunkBuffers = sync.Pool{New: func() any { return new([headerRoom + chunkSize + trailerRoom + 8]byte) }}

// chunked encodes content as aws-chunked. With a signature each chunk is
// signed on from the one before; without one the chunks are plain and a checksum
// follows them. Either way a server that sees no proper end has no object.
type chunked struct {
	content io.Reader
	buffer  *[headerRoom + chunkSize + trailerRoom + 8]byte
	ready   []byte // of buffer
	done    bool

	mac hash.Hash
	sig signature

	crc uint32
}

func newChunked(content io.Reader, sig signature) *chunked {
	c := &chunked{content: content, sig: sig, buffer: chunkBuffers.Get().(*[headerRoom + chunkSize + trailerRoom + 8]byte)}
	if sig.key != nil {
		c.mac = hmac.New(sha256.New, sig.key)
	}
	return c
}

// release gives the buffer back. Nobody may read any more.
func (c *chunked) release() {
	if c.buffer != nil {
		chunkBuffers.Put(c.buffer)
		c.buffer, c.ready, c.done = nil, nil, true
	}
}

// Read implements io.Reader.
func (c *chunked) Read(p []byte) (int, error) {
	if len(c.ready) == 0 {
		if c.done {
			return 0, io.EOF
		}
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}

// fill encodes the next chunk, and with the last one the end.
func (c *chunked) fill() error {
	data := c.buffer[headerRoom : headerRoom+chunkSize]
	n, err := io.ReadFull(c.content, data)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	data = data[:n]
	header := c.header(data)
	start := headerRoom - len(header)
	copy(c.buffer[start:], header)
	end := append(c.buffer[start:headerRoom+n], "\r\n"...)
	if n == 0 {
		c.done = true
		if c.mac == nil {
			end = append(end[:len(end)-2], trailerName+":"...)
			end = append(end, encodeCRC32(c.crc)+"\r\n\r\n"...)
		}
	}
	c.ready = end
	return nil
}

// header returns the line in front of a chunk, and takes the chunk into
// account.
func (c *chunked) header(data []byte) []byte {
	line := strconv.AppendInt(make([]byte, 0, headerRoom), int64(len(data)), 16)
	if c.mac == nil {
		c.crc = crc32.Update(c.crc, crc32.IEEETable, data)
		return append(line, "\r\n"...)
	}
	sum := sha256.Sum256(data)
	c.mac.Reset()
	c.sig.value = hexHMAC(c.mac, []byte("AWS4-HMAC-SHA256-PAYLOAD\n"+c.sig.date+"\n"+c.sig.scope+"\n"+c.sig.value+"\n"+emptyPayload+"\n"+hex.EncodeToString(sum[:])))
	line = append(line, chunkSignature...)
	line = append(line, c.sig.value...)
	return append(line, "\r\n"...)
}

// chunkedLength returns the length of size bytes of content when encoded.
func chunkedLength(size int64, signed bool) int64 {
	chunk := func(n int64) int64 {
		length := int64(len(strconv.FormatInt(n, 16))) + 2 + n + 2
		if signed {
			length += int64(len(chunkSignature)) + 2*sha256.Size
		}
		return length
	}
	total := size / chunkSize * chunk(chunkSize)
	if rest := size % chunkSize; rest > 0 {
		total += chunk(rest)
	}
	total += chunk(0)
	if !signed {
		total += int64(len(trailerName)) + 1 + 8 + 2
	}
	return total
}

// addChunks adds what announces a body of size bytes in the aws-chunked encoding,
// around what the object itself is encoded in.
func addChunks(header http.Header, contentEncoding string, size int64) {
	encoding := "aws-chunked"
	if contentEncoding != "" {
		encoding += "," + contentEncoding
	}
	header["Content-Encoding"] = []string{encoding}
	header["X-Amz-Decoded-Content-Length"] = []string{strconv.FormatInt(size, 10)}
}

// addTrailer adds what announces a body of size bytes in plain chunks with a
// checksum behind them.
func addTrailer(header http.Header, contentEncoding string, size int64) {
	addChunks(header, contentEncoding, size)
	header["X-Amz-Trailer"] = []string{trailerName}
}

func encodeCRC32(sum uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}
