package servers

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// CutAfter returns the address of a proxy to the server at address. It passes
// the first request of each connection on up to the given number of bytes of
// its body, and then closes both connections.
func CutAfter(t testing.TB, address string, body int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go cut(client, address, body)
		}
	}()
	return l.Addr().String()
}

func cut(client net.Conn, address string, body int64) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	go func() { _, _ = io.Copy(client, server) }()
	var head []byte
	for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, one...) {
		if _, err := io.ReadFull(client, one); err != nil {
			return
		}
	}
	if _, err := server.Write(head); err != nil {
		return
	}
	_, _ = io.CopyN(server, client, body)
}
