//go:build darwin || freebsd || netbsd

package file

import "golang.org/x/sys/unix"

const noAttribute = unix.ENOATTR
