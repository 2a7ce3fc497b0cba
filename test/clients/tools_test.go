package clients

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	small = 3 << 10
	large = 12 << 20
	// odd is a key with what clients encode each in their own way.
	odd = "dir with space/ü+plus%25&amp=;'(1).bin"
)

// firstLine runs a program for its version.
func firstLine(name string, args ...string) func(context.Context, *endpoint) (string, error) {
	return func(ctx context.Context, e *endpoint) (string, error) {
		out, err := e.run(ctx, nil, name, args...)
		line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
		return strings.ReplaceAll(line, "|", " "), err
	}
}

func (e *endpoint) awsEnv() []string {
	return []string{
		"AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=" + secretKey, "AWS_DEFAULT_REGION=" + region, "AWS_REGION=" + region,
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=" + filepath.Join(e.dir, "aws-config"),
	}
}

func (e *endpoint) aws(ctx context.Context, args ...string) (string, error) {
	return e.run(ctx, e.awsEnv(), "/usr/bin/aws", append([]string{"--endpoint-url", e.url}, args...)...)
}

// roundTrip sends a file and compares what comes back.
func roundTrip(e *endpoint, size int, send, receive func(path string) error) error {
	path, err := e.file(fmt.Sprintf("up-%d", size), size)
	if err != nil {
		return err
	}
	back := path + ".back"
	if err := send(path); err != nil {
		return err
	}
	if err := receive(back); err != nil {
		return err
	}
	return errors.Join(same(path, back), os.Remove(back))
}

var awscli = client{
	name: "awscli",
	version: func(ctx context.Context, e *endpoint) (string, error) {
		line, err := firstLine("/usr/bin/aws", "--version")(ctx, e)
		name, _, _ := strings.Cut(line, " ") // the rest is about the machine
		return name, err
	},
	run: steps(
		step{"put and get", func(ctx context.Context, e *endpoint) error { return awsRoundTrip(ctx, e, "cli/small", small) }},
		step{"odd keys", func(ctx context.Context, e *endpoint) error { return awsRoundTrip(ctx, e, "cli/"+odd, small) }},
		step{"large in parts", func(ctx context.Context, e *endpoint) error { return awsRoundTrip(ctx, e, "cli/large", large) }},
		step{"list", func(ctx context.Context, e *endpoint) error {
			out, err := e.aws(ctx, "s3", "ls", "--recursive", "s3://"+bucket+"/cli/")
			return errors.Join(err, contains(out, "cli/small", "cli/large", "cli/"+odd))
		}},
		step{"copy", func(ctx context.Context, e *endpoint) error {
			if _, err := e.aws(ctx, "s3", "cp", "s3://"+bucket+"/cli/large", "s3://"+bucket+"/cli/copy"); err != nil {
				return err
			}
			_, err := e.aws(ctx, "s3", "cp", "s3://"+bucket+"/cli/copy", "copied")
			return errors.Join(err, same(filepath.Join(e.dir, "copied"), filepath.Join(e.dir, fmt.Sprintf("up-%d", large))))
		}},
		step{"range", func(ctx context.Context, e *endpoint) error {
			_, err := e.aws(ctx, "s3api", "get-object", "--bucket", bucket, "--key", "cli/large", "--range", "bytes=5-14", "ranged")
			data, readErr := os.ReadFile(filepath.Join(e.dir, "ranged"))
			if err == nil && len(data) != 10 {
				err = fmt.Errorf("got %d bytes", len(data))
			}
			return errors.Join(err, readErr)
		}},
		step{"sync", func(ctx context.Context, e *endpoint) error {
			for i := range 5 {
				if _, err := e.file(fmt.Sprintf("tree/%d/file", i), small+i); err != nil {
					return err
				}
			}
			if _, err := e.aws(ctx, "s3", "sync", "tree", "s3://"+bucket+"/cli/tree"); err != nil {
				return err
			}
			out, err := e.aws(ctx, "s3", "sync", "tree", "s3://"+bucket+"/cli/tree")
			if err == nil && strings.Contains(out, "upload") {
				err = fmt.Errorf("a second sync uploads again: %s", out)
			}
			return err
		}},
		step{"presigned URL", func(ctx context.Context, e *endpoint) error {
			out, err := e.aws(ctx, "configure", "set", "default.s3.signature_version", "s3v4")
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			if out, err = e.aws(ctx, "s3", "presign", "s3://"+bucket+"/cli/small"); err != nil {
				return err
			}
			_, err = e.run(ctx, nil, "curl", "-sf", "-o", "presigned", strings.TrimSpace(out))
			return errors.Join(err, same(filepath.Join(e.dir, "presigned"), filepath.Join(e.dir, fmt.Sprintf("up-%d", small))))
		}},
		step{"tags", func(ctx context.Context, e *endpoint) error {
			object := []string{"--bucket", bucket, "--key", "cli/small"}
			if _, err := e.aws(ctx, append([]string{"s3api", "put-object-tagging", "--tagging", "TagSet=[{Key=color,Value=blue}]"}, object...)...); err != nil {
				return err
			}
			if _, err := e.aws(ctx, "s3", "cp", "s3://"+bucket+"/cli/small", "s3://"+bucket+"/cli/tagged"); err != nil {
				return err
			}
			for _, key := range []string{"cli/small", "cli/tagged"} {
				out, err := e.aws(ctx, "s3api", "get-object-tagging", "--bucket", bucket, "--key", key, "--query", "TagSet[].[Key,Value]", "--output", "text")
				if err == nil && strings.Join(strings.Fields(out), "=") != "color=blue" {
					err = fmt.Errorf("the tags of %s are %q", key, out)
				}
				if err != nil {
					return err
				}
			}
			if _, err := e.aws(ctx, append([]string{"s3api", "delete-object-tagging"}, object...)...); err != nil {
				return err
			}
			out, err := e.aws(ctx, append([]string{"s3api", "get-object-tagging", "--query", "length(TagSet)"}, object...)...)
			if err == nil && strings.TrimSpace(out) != "0" {
				err = fmt.Errorf("%s tags are left", strings.TrimSpace(out))
			}
			return err
		}},
		step{"delete", func(ctx context.Context, e *endpoint) error {
			if _, err := e.aws(ctx, "s3", "rm", "--recursive", "s3://"+bucket+"/cli/"); err != nil {
				return err
			}
			out, err := e.aws(ctx, "s3api", "list-objects-v2", "--bucket", bucket, "--prefix", "cli/", "--query", "length(Contents || `[]`)")
			if err == nil && strings.TrimSpace(out) != "0" {
				err = fmt.Errorf("%s objects are left", strings.TrimSpace(out))
			}
			return err
		}},
	),
}

func awsRoundTrip(ctx context.Context, e *endpoint, key string, size int) error {
	return roundTrip(e, size,
		func(path string) error { _, err := e.aws(ctx, "s3", "cp", path, "s3://"+bucket+"/"+key); return err },
		func(path string) error { _, err := e.aws(ctx, "s3", "cp", "s3://"+bucket+"/"+key, path); return err })
}

func (e *endpoint) s3cmd(ctx context.Context, args ...string) (string, error) {
	host := strings.TrimPrefix(e.url, "http://")
	return e.run(ctx, nil, "s3cmd", append([]string{
		"--config", os.DevNull, "--no-ssl", "--host", host, "--host-bucket", host, "--access_key", accessKey, "--secret_key", secretKey,
		"--region", region, "--no-progress", "--multipart-chunk-size-mb", "5",
	}, args...)...)
}

var s3cmd = client{
	name:    "s3cmd",
	version: firstLine("s3cmd", "--version"),
	run: steps(
		step{"put and get", func(ctx context.Context, e *endpoint) error { return s3cmdRoundTrip(ctx, e, "s3cmd/small", small) }},
		step{"odd keys", func(ctx context.Context, e *endpoint) error { return s3cmdRoundTrip(ctx, e, "s3cmd/"+odd, small) }},
		step{"large in parts", func(ctx context.Context, e *endpoint) error { return s3cmdRoundTrip(ctx, e, "s3cmd/large", large) }},
		step{"list", func(ctx context.Context, e *endpoint) error {
			out, err := e.s3cmd(ctx, "ls", "--recursive", "s3://"+bucket+"/s3cmd/")
			return errors.Join(err, contains(out, "s3cmd/small", "s3cmd/large", "s3cmd/"+odd))
		}},
		step{"copy", func(ctx context.Context, e *endpoint) error {
			_, err := e.s3cmd(ctx, "cp", "s3://"+bucket+"/s3cmd/small", "s3://"+bucket+"/s3cmd/copy")
			return err
		}},
		step{"move", func(ctx context.Context, e *endpoint) error {
			_, err := e.s3cmd(ctx, "mv", "s3://"+bucket+"/s3cmd/copy", "s3://"+bucket+"/s3cmd/moved")
			return err
		}},
		step{"sync", func(ctx context.Context, e *endpoint) error {
			for i := range 3 {
				if _, err := e.file(fmt.Sprintf("tree/%d/file", i), small+i); err != nil {
					return err
				}
			}
			_, err := e.s3cmd(ctx, "sync", "tree/", "s3://"+bucket+"/s3cmd/tree/")
			return err
		}},
		step{"delete", func(ctx context.Context, e *endpoint) error {
			if _, err := e.s3cmd(ctx, "del", "--recursive", "--force", "s3://"+bucket+"/s3cmd/"); err != nil {
				return err
			}
			out, err := e.s3cmd(ctx, "ls", "--recursive", "s3://"+bucket+"/s3cmd/")
			if err == nil && strings.TrimSpace(out) != "" {
				err = fmt.Errorf("left: %s", out)
			}
			return err
		}},
	),
}

func s3cmdRoundTrip(ctx context.Context, e *endpoint, key string, size int) error {
	return roundTrip(e, size,
		func(path string) error { _, err := e.s3cmd(ctx, "put", path, "s3://"+bucket+"/"+key); return err },
		func(path string) error { _, err := e.s3cmd(ctx, "get", "s3://"+bucket+"/"+key, path); return err })
}

func (e *endpoint) rcloneEnv() []string {
	p := "RCLONE_CONFIG_MUX_"
	return []string{
		"RCLONE_CONFIG=" + os.DevNull, p + "TYPE=s3", p + "PROVIDER=Other", p + "ENDPOINT=" + e.url, p + "ACCESS_KEY_ID=" + accessKey,
		p + "SECRET_ACCESS_KEY=" + secretKey, p + "REGION=" + region, p + "UPLOAD_CUTOFF=6M", p + "CHUNK_SIZE=5M",
	}
}

func (e *endpoint) rclone(ctx context.Context, args ...string) (string, error) {
	return e.run(ctx, e.rcloneEnv(), "rclone", args...)
}

var rclone = client{
	name:    "rclone",
	version: firstLine("rclone", "version"),
	run: steps(
		step{"copy", func(ctx context.Context, e *endpoint) error {
			for name, size := range map[string]int{"tree/small": small, "tree/" + odd: small + 1, "tree/large": large, "tree/empty": 0} {
				if _, err := e.file(name, size); err != nil {
					return err
				}
			}
			_, err := e.rclone(ctx, "copy", "tree", "MUX:"+bucket+"/rclone")
			return err
		}},
		step{"check", func(ctx context.Context, e *endpoint) error {
			_, err := e.rclone(ctx, "check", "--download", "tree", "MUX:"+bucket+"/rclone")
			return err
		}},
		step{"list", func(ctx context.Context, e *endpoint) error {
			out, err := e.rclone(ctx, "lsf", "-R", "--files-only", "MUX:"+bucket+"/rclone")
			return errors.Join(err, contains(out, "small", "large", "empty", odd))
		}},
		step{"sync", func(ctx context.Context, e *endpoint) error {
			if err := os.Remove(filepath.Join(e.dir, "tree/small")); err != nil {
				return err
			}
			if _, err := e.rclone(ctx, "sync", "tree", "MUX:"+bucket+"/rclone"); err != nil {
				return err
			}
			out, err := e.rclone(ctx, "lsf", "MUX:"+bucket+"/rclone")
			if err == nil && strings.Contains(out, "small") {
				err = errors.New("what was removed here is still there")
			}
			return err
		}},
		step{"server-side move", func(ctx context.Context, e *endpoint) error {
			_, err := e.rclone(ctx, "moveto", "MUX:"+bucket+"/rclone/large", "MUX:"+bucket+"/rclone/moved")
			return err
		}},
		step{"mount, read", func(ctx context.Context, e *endpoint) error {
			return e.mounted(ctx, e.rcloneEnv(), func(dir string) error {
				return same(filepath.Join(dir, "moved"), filepath.Join(e.dir, "tree/large"))
			}, "rclone", "mount", "--read-only", "MUX:"+bucket+"/rclone")
		}},
		step{"delete", func(ctx context.Context, e *endpoint) error {
			_, err := e.rclone(ctx, "purge", "MUX:"+bucket+"/rclone")
			return err
		}},
	),
}

// mounted runs f on a folder that a program mounts in the foreground; the folder
// is its last argument.
func (e *endpoint) mounted(ctx context.Context, env []string, f func(dir string) error, name string, args ...string) error {
	dir := filepath.Join(e.dir, "mount")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var output strings.Builder
	cmd := exec.CommandContext(ctx, name, append(args, dir)...)
	cmd.Env = append(plainEnviron(), env...)
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Dir = e.dir
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is told to end
		close(ended)
	}()
	defer func() {
		_, _ = e.run(ctx, nil, "fusermount", "-u", "-z", dir)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
	}()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		mounts, err := os.ReadFile("/proc/self/mounts")
		switch {
		case err != nil:
			return err
		case strings.Contains(string(mounts), " "+dir+" "):
			if err := f(dir); err != nil {
				return fmt.Errorf("%w; %s said: %s", err, name, output.String())
			}
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%s has not mounted after 20 s: %s", name, output.String())
		}
	}
}

var s3fs = client{
	name:    "s3fs",
	version: firstLine("s3fs", "--version"),
	run: func(ctx context.Context, e *endpoint, tell func(string, error)) {
		passwd := filepath.Join(e.dir, "passwd")
		tell("password file", os.WriteFile(passwd, []byte(accessKey+":"+secretKey), 0o600))
		err := e.mounted(ctx, nil, func(dir string) error {
			path, err := e.file("noise", large)
			if err != nil {
				return err
			}
			_, err = e.run(ctx, nil, "cp", path, filepath.Join(dir, "file"))
			tell("write in parts", err)
			tell("read", same(path, filepath.Join(dir, "file")))
			tell("make a folder", os.Mkdir(filepath.Join(dir, "folder"), 0o755))
			tell("rename", os.Rename(filepath.Join(dir, "file"), filepath.Join(dir, "folder/renamed")))
			tell("read what was renamed", same(path, filepath.Join(dir, "folder/renamed")))
			tell("append", appendTo(filepath.Join(dir, "folder/renamed")))
			tell("remove", os.RemoveAll(filepath.Join(dir, "folder")))
			return nil
		}, "s3fs", "-f", bucket, "-o", "url="+e.url, "-o", "passwd_file="+passwd, "-o", "use_path_request_style", "-o", "endpoint="+region,
			"-o", "multipart_size=5", "-o", "singlepart_copy_limit=5")
		tell("mount", err)
	},
}

func appendTo(path string) error {
	before, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("more")
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	after, err := os.Stat(path)
	if err == nil && after.Size() != before.Size()+4 {
		err = fmt.Errorf("%d bytes became %d", before.Size(), after.Size())
	}
	return err
}
