package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// entry is one file of a layer, or one folder when source is empty.
type entry struct {
	path, source string
	mode         int64
	uid, gid     int
}

// layerContent holds the entries of a layer by their paths.
type layerContent map[string]entry

// add puts in an entry, and those of its parent folders that nobody has named.
func (c layerContent) add(e entry) {
	c[e.path] = e
	for parent := path.Dir(e.path); parent != "/"; parent = path.Dir(parent) {
		if _, found := c[parent]; !found {
			c[parent] = entry{path: parent, mode: 0o755}
		}
	}
}

// open gives the layer as an uncompressed tar stream. It may be called several times.
func (c layerContent) open() (io.ReadCloser, error) {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(c.writeTo(writer)) }()
	return reader, nil
}

func (c layerContent) writeTo(w io.Writer) error {
	archive := tar.NewWriter(w)
	// In the order of paths, a folder comes before what is in it.
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if err := c[key].writeTo(archive); err != nil {
			return err
		}
	}
	return archive.Close()
}

func (e entry) writeTo(archive *tar.Writer) error {
	header := &tar.Header{
		Name: strings.TrimPrefix(e.path, "/"), Mode: e.mode, Uid: e.uid, Gid: e.gid, ModTime: epoch, Format: tar.FormatPAX,
	}
	if e.source == "" {
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
		return archive.WriteHeader(header)
	}
	file, err := os.Open(e.source)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil {
		header.Typeflag, header.Size = tar.TypeReg, info.Size()
		err = archive.WriteHeader(header)
	}
	if err == nil {
		_, err = io.Copy(archive, file)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("add %s to the layer: %w", e.source, err)
	}
	return nil
}
