package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/suaveplan/storagemux/internal/proxy/s3"
	"github.com/suaveplan/storagemux/internal/proxy/sigv4"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

func main() {
	h := s3.New(s3.Options{Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	h.SetConfig(&s3.Config{Storage: memory.New(0), Bucket: "assets", ServeBackendHeader: true,
		Keys: sigv4.NewKeyring(sigv4.Credentials{AccessKeyID: "AKIDTEST", SecretAccessKey: "secretsecret"})})
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	panic(http.Serve(l, h))
}
