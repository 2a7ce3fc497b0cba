package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"bufio"
	"bytes"
	"net/http"

	"github.com/minio/minio-go/v7/pkg/signer"
)

// signedLarge is the head of a PUT of size bytes whose body is not signed.
func signedLarge(host, target string, size int64) ([]byte, error) {
	r, err := http.NewRequest(http.MethodPut, "http://"+host+target, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
	r = signer.SignV4(*r, accessKey, secretKey, "", region)
	var head bytes.Buffer
	fmt.Fprintf(&head, "PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", target, host, size)
	if err := r.Header.Write(&head); err != nil {
		return nil, err
	}
	head.WriteString("\r\n")
	return head.Bytes(), nil
}

// putLarge sends a PUT whose body is the same block over and over.
func putLarge(ctx context.Context, address string, head []byte, size int64) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Minute)); err != nil {
		return err
	}
	if _, err := conn.Write(head); err != nil {
		return err
	}
	c := &client{conn: conn, r: bufio.NewReader(conn)}
	for left := size; left > 0; {
		n, err := conn.Write(block[:min(left, int64(len(block)))])
		left -= int64(n)
		if err != nil {
			// It may have been refused: the answer says why.
			refusal, _ := io.ReadAll(io.LimitReader(c.r, 64<<10))
			return fmt.Errorf("%w; the answer is %q", err, refusal)
		}
	}
	status, _, err := c.answer(false)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}
