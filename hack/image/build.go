package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// recipe is what an image is made of, as the flags of the same names give it.
type recipe struct {
	binary, platform, user         string
	args, env, labels, files, dirs []string
}

// build turns a recipe into an image of one layer.
func build(r recipe) (v1.Image, error) {
	if r.binary == "" {
		return nil, errors.New("--binary is missing")
	}
	platform, err := v1.ParsePlatform(r.platform)
	if err != nil || platform.OS == "" || platform.Architecture == "" {
		return nil, fmt.Errorf("--platform %q is not of the form os/architecture", r.platform)
	}
	labels, err := pairs(r.labels)
	if err != nil {
		return nil, fmt.Errorf("--label: %w", err)
	}
	content, err := r.entries()
	if err != nil {
		return nil, err
	}

	// Speed over size: these images mostly travel from one folder of a machine to another.
	layer, err := tarball.LayerFromOpener(content.open, tarball.WithCompressionLevel(gzip.BestSpeed))
	if err != nil {
		return nil, fmt.Errorf("make the image's layer: %w", err)
	}
	image, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{CreatedBy: "storagemux hack/image", Created: v1.Time{Time: epoch}},
	})
	if err != nil {
		return nil, fmt.Errorf("add the image's layer: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the image's config: %w", err)
	}
	file = file.DeepCopy()
	// Without these two, container engines take an image as meant for another machine.
	file.OS, file.Architecture, file.Variant = platform.OS, platform.Architecture, platform.Variant
	file.Created = v1.Time{Time: epoch}
	file.Config = v1.Config{
		Entrypoint: []string{"/" + filepath.Base(r.binary)},
		Cmd:        r.args,
		Env:        r.env,
		Labels:     labels,
		User:       r.user,
		WorkingDir: "/",
	}
	return mutate.ConfigFile(image, file)
}

// epoch stands for every time in an image, so that the same inputs give the same image.
var epoch = time.Unix(0, 0).UTC()

// entries lists the content of the layer.
func (r recipe) entries() (layerContent, error) {
	uid, gid, err := owner(r.user)
	if err != nil {
		return nil, err
	}
	content := layerContent{}
	content.add(entry{path: "/" + filepath.Base(r.binary), source: r.binary, mode: 0o755})
	for _, file := range r.files {
		source, target, found := strings.Cut(file, ":")
		if !found || !path.IsAbs(target) {
			return nil, fmt.Errorf("--file %q is not of the form source:/path/in/image", file)
		}
		content.add(entry{path: path.Clean(target), source: source, mode: 0o644})
	}
	for _, dir := range r.dirs {
		if !path.IsAbs(dir) {
			return nil, fmt.Errorf("--dir %q is not an absolute path", dir)
		}
		content.add(entry{path: path.Clean(dir), mode: 0o755, uid: uid, gid: gid})
	}
	return content, nil
}

func owner(user string) (uid, gid int, err error) {
	first, second, found := strings.Cut(user, ":")
	uid, errUser := strconv.Atoi(first)
	gid, errGroup := strconv.Atoi(second)
	if !found || errUser != nil || errGroup != nil {
		return 0, 0, fmt.Errorf("--user %q is not of the form uid:gid, in numbers", user)
	}
	return uid, gid, nil
}

func pairs(list []string) (map[string]string, error) {
	result := make(map[string]string, len(list))
	for _, item := range list {
		key, value, found := strings.Cut(item, "=")
		if !found {
			return nil, fmt.Errorf("%q is not of the form key=value", item)
		}
		result[key] = value
	}
	return result, nil
}
