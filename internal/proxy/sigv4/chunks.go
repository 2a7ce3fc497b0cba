package sigv4

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"strings"
	"sync"
)

const (
	// chunkBufferSize is what a reader of chunks buffers. Longer reads of a
	// chunk's data go around the buffer.
	chunkBufferSize = 16 << 10
	// maxChunkLine bounds the line that begins a chunk.
	maxChunkLine = 512
	// maxTrailerBytes bounds what follows the last chunk.
	maxTrailerBytes = 8 << 10
)

var chunkBuffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, chunkBufferSize) }}

// chunkReader takes aws-chunk framing off a body and checks the signature of
// each chunk after its data.
type chunkReader struct {
	br *bufio.Reader
	// chain is nil where signatures are not checked.
	chain     *chain
	hash      hash.Hash
	signature string
	left      int64
	begun     bool
	err       error
}

func newChunkReader(src io.Reader, c *chain) *chunkReader {
	r := &chunkReader{br: chunkBuffers.Get().(*bufio.Reader), chain: c}
	r.br.Reset(src)
	if c != nil {
		r.hash = sha256.New()
	}
	return r
}

// release gives the buffer back; the reader must not be used after it.
func (r *chunkReader) release() {
	r.br.Reset(nil)
	chunkBuffers.Put(r.br)
	r.br, r.err = nil, io.ErrClosedPipe
}

// Read implements io.Reader. It returns io.EOF after the last chunk, whose
// trailer is still to be read.
func (r *chunkReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	for r.left == 0 {
		if r.err = r.next(); r.err != nil {
			return 0, r.err
		}
	}
	if int64(len(p)) > r.left {
		p = p[:r.left]
	}
	n, err := r.br.Read(p)
	r.left -= int64(n)
	if r.hash != nil {
		_, _ = r.hash.Write(p[:n])
	}
	if err != nil && (n == 0 || !errors.Is(err, io.EOF)) {
		r.err = cut(err)
		return n, r.err
	}
	return n, nil
}

// next ends the chunk before and reads the head of the next one; io.EOF means
// that it was the last.
func (r *chunkReader) next() error {
	if r.begun {
		if line, err := r.line(); err != nil {
			return err
		} else if len(line) != 0 {
			return errorf(CodeIncompleteBody, "a chunk is longer than its head says")
		}
		if err := r.verify(); err != nil {
			return err
		}
	}
	r.begun = true
	line, err := r.line()
	if err != nil {
		return err
	}
	size, extension, _ := bytes.Cut(line, []byte(";"))
	if r.left, err = parseChunkSize(size); err != nil {
		return err
	}
	if r.chain != nil {
		signature, ok := bytes.CutPrefix(bytes.TrimSpace(extension), []byte("chunk-signature="))
		if !ok {
			return errorf(CodeSignatureDoesNotMatch, "a chunk has no signature")
		}
		r.signature = string(signature)
	}
	if r.left > 0 {
		return nil
	}
	if err := r.verify(); err != nil {
		return err
	}
	return io.EOF
}

func parseChunkSize(digits []byte) (int64, error) {
	const most = 15 // so that the sum cannot overflow
	var size int64
	for _, c := range digits {
		var digit byte
		switch {
		case '0' <= c && c <= '9':
			digit = c - '0'
		case 'a' <= c && c <= 'f':
			digit = c - 'a' + 10
		case 'A' <= c && c <= 'F':
			digit = c - 'A' + 10
		default:
			return 0, errorf(CodeIncompleteBody, "the head of a chunk does not begin with its size")
		}
		size = size<<4 | int64(digit)
	}
	if len(digits) == 0 || len(digits) > most {
		return 0, errorf(CodeIncompleteBody, "the head of a chunk does not begin with its size")
	}
	return size, nil
}

func (r *chunkReader) verify() error {
	if r.chain == nil {
		return nil
	}
	var sum [sha256.Size]byte
	if !r.chain.verifyChunk(r.signature, r.hash.Sum(sum[:0])) {
		return errorf(CodeSignatureDoesNotMatch, "the signature of a chunk does not match its data")
	}
	r.hash.Reset()
	return nil
}

// line reads up to CR LF, which it takes off.
func (r *chunkReader) line() ([]byte, error) {
	line, err := r.br.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull) || len(line) > maxChunkLine:
		return nil, errorf(CodeIncompleteBody, "the head of a chunk is too long")
	case err != nil:
		return nil, cut(err)
	}
	text, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok {
		return nil, errorf(CodeIncompleteBody, "a line of the chunk framing does not end in CR LF")
	}
	return text, nil
}

// trailer reads what follows the last chunk, up to the end of the body, and
// returns its fields by name in lower case. wanted says whether the form has a
// trailer at all.
func (r *chunkReader) trailer(wanted bool) (map[string]string, error) {
	rest, err := io.ReadAll(io.LimitReader(r.br, maxTrailerBytes+1))
	if err != nil {
		return nil, cut(err)
	}
	if len(rest) > maxTrailerBytes {
		return nil, errorf(CodeMalformedTrailer, "the trailer is too long")
	}
	fields := make(map[string]string)
	var canonical []byte
	for line := range bytes.SplitSeq(rest, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		rawName, rawValue, ok := bytes.Cut(line, []byte(":"))
		if !ok || !wanted {
			return nil, errorf(CodeMalformedTrailer, "what follows the last chunk is no trailer")
		}
		name, value := strings.ToLower(string(bytes.TrimSpace(rawName))), string(bytes.TrimSpace(rawValue))
		if _, twice := fields[name]; twice {
			return nil, errorf(CodeMalformedTrailer, "the trailer %q is given twice", name)
		}
		fields[name] = value
		if name != trailerSignature {
			canonical = append(append(append(append(canonical, name...), ':'), value...), '\n')
		}
	}
	if wanted && r.chain != nil && !r.chain.verifyTrailer(fields[trailerSignature], canonical) {
		return nil, errorf(CodeSignatureDoesNotMatch, "the signature of the trailer does not match it")
	}
	return fields, nil
}

const trailerSignature = "x-amz-trailer-signature"

// cut says of a read error in the middle of a body that the body is not whole.
func cut(err error) error {
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &Error{Code: CodeRequestTimeout, Message: "the body did not arrive in time", Cause: err}
	}
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &Error{Code: CodeIncompleteBody, Message: "the body ended before all of it was sent", Cause: err}
}
